"""Requests to do something, each stored as evidence with what was gathered for it."""

from commands.messages.base import Message, Refusal, decode_message, encode_message
from commands.messages.gate import Collect, Judge, MakePlan, Place, PlanReruns, RecordAttempt, StartAttempts
from commands.messages.people import MuteTest, UnmuteTest
from commands.messages.questions import AnswerQuestion, AskQuestion, ExpireQuestion
from commands.messages.release import (
    BeginReleaseStep,
    DecideApproval,
    EndReleaseStep,
    FinishRelease,
    HealGate,
    RecordQuarantine,
    ResumeRelease,
    StartRelease,
)
from commands.messages.run import BeginStep, CreateLedger, ResumeRun, StartRun, StopRun, TakeRun

__all__ = [
    "AnswerQuestion", "AskQuestion", "BeginReleaseStep", "BeginStep", "Collect", "CreateLedger", "DecideApproval",
    "EndReleaseStep", "ExpireQuestion", "FinishRelease", "HealGate", "Judge", "MakePlan", "Message", "MuteTest",
    "Place", "PlanReruns", "RecordAttempt", "RecordQuarantine", "Refusal", "ResumeRelease", "ResumeRun",
    "StartAttempts", "StartRelease", "StartRun", "StopRun", "TakeRun", "UnmuteTest", "decode_message",
    "encode_message",
]  # fmt: skip
