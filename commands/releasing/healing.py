"""Gathers what is wrong with a gate that did not pass, and has it decided what is done about that."""

from collections.abc import Callable

from commands.decide.attempts.limits import gets_more_memory
from commands.decide.next import MEMBER
from commands.messages import HealGate
from commands.releasing.parts import Bench
from projections.registry import RunViews
from projections.release.healing import told as words
from projections.release.trouble import Trouble, trouble_of
from projections.run.owed import owed


def heal(bench: Bench, step: str, told: Callable[[str], None]) -> None:
    """Decide about the newest attempt at a gate, and tell of it. Who heals is the driver: it begins the gate again."""
    loop = bench.workshop.loop
    attempt = bench.views().release.steps[step].last
    assert attempt is not None
    gate = loop.views(attempt.gate)
    loop.handle(
        HealGate(
            stream=bench.release,
            step=step,
            attempt=attempt.number,
            trouble=_trouble(gate, attempt.report.cause),
        )
    )
    decided = bench.views().release.healing_of(step)
    if decided is not None:
        told(f"{step}: {words(decided)}")


def _trouble(gate: RunViews, code: str) -> Trouble:
    if gate.run.started is None:
        return trouble_of(gate.gate, None, code, (MEMBER,))
    policy = gate.run.policy
    more = any(gets_more_memory(entry, gate) for entry in owed(gate.gate, policy))
    return trouble_of(gate.gate, policy, code, (MEMBER,), more_memory=more)
