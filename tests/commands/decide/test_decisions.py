"""Every decision, asked three questions: what comes of it, when is it refused, when is it already so."""

import msgspec
import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from commands.decide.planning import PLANNER, plan_shards
from commands.decide.registry import DECISIONS
from commands.messages import (
    BeginStep,
    Collect,
    CreateLedger,
    Judge,
    MakePlan,
    Message,
    Place,
    RecordAttempt,
    ResumeRun,
    StartAttempts,
    StartRun,
    StopRun,
    TakeRun,
    decode_message,
)
from ledger.events import (
    COLLECTION,
    AttemptStarted,
    Collected,
    DriverReplaced,
    DriverStarted,
    Event,
    GatePolicy,
    LedgerCreated,
    Placed,
    ResumeStarted,
    RunFinished,
    RunStopped,
    StepFinished,
    StepStarted,
    VerdictDecided,
)
from ledger.tables import CaseTable, ClassTable, decode_document
from tests.support.given import given
from tests.support.makers import (
    COMMITS,
    RUN,
    attempt_recorded,
    attempt_started,
    begun,
    collection,
    collections,
    digest_of,
    driver_started,
    inventory,
    inventory_target,
    placed,
    planned,
    record_message,
    run_started,
    two_files,
    verdict_decided,
)
from tests.support.sides import File, table_of

ONE_ROUND = GatePolicy(rounds=1, shards=1)
INVENTORIES = (two_files("candidate"), two_files("baseline"))
PLAN = plan_shards(*INVENTORIES, (digest_of(INVENTORIES[0]), digest_of(INVENTORIES[1])), ONE_ROUND)
PLANNED: list[Event] = [*begun(ONE_ROUND), *collections(), planned(PLAN)]
READY: list[Event] = [*PLANNED, *placed("shard-1")]
FILES = {"a.py": File({"test_a": "passed"}), "b.py": File({"test_b": "passed"})}
TABLES = (table_of("candidate", FILES), table_of("baseline", FILES))
FINISHED: list[Event] = [
    verdict_decided(),
    StepFinished(step="gate", outcome="passed"),
    RunFinished(verdict="passed"),
]
START = StartRun(
    stream=RUN, run=RUN, candidate=COMMITS["candidate"], candidate_ref="HEAD", baseline=COMMITS["baseline"],
    baseline_ref="v1", baseline_reason="the newest tag", dirty=False, policy=GatePolicy(), config="f" * 64,
)  # fmt: skip
TAKE = TakeRun(stream=RUN, host="here", pid=4711)
BEGIN = BeginStep(stream=RUN, step="gate")
RESUME = ResumeRun(stream=RUN, step="gate")
STOP = StopRun(stream=RUN, reason="asked")
COLLECT = Collect(stream=RUN, member="local")
MAKE_PLAN = MakePlan(stream=RUN)
PLACE = Place(stream=RUN, members=("local", "other"))
START_ONE = StartAttempts(stream=RUN, slots=1)
JUDGE = Judge(stream=RUN)


def measured(candidate: CaseTable = TABLES[0], baseline: CaseTable = TABLES[1]) -> list[Event]:
    """Both sides of the shard, measured with these tables."""
    return [
        attempt_started(), attempt_recorded(measured=2, table=digest_of(candidate)),
        attempt_started(side="baseline"), attempt_recorded(side="baseline", measured=2, table=digest_of(baseline)),
    ]  # fmt: skip


# The ledger and the run.


def test_a_ledger_is_created_once() -> None:
    message = CreateLedger(stream="ledger", ledger_id="1", project="p", root_commit=None)
    created = LedgerCreated(ledger_id="1", project="p", root_commit=None, format_version=1)
    given().when(message).then(created).and_again_nothing()


def test_a_run_is_started_once_with_the_steps_of_a_gate() -> None:
    given().when(START).then(run_started()).and_again_nothing()
    other = msgspec.structs.replace(START, candidate_ref="main")
    given(run_started()).when(other).nothing()


def test_a_candidate_that_is_its_own_baseline_is_refused() -> None:
    equal = msgspec.structs.replace(START, baseline=COMMITS["candidate"])
    assert "--baseline" in given().when(equal).refused("equal-commits").hint


