"""What the program itself does about a gate of a release that did not pass, before it asks a person.

`ROWS` is the table, printed in docs/autoheal.md; the first row that holds is the answer. A row holds for its cause (`*`
for each), when what it `needs` is so, and when its action was not taken `most` times yet for the same signature (`-`:
as often as it likes). Every action but `hitl`, which leaves it to a person, begins the gate again: what was measured
stands, and only what is owed is run.

| needs           | is so when                                                                             |
|---|---|
| `nothing-owed`  | nothing is left to run: everything was measured, or the gate never began               |
| `signature-cap` | as much was done about this signature as `CAPS` says                                   |
| `release-cap`   | so was about this release                                                              |
| `memory`        | a limit of memory ended an attempt, and is higher for the next one                     |
| `halves`        | the gate stopped before it could tell the targets of a group apart, and goes on there  |
| `alone`         | it stopped before it could try one of them by itself, and goes on there                |
| `member`        | the pool has another member than the one that was used                                 |
| `may-differ`    | a code may not come again when nothing is changed; the retry ladder knows which        |
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, get_args

from msgspec import Struct

from ledger.events import AutohealDecided
from projections.release.trouble import Cause, Trouble

Action = Literal[
    "retry-shard", "more-memory", "split", "isolate", "partial-resume", "reroute-shard", "host-switch", "hitl"
]

HEALING_VERSION = "autoheal/1"
CAPS = {"signature": 2, "release": 4}

ROWS = """
row  cause            needs          most  action
A1   true-regression  -              -     hitl
A2   *                nothing-owed   -     hitl
A3   *                signature-cap  -     hitl
A4   *                release-cap    -     hitl
D1   shard-death      memory         1     more-memory
D2   shard-death      halves         1     split
D3   shard-death      alone          1     isolate
D4   shard-death      member         1     reroute-shard
D5   shard-death      -              2     retry-shard
T1   timeout          halves         1     split
T2   timeout          alone          1     isolate
T3   timeout          member         1     reroute-shard
T4   timeout          -              1     retry-shard
H1   host-down        member         2     host-switch
H2   host-down        -              1     retry-shard
I1   interference     -              1     partial-resume
E1   environment      member         1     host-switch
E2   environment      may-differ     1     retry-shard
Z1   *                -              -     hitl
"""

AUTO = "auto"
"""The member that is chosen by the pool."""

_POD = re.compile(r"\d+")
_REROUTING = frozenset({"retry-shard", "reroute-shard", "host-switch"})


class Row(Struct, frozen=True):
    """One row of the table; "" needs nothing, `most` None is as often as it likes."""

    row: str
    cause: str
    needs: str
    most: int | None
    action: Action

    def why_not(self, facts: Collection[str], history: Mapping[str, int]) -> str:
        """What keeps the row from being the answer: what it needs, or `taken`; "" when nothing does."""
        if self.needs and self.needs not in facts:
            return self.needs
        return "taken" if self.most is not None and history.get(self.action, 0) >= self.most else ""


class Healing(Struct, frozen=True, kw_only=True):
    """The answer, with everything that it was reached by; the fields are those of `autoheal-decided`."""

    history: dict[str, int]
    taken: int
    facts: tuple[str, ...]
    row: str
    action: Action
    passed_over: dict[str, str]
    subject: str


def choose(trouble: Trouble, decided: Iterable[AutohealDecided]) -> Healing:
    """What is done about this trouble, after what was decided before in this release."""
    before = [one for one in decided if heals(one)]
    signature = trouble.signature()
    history = dict(Counter(one.action for one in before if one.signature == signature))
    facts = facts_of(trouble, history, len(before))
    row, passed_over = answer(trouble.cause, facts, history)
    return Healing(
        history=history,
        taken=len(before),
        facts=facts,
        row=row.row,
        action=row.action,
        passed_over=passed_over,
        subject=_subject(row.action, trouble),
    )


def answer(cause: Cause, facts: Collection[str], history: Mapping[str, int]) -> tuple[Row, dict[str, str]]:
    """The row of the table that holds, and those before it that might have healed, each with why it does not hold."""
    passed_over: dict[str, str] = {}
    for row in (row for row in _ROWS if row.cause in ("*", cause)):
        why_not = row.why_not(facts, history)
        if not why_not:
            return row, passed_over
        # A row that leaves it to a person is no way of healing that was missed.
        passed_over |= {row.row: why_not} if row.action != "hitl" else {}
    raise AssertionError("the last row of the table holds for everything")


def facts_of(trouble: Trouble, history: Mapping[str, int], taken: int) -> tuple[str, ...]:
    """What is so of that which rows need, in the order of the table of this module."""
    found = {
        "nothing-owed": not trouble.owed,
        "signature-cap": sum(history.values()) >= CAPS["signature"],
        "release-cap": taken >= CAPS["release"],
        "memory": trouble.more_memory,
        "halves": trouble.halves,
        "alone": trouble.alone,
        "member": len(trouble.members) > 1,
        "may-differ": trouble.may_differ,
    }
    return tuple(name for name, holds in found.items() if holds)


def _subject(action: Action, trouble: Trouble) -> str:
    """The shard that it is about when that is one; else, where another place is looked for, what the pool chooses."""
    if action == "host-switch":
        return AUTO
    if len(trouble.shards) == 1:
        return trouble.shards[0]
    return AUTO if action == "reroute-shard" else ""


def is_known(decision: AutohealDecided) -> bool:
    """Whether this version knows what was decided. What it does not know it shows, and does not act on."""
    return decision.action in get_args(Action) and decision.cause in get_args(Cause)


def heals(decision: AutohealDecided) -> bool:
    """Whether the gate is begun again for this decision."""
    return is_known(decision) and decision.action != "hitl"


def told(decision: AutohealDecided) -> str:
    """The decision in words."""
    if not is_known(decision):
        return f"ignored: this version knows no {decision.action!r} for {decision.cause!r} ({decision.table})"
    codes = f" ({', '.join(decision.codes)})" if decision.codes else ""
    subject = f" of {decision.subject}" if decision.subject else ""
    action = "left to a person" if decision.action == "hitl" else decision.action
    return f"{action}: {decision.cause}{subject}{codes}, by row {decision.row} of {decision.table}"


def rerouted(wanted: str) -> str:
    """The shard that a person means: `3` means `pod-3`."""
    return f"pod-{wanted}" if _POD.fullmatch(wanted) else wanted


def rerouted_by(decision: AutohealDecided | None) -> str:
    """The shard that the gate moves to another member because of a decision, `auto` for the pool's choice, "" for
    none. Only for a gate of the same commit, and a pool that has another member."""
    if decision is None or not is_known(decision) or decision.action not in _REROUTING:
        return ""
    return AUTO if decision.action == "host-switch" else rerouted(decision.subject) or AUTO


def printed_healing() -> str:
    """The table as it stands in the docs."""
    return f"{ROWS.strip()}\n\ncaps: {', '.join(f'{most} per {what}' for what, most in CAPS.items())}"


def _parse(table: str) -> tuple[Row, ...]:
    _, *rows = (line.split() for line in table.strip().splitlines())
    return tuple(
        Row(row, cause, "" if needs == "-" else needs, None if most == "-" else int(most), action)  # type: ignore[arg-type]
        for row, cause, needs, most, action in rows
    )


_ROWS = _parse(ROWS)
