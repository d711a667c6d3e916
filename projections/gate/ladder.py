"""The retry ladder: what is tried again after an attempt that did not measure everything, by its reason code.

Version `ladder/1`, for runs whose policy says whether failures are run again; older runs try everything that is missing
again while rounds are left. Each try up the ladder is made only when the ones before it are used up:

1. *again*: everything that is missing, those targets last that an attempt died in. As often as `RUNGS` says (`*`: as
   often as it likes), and never more often than the policy's rounds.
2. *others*: what is missing without the targets that an attempt died in, so that these keep nobody from being measured.
3. *alone*: each target that an attempt died in, once by itself.

2 and 3 are for causes of which `isolated` is `yes`, and for policies of more than one round. A limit of memory or time
is twice as high after each attempt that it ended (see `commands/decide/attempts/limits.py`). No side is tried more than
8 times in all. When the same cause left more than half of the planned shards, and at least 3, without any result, it is
the change or the machine: those are not tried again before a resume.
"""

from typing import Literal

from msgspec import Struct

Step = Literal["again", "others", "alone", "stop"]

LADDER_VERSION = "ladder/1"
TRIES_MOST = 8
SAME_CAUSE_LEAST = 3
SAME_CAUSE = "same-cause"
"""The code of why what most shards have in common is not tried again."""

RUNGS = """
cause                  again  isolated
signalled              *      yes
worker-crashed         *      yes
session-ended-early    *      yes
interrupted            *      yes
exit-code-unexpected   *      yes
time-limit             *      yes
idle-limit             *      yes
memory-limit           *      yes
cases-missing          *      yes
record-truncated       *      yes
target-missing         *      yes
report-missing         *      yes
report-empty           *      yes
report-malformed       *      yes
case-unnamed           *      yes
runner-internal-error  1      yes
collection-aborted     1      no
nothing-collected      1      no
record-missing         1      no
foreign-tests          1      no
not-started            1      no
prepare-failed         1      no
probe-failed           1      no
list-failed            1      no
list-invalid           1      no
report-not-fresh       0      no
link-in-the-way        0      no
version-unknown        0      no
runner-usage-error     0      no
wrong-tree             0      no
pytest-missing         0      no
python-missing         0      no
"""


class Rung(Struct, frozen=True):
    """How a cause is answered: how often everything is tried again at most (None: as often as rounds allow), and
    whether targets are then told apart."""

    again: int | None = None
    isolated: bool = False


def rung(cause: str | None) -> Rung:
    """The answer to this cause; one that the table does not name is answered by all rounds, and by nothing else."""
    return _RUNGS.get(cause or "", Rung())


def _parse(table: str) -> dict[str, Rung]:
    _, *rows = (line.split() for line in table.strip().splitlines())
    return {cause: Rung(None if again == "*" else int(again), isolated == "yes") for cause, again, isolated in rows}


_RUNGS = _parse(RUNGS)