def test_the_first_driver_has_the_first_term_and_takes_the_run_once() -> None:
    given(run_started()).when(TAKE).then(driver_started()).and_again_nothing()


@pytest.mark.parametrize("pid", [4712, 1])
def test_a_driver_that_finds_an_open_run_replaces_the_one_that_is_gone(pid: int) -> None:
    replaced = DriverReplaced(term=2, previous_term=1, host="here", pid=pid, reason="died")
    given(*begun()).when(TakeRun(stream=RUN, host="here", pid=pid)).then(replaced).and_again_nothing()


def test_the_same_process_number_on_another_host_is_another_driver() -> None:
    replaced = DriverReplaced(term=2, previous_term=1, host="there", pid=4711, reason="died")
    given(*begun()).when(TakeRun(stream=RUN, host="there", pid=4711)).then(replaced)


@pytest.mark.parametrize("end", [[RunStopped(reason="asked", term=1)], FINISHED], ids=["stopped", "finished"])
def test_a_driver_of_a_run_that_ended_well_replaces_nobody_and_has_the_next_term(end: list[Event]) -> None:
    given(*begun(), *end).when(TAKE).then(DriverStarted(term=2, host="here", pid=4711))


def test_a_step_begins_once() -> None:
    given(run_started()).when(BEGIN).then(StepStarted(step="gate")).and_again_nothing()
    given(*begun(), *FINISHED).when(BEGIN).nothing()


@pytest.mark.parametrize("message", [BeginStep(stream=RUN, step="ship"), ResumeRun(stream=RUN, step="ship")])
def test_a_step_that_the_run_does_not_have_is_refused_and_the_steps_are_named(message: Message) -> None:
    assert "gate" in given(*begun()).when(message).refused("step-unknown").hint


def test_a_resumption_names_what_is_owed_and_is_numbered() -> None:
    partial = [attempt_started(), attempt_recorded(missing={"b.py": "lost"})]
    owed = ("shard-1/candidate", "shard-1/baseline")
    resumed = ResumeStarted(step="gate", number=1, owed=owed)
    given(*READY, *partial).when(RESUME).then(resumed)
    given(*READY, *partial, resumed).when(RESUME).then(ResumeStarted(step="gate", number=2, owed=owed))


def test_a_run_that_ended_before_its_step_began_begins_it_when_it_is_resumed() -> None:
    resumed = ResumeStarted(step="gate", number=1, owed=("collection/candidate", "collection/baseline"))
    given(run_started(), driver_started()).when(RESUME).then(StepStarted(step="gate"), resumed)


def test_a_finished_run_is_resumed_only_while_something_is_owed() -> None:
    given(*READY, *measured(), *FINISHED).when(RESUME).nothing()
    lost = [attempt_started(), attempt_recorded(missing={"b.py": "lost"}), *measured()[2:]]
    resumed = ResumeStarted(step="gate", number=1, owed=("shard-1/candidate",))
    given(*READY, *lost, *FINISHED).when(RESUME).then(resumed)


def test_a_run_that_lacks_only_its_verdict_is_resumed_to_get_it() -> None:
    resumed = ResumeStarted(step="gate", number=1, owed=())
    given(*READY, *measured()).when(RESUME).then(resumed)


def test_an_open_run_is_stopped_once_under_the_term_of_its_driver() -> None:
    given(*begun()).when(STOP).then(RunStopped(reason="asked", term=1)).and_again_nothing()


@pytest.mark.parametrize("events", [[], [*begun(), *FINISHED]], ids=["unknown", "finished"])
def test_what_is_not_open_is_not_stopped(events: list[Event]) -> None:
    given(*events).when(STOP).nothing()


# Collecting, planning, placing.


def test_both_sides_are_collected_each_at_its_own_commit_once() -> None:
    both = [attempt_started(COLLECTION, side) for side in ("candidate", "baseline")]
    decision = given(*begun()).when(COLLECT).then(*both)
    assert [event.commit for event in decision.decided.events] == [COMMITS["candidate"], COMMITS["baseline"]]
    decision.and_again_nothing()


def test_a_collection_that_was_lost_is_tried_again_while_rounds_remain() -> None:
    lost = [attempt_started(COLLECTION), attempt_recorded(COLLECTION, cause="record-missing", measured=0)]
    running = attempt_started(COLLECTION, "baseline")
    given(*begun(GatePolicy(rounds=2)), *lost, running).when(COLLECT).then(attempt_started(COLLECTION, attempt=2))
    given(*begun(ONE_ROUND), *lost, running).when(COLLECT).nothing()
    given(*begun(), *collections()).when(COLLECT).nothing()


