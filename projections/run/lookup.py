"""Which run is meant: `latest`, a whole id, or a prefix that only one run has."""

from collections.abc import Sequence

from ledger.errors import RunUnknown


def find_run(runs: Sequence[str], wanted: str) -> str:
    """The run that `wanted` names; `runs` in the order in which they began. Raises RunUnknown."""
    if not runs:
        raise RunUnknown("this ledger has no runs yet", "start one with `ledger gate`")
    if wanted in ("", "latest"):
        return runs[-1]
    if wanted in runs:
        return wanted
    matching = [run for run in runs if run.startswith(wanted)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise RunUnknown(f"{wanted!r} could be any of {', '.join(matching[-5:])}", "give more of the run's id")
    raise RunUnknown(f"no run begins with {wanted!r}", f"the latest is {runs[-1]}")
