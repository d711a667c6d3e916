"""Requests to do something, each stored as evidence with what was gathered for it."""

from commands.messages.base import Message, Refusal, decode_message, encode_message
from commands.messages.gate import Collect, Judge, MakePlan, Place, RecordAttempt, StartAttempts
from commands.messages.run import BeginStep, CreateLedger, ResumeRun, StartRun, StopRun, TakeRun

__all__ = [
    "BeginStep", "Collect", "CreateLedger", "Judge", "MakePlan", "Message", "Place", "RecordAttempt", "Refusal",
    "ResumeRun", "StartAttempts", "StartRun", "StopRun", "TakeRun", "decode_message", "encode_message",
]  # fmt: skip