def test_a_later_driver_promises_under_its_own_term() -> None:
    replaced = DriverReplaced(term=2, previous_term=1, host="here", pid=8, reason="died")
    both = [attempt_started(COLLECTION, side, term=2) for side in ("candidate", "baseline")]
    given(*begun(), replaced).when(COLLECT).then(*both)


def test_the_plan_is_made_once_and_its_evidence_comes_with_it() -> None:
    decision = given(*begun(ONE_ROUND), *collections()).holding(*INVENTORIES).when(MAKE_PLAN)
    decision.then(planned(PLAN)).and_again_nothing()
    (data,) = decision.decided.documents
    assert decode_document(data, type(PLAN)) == PLAN
    assert PLAN.policy == PLANNER


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_nothing_is_planned_while_a_side_is_not_collected(side: str) -> None:
    events = [event for event in collections() if event.side != side]  # type: ignore[attr-defined]
    given(*begun(), *events).holding(*INVENTORIES).when(MAKE_PLAN).refused("not-collected")
    running = attempt_started(COLLECTION, side)  # type: ignore[arg-type]
    given(*begun(), *events, running).holding(*INVENTORIES).when(MAKE_PLAN).refused("not-collected")


def test_a_plan_says_which_targets_the_baseline_is_proven_not_to_have() -> None:
    candidate = inventory("candidate", inventory_target("a.py", "t"), inventory_target("n.py", "t"))
    baseline = inventory("baseline", inventory_target("a.py", "t"), inventory_target("z.py", "t"))
    events = [*collection("candidate", candidate), *collection("baseline", baseline)]
    (event,) = given(*begun(ONE_ROUND), *events).holding(candidate, baseline).when(MAKE_PLAN).decided.events
    (shard,) = event.shards  # type: ignore[attr-defined]
    assert (shard.candidate_targets, shard.baseline_targets, shard.absent) == (2, 1, ("n.py",))


def test_every_shard_is_placed_once_on_the_first_usable_member() -> None:
    given(*PLANNED).when(PLACE).then(Placed(shard="shard-1", member="local", reason="only-member")).and_again_nothing()


def test_placing_is_refused_without_a_plan_and_without_a_member() -> None:
    given(*begun(), *collections()).when(PLACE).refused("not-planned")
    given(*PLANNED).when(Place(stream=RUN, members=())).refused("pool-empty")


# Attempts.


def test_no_more_attempts_are_promised_than_there_are_free_slots() -> None:
    sides = [attempt_started(), attempt_started(side="baseline")]
    given(*READY).when(StartAttempts(stream=RUN, slots=1)).then(*sides[:1])
    given(*READY).when(StartAttempts(stream=RUN, slots=9)).then(*sides).and_again_nothing()
    for slots in (0, -1):
        given(*READY).when(StartAttempts(stream=RUN, slots=slots)).nothing()


def test_attempts_are_refused_without_a_plan_and_not_promised_without_a_place() -> None:
    given(*begun(), *collections()).when(START_ONE).refused("not-planned")
    given(*PLANNED).when(START_ONE).nothing()


def test_a_second_attempt_is_promised_for_what_is_missing_only() -> None:
    policy = GatePolicy(rounds=2, shards=1)
    partial = [attempt_started(), attempt_recorded(missing={"b.py": "signalled"})]
    events = [*begun(policy), *collections(), planned(PLAN), *placed("shard-1"), *partial]
    given(*events).when(START_ONE).then(attempt_started(attempt=2, targets=("b.py",)))


def test_nothing_is_promised_for_a_side_that_runs_is_measured_or_has_no_rounds() -> None:
    given(*READY, attempt_started(), attempt_started(side="baseline")).when(START_ONE).nothing()
    given(*READY, *measured()).when(START_ONE).nothing()
    spent = [attempt_started(), attempt_recorded(cause="lost", measured=0), *measured()[2:]]
    given(*READY, *spent).when(START_ONE).nothing()


