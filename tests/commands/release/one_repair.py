"""Repairs a release in a process of its own, which is killed around one of its git commands.

`python one_repair.py CLONE WORK VERB before|after PICK...`: the first git command with VERB among its words is the one.
"""

import os
import signal
import sys
from pathlib import Path

from commands.effects.release.remote import Remote
from commands.effects.release.repair import repair
from commands.effects.worktrees import Owner
from tests.commands.release.hubs import Meanwhile


def main() -> None:
    """Repair `release/1.2.0`, up to the moment of the kill."""
    clone, work, verb, when, *picks = sys.argv[1:]
    git = Meanwhile(Path(clone), verb, lambda: os.kill(os.getpid(), signal.SIGKILL), after=when == "after")
    owner = Owner.here("ledger-1", "run-1")
    repair(Remote(git, "origin"), "release/1.2.0", "main", picks, root=Path(work), owner=owner, dry_run=False)


if __name__ == "__main__":
    main()
