"""The command line. This module stays light: `ledger --version` must not pay for anything else."""

import sys


def main() -> None:
    """Run the command line on this process's arguments, and exit."""
    if sys.argv[1:] == ["--version"]:
        from ledger import __version__

        print(f"ledger {__version__}")
        sys.exit(0)
    from commands.cli.app import run

    sys.exit(run(sys.argv[1:]))