def test_what_an_attempt_gave_is_recorded_once_whatever_is_reported_later() -> None:
    message = record_message(missing={"b.py": "signalled"}, attention=("a.py",), counts={"failed": 1})
    recorded = attempt_recorded(missing={"b.py": "signalled"}, attention=("a.py",), counts={"failed": 1})
    given(*READY, attempt_started()).when(message).then(recorded).and_again_nothing()
    given(*READY, attempt_started(), recorded).when(record_message(cause="lost", measured=0)).nothing()


def test_a_record_keeps_the_term_of_its_promise_under_a_later_driver() -> None:
    replaced = DriverReplaced(term=2, previous_term=1, host="here", pid=8, reason="died")
    given(*READY, attempt_started(), replaced).when(record_message()).then(attempt_recorded(term=1))


@pytest.mark.parametrize("wrong", [{"attempt": 2}, {"side": "baseline"}, {"shard": "shard-2"}])
def test_a_record_without_a_promise_is_refused(wrong: dict[str, object]) -> None:
    given(*READY, attempt_started()).when(record_message(**wrong)).refused("attempt-unknown")  # type: ignore[arg-type]


def test_a_complete_collection_gives_its_inventory_too() -> None:
    message = record_message(COLLECTION, measured=2, inventory="1" * 64, cases=5, errors=("b.py",))
    recorded = attempt_recorded(COLLECTION, measured=2)
    collected = Collected(
        side="candidate",
        commit=COMMITS["candidate"],
        attempt=1,
        inventory="1" * 64,
        targets=2,
        cases=5,
        errors=("b.py",),
    )
    given(*begun(), attempt_started(COLLECTION)).when(message).then(recorded, collected).and_again_nothing()


def test_an_incomplete_collection_gives_no_inventory() -> None:
    message = record_message(COLLECTION, cause="record-truncated", measured=0, inventory="1" * 64)
    recorded = attempt_recorded(COLLECTION, cause="record-truncated", measured=0)
    given(*begun(), attempt_started(COLLECTION)).when(message).then(recorded)


def test_the_natural_key_of_a_record_names_the_attempt_and_nothing_of_the_result() -> None:
    keys = {record_message(cause=cause, measured=0).command() for cause in ("lost", "stopped")}
    assert len(keys) == 1
    others = {
        record_message(shard, side, number).command() for shard in ("s", "t") for side in COMMITS for number in (1, 2)
    }
    assert len(others) == 8
    assert RecordAttempt.observation
    assert not JUDGE.observation
    assert JUDGE.command() is None


# The verdict.


def judged(*events: Event, tables: tuple[CaseTable, ...] = TABLES) -> tuple[VerdictDecided, ClassTable]:
    """The verdict after these events, with the table of classes that it names."""
    decision = given(*events).holding(*INVENTORIES, PLAN, *tables).when(JUDGE)
    verdict, step, run = decision.decided.events
    assert isinstance(verdict, VerdictDecided)
    assert (step, run) == (StepFinished(step="gate", outcome=verdict.verdict), RunFinished(verdict=verdict.verdict))
    decision.and_again_nothing()
    (data,) = decision.decided.documents
    table = decode_document(data, ClassTable)
    assert verdict.classes == digest_of(table)
    assert verdict.table == table.table
    return verdict, table


def test_a_measured_gate_is_judged_once_and_ends_its_step_and_its_run() -> None:
    verdict, table = judged(*READY, *measured())
    assert (verdict.verdict, verdict.reason, verdict.counts) == ("passed", "no-regression", {"passed": 2})
    assert [row.test.text() for row in table.rows] == ["a.py::test_a", "b.py::test_b"]


def test_a_regression_is_a_failed_verdict_that_names_it() -> None:
    broken = table_of("candidate", FILES | {"b.py": File({"test_b": "failed"})})
    verdict, _ = judged(*READY, *measured(broken), tables=(broken, TABLES[1]))
    assert (verdict.verdict, [case.test for case in verdict.blocking]) == ("failed", ["b.py::test_b"])


def test_what_used_up_its_rounds_unmeasured_is_an_unmeasured_verdict_with_its_cause() -> None:
    lost = [attempt_started(), attempt_recorded(cause="signalled", measured=0), *measured()[2:]]
    verdict, _ = judged(*READY, *lost)
    assert verdict.verdict == "unmeasured"
    assert [(case.test, case.line) for case in verdict.unmeasured] == [("a.py", "signalled"), ("b.py", "signalled")]


