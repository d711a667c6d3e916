"""Reads JUnit reports strictly: what they prove, and why they prove no more."""

from commands.readers.junit.dialects import DIALECTS
from commands.readers.junit.profiles import PROFILES
from commands.readers.junit.read import read_reports
from commands.readers.junit.reading import Expectations, Reading, Report, TargetReading, Trouble

__all__ = [
    "DIALECTS",
    "PROFILES",
    "Expectations",
    "Reading",
    "Report",
    "TargetReading",
    "Trouble",
    "read_reports",
]
