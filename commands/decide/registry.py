"""Which function decides which message. An unknown message is a bug and raises."""

from commands.decide import gate, mutes, run
from commands.decide.attempts import reruns
from commands.decide.base import Decided, Decision, Documents, Needs
from commands.decide.people import questions
from commands.decide.release import approvals, healing, resume, steps
from commands.messages import (
    AnswerQuestion,
    AskQuestion,
    BeginReleaseStep,
    BeginStep,
    Collect,
    CreateLedger,
    DecideApproval,
    EndReleaseStep,
    ExpireQuestion,
    FinishRelease,
    HealGate,
    Judge,
    MakePlan,
    Message,
    MuteTest,
    Place,
    PlanReruns,
    RecordAttempt,
    RecordQuarantine,
    ResumeRelease,
    ResumeRun,
    StartAttempts,
    StartRelease,
    StartRun,
    StopRun,
    TakeRun,
    UnmuteTest,
)
from projections.registry import RunViews

DECISIONS: dict[type[Message], Decision] = {
    CreateLedger: Decision(run.create_ledger),
    StartRun: Decision(run.start_run),
    TakeRun: Decision(run.take_run),
    BeginStep: Decision(run.begin_step),
    ResumeRun: Decision(run.resume_run),
    StopRun: Decision(run.stop_run),
    Collect: Decision(gate.collect),
    MakePlan: Decision(gate.make_plan, gate.plan_needs),
    Place: Decision(gate.place),
    StartAttempts: Decision(gate.start_attempts),
    RecordAttempt: Decision(gate.record_attempt),
    PlanReruns: Decision(reruns.plan_reruns, reruns.plan_needs),
    Judge: Decision(gate.judge, gate.judge_needs),
    MuteTest: Decision(mutes.mute_test),
    UnmuteTest: Decision(mutes.unmute_test),
    AskQuestion: Decision(questions.ask_question),
    AnswerQuestion: Decision(questions.answer_question),
    ExpireQuestion: Decision(questions.expire_question),
    StartRelease: Decision(steps.start_release, steps.start_needs),
    BeginReleaseStep: Decision(steps.begin_release_step, steps.graph_needed),
    EndReleaseStep: Decision(steps.end_release_step, steps.graph_needed),
    HealGate: Decision(healing.heal_gate, steps.graph_needed),
    RecordQuarantine: Decision(steps.record_quarantine),
    FinishRelease: Decision(steps.finish_release, steps.graph_needed),
    ResumeRelease: Decision(resume.resume_release, steps.graph_needed),
    DecideApproval: Decision(approvals.decide_approval, steps.graph_needed),
}


def needs(message: Message, views: RunViews) -> Needs:
    """The evidence that deciding this message takes."""
    return DECISIONS[type(message)].needs(message, views)


def decide(message: Message, views: RunViews, documents: Documents) -> Decided:
    """Decide. Raises Refusal when a rule says no."""
    return DECISIONS[type(message)].decide(message, views, documents)
