"""The command line. This module stays light: `ledger --version` must not pay for anything else."""

import gc
import sys
from io import TextIOWrapper

GARBAGE_OBJECTS = 100_000
"""How many new objects make it worth while to look for garbage. What is loaded and read is almost all kept until the
end, and with Python's own number every command spends a fifth of its time on looking through it in vain."""


def main() -> None:
    """Run the command line on this process's arguments, and exit."""
    if sys.argv[1:] == ["--version"]:
        from ledger import __version__

        print(f"ledger {__version__}")
        sys.exit(0)
    gc.set_threshold(GARBAGE_OBJECTS)
    try:
        from commands.cli.app import run
    except KeyboardInterrupt:
        sys.exit(8)
    for stream in (sys.stdout, sys.stderr):
        # What a terminal's encoding lacks is shown escaped rather than not at all. A closed stream is None.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))
