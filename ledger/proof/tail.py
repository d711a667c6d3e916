"""The write-ahead log beside a ledger file: does it hold commits that SQLite can no longer reach?

SQLite takes the frames of the log up to the first that does not fit, and silently forgets the rest. After a process
was killed in the middle of a commit that is right: the rest was never acknowledged. When a frame in the middle has
rotted it is not: whole commits behind it are lost. To tell the two apart one has to look further: a frame that fits to
the one before it, and ends a commit, can only have been written after everything before it was whole.
The format is described at https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEADER = struct.Struct(">IIII8s8s")
_FRAME = struct.Struct(">II8s8s")
_BIG_ENDIAN_SUMS, _LITTLE_ENDIAN_SUMS = 0x377F0683, 0x377F0682
_SUMMED, _SUMMED_OF_FRAME = 24, 8


class Tail(NamedTuple):
    """How many frames SQLite reads, how many of the same log lie behind them, and what is damaged ("" for nothing)."""

    frames: int
    rejected: int
    damage: str


def read_tail(path: Path) -> Tail:
    """Look at the write-ahead log of the ledger file at this path. Raises OSError when it is there and unreadable."""
    log = path.with_name(path.name + "-wal")
    while True:
        try:
            with log.open("rb") as file:
                header = file.read(_HEADER.size)
                tail = _frames(file, header)
                # A writer may have begun the log anew meanwhile; then the frames were those of two logs.
                file.seek(0)
                if file.read(_HEADER.size) == header:
                    return tail
        except FileNotFoundError:
            return Tail(0, 0, "")


def _frames(file: BinaryIO, header: bytes) -> Tail:
    """Walk over all frames of this log."""
    if len(header) < _HEADER.size:
        return Tail(0, 0, "")
    magic, _, page_bytes, _, salts, sums = _HEADER.unpack(header)
    order = ">" if magic == _BIG_ENDIAN_SUMS else "<"
    if magic not in (_BIG_ENDIAN_SUMS, _LITTLE_ENDIAN_SUMS) or _sums(order, bytes(8), header[:_SUMMED]) != sums:
        return Tail(0, 0, "the head of the write-ahead log is damaged, so that nothing in it is read")
    frames = committed = last = lost_commits = 0
    reached = True
    while len(frame := file.read(_FRAME.size + page_bytes)) == _FRAME.size + page_bytes:
        frames += 1
        _, pages_after_commit, frame_salts, frame_sums = _FRAME.unpack_from(frame)
        # The frames of an older log, which this one has not come to yet, have other salts.
        ours = frame_salts == salts
        fits = ours and _sums(order, sums, frame[:_SUMMED_OF_FRAME] + frame[_FRAME.size :]) == frame_sums
        reached, last, sums = reached and fits, frames if ours else last, frame_sums
        if fits and pages_after_commit:
            committed, lost_commits = (frames, 0) if reached else (committed, lost_commits + 1)
    damage = f"commits of the write-ahead log behind a damaged frame: {lost_commits}" if lost_commits else ""
    return Tail(committed, max(0, last - committed), damage)


def _sums(order: str, before: bytes, data: bytes) -> bytes:
    """The running checksum of SQLite: two sums over the 32-bit words, each added to the other in turn."""
    first, second = struct.unpack(">II", before)
    for one, other in struct.iter_unpack(f"{order}II", data):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return struct.pack(">II", first, second)
