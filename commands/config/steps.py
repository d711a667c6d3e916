"""Reads `[[step]]`: the steps of a release, with what each leaves out filled in."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ledger.steps import Step, Uses

_OWN_COMMIT: tuple[Uses, ...] = ("run", "gate", "prepare")
"""What a step uses whose result counts for one commit only, unless the settings say otherwise."""


class StepKeys(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[step]]` as it is written; the fields mean what those of a step mean."""

    name: str
    uses: Uses = "run"
    run: tuple[str, ...] = ()
    needs: tuple[str, ...] | UnsetType = UNSET
    consumes_candidate: bool | UnsetType = UNSET
    waivable: bool = False
    tolerated: bool = False
    irreversible: bool = False
    observer: bool = False
    on_failed: str = ""
    on_unmeasured: str = ""
    idle_timeout: float | str = 1800.0
    retries: int = 0
    env: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    until: str = ""
    manifest: Literal["check", "write"] = "check"


def steps_of(found: object, seconds_of: Any) -> tuple[Step, ...]:
    """The steps in order. A step that does not say what it needs needs the one before it.

    `seconds_of` reads a time such as "10m", and gives a negative number for what is none. Raises ValueError, which
    names the step and the key.
    """
    if not isinstance(found, (list, tuple)):
        raise ValueError("`step` is no list of tables; each step is a `[[step]]`")
    written = [_keys(number, one) for number, one in enumerate(found, start=1)]
    aside = {name for one in written for name in (one.on_failed, one.on_unmeasured) if name}
    steps: list[Step] = []
    before = ""
    for one in written:
        steps.append(_step(one, before if one.name not in aside else "", seconds_of))
        if one.name not in aside and not one.observer:
            before = one.name
    return tuple(steps)


def _keys(number: int, found: object) -> StepKeys:
    name = found.get("name") if isinstance(found, dict) else None
    which = f"step {name!r}" if isinstance(name, str) else f"step {number}"
    try:
        return msgspec.convert(found, StepKeys)
    except msgspec.ValidationError as problem:
        raise ValueError(f"{which}: {problem}") from problem


def _step(one: StepKeys, before: str, seconds_of: Any) -> Step:
    idle = seconds_of(one.idle_timeout) if isinstance(one.idle_timeout, str) else one.idle_timeout
    texts = (*one.run, *one.env, *one.secrets, *(one.needs or ()), one.name, one.until, one.on_failed)
    if any("\0" in text for text in texts):
        raise ValueError(f"step {one.name!r}: no text can hold the character 0")
    if not 0 <= idle <= 2**31:
        told = f"`idle_timeout` is {one.idle_timeout!r}"
        raise ValueError(f'step {one.name!r}: {told}; allowed: a time such as "10m", or 0')
    if not 0 <= one.retries <= 1:
        raise ValueError(f"step {one.name!r}: `retries` is {one.retries}; allowed: 0 or 1")
    own = one.uses in _OWN_COMMIT and not one.observer
    return Step(
        name=one.name,
        uses=one.uses,
        run=one.run,
        needs=((before,) if before else ()) if one.needs is UNSET else one.needs,
        consumes_candidate=own if one.consumes_candidate is UNSET else one.consumes_candidate,
        waivable=one.waivable,
        tolerated=one.tolerated,
        irreversible=one.irreversible,
        observer=one.observer,
        on_failed=one.on_failed,
        on_unmeasured=one.on_unmeasured,
        idle_timeout_seconds=float(idle),
        retries=one.retries,
        env=one.env,
        secrets=one.secrets,
        until=one.until,
        manifest=one.manifest,
    )