def test_a_record_that_claims_more_than_its_table_shows_does_not_make_a_pass() -> None:
    half = table_of("candidate", FILES, {"b.py": "signalled"})
    verdict, _ = judged(*READY, *measured(half), tables=(half, TABLES[1]))
    assert (verdict.verdict, [case.test for case in verdict.unmeasured]) == ("unmeasured", ["b.py"])


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_a_collection_that_used_up_its_rounds_is_an_unmeasured_verdict_with_its_cause(side: str) -> None:
    lost = [
        attempt_started(COLLECTION, side),  # type: ignore[arg-type]
        attempt_recorded(COLLECTION, side, cause="record-missing", measured=0),  # type: ignore[arg-type]
    ]
    others = [event for event in collections() if event.side != side]  # type: ignore[attr-defined]
    verdict, table = judged(*begun(ONE_ROUND), *others, *lost)
    assert (verdict.verdict, verdict.reason) == ("unmeasured", "record-missing")
    assert [case.test for case in verdict.unmeasured] == [f"collection/{side}"]
    assert table.rows == ()


CUT_SHORT = attempt_recorded(side="baseline", counted=False, cause="stopped", measured=0)


@pytest.mark.parametrize(
    "events",
    [
        begun(), [*begun(), attempt_started(COLLECTION)], [*begun(), *collections()], PLANNED, READY,
        [*READY, attempt_started()], [*READY, *measured()[:2]], [*READY, *measured()[:3]],
        [*READY, *measured()[:3], CUT_SHORT],
    ],
)  # fmt: skip
def test_no_verdict_is_decided_while_anything_is_owed_or_running(events: list[Event]) -> None:
    given(*events).holding(*INVENTORIES, PLAN, *TABLES).when(JUDGE).refused("not-settled")


def test_only_the_targets_that_need_a_comparison_are_run_and_judged_on_the_baseline_under_on_failure() -> None:
    policy = GatePolicy(baseline="on-failure", rounds=1, shards=1)
    broken = table_of("candidate", FILES | {"b.py": File({"test_b": "failed"})})
    there = table_of("baseline", {"b.py": File({"test_b": "failed"})})
    events = [
        *begun(policy), *collections(), planned(PLAN), *placed("shard-1"),
        attempt_started(), attempt_recorded(measured=2, table=digest_of(broken), attention=("b.py",)),
    ]  # fmt: skip
    promise = attempt_started(side="baseline", targets=("b.py",))
    given(*events).when(START_ONE).then(promise)
    record = attempt_recorded(side="baseline", table=digest_of(there))
    verdict, table = judged(*events, promise, record, tables=(broken, there))
    assert verdict.verdict == "passed"
    assert [(row.candidate, row.baseline) for row in table.rows] == [("passed", "not-run"), ("failed", "failed")]


def test_the_policy_for_flaky_tests_is_the_one_that_the_run_was_started_under() -> None:
    flaky = table_of("candidate", FILES | {"b.py": File({"test_b": "rerun"})})
    for told, expected in (("warn", "passed"), ("block", "failed")):
        policy = GatePolicy(rounds=1, shards=1, flaky=told)  # type: ignore[arg-type]
        events = [*begun(policy), *collections(), planned(PLAN), *placed("shard-1"), *measured(flaky)]
        assert judged(*events, tables=(flaky, TABLES[1]))[0].verdict == expected


# All messages.


def test_every_message_has_its_decision() -> None:
    assert set(DECISIONS) == set(Message.__subclasses__())


@settings(max_examples=80, deadline=None)
@over(st.one_of(st.binary(max_size=80), st.dictionaries(st.text(), st.text()).map(msgspec.json.encode)))
def test_bytes_that_are_no_message_are_refused_and_not_guessed(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_message(data)


def test_a_stored_message_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="Invalid value"):
        decode_message(b'{"message":"ship-it","stream":"r"}')


def test_no_attempt_is_promised_that_names_no_commit_of_the_run() -> None:
    for message in (COLLECT, START_ONE):
        history = begun() if message is COLLECT else READY
        for event in given(*history).when(message).decided.events:
            assert isinstance(event, AttemptStarted)
            assert event.commit == COMMITS[event.side]
