"""Questions of the steps of a release: asked by the policy, waited for until their time is over, told to people."""

import time
from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from commands.effects.clock import Clock
from commands.effects.people.notify import notify, question_notice
from commands.messages import AskQuestion, ExpireQuestion, Refusal
from commands.releasing.parts import Bench, Done, unmeasured
from ledger.events import Question, QuestionAsked
from ledger.events.questions import Impact, QuestionOption
from ledger.steps import Step
from projections.release.state import StepAttempt

POLL_SECONDS = 0.5


class Asked(Struct, frozen=True, kw_only=True):
    """The `question` of a step's result, as it is printed; `decision` names what is decided by it."""

    decision: str
    prompt: str
    options: tuple[QuestionOption, ...]
    impact: Impact
    why_now: str = ""
    fact_resolvable: bool = False
    deadline_minutes: int | None = None


def ask(bench: Bench, step: Step, attempt: StepAttempt, done: Done) -> Done:
    """Ask, assume or put off, as the policy says, and record that; what the attempt then comes to.

    A question that cannot be asked, or that has its answer already and is asked all the same, measures nothing.
    """
    try:
        asked = _read(done.question or {})
    except msgspec.ValidationError as problem:
        return _instead(done, "question-invalid", str(problem))
    content = Question(
        step=step.name,
        key=asked.decision,
        prompt=asked.prompt,
        options=asked.options,
        impact=asked.impact,
        why_now=asked.why_now,
        fact_resolvable=asked.fact_resolvable,
    )
    known = bench.views().questions.find(content)
    if known is not None and known.step_begun_again and known.chosen:
        return _instead(done, "question-repeated", f"{known.question} has its answer, which is in the context")
    policy = bench.workshop.home.loaded.settings.questions
    message = AskQuestion(stream=bench.release, content=content, policy=policy, deadline_minutes=asked.deadline_minutes)
    try:
        events = bench.workshop.loop.handle(message)
    except Refusal as refusal:
        return _instead(done, refusal.code, refusal.message)
    for recorded in events:
        if isinstance(recorded.event, QuestionAsked):
            _tell(bench, recorded.event.question)
    return done


def _read(question: Mapping[str, object]) -> Asked:
    return msgspec.convert(dict(question), Asked)


def _instead(done: Done, cause: str, detail: str) -> Done:
    found = unmeasured(cause, detail)
    return replace(found, output=done.output, errors=done.errors)


def _tell(bench: Bench, question: str) -> None:
    record, home = bench.views().questions.questions[question], bench.workshop.home
    notice = question_notice(bench.release, record)
    bench.display.note(f"{record.content.step} asks: {record.content.prompt} (`{notice.command}`)")
    notify(home.loaded.settings.notify.hooks, notice, home.git.toplevel, bench.display.note)


def is_waited_for(bench: Bench, step: str) -> bool:
    """Whether the driver stays for the answer: to a question whose time is not over. Approvals and parked questions are
    waited for without it."""
    return any(one.state == "open" and one.content.step == step for one in bench.views().questions.open())


def wait(bench: Bench) -> None:
    """Wait a moment for an answer, and record that the time of a question is over."""
    now = Clock().utc_now()
    for record in list(bench.views().questions.open()):
        if record.state == "open":
            bench.workshop.loop.handle(ExpireQuestion(stream=bench.release, question=record.question, now=now))
    if not bench.stopping():
        time.sleep(POLL_SECONDS)
