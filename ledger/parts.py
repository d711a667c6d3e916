"""Parts of targets: a slow target may be planned as several, each of which runs some of its tests.

A part has a name of its own, `tests/test_slow.py::part-1-of-3`, which stands wherever the name of a target does: in
plans, attempts, and what is owed. Tests keep the name of the whole target.
"""

import re

_PART = re.compile(r"(.+)::part-([1-9]\d*)-of-([1-9]\d*)", re.DOTALL)


def part_name(target: str, number: int, total: int) -> str:
    """The name of one of the parts of a target, numbered from 1."""
    return f"{target}::part-{number}-of-{total}"


def whole_target(name: str) -> str:
    """The target that a part is of; any other name is that of a whole target."""
    found = _PART.fullmatch(name)
    return found[1] if found else name


def part_count(name: str) -> int:
    """How many parts the target of this part has; 1 for a whole target."""
    found = _PART.fullmatch(name)
    return int(found[3]) if found else 1
