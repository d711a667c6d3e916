"""Rows as text: a table for people, and exact forms for programs (JSON, JSON lines, CSV)."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec
from msgspec import Struct

from commands.render.words import clipped, safe, wrapped
from projections.queries.conditions import cell_text

CELL_MAX = 80
"""A cell of a table shows so many characters; the other forms have all of them."""

MEASURED_ROWS = 500
"""The columns of a table are as wide as the cells of its first rows need."""


BLOCK_CELL_MAX = 400
"""Where every cell has lines of its own, it shows so many characters."""


def table_lines(columns: Sequence[str], rows: Iterable[Struct], width: int | None = None) -> Iterator[str]:
    """A table with a heading; nothing in a cell can control the terminal.

    Where the table is wider than `width` (None for no limit), each row is a block of lines instead, one for each cell
    that holds something: a line that the terminal breaks cannot be read as part of a table.
    """
    texts = ([safe(cell_text(getattr(row, name))) for name in columns] for row in rows)
    first = list(islice(texts, MEASURED_ROWS))
    shown = [[clipped(cell, CELL_MAX) for cell in line] for line in first]
    widths = [max(map(len, column)) for column in zip(columns, *shown, strict=True)]
    if width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        yield from _blocks(columns, chain(first, texts), width) if first else ["no rows"]
        return
    for line in chain([columns], shown, ([clipped(cell, CELL_MAX) for cell in line] for line in texts)):
        yield "  ".join(cell.ljust(wide) for cell, wide in zip(line, widths, strict=True)).rstrip()


def _blocks(columns: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Iterator[str]:
    """Each row as a block, with an empty line between two."""
    begin = max(map(len, columns)) + 2
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, cell in zip(columns, row, strict=True):
            if cell:
                yield from wrapped(f"{name:<{begin}}{clipped(cell, BLOCK_CELL_MAX)}", width, " " * begin)


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
