"""Releases as text: the first line is the answer, attempts say what they came to, and narrow terminals lose nothing."""

import pytest

from commands.messages import StopRun
from commands.render.release.summary import archive_lines, list_lines, release_lines
from commands.render.words import size
from projections.release.standing import Now
from projections.release.summary import ReleaseSummary, summarize_release
from tests.support.makers import RUN
from tests.support.releases import TODAY, PureRelease, chain, step, usual

WIDE = 100


def asked() -> PureRelease:
    """A release that waits for its approval, and that nobody drives."""
    release = PureRelease(usual()).start()
    assert release.drive() == "approve"
    release.handle(StopRun(stream=RUN, reason="waiting"))
    return release


def summary_of(release: PureRelease) -> ReleaseSummary:
    """Its summary while nobody drives it."""
    return summarize_release(release.views, release.graph, Now(TODAY), alive=False)


def told(release: PureRelease, width: int = WIDE) -> list[str]:
    """The release as text."""
    return release_lines(summary_of(release), width)


def test_a_rejected_release_is_not_called_ready() -> None:
    release = asked()
    assert told(release)[0] == "release 1.2.3: waiting for an answer to approve"
    release.handle(release.answer("approve", "rejected"))
    assert told(release)[0] == "release 1.2.3: rejected at approve"
    assert list_lines([summary_of(release)], WIDE)[0] == "1.2.3  rejected at approve"


def test_an_approved_release_is_ready_to_go_on() -> None:
    release = asked()
    release.handle(release.answer("approve"))
    assert told(release)[0] == "release 1.2.3: ready to go on"


def test_a_request_that_was_made_again_is_told_from_one_that_waits() -> None:
    release = asked()
    release.handle(release.resume("approve", accept=(("KI-1", "The lamp hums"),)))
    release.take()
    assert release.drive() == "approve"
    requests = [line for line in told(release, 200) if "approve asked for" in line]
    assert [line.partition("; ")[2] for line in requests] == [
        "not answered before it was asked for again",
        "not answered",
    ]
    assert any("attempt 1 on" in line and "not answered" in line for line in told(release, 200))


def test_an_attempt_that_another_followed_on_its_commit_is_not_said_to_count_no_more() -> None:
    release = PureRelease(chain(step("build"))).start()
    release.drive({"build": "failed"})
    release.handle(release.resume("build"))
    release.take()
    assert release.drive() == "passed"
    assert not any("does not count any more" in line for line in told(release))


def test_a_gate_that_did_not_pass_says_where_to_look() -> None:
    release = PureRelease(usual()).start()
    release.drive({"gate": "failed"})
    gate = release.views.release.steps["gate"].attempts[-1].gate
    assert f"    look: ledger status {gate}" in told(release)
    release.handle(release.resume("gate"))
    release.take()
    release.drive()
    assert not any("look: " in line for line in told(release))


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_is_wider_than_the_terminal_and_no_flag_is_lost(width: int) -> None:
    release = PureRelease(usual()).start()
    release.drive({"screens": "failed"})
    lines = told(release, width)
    assert max(map(len, lines[:-1])) <= width
    assert "[waivable]" in " ".join(lines)
    assert max(map(len, list_lines([summary_of(release)], width))) <= width


@pytest.mark.parametrize(
    ("size_bytes", "words"), [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1 KiB"), (5 << 20, "5 MiB")]
)
def test_a_small_archive_has_a_size(size_bytes: int, words: str) -> None:
    assert size(size_bytes) == words


def test_an_archive_is_told_with_its_commit_and_its_place() -> None:
    (line,) = archive_lines(summary_of(asked()), 200)
    assert line.startswith("current ")
    assert line.endswith("1 byte, in releases/1.2.3")
