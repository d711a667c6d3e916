"""The cases of a report, kept small while it is read: under a hundred bytes for one that passed."""

from collections.abc import Iterator
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec

from commands.readers.junit.document.encoding import Unreadable
from ledger.tables import CaseRow
from ledger.values import Outcome, TestId

ROW_BYTES = 2**28
TEXT_CHARACTERS = 2**23
"""Messages beyond this many characters in all are cut to their first lines."""

LINE_CHARACTERS = 200
_BLOCK = 512

_OUTCOMES: tuple[Outcome, ...] = ("passed", "xpassed", "xfailed", "skipped", "error", "failed")
"""From the best to the worst."""

_RANK = {outcome: rank for rank, outcome in enumerate(_OUTCOMES)}


class Words(NamedTuple):
    """What a case says beside its outcome."""

    line: str
    message: str
    reason: str


class _Row(msgspec.Struct, array_like=True, frozen=True, gc=False):
    place: int
    name: str | None
    variant: str | None
    outcome: int
    seconds: float
    reruns: int


class Rows:
    """All cases so far. A place is a target and the names around the case's own, each kept once."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._blocks: list[bytes] = []
        self._block: list[tuple[int, str | None, str | None, int, float, int]] = []
        self._bytes = self._count = 0
        self._places: list[tuple[str, tuple[str, ...]]] = []
        self._words: dict[int, Words] = {}
        self._room = TEXT_CHARACTERS

    def __len__(self) -> int:
        return self._count + len(self._block)

    def place(self, target: str, names: tuple[str, ...]) -> int:
        """A number for a target and the names within it; ask once for each."""
        self._places.append((target, names))
        return len(self._places) - 1

    def add(
        self, place: int, name: str | None, variant: str | None, outcome: Outcome, seconds: float, reruns: int
    ) -> None:
        """Keep a case. Without a name it stands for its place. Raises Unreadable."""
        self._block.append((place, name, variant, _RANK[outcome], seconds, reruns))
        if len(self._block) >= _BLOCK:
            self._pack()

    def _pack(self) -> None:
        if self._block:
            self._blocks.append(self._encoder.encode(self._block))
            self._bytes += len(self._blocks[-1])
            self._count += len(self._block)
            self._block = []
        if self._bytes > ROW_BYTES:
            raise Unreadable("report-too-large", f"the names of the cases take more than {ROW_BYTES} bytes")

    def mark(self) -> tuple[int, int]:
        """The state before a report, to go back to if it turns out to be unreadable."""
        self._pack()
        return len(self._blocks), self._count

    def back_to(self, mark: tuple[int, int]) -> None:
        """Drop every case since a mark: those of an unreadable report prove nothing."""
        blocks, count = mark
        self._bytes -= sum(len(block) for block in self._blocks[blocks:])
        del self._blocks[blocks:]
        self._block, self._count = [], count
        self._words = {row: words for row, words in self._words.items() if row < count}

    def say(self, message: str, reason: str) -> None:
        """Keep the words of the next case."""
        line = next((line.strip() for line in message.splitlines() if line.strip()), "")[:LINE_CHARACTERS]
        kept = message if len(message) <= self._room else line
        self._room -= len(kept)
        self._words[len(self)] = Words(line, kept, reason[:LINE_CHARACTERS])

    def repeated(self, mark: tuple[int, int]) -> int:
        """How many cases since a mark have the name of an earlier one."""
        self._pack()
        decoder = msgspec.msgpack.Decoder(list[_Row])
        rows = [row for block in self._blocks[mark[0] :] for row in decoder.decode(block)]
        return len(rows) - len({(row.place, row.name, row.variant) for row in rows})

    def merged(self, repeated: Literal["worst", "numbered"]) -> Iterator[CaseRow]:
        """Every test once, in byte order. Cases of one name are one test, or get a number as their variant."""
        rows = sorted(self.all(), key=lambda row: row.test.sort_key())
        for test, group in groupby(rows, key=lambda row: row.test):
            cases = list(group)
            if repeated == "worst":
                worst = max(cases, key=lambda row: _RANK[row.outcome])
                # Several passes of one test are tries, of which all but the last have failed.
                tries = len(cases) - 1 if worst.outcome == "passed" else 0
                yield msgspec.structs.replace(worst, reruns=tries + sum(row.reruns for row in cases))
            else:
                for number, row in enumerate(cases, 1):
                    yield row if number == 1 else msgspec.structs.replace(row, test=numbered(test, number))

    def all(self) -> Iterator[CaseRow]:
        """Every case, as it was reported and in that order."""
        self._pack()
        decoder = msgspec.msgpack.Decoder(list[_Row])
        rows = (row for block in self._blocks for row in decoder.decode(block))
        for index, row in enumerate(rows):
            target, names = self._places[row.place]
            words = self._words.get(index, Words("", "", ""))
            yield CaseRow(
                test=TestId(target, names if row.name is None else (*names, row.name), row.variant),
                outcome=_OUTCOMES[row.outcome],
                duration_seconds=row.seconds,
                line=words.line,
                message=words.message,
                reason=words.reason,
                reruns=row.reruns,
            )


def numbered(test: TestId, number: int) -> TestId:
    """The identity of the n-th test of one name."""
    return test if number == 1 else TestId(test.target, test.path, f"#{number}")
