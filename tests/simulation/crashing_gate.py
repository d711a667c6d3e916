"""Runs one command of the ledger and kills its own process at the Nth step that changes the world.

`python crashing_gate.py N when TRACE ledger-arguments...`: `when` is `before` or `after` the step. Every step is also
written to the file TRACE, so that a run with a large N lists all steps that there are.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commands.effects import prepare, sides, worktrees
from commands.effects.locks import OwnedLock
from commands.effects.release.remote import Remote
from commands.executors.local import LocalExecutor
from commands.releasing import command, preparing
from ledger.evidence import EvidenceStore
from ledger.store.writer import Writer

STEPS: list[tuple[Any, str]] = [
    (Writer, "append"),
    (EvidenceStore, "put_bytes"),
    (EvidenceStore, "put_file"),
    (LocalExecutor, "start"),
    (LocalExecutor, "settle"),
    (LocalExecutor, "close"),
    (OwnedLock, "acquire"),
    (OwnedLock, "release"),
    (worktrees, "add"),
    (worktrees, "remove"),
    (worktrees, "delete_tree"),
    (prepare, "prepare_side"),
    (sides.Workplace, "environment"),
    (Remote, "create"),
    (Remote, "fetch"),
    (preparing, "_claim"),
    (preparing, "write_manifest"),
    (preparing, "set_aside"),
    (preparing, "_record"),
    (command, "run_step"),
]


class Crash:
    """Counts steps and kills the process at the chosen one."""

    def __init__(self, chosen: int, when: str, trace: Path) -> None:
        self.chosen, self.when, self.trace = chosen, when, trace
        self.count = 0

    def wrap(self, owner: Any, name: str) -> None:
        """Put the trap around one function or method."""
        original: Callable[..., Any] = getattr(owner, name)
        label = f"{owner.__name__}.{name}"

        def trapped(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            mine = self.count
            with self.trace.open("a") as file:
                file.write(f"{mine} {label}\n")
            if mine == self.chosen and self.when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*arguments, **options)
            if mine == self.chosen and self.when == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(owner, name, trapped)


def main() -> int:
    """Set the traps and run the command."""
    chosen, when, trace, *arguments = sys.argv[1:]
    crash = Crash(int(chosen), when, Path(trace))
    for owner, name in STEPS:
        crash.wrap(owner, name)
    from commands.cli.app import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
