"""Tells people that a run waits for them: the programs of `notify.hooks` are run, each with a document about it.

A program is given as an argument vector, without a shell. It sees your own environment, because it has to reach you,
and runs in a group of processes of its own. Whether it succeeds changes nothing: a failure is told, and that is all.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from commands.effects import processes
from commands.render.words import clipped
from projections.people.questions import QuestionRecord, recommended

HOOK_LIMIT_SECONDS = 10.0
_SHOWN_BYTES = 400
_SHOWN_CHARACTERS = 160


class Notice(Struct, frozen=True, kw_only=True):
    """What a program reads. `subject` names the question or the approval within the run; `options` are the answers that
    there are. `deadline` is a time in UTC as ISO 8601, "" without one. `command` is what to type."""

    kind: Literal["question", "approval"]
    run: str
    step: str
    subject: str
    prompt: str
    why_now: str = ""
    impact: str = ""
    options: tuple[str, ...] = ()
    recommended: str = ""
    deadline: str = ""
    command: str = ""


def question_notice(run: str, record: QuestionRecord) -> Notice:
    """The notice of a question that was asked."""
    content, deadline = record.content, record.deadline
    return Notice(
        kind="question",
        run=run,
        step=content.step,
        subject=record.question,
        prompt=content.prompt,
        why_now=content.why_now,
        impact=content.impact,
        options=tuple(option.label for option in content.options),
        recommended=recommended(content),
        deadline=deadline.isoformat(timespec="seconds").replace("+00:00", "Z") if deadline else "",
        command=f"ledger answer {record.question} OPTION {run}",
    )


def notify(
    hooks: Iterable[Sequence[str]],
    notice: Notice,
    directory: Path,
    note: Callable[[str], None],
    *,
    limit_seconds: float = HOOK_LIMIT_SECONDS,
) -> None:
    """Run each program in this directory, one after the other, for at most so long. `note` is told of each failure."""
    document = msgspec.json.encode(notice) + b"\n"
    for argv in hooks:
        problem = _problem(argv, document, directory, limit_seconds)
        if problem:
            note(f"the hook {argv[0]!r} did not tell anybody of {notice.subject}: {problem}")


def _problem(argv: Sequence[str], document: bytes, directory: Path, limit_seconds: float) -> str:
    """What went wrong, "" for nothing. Into a file, because a process that it leaves behind would hold a pipe open."""
    with tempfile.TemporaryFile() as output:
        try:
            ended = processes.run(
                argv, directory=directory, environment=os.environ, timeout_seconds=limit_seconds, output=output,
                given=document,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"it did not end within {limit_seconds:g} s and was ended"
        except OSError as failure:
            return f"it cannot be started: {failure.strerror}"
        if ended.returncode == 0:
            return ""
        output.seek(max(0, output.seek(0, os.SEEK_END) - _SHOWN_BYTES))
        said = output.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
    how = f"signal {-ended.returncode}" if ended.returncode < 0 else f"exit code {ended.returncode}"
    return f"{how}; {clipped(said, _SHOWN_CHARACTERS)}" if said else how
