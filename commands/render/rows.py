"""Rows as text: a table for people, and exact forms for programs (JSON, JSON lines, CSV)."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec
from msgspec import Struct

from commands.render.words import clipped, safe
from projections.queries.conditions import cell_text

CELL_MAX = 80
"""A cell of a table shows so many characters; the other forms have all of them."""

MEASURED_ROWS = 500
"""The columns of a table are as wide as the cells of its first rows need."""


def table_lines(columns: Sequence[str], rows: Iterable[Struct]) -> Iterator[str]:
    """A table with a heading; nothing in a cell can control the terminal."""
    cells = ([clipped(safe(cell_text(getattr(row, name))), CELL_MAX) for name in columns] for row in rows)
    first = list(islice(cells, MEASURED_ROWS))
    widths = [max(map(len, column)) for column in zip(columns, *first, strict=True)]
    for line in chain([columns], first, cells):
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def csv_pieces(columns: Sequence[str], rows: Iterable[Struct]) -> Iterator[str]:
    """CSV as in RFC 4180, with a heading; None is an empty cell."""
    for cells in chain([columns], ([cell_text(getattr(row, name)) for name in columns] for row in rows)):
        line = io.StringIO()
        csv.writer(line).writerow(cells)
        yield line.getvalue()


def json_lines(rows: Iterable[Struct]) -> Iterator[str]:
    """One JSON object a line."""
    return (json_text(row) + "\n" for row in rows)


def json_pieces(view: str, run: str | None, sequence: int, rows: Iterable[Struct]) -> Iterator[str]:
    """One JSON document: the view, the run (null for all), the last sequence taken into account, and the rows."""
    head = json_text({"view": view, "run": run, "sequence": sequence})
    yield f'{head[:-1]},"rows":['
    for number, row in enumerate(rows):
        yield ("," if number else "") + json_text(row)
    yield "]}\n"


def json_text(document: object) -> str:
    """Compact JSON in ASCII."""
    return json.dumps(msgspec.to_builtins(document), separators=(",", ":"))
