"""The crash report: what a bug of this program leaves for its developers."""

import platform
import shlex
import tempfile
import traceback
from collections.abc import Sequence

from ledger import __version__


def report_crash(arguments: Sequence[str]) -> str:
    """Write the current exception to a file, and return where; the report itself when no file can be written."""
    text = (
        f"ledger {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"$ ledger {shlex.join(arguments)}\n\n{traceback.format_exc()}"
    )
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="backslashreplace", prefix="ledger-crash-", suffix=".txt", delete=False
        ) as file:
            file.write(text)
    except OSError:
        return text
    return file.name
