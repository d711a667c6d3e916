"""Stories, differences and replays as text: the answer is in the first line, and nothing hostile gets through."""

import pytest
from msgspec import structs

from commands.reconsider import Reconsideration, reconsider
from commands.render.diff import class_lines, diff_lines, fact_lines
from commands.render.replay import reconsidered_lines, replay_lines
from commands.render.story import MOST_ATTEMPTS, story_lines
from commands.replay import Finding, summed_up
from ledger.events import AttemptRecorded, DriverStarted, GatePolicy, JudgedCase, RunStarted, VerdictDecided
from ledger.record import Actor
from projections.run.diff import ClassChange, ComparedRun, Fact, diff_runs
from projections.run.story import StoryAttempt, tell_story
from tests.support.gates import Suite, finished
from tests.support.makers import RUN, recorded, views_of
from tests.support.replays import Past, past_of
from tests.support.sides import File

HOSTILE = "\x1b[31mred\x07\n\r\u202ereversed\u2028\x9b2J"
FORBIDDEN = set("\x1b\x07\n\r\u202e\u2028\x9b")
SUITE = Suite(
    candidate={"a.py": File({"t": "failed"}), "b.py": File({"t": "passed"})},
    baseline={"a.py": File({"t": "passed"}), "b.py": File({"t": "passed"})},
)
ONCE_FAILED = Suite({"a.py": File({"t": "rerun"})}, {"a.py": File({"t": "passed"})})


def tidy(lines: list[str]) -> bool:
    """Whether no line holds anything that could move a cursor, colour a terminal or reorder a line."""
    return not any(FORBIDDEN & set(line) for line in lines)


def hostile_events() -> list[object]:
    """A run in which everything that comes from outside is hostile."""
    events = []
    for event in finished(SUITE, GatePolicy()).events:
        if isinstance(event, RunStarted):
            event = structs.replace(event, candidate_ref=HOSTILE, baseline_ref=HOSTILE, baseline_reason=HOSTILE)
        elif isinstance(event, DriverStarted):
            event = structs.replace(event, host=HOSTILE)
        elif isinstance(event, AttemptRecorded):
            event = structs.replace(event, detail=HOSTILE, cause=HOSTILE, counts={HOSTILE: 1})
        elif isinstance(event, VerdictDecided):
            judged = JudgedCase(HOSTILE, "introduced", HOSTILE)
            event = structs.replace(event, blocking=(judged,), unmeasured=(judged,), reason=HOSTILE)
        events.append(event)
    return events


@pytest.mark.parametrize("width", [30, 120])
def test_nothing_hostile_reaches_the_terminal(width: int) -> None:
    events = hostile_events()
    told = [
        structs.replace(one, header=structs.replace(one.header, actor=Actor(HOSTILE, HOSTILE, HOSTILE)))
        for one in recorded(events)
    ]
    assert tidy(story_lines(tell_story(told), width))
    run, other = ComparedRun(views_of(*events), None), ComparedRun(finished(SUITE, GatePolicy()).views, None)
    assert tidy(diff_lines(diff_runs(run, other), width))
    change = ClassChange(test=HOSTILE, left="passed", right="", left_effect="none", right_effect="")
    assert tidy(class_lines([change]))
    finding = Finding(
        first=1, last=1, sequence=1, command=HOSTILE, message=HOSTILE, tags=(HOSTILE,), outcome="not-derivable",
        reason="evidence-damaged", detail=HOSTILE,
    )  # fmt: skip
    assert tidy(replay_lines(summed_up(RUN, [finding]), width))


def test_a_changed_verdict_is_shown_field_by_field_without_what_is_hostile() -> None:
    past = past_of(SUITE)
    verdict = past.first(VerdictDecided)
    planted = structs.replace(verdict.event, reason=HOSTILE)
    lines = replay_lines(past.with_event(verdict.header.position, planted).report(), 100)
    assert lines[0].startswith("disagree: of ")
    assert "  verdict-decided, reason" in lines
    assert '    derived   "regression"' in lines
    assert tidy(lines)


class TestStory:
    def test_the_verdict_that_holds_comes_first(self) -> None:
        lines = story_lines(tell_story(recorded(finished(SUITE, GatePolicy()).events)), 100)
        assert lines[0] == "failed: 1 introduced, 1 passed"
        assert lines[-2].startswith("head       @")

    def test_a_run_without_a_verdict_says_that_nothing_is_decided(self) -> None:
        events = recorded(finished(SUITE, GatePolicy()).events)
        assert story_lines(tell_story(events[:3]), 100)[0] == "open: nothing is decided"
        assert "  nothing was planned" in story_lines(tell_story(events[:3]), 100)

    def test_a_long_list_of_attempts_is_cut_and_says_so(self) -> None:
        story = tell_story(recorded(finished(SUITE, GatePolicy()).events))
        attempts: tuple[StoryAttempt, ...] = story.attempts[:1] * (MOST_ATTEMPTS + 7)
        lines = story_lines(structs.replace(story, attempts=attempts), 100)
        assert "  ... and 7 more (--json has all)" in lines
        assert f"attempts ({MOST_ATTEMPTS + 7})" in lines


class TestReplay:
    def test_agreement_is_one_line_and_a_list_of_what_was_decided(self) -> None:
        lines = replay_lines(past_of(SUITE).report(), 100)
        assert lines[0].startswith("agree: ")
        assert "  judge            1 agree" in lines
        assert not [line for line in lines if "disagree" in line]

    def test_what_cannot_be_derived_is_never_called_agreement(self) -> None:
        past = past_of(SUITE)
        lines = replay_lines(past.without_evidence(past.first(VerdictDecided).header.message).report(), 100)
        assert lines[0].startswith("not derivable: of ")
        assert "1 cannot be derived in this build" in lines[0]


class TestReconsidered:
    def lines(self, past: Past, policy: GatePolicy) -> list[str]:
        """What is said of a past under a policy."""
        verdicts = tuple(reconsider(past.events, past.load, policy))
        return reconsidered_lines(Reconsideration(run=RUN, verdicts=verdicts), 100)

    def test_another_answer_is_shown_with_the_rules_and_the_tests_that_make_it(self) -> None:
        lines = self.lines(past_of(ONCE_FAILED), GatePolicy(flaky="block"))
        assert "  would be failed (regression) by classes/1" in lines
        assert lines[lines.index("rules that changed") + 1].split() == ["flaky", "warn", "->", "block"]
        assert lines[-2:] == ["  a.py::t", "      flaky -> flaky (blocks)"]

    def test_the_same_answer_is_short(self) -> None:
        lines = self.lines(past_of(ONCE_FAILED), GatePolicy())
        assert lines[-1] == "  would be passed again, by classes/1"

    def test_what_cannot_be_decided_again_says_why(self) -> None:
        past = past_of(ONCE_FAILED)
        lost = past.without_evidence(past.first(VerdictDecided).event.classes)
        assert any(
            line.startswith("  could not be decided again: evidence-damaged") for line in self.lines(lost, GatePolicy())
        )


def test_a_fact_that_does_not_fit_on_a_line_has_a_line_for_each_side() -> None:
    fact = Fact(name="candidate", left="c" * 40, right="")
    assert fact_lines([fact], 100) == [f"  candidate            {'c' * 40} -> -"]
    assert fact_lines([fact], 50) == ["  candidate", f"    {'c' * 40}", "    -> -"]
