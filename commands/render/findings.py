"""What a verification and a recovery say, as text."""

from collections.abc import Iterable

from commands.render.words import count, counted, wrapped
from ledger.events import LostEvents
from ledger.proof.findings import NOTES, Finding, Note, Report
from ledger.proof.receipt import Receipt

_INDENT = " " * 22


def finding_lines(finding: Finding, width: int) -> list[str]:
    """One finding: its code, where it is, and what was found there."""
    return wrapped(f"{finding.code:<21} {_where(finding)}{finding.what}", width, _INDENT)


def report_lines(report: Report, width: int) -> list[str]:
    """What was verified, what is worth knowing, and at the end the head to note down or what to do next."""
    evidence = "" if report.evidence is None else f" and {count(report.evidence, 'piece')} of evidence"
    what = f"{count(report.events, 'event')} in {count(report.streams, 'stream')}{evidence}"
    lines = [] if report.sound else [""]
    if report.sound:
        lines += wrapped(f"whole: verified {what}", width, _INDENT)
    else:
        found = count(sum(report.counts.values()), "finding")
        lines += wrapped(f"damaged: {found} in {what} ({counted(report.counts)})", width, _INDENT)
    for note in report.notes:
        lines += wrapped(f"note: {_note(note)}", width, _INDENT)
    return [*lines, "", *_next(report, width)]


def receipt_lines(receipt: Receipt, width: int) -> list[str]:
    """What was moved, what was kept, what was lost and how it is measured again."""
    moved = receipt.files[0]
    lines = wrapped(f"moved aside  {receipt.place}/{moved.name}, whole ({moved.size_bytes} bytes)", width, _INDENT)
    lines += wrapped(f"because      {receipt.reason}", width, _INDENT)
    lines += wrapped(f"kept         every event up to @{receipt.kept_sequence}", width, _INDENT)
    for lost in receipt.lost:
        lines += wrapped(f"lost         {_lost(lost)}", width, _INDENT)
    if not receipt.lost:
        lines.append("lost         no event")
    return [*lines, "", *_again(receipt, width)]


def _where(finding: Finding) -> str:
    """The place of a finding, as far as there is one."""
    sequence = f"@{finding.sequence}" if finding.sequence else ""
    stream = f"{finding.stream} #{finding.position}" if finding.stream and finding.position else finding.stream
    evidence = f"evidence {finding.evidence}" if finding.evidence else ""
    if evidence and sequence:
        evidence += ", named by"
    where = " ".join(part for part in (evidence, sequence, stream) if part)
    return f"{where}: " if where else ""


def _note(note: Note) -> str:
    first = f", first @{note.sequence}" if note.sequence else ""
    return f"{NOTES[note.code]} ({note.count}{first})"


def _next(report: Report, width: int) -> Iterable[str]:
    if report.sound:
        yield f"head {report.head or '(the ledger is empty)'}"
        yield from wrapped(
            "Note it elsewhere: `ledger verify --head` with it tells later whether the ledger still holds it.", width
        )
    elif all(code.startswith("head-") for code in report.counts):
        yield from wrapped(
            "next: what is here fits together and is not what was noted; compare it with a backup or with the archive"
            " of a run. `ledger recover` cannot bring back what is no longer there.",
            width,
        )
    else:
        yield from wrapped(
            "next: `ledger recover` moves a damaged ledger file aside and goes on with what is proved; evidence that is"
            " damaged or missing is measured again by `ledger resume`.",
            width,
        )


def _lost(lost: LostEvents) -> str:
    tags = {tag or "unreadable": number for tag, number in lost.tags.items()}
    events = count(sum(tags.values()), "event")
    positions = f"#{lost.first} to #{lost.last}" if lost.last > lost.first else f"#{lost.last}"
    where = f"{lost.stream} {positions}" if lost.stream else "of streams that cannot be told"
    return f"{where}: {events} ({counted(tags)})"


def _again(receipt: Receipt, width: int) -> Iterable[str]:
    if receipt.lost:
        yield from wrapped(
            "next: `ledger resume --from gate RUN` measures again what a run has lost; a run that was lost from its"
            " first event on has to be gated anew. Then `ledger verify`, for the evidence and for the new head.",
            width,
        )
    else:
        yield "next: ledger verify"
