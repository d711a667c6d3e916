"""Recorded histories: each was written by a real run, must be read for ever, and must be decided the same for ever."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from commands.reconsider import reconsider
from commands.render.diff import diff_lines
from commands.render.replay import replay_lines
from commands.render.story import story_lines
from commands.render.summary import summary_lines
from commands.replay import replay, summed_up
from ledger.codec import encode, encode_header
from ledger.errors import EvidenceDamaged
from ledger.events import STREAM, TAGS, LedgerCreated, VerdictDecided
from ledger.record import RecordedEvent
from ledger.tables import ClassTable, decode_document
from projections.registry import RunViews
from projections.run.diff import ComparedRun, diff_runs
from projections.run.moment import event_time
from projections.run.story import tell_story
from projections.run.summary import summarize_run
from scripts.history_files import History, changed, contradicted, read_history, write_history

DIRECTORY = Path(__file__).parents[2] / "golden" / "histories"
CONTRADICTED = "contradicted"
"""The history whose last verdict was made `passed`, with digests and links that fit."""
NAMES = sorted(path.name for path in DIRECTORY.iterdir())
SOUND = [name for name in NAMES if name != CONTRADICTED]
WIDTH = 100


def run_of(history: History) -> list[RecordedEvent]:
    """The events of the history's one run."""
    (stream,) = {row.recorded().header.stream for row in history.rows} - {STREAM}
    return list(history.events(stream))


def load(history: History) -> Callable[[str], bytes]:
    """Loads the evidence of a history."""

    def get(digest: str) -> bytes:
        if digest not in history.evidence:
            raise EvidenceDamaged(f"{digest} is not in this history")
        return history.evidence[digest]

    return get


def views_of(events: list[RecordedEvent]) -> RunViews:
    """The views of the run."""
    views = RunViews()
    for recorded in events:
        views.apply(recorded)
    return views


@pytest.fixture(params=NAMES)
def named(request: pytest.FixtureRequest) -> tuple[str, History]:
    """Each history with its name."""
    return request.param, read_history(DIRECTORY / request.param)


def test_there_are_histories() -> None:
    assert len(SOUND) >= 3
    assert CONTRADICTED in NAMES


def test_every_event_is_read_linked_and_written_the_same_again(named: tuple[str, History]) -> None:
    _, history = named
    last: dict[str, tuple[int, str]] = {}
    for sequence, row in enumerate(history.rows, start=1):
        recorded = row.recorded()
        header = recorded.header
        assert recorded.sequence == sequence
        assert (header.position - 1, header.previous) == last.get(header.stream, (0, ""))
        assert encode_header(header) == row.header.encode()
        if TAGS[type(recorded.event)] == (header.tag, header.version):
            assert encode(recorded.event)[2] == row.payload.encode()
        last[header.stream] = (header.position, recorded.digest)
    assert isinstance(history.rows[0].recorded().event, LedgerCreated)


def test_the_views_are_what_they_were(named: tuple[str, History], golden: Callable[[str, str], None]) -> None:
    name, history = named
    events = run_of(history)
    now = event_time(events[-1].header, events[-1].sequence)
    summary = summarize_run(views_of(events), now, alive=None, as_of=events[-1].header.time)
    golden(f"histories/{name}/status.txt", "\n".join(summary_lines(summary, WIDTH)) + "\n")
    golden(f"histories/{name}/show.txt", "\n".join(story_lines(tell_story(events), WIDTH)) + "\n")


def test_the_classes_are_what_they_were(named: tuple[str, History], golden: Callable[[str, str], None]) -> None:
    name, history = named
    verdict = views_of(run_of(history)).gate.verdict
    assert verdict is not None
    table = decode_document(history.evidence[verdict.classes], ClassTable)
    rows = [f"{row.test.text()}: {row.candidate} x {row.baseline} -> {row.case_class}" for row in table.rows]
    golden(f"histories/{name}/classes.txt", "\n".join([table.table, *rows]) + "\n")


def test_the_replay_finds_what_it_found(named: tuple[str, History], golden: Callable[[str, str], None]) -> None:
    name, history = named
    report = summed_up(name, replay(run_of(history), load(history)))
    golden(f"histories/{name}/replay.txt", "\n".join(replay_lines(report, WIDTH)) + "\n")
    assert report.outcome == ("disagree" if name == CONTRADICTED else "agree")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_gets_lines_that_fit_but_for_what_must_stay_whole(
    named: tuple[str, History], width: int
) -> None:
    name, history = named
    events = run_of(history)
    run = ComparedRun(views_of(events), None)
    report = summed_up(name, replay(events, load(history)))
    lines = (
        story_lines(tell_story(events), width) + replay_lines(report, width) + diff_lines(diff_runs(run, run), width)
    )
    for line in lines:
        longest = max(map(len, line.split()), default=0)
        assert len(line) <= width or longest > width - 24, line


def test_a_history_that_contradicts_itself_is_reported_with_both_answers() -> None:
    history = read_history(DIRECTORY / CONTRADICTED)
    (doubtful,) = [one for one in replay(run_of(history), load(history)) if one.outcome != "agree"]
    assert (doubtful.message, doubtful.outcome, doubtful.reason) == ("judge", "disagree", "answer-differs")
    assert doubtful.recorded is not None
    assert doubtful.derived is not None
    assert [answer.events[0].event.verdict for answer in (doubtful.recorded, doubtful.derived)] == ["passed", "failed"]


@pytest.mark.parametrize("name", SOUND)
def test_under_its_own_rules_every_verdict_would_be_the_same_today(name: str) -> None:
    history = read_history(DIRECTORY / name)
    events = run_of(history)
    verdicts = list(reconsider(events, load(history), views_of(events).run.policy))
    assert verdicts
    assert all((one.verdict, one.classes) == (one.recorded_verdict, ()) for one in verdicts)


@pytest.mark.parametrize("name", SOUND)
def test_no_history_agrees_when_a_verdict_of_it_is_turned_into_another(name: str) -> None:
    history = read_history(DIRECTORY / name)
    for recorded in [one for one in run_of(history) if isinstance(one.event, VerdictDecided)]:
        for verdict in {"passed", "failed", "unmeasured"} - {recorded.event.verdict}:
            planted = changed(history, recorded.sequence, structs.replace(recorded.event, verdict=verdict))
            assert summed_up(name, replay(run_of(planted), load(planted))).outcome == "disagree"


def test_the_contradicted_history_is_the_killed_one_but_for_its_last_verdict() -> None:
    assert contradicted(read_history(DIRECTORY / "killed-and-resumed")) == read_history(DIRECTORY / CONTRADICTED)


def test_a_changed_line_of_a_history_is_refused(tmp_path: Path) -> None:
    history = read_history(DIRECTORY / SOUND[0])
    write_history(history, tmp_path)
    assert read_history(tmp_path) == history
    events, evidence = tmp_path / "events.jsonl", tmp_path / "evidence.jsonl"
    sound = events.read_text("utf-8")
    events.write_text(sound.replace("run-started", "run-ztarted", 1), "utf-8")
    with pytest.raises(ValueError, match="was changed"):
        [row.recorded() for row in read_history(tmp_path).rows]
    first, *others = evidence.read_text("utf-8").splitlines()
    row = json.loads(first)
    evidence.write_text("\n".join([json.dumps(row | {"text": row["text"] + " "}), *others]), "utf-8")
    with pytest.raises(ValueError, match="was changed"):
        read_history(tmp_path)
