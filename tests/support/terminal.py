"""A terminal for a program: a pseudo-terminal of the system, and the screen that its output makes."""

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

DEADLINE_SECONDS = 60.0
ROWS = 50

# The program gets the terminal as its own, so that a control character that is typed becomes a signal.
_LOGIN = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"

_PART = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b.|[\r\n]|[^\x1b\r\n]+")


class Terminal:
    """A program in a terminal of some width, with everything that it has written."""

    def __init__(
        self, command: Sequence[str | Path], *, directory: Path, environment: Mapping[str, str], columns: int
    ) -> None:
        self.columns = columns
        self._own, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LOGIN, *command], cwd=directory, env=dict(environment), stdin=its
        )
        os.close(its)
        self._written = b""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._own)

    def type(self, keys: str) -> None:
        """Type these keys."""
        os.write(self._own, keys.encode())

    def wait_for(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """The first screen for which the condition holds."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition(self.screen()):
            assert time.monotonic() < deadline, "\n".join(["it did not come true in time:", *self.screen()])
            self._read(0.05)
        return self.screen()

    def end(self) -> int:
        """The exit code, when the program has ended and everything that it wrote is on the screen."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "\n".join(["it did not end in time:", *self.screen()])
            self._read(0.05)
        while self._read(0.0):
            pass
        return self.process.returncode

    @property
    def written(self) -> str:
        """Everything that was written, control characters included."""
        return self._written.decode("utf-8", "replace")

    def screen(self) -> list[str]:
        """The lines of the screen, those that have scrolled away included, without what is empty at the end."""
        return draw(self.written, self.columns)

    def _read(self, seconds: float) -> bool:
        """Take in what is there; whether there was anything."""
        if not select.select([self._own], [], [], seconds)[0]:
            return False
        # A terminal that no program has open any more answers with an error instead of an end.
        with contextlib.suppress(OSError):
            self._written += (data := os.read(self._own, 1 << 16))
            return bool(data)
        return False


def draw(text: str, columns: int) -> list[str]:
    """What a screen shows of this text: line breaks, line feeds, moves up and erased lines; colours are left out."""
    lines, row, column = [""], 0, 0
    for part in _PART.finditer(text):
        number, command = part[1], part[2]
        if part[0] == "\r":
            column = 0
        elif part[0] == "\n":
            row += 1
        elif command == "A":
            row = max(0, row - int(number or 1))
        elif command == "K":
            lines[row] = "" if number == "2" else lines[row][:column]
        elif not part[0].startswith("\x1b"):
            for character in part[0]:
                if column == columns:
                    row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
                line = lines[row].ljust(column)
                lines[row] = line[:column] + character + line[column + 1 :]
                column += 1
        lines += [""] * (row + 1 - len(lines))
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    return [line.rstrip() for line in lines]
