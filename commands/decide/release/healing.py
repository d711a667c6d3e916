"""The decision about a gate of a release that did not pass: what the program itself does, or that a person has to.

Rules:
- it is decided once for each attempt at a gate that came to its end, and only where the settings of the release say so.
- what is done is what the table says (`projections/release/healing.py`), from what the gate showed and what was decided
  before in this release.
"""

from datetime import datetime

from commands.decide.base import NOTHING, Decided, Documents
from commands.decide.release.next import is_to_be_healed
from commands.decide.release.steps import graph_of, known_step
from commands.messages import HealGate
from ledger.events import AutohealDecided
from projections.registry import RunViews
from projections.release.healing import CAPS, HEALING_VERSION, choose
from projections.release.state import StepAttempt


def heal_gate(message: HealGate, views: RunViews, documents: Documents) -> Decided:
    """The answer for this attempt. Nothing when there is one already, or another attempt was made since."""
    graph, view, trouble = graph_of(views, documents), views.release, message.trouble
    step = known_step(message.step, graph)
    attempt = view.steps[step.name].last
    if attempt is None or attempt.number != message.attempt or not is_to_be_healed(step, view, graph):
        return NOTHING
    healing = choose(trouble, view.heals)
    event = AutohealDecided(
        step=step.name,
        attempt=attempt.number,
        commit=attempt.commit,
        gate=attempt.gate,
        table=HEALING_VERSION,
        cause=trouble.cause,
        codes=trouble.codes,
        signature=trouble.signature(),
        history=healing.history,
        taken=healing.taken,
        caps=dict(CAPS),
        facts=healing.facts,
        row=healing.row,
        action=healing.action,
        passed_over=healing.passed_over,
        subject=healing.subject,
        shard_seconds=trouble.longest_seconds,
        elapsed_seconds=_elapsed_seconds(attempt),
    )
    return Decided((event,))


def _elapsed_seconds(attempt: StepAttempt) -> float:
    began, ended = (datetime.fromisoformat(time) for time in (attempt.started_at, attempt.ended_at))
    return (ended - began).total_seconds()
