"""Conditions on rows: `column=value`, `column!=value` and `column~text`, all of which must hold."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from ledger.errors import LedgerError

_CONDITION = re.compile(r"([^=!~]*)(!=|=|~)(.*)", re.DOTALL)

Operator = Literal["=", "!=", "~"]


class ConditionMalformed(LedgerError):
    """It is not a condition."""

    code = "condition-malformed"
    exit_code = 2


class ColumnUnknown(LedgerError):
    """The view has no column of this name."""

    code = "column-unknown"
    exit_code = 2


class Condition(Struct, frozen=True):
    """What a cell must be, must not be, or must contain, as text."""

    column: str
    operator: Operator
    value: str

    def holds(self, row: Struct) -> bool:
        """Whether the row is one of those that are meant."""
        text = cell_text(getattr(row, self.column))
        if self.operator == "~":
            return self.value in text
        return (text == self.value) == (self.operator == "=")


def parse_conditions(texts: Sequence[str], row_type: type[Struct]) -> tuple[Condition, ...]:
    """Read conditions on rows of this type. Raises ConditionMalformed and ColumnUnknown."""
    return tuple(_parse(text, row_type) for text in texts)


def _parse(text: str, row_type: type[Struct]) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ConditionMalformed(
            f"{text!r} is not a condition", "give COLUMN=VALUE, COLUMN!=VALUE, or COLUMN~TEXT for cells that contain it"
        )
    column, operator, value = match.groups()
    if column not in row_type.__struct_fields__:
        raise ColumnUnknown(f"there is no column {column!r}", f"there are {', '.join(row_type.__struct_fields__)}")
    return Condition(column, cast(Operator, operator), value)


def matching(rows: Iterable[Struct], conditions: Sequence[Condition]) -> Iterator[Struct]:
    """The rows for which every condition holds."""
    return (row for row in rows if all(condition.holds(row) for condition in conditions))


def cell_text(value: Any) -> str:
    """A cell as text: "" for None, `true` and `false`, and compact JSON for what is neither text nor number."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"), ensure_ascii=False)
