"""`ledger init`: finds out what the repository tests with and writes the commented configuration."""

from pathlib import Path

from msgspec import Struct

from commands.config.sources import from_repository
from commands.config.template import template
from commands.runners.detect import recognised
from commands.wiring import Home
from ledger.errors import LedgerError, StoreUnwritable

FILE = "ledger.toml"


class AlreadyInitialized(LedgerError):
    """The repository has a configuration, which is never overwritten."""

    code = "already-initialized"
    exit_code = 4


class RunnerUnknown(LedgerError):
    """No supported test runner was recognised."""

    code = "runner-unknown"
    exit_code = 2


class Written(Struct, frozen=True):
    """What was written, for which runner, and why that runner."""

    file: str
    runner: str
    reason: str


def initialize(home: Home) -> Written:
    """Write `ledger.toml` at the top of the checkout. Raises AlreadyInitialized, RunnerUnknown or StoreUnwritable."""
    toplevel = home.git.toplevel
    target = toplevel / FILE
    if from_repository(toplevel) is not None:
        raise _configured(target if target.exists() else toplevel / "pyproject.toml")
    found = recognised(toplevel)
    if found is None:
        raise RunnerUnknown(
            f"no test runner was recognised in {toplevel}",
            'ledger knows pytest, vitest, bun and go by their files; with `runner = "command"` in a ledger.toml it '
            "runs any other that writes JUnit reports",
        )
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(template(found.settings, toplevel.name, [found.reason]))
    except FileExistsError:
        raise _configured(target) from None
    except OSError as failure:
        raise StoreUnwritable(f"{target} cannot be written: {failure.strerror}", "check its directory") from failure
    return Written(str(target), found.name, found.reason)


def _configured(file: Path) -> AlreadyInitialized:
    return AlreadyInitialized(f"{file} configures the ledger already", "edit it, or move it away first")
