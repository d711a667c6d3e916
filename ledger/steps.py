"""Documents of a release: its steps, as they were when it was started, and what somebody saw before an approval."""

from typing import Literal

from msgspec import Struct

from ledger.values import Commit

Uses = Literal["run", "cut", "gate", "prepare", "approve", "wait-until"]
"""What a step does: its own command, or what this program does for it."""


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One station of a release. Every rule on resuming, waiving and approving goes by these fields, never by a name.

    `needs` are the steps that must be settled before. `run` is its command: of `prepare`, the one that builds the
    archive. `consumes_candidate`: its result counts for one commit only. `waivable`: people may let it stand.
    `tolerated`: the release goes on whatever it comes to. `irreversible`: what it does cannot be taken back.
    `observer`: it decides nothing and settles nothing. `on_failed` and `on_unmeasured` name a step that is run before
    the release ends for that. After `idle_timeout_seconds` without output it is ended; 0 for never. `retries` is how
    often it is tried again at once, whole. `env` are variables (or `PREFIX*`) that it gets from yours, `secrets` those
    whose values are never shown. `until` is what `wait-until` waits for: a time with its offset from UTC.
    `manifest`: whether the command of `prepare` writes the list of the archive's files itself.
    """

    name: str
    uses: Uses = "run"
    run: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    consumes_candidate: bool = True
    waivable: bool = False
    tolerated: bool = False
    irreversible: bool = False
    observer: bool = False
    on_failed: str = ""
    on_unmeasured: str = ""
    idle_timeout_seconds: float = 1800.0
    retries: int = 0
    env: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    until: str = ""
    manifest: Literal["check", "write"] = "check"


class StepGraph(Struct, frozen=True, kw_only=True):
    """The steps in the order in which they run, and the limits of the release.

    `attempts_max` is how often it may be resumed. `may_waive` and `may_approve` are who may, by name (empty: anybody);
    with `separate_duties`, who waived anything of a release may not approve it. `autoheal`: whether the program itself
    begins a gate again that did not pass, as far as its table allows. `main` is the branch that it is cut and repaired
    from.
    """

    steps: tuple[Step, ...]
    attempts_max: int = 5
    may_waive: tuple[str, ...] = ()
    may_approve: tuple[str, ...] = ()
    separate_duties: bool = False
    autoheal: bool = False
    main: str = "main"

    def step(self, name: str) -> Step:
        """The step of this name. Raises KeyError."""
        return {step.name: step for step in self.steps}[name]

    def names(self) -> tuple[str, ...]:
        """The names of all steps, in order."""
        return tuple(step.name for step in self.steps)


class Shown(Struct, frozen=True, kw_only=True):
    """What somebody sees before an approval; kept as evidence, and what the approval holds for.

    `archive` is the digest of the archive ("" without one); `waivers`, `issues` and `mutes` are what was let pass:
    names with their reasons. `verdicts` are the outcomes of the steps before.
    """

    release: str
    version: str
    commit: Commit
    archive: str
    waivers: tuple[tuple[str, str], ...]
    issues: tuple[tuple[str, str], ...]
    mutes: tuple[str, ...]
    verdicts: tuple[tuple[str, str], ...]
