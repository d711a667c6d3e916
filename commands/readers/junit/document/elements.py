"""The words of JUnit reports: which elements and attributes say something about a verdict, and what they say."""

import re

CASE = "testcase"
SUITES = frozenset({"testsuite", "testsuites"})
FLAKY = frozenset({"flakyFailure", "flakyError"})
"""Tries of a case that failed before one that passed."""

RETRIED = frozenset({"rerunFailure", "rerunError"})
"""Further tries of a case that failed, and that failed too; they say nothing where the case itself has not failed."""

OUTPUT = frozenset({"system-out", "system-err", "properties", "property", "stackTrace", "attachments", "attachment"})
"""Elements that say nothing about a verdict, with whatever is in them."""

BENIGN_ATTRIBUTES = frozenset(
    {
        "assertions", "classname", "column", "date", "duration", "file", "filename", "filepath", "host", "hostname",
        "id", "line", "lineno", "log", "name", "nodeid", "package", "path", "pid", "port", "random_seed", "retries",
        "seed", "shard", "threads", "time", "timestamp", "url", "uuid", "version", "workers",
    }
)  # fmt: skip
"""Attributes whose number is not a number of tests, and whose text is not a verdict."""

VERDICT_ATTRIBUTES = frozenset({"status", "result", "outcome", "state", "verdict"})

RAN = frozenset(
    {"run", "ran", "pass", "passed", "success", "successful", "succeeded", "ok", "complete", "completed", "finished"}
)
NOT_RUN = frozenset(
    {"notrun", "not_run", "not run", "not-run", "disabled", "skip", "skipped", "suppressed", "ignored", "ignore",
     "pending", "todo", "filtered", "filtered_out"}
)  # fmt: skip

_VERDICT_LIKE = re.compile(
    r"fail|err|skip|abort|cancel|crash|timeout|timed|broke|ignor|disab|pend|todo|flak|inconclusive|invalid|not.?run|"
    r"unexpected|warn",
    re.IGNORECASE,
)
_NOTHING = frozenset({"", "0", "false", "no", "none", "null"})
_COUNT = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


def count_of(text: str) -> int | None:
    """A number of tests, None for anything but its one ordinary spelling."""
    return int(text) if _COUNT.fullmatch(text) else None


def verdict_like(name: str) -> bool:
    """Whether an element or attribute of this name may well speak of a verdict."""
    return _VERDICT_LIKE.search(name) is not None


def says_something(text: str) -> bool:
    """Whether the value of an attribute is anything but "no"."""
    return text.strip().lower() not in _NOTHING


def unclear(name: str, text: str) -> bool:
    """Whether an attribute that is not a count may well say that not everything has run and passed."""
    if name in BENIGN_ATTRIBUTES or "}" in name:
        return False
    if name in VERDICT_ATTRIBUTES:
        return text.strip().lower() not in RAN
    return verdict_like(name) and says_something(text)


def local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]
