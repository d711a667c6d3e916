"""What a step prints, line by line while it runs, for people to watch; what is kept of it does not depend on this."""

import os
from collections.abc import Callable
from pathlib import Path

from commands.render.words import safe

LAG_BYTES = 512 << 10
"""Who cannot follow is brought back to the present; further behind, the middle may be dropped from the file already."""

LINE_BYTES = 4096
"""A longer line is shown in pieces."""


class Follower:
    """Follows one growing file, and hands on its lines."""

    def __init__(self, path: Path, on_line: Callable[[str], None]) -> None:
        self._path = path
        self._on_line = on_line
        self._offset = 0
        self._rest = b""

    def follow(self, *, last: bool = False) -> None:
        """Hand on the lines that have come, safe to be shown; the `last` one may lack its line break."""
        come = self._read()
        *lines, self._rest = (self._rest + come).split(b"\n")
        if last or len(self._rest) > LINE_BYTES:
            lines, self._rest = [*lines, *([self._rest] if self._rest else [])], b""
        for line in lines:
            whole = line.removesuffix(b"\r")
            for begin in range(0, max(1, len(whole)), LINE_BYTES):
                self._on_line(safe(whole[begin : begin + LINE_BYTES].decode(errors="replace")))

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._offset:
                    # Its middle was dropped, and nobody can tell any more how far this one had read.
                    self._skip_to(max(0, size - LAG_BYTES), "the middle is not shown")
                elif (missed := size - LAG_BYTES - self._offset) > 0:
                    self._skip_to(size - LAG_BYTES, f"{missed} bytes are not shown")
                file.seek(self._offset)
                data = file.read(size - self._offset)
        except FileNotFoundError:
            return b""
        self._offset += len(data)
        return data

    def _skip_to(self, offset: int, why: str) -> None:
        self._offset, self._rest = offset, b""
        self._on_line(f"[{why}]")
