"""Reads the targets of a side from what a command printed, a line or a NUL-terminated name each."""

from typing import NamedTuple

from commands.executors.api import JobEnd
from commands.readers.attempt import CollectionReading
from ledger.tables import InventoryTarget

READER = "target-list/1"

LIST_BYTES = 64 * 2**20
"""A longer list is none."""


class _Invalid(NamedTuple):
    cause: str
    detail: str


def read_targets(printed: bytes, end: JobEnd, *, terminated: bool, tree: str) -> CollectionReading:
    """Read a list of targets. `terminated`: names end with NUL, else a target has a line.

    After a tab a line names the file or the directory that holds the target, as it stands below `tree` or absolutely;
    without it the target is its own file. A list that is not whole, or that holds anything doubtful, gives no target.
    """
    trouble = _ended(end)
    found = trouble or _targets(printed, terminated=terminated, tree=tree.rstrip("/") + "/")
    if isinstance(found, _Invalid):
        return CollectionReading(complete=False, cause=found.cause, detail=found.detail, targets=())
    targets = tuple(InventoryTarget(target=name, blob=None, cases=()) for name in sorted(found))
    return CollectionReading(complete=True, cause=None, detail="", targets=targets, places=found)


def _ended(end: JobEnd) -> _Invalid | None:
    if end.end != "exited":
        return _Invalid(end.end, end.detail or f"the command that lists the targets ended by: {end.end}")
    if end.exit_code != 0:
        return _Invalid("list-failed", f"the command that lists the targets exited with {end.exit_code}")
    return None


def _targets(printed: bytes, *, terminated: bool, tree: str) -> dict[str, str] | _Invalid:
    if len(printed) > LIST_BYTES:
        return _Invalid("list-invalid", f"the list is longer than {LIST_BYTES} bytes")
    try:
        text = printed.decode("utf-8")
    except UnicodeDecodeError as error:
        return _Invalid("list-invalid", f"the list is not UTF-8 at byte {error.start}")
    end = "\0" if terminated else "\n"
    if text and not text.endswith(end):
        return _Invalid("list-invalid", "the list breaks off within a name")
    targets: dict[str, str] = {}
    for line in text.split(end)[:-1]:
        entry = line if terminated else line.removesuffix("\r")
        name, _, holder = (entry, "", "") if terminated else entry.partition("\t")
        if not entry and not terminated:
            continue
        if not _is_name(name) or not (holder == "" or holder.isprintable()):
            return _Invalid("list-invalid", f"the list holds {entry[:200]!a}, which cannot be a target")
        if targets.setdefault(name, _inside(holder or name, tree)) != _inside(holder or name, tree):
            return _Invalid("list-invalid", f"the list holds {name[:200]!a} twice, in different places")
    return targets or _Invalid("nothing-collected", "not one target was listed")


def _is_name(name: str) -> bool:
    """Whether a name can stand on a command line, and is not taken for an option there."""
    return bool(name) and name.isprintable() and name[0] not in "- " and name[-1] != " "


def _inside(place: str, tree: str) -> str:
    """The path of a place below the tree, "" for the tree itself."""
    return f"{place}/".removeprefix(tree).removeprefix("./").rstrip("/")
