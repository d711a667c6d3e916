"""The part of a release's notes that tells what it ships with: for the public, so without names from the inside."""

from collections.abc import Iterable, Iterator

from commands.render.reports.markup import code
from commands.render.words import count
from projections.release.summary import ReleaseSummary

TESTS_MOST = 50


def notes_pieces(summary: ReleaseSummary, failing: Iterable[str]) -> Iterator[str]:
    """What was waived comes first, then known issues, then the tests that fail as they did in the release before.

    `failing` are those tests.
    """
    yield f"# Known issues of {summary.version}\n\n"
    told = [one.reason for one in summary.waivers if one.holds] + [one.note for one in summary.issues]
    for text in told:
        yield f"- {_sentence(text)}\n"
    tests = list(failing)
    if tests:
        yield f"\n## Tests that fail as before\n\n{count(len(tests), 'test')} failed in the release before as well.\n\n"
        for test in tests[:TESTS_MOST]:
            yield f"- {code(test)}\n"
        if len(tests) > TESTS_MOST:
            yield f"- and {len(tests) - TESTS_MOST} more\n"
    if not told and not tests:
        yield "None is known.\n"


def _sentence(text: str) -> str:
    """The text, word for word, with a full stop where it has no end."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
