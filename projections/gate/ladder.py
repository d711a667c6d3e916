"""The retry ladder: what is tried again after an attempt that did not measure everything, by its reason code.

Two versions are in force, and the policy of a run says by which it is decided: `ladder/2` where its `retry` says so,
`ladder/1` where it only says whether failures are run again. Older runs try everything that is missing again while
rounds are left. Each try up the ladder is made only when the ones before it are used up:

1. *again*: everything that is missing, those targets last that an attempt died in. As often as `RUNGS` says (`*`: as
   often as it likes), and never more often than the policy's rounds.
2. *others*: what is missing without the targets that an attempt died in, so that these keep nobody from being measured.
3. *halves*, in `ladder/2`: where nobody knows in which of its targets an attempt died, the first half of them by itself
   (the larger one), then the rest by itself, and again for each half that dies, the largest first.
4. *alone*: each target that an attempt died in, once by itself; in `ladder/2`, once more after each resume.

2 to 4 are for causes of which `isolated` is `yes`, and for policies of more than one round. A limit of memory or time
is twice as high after each attempt that it ended (see `commands/decide/attempts/limits.py`). When the same cause left
more than half of the planned shards, and at least 3, without any result, it is the change or the machine: those are not
tried again before a resume.

No side is tried more than 8 times before a resume; in `ladder/2` not more than

    8 + halves x log2(targets), rounded up

where `targets` are the most that one attempt of the side was asked for and `halves` is that of the last cause. To find
one target among so many takes 2 tries for each time that they are halved, and to find two takes 4; where each try costs
a whole limit, the tries are enough for one.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

Step = Literal["again", "others", "halves", "alone", "stop"]

LADDER_VERSION: Literal["ladder/2"] = "ladder/2"
TRIES_MOST = 8
SAME_CAUSE_LEAST = 3
SAME_CAUSE = "same-cause"
"""The code of why what most shards have in common is not tried again."""

RUNGS = """
cause                  again  isolated  halves
signalled              *      yes       4
worker-crashed         *      yes       4
session-ended-early    *      yes       4
interrupted            *      yes       4
exit-code-unexpected   *      yes       4
time-limit             *      yes       2
idle-limit             *      yes       2
memory-limit           *      yes       2
cases-missing          *      yes       4
record-truncated       *      yes       4
target-missing         *      yes       4
report-missing         *      yes       4
report-empty           *      yes       4
report-malformed       *      yes       4
case-unnamed           *      yes       4
runner-internal-error  1      yes       4
collection-aborted     1      no        0
nothing-collected      1      no        0
record-missing         1      no        0
foreign-tests          1      no        0
not-started            1      no        0
prepare-failed         1      no        0
probe-failed           1      no        0
list-failed            1      no        0
list-invalid           1      no        0
report-not-fresh       0      no        0
link-in-the-way        0      no        0
version-unknown        0      no        0
runner-usage-error     0      no        0
wrong-tree             0      no        0
pytest-missing         0      no        0
python-missing         0      no        0
"""


class Rung(Struct, frozen=True):
    """How a cause is answered: how often everything is tried again at most (None: as often as rounds allow), whether
    targets are then told apart, and how many more tries that may take for each time that they are halved."""

    again: int | None = None
    isolated: bool = False
    halves: int = 0

    def tries_most(self, targets: int) -> int:
        """How often a side may be tried in all of which an attempt was asked for so many targets."""
        return TRIES_MOST + self.halves * max(0, targets - 1).bit_length()


class Blame(Struct, frozen=True):
    """What an attempt that did not come to its end says of a target: that it died in it, or in one of so many.

    `attempt` is its number, `asked` the number of targets that it was asked for, `blamed` how many of them it may have
    died in. Nobody knows in which one it died when these are all.
    """

    attempt: int
    asked: int
    blamed: int

    @property
    def nobody_knows(self) -> bool:
        """Whether the attempt tells none of its targets from the others."""
        return self.blamed == self.asked

    def is_narrower(self, other: "Blame | None") -> bool:
        """Whether this says more of a target than the other does; of two that say as much, the later one does."""
        return other is None or (self.blamed, -self.attempt) < (other.blamed, -other.attempt)


def next_part(targets: Sequence[str], blames: Mapping[str, Blame], since: int) -> tuple[str, ...]:
    """Which of these targets are tried by themselves next; none when each was tried alone by attempt `since` or later.

    `blames` are the narrowest ones. A group are the targets with the same blame: when they are all that the attempt
    was asked for, their first half is next, and else they are themselves. All is in byte order, so that it makes no
    difference in which order the targets are given.
    """
    groups: dict[Blame, list[str]] = {}
    for target in sorted(targets):
        if target in blames:
            groups.setdefault(blames[target], []).append(target)
    for blame in sorted(groups, key=lambda one: (-one.blamed, one.attempt)):
        group = groups[blame]
        if blame.nobody_knows and blame.asked > 1:
            return tuple(group if len(group) < blame.asked else group[: (len(group) + 1) // 2])
    alone = {target for target, blame in blames.items() if blame.asked == 1 and blame.attempt >= since}
    return tuple(target for target in sorted(targets) if target in blames and target not in alone)[:1]


def rung(cause: str | None) -> Rung:
    """The answer to this cause; one that the table does not name is answered by all rounds, and by nothing else."""
    return _RUNGS.get(cause or "", Rung())


def _parse(table: str) -> dict[str, Rung]:
    _, *rows = (line.split() for line in table.strip().splitlines())
    return {
        cause: Rung(None if again == "*" else int(again), isolated == "yes", int(halves))
        for cause, again, isolated, halves in rows
    }


_RUNGS = _parse(RUNGS)
