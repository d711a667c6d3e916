"""Requests to do something, each stored as evidence with what was gathered for it."""

from commands.messages.base import Message, Refusal, decode_message, encode_message
from commands.messages.gate import Collect, Judge, MakePlan, Place, PlanReruns, RecordAttempt, StartAttempts
from commands.messages.people import MuteTest, UnmuteTest
from commands.messages.run import BeginStep, CreateLedger, ResumeRun, StartRun, StopRun, TakeRun

__all__ = [
    "BeginStep", "Collect", "CreateLedger", "Judge", "MakePlan", "Message", "MuteTest", "Place", "PlanReruns",
    "RecordAttempt", "Refusal", "ResumeRun", "StartAttempts", "StartRun", "StopRun", "TakeRun", "UnmuteTest",
    "decode_message", "encode_message",
]  # fmt: skip
