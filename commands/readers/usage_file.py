"""Usage as a file: targets with time and memory, or tests with their times as pytest-split keeps them."""

import json
import math
from collections import defaultdict
from typing import Any

from commands.decide.planner.estimate import KnownUsage
from ledger.errors import LedgerError

LARGEST = 2**53
"""Beyond it a number changes its value on the way through other programs' JSON."""

_FORMS = '{"target": {"memory_bytes": 1048576, "seconds": 1.5}} or {"target::test": 1.5}'


class UsageFileInvalid(LedgerError):
    """The file with usage is not one that can be read; nothing of it is used."""

    code = "usage-file-invalid"
    exit_code = 2


def read_usage(data: bytes) -> dict[str, KnownUsage]:
    """What is known of each target. Raises UsageFileInvalid.

    A number stands for the seconds of one test of the target, the part of the name before `::`; they are added up.
    Two values for one name, and a target that is given in both forms, contradict each other and are refused.
    """
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"not a JSON document: {error}") from error
    if not isinstance(document, dict):
        raise _invalid("not an object with the names of targets")
    known: dict[str, KnownUsage] = {}
    times: defaultdict[str, list[float]] = defaultdict(list)
    for name, value in document.items():
        if isinstance(value, dict):
            known[name] = _usage(name, value)
        else:
            times[name.partition("::")[0]].append(_seconds(name, value))
    if both := sorted(known.keys() & times.keys()):
        raise _invalid(f"{both[0]!r} is given with its memory and again without")
    return known | {target: KnownUsage(seconds=math.fsum(seconds)) for target, seconds in times.items()}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a name comes twice. Raises ValueError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _usage(name: str, value: dict[str, Any]) -> KnownUsage:
    memory = value.get("memory_bytes")
    if not isinstance(memory, int) or isinstance(memory, bool) or not 0 < memory <= LARGEST:
        raise _invalid(f"`memory_bytes` of {name!r} is not a whole number of bytes above 0")
    return KnownUsage(seconds=_seconds(name, value.get("seconds")), memory_bytes=memory)


def _seconds(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise _invalid(f"the time of {name!r} is not a number of seconds")
    return float(value)


def _invalid(what: str) -> UsageFileInvalid:
    return UsageFileInvalid(f"the usage cannot be read: {what}", f"it has to be like {_FORMS}")
