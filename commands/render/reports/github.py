"""A report for GitHub: a summary of the job, and annotations at the files.

GitHub drops a summary of more than 1 MiB as a whole, and shows 10 annotations of a kind in a step; both are kept to,
what matters most comes first, and what was left out is said.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from commands.render.reports.groups import Entry, Group
from commands.render.reports.markdown import Section, fitted, head, sections
from commands.render.reports.markup import annotation, in_html, preformatted
from commands.render.reports.report import Report
from commands.render.summary import headline

MOST_BYTES = 850 * 1024
MOST_ANNOTATIONS = 10
MOST_MESSAGES = 20
"""So many tests that block are shown with what they said."""


def summary_pieces(report: Report, groups: Sequence[Group]) -> Iterator[str]:
    """The summary in Markdown; `groups` are the report's."""
    return fitted(head(report), _sections(groups), report.summary.run, MOST_BYTES)


def annotations(report: Report, groups: Sequence[Group]) -> Iterator[str]:
    """The workflow commands: errors for what keeps the gate from passing, warnings for what is flaky, and notices for
    known failures. What is muted is left alone."""
    against = [group for group in groups if group.effect != "none"]
    if report.summary.verdict != "passed" and not against:
        yield annotation("error", headline(report.summary), title="release gate")
    yield from _of_kind("error", against)
    for kind, case_class in (("warning", "flaky"), ("notice", "preexisting")):
        yield from _of_kind(kind, [one for one in groups if one.effect == "none" and one.case_class == case_class])


def _of_kind(kind: str, groups: Sequence[Group]) -> Iterator[str]:
    total = sum(group.total for group in groups)
    shown = total if total <= MOST_ANNOTATIONS else MOST_ANNOTATIONS - 1
    entries = ((group, entry) for group in groups for entry in group.entries)
    for group, entry in islice(entries, shown):
        told = entry.line or group.cause or group.case_class
        title = group.cause if group.effect == "unmeasured" and group.cause else group.case_class
        yield annotation(kind, f"{entry.test}: {told}", title=title, file=entry.target, line=entry.file_line)
    if shown < total:
        yield annotation(kind, f"{total - shown} more are in the report", title="release gate")


def _sections(groups: Sequence[Group]) -> Iterator[Section]:
    """Those of the report for people, and after what blocks what it said."""
    blocking = [group for group in groups if group.effect == "failed"]
    yield from sections(blocking)
    told = [entry for group in blocking for entry in group.entries if entry.message][:MOST_MESSAGES]
    if told:
        yield Section("What they said", "", _messages(told), len(told))
    yield from sections(group for group in groups if group.effect != "failed")


def _messages(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        # The blank lines end one block of HTML and begin another, which only `</pre>` can end.
        summary = f"<details><summary><code>{in_html(entry.test)}</code></summary>"
        yield f"{summary}\n\n{preformatted(entry.message)}\n\n</details>\n\n"
