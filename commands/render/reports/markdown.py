"""A report as Markdown, for people: the verdict, what blocks, what could not be measured and what to do about it, and
the known failures as a list for release notes."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from commands.render.reports.groups import Entry, Group, groups_of
from commands.render.reports.markup import NAME_CHARACTERS, code
from commands.render.reports.report import MEANING, Report, what_to_do
from commands.render.summary import headline
from commands.render.words import count, moment, short, told_counts
from projections.queries.tries import UNDECIDED
from projections.run.summary import SummarySide

MOST_BYTES = 2**24

_TITLES = {
    "flaky": "Flaky tests",
    "muted": "Muted tests",
    "preexisting": "Known failures",
    "vanished": "Tests that are gone",
    "fixed": "Fixed tests",
}
"""Of classes that do not block."""


class Section(Struct, frozen=True):
    """A heading, a sentence on all of its entries ("" for none), the first entries, and how many there are; `folded`
    where they are shown only to those who ask for them."""

    title: str
    meaning: str
    entries: Iterable[str]
    total: int
    folded: bool = False


def markdown_pieces(report: Report) -> Iterator[str]:
    """The whole report."""
    return fitted(head(report), sections(groups_of(report)), report.summary.run, MOST_BYTES)


def head(report: Report) -> str:
    """What was decided about what, and what to do next."""
    told = report.summary
    lines = [f"# Release gate {headline(told)}", ""]
    if not report.decided:
        lines += ["**There is no verdict yet.** This is what is known so far; nothing of it is a pass.", ""]
    lines.append(f"- run {code(told.run)}" + (f", as of {moment(told.as_of)}" if told.as_of else ""))
    lines += [f"- candidate {_side(told.candidate)}", f"- baseline {_side(told.baseline)}"]
    if counts := told_counts(told.counts, told.blocking):
        lines.append("- cases: " + ", ".join(f"{number} {code(name)}" for name, number in counts.items()))
    if told.dirty:
        lines.append("- uncommitted changes of the checkout were not tested")
    if told.next_command:
        lines.append(f"- next: {code(told.next_command)}")
    return "\n".join(lines) + "\n"


def _side(side: SummarySide) -> str:
    named = [code(text) for text in (side.ref, side.reason) if text]
    return code(short(side.commit)) + (f" ({', '.join(named)})" if named else "")


def sections(groups: Iterable[Group]) -> Iterator[Section]:
    """A section for each group, in their order."""
    for group in groups:
        yield Section(*_heading(group), map(_entry, group.entries), group.total, folded=group.case_class == "muted")


def _heading(group: Group) -> tuple[str, str]:
    """The title of a group's section, and what it means."""
    meaning = MEANING.get(group.case_class, "")
    sentence = f"{meaning[0].upper()}{meaning[1:]}." if meaning else ""
    if group.effect == "failed":
        return f"Blocks: {code(group.case_class)}", sentence
    if group.cause == UNDECIDED:
        return "Failing so far", "Whether the candidate broke them is decided at the end."
    if group.effect != "none":
        return f"Not measured: {code(group.cause or group.case_class)}", what_to_do(group.cause) or sentence
    # Without an effect, a test is gone from a file that did change.
    return _TITLES.get(group.case_class, code(group.case_class)), "" if group.case_class == "vanished" else sentence


def _entry(entry: Entry) -> str:
    cases = f" ({count(entry.cases, 'test')})" if entry.cases > 1 else ""
    remarks = f" ({code(entry.remarks)})" if entry.remarks else ""
    line = f": {code(entry.line)}" if entry.line else ""
    return f"- {code(entry.test, NAME_CHARACTERS)}{cases}{remarks}{line}\n"


def fitted(begin: str, parts: Iterable[Section], run: str, most_bytes: int) -> Iterator[str]:
    """The beginning and the sections, as far as they fit; what is left out is said, on top of that."""
    yield begin
    left = most_bytes - len(begin.encode())
    everything = code(f"ledger report {run} --format jsonl")
    for part in parts:
        title = f"\n## {part.title} ({part.total})\n\n" + (f"{part.meaning}\n\n" if part.meaning else "")
        title += "<details><summary>Which</summary>\n\n" if part.folded else ""
        left -= len(title.encode())
        if left < 0:
            yield f"\nThere is more than fits here; {everything} has all of it.\n"
            return
        yield title
        shown = 0
        for entry in part.entries:
            if len(entry.encode()) > left:
                break
            left -= len(entry.encode())
            shown += 1
            yield entry
        if shown < part.total:
            yield f"\n… and {part.total - shown} more; {everything} has all of them.\n"
        if part.folded:
            yield "\n</details>\n"
