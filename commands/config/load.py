"""Puts the settings together: flag before variable before repository file before user file before default."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec import UNSET
from msgspec.structs import replace

from commands.config.settings import RUNNERS, CommandSettings, MuteSettings, NotifySettings, ReleaseSettings, Settings
from commands.config.sources import Source, from_environment, from_file, from_flags, from_repository
from commands.config.together import check_together
from ledger.errors import LedgerError
from ledger.events import MachinePolicy, PlanPolicy, QuestionPolicy


class StoreUnsupported(LedgerError):
    """The configured store is of a kind that this build has no engine for."""

    code = "store-unsupported"
    exit_code = 2


class Repository(Protocol):
    """What has a directory that all worktrees of a repository share."""

    @property
    def common_directory(self) -> Path: ...


class Loaded(NamedTuple):
    """The settings in force, and for every key that was set the source that won."""

    settings: Settings
    sources: dict[str, Source]

    def origin(self, key: str) -> str:
        """Where the value of a key comes from: `flag`, `environment NAME`, `file NAME:LINE` or `default`."""
        return self.sources[key].origin(key) if key in self.sources else "default"

    def value(self, key: str) -> object:
        """The value of a key such as `project` or `gate.rounds`; the default of one that another runner has."""
        table, _, name = key.rpartition(".")
        holder = getattr(self.settings, table) if table else self.settings
        found = getattr(holder if hasattr(holder, name) else CommandSettings(), name)
        # What stored settings leave out is a list of nothing.
        return () if found is UNSET else found


def load_settings(
    toplevel: Path,
    flags: Mapping[str, object],
    *,
    environment: Mapping[str, str] = os.environ,
    user_directory: Path | None = None,
    files: bool = True,
) -> Loaded:
    """Read every source and take each key from the first that has it. Raises ConfigInvalid for any bad value.

    `toplevel` is the top of the user's checkout; `flags` are values by key, None for a flag that was not
    used; `user_directory` holds the user's own `config.toml` (None for the usual place: `release-ledger` in
    `$XDG_CONFIG_HOME` or `~/.config`). Without `files` none is read: what is recorded can be read all the same.
    """
    user_file = (user_directory or _user_directory(environment)) / "config.toml"
    in_order = [
        from_flags(flags, Path.cwd()),
        from_environment(environment, Path.cwd()),
        *((from_repository(toplevel), from_file(user_file, f"user file {user_file}")) if files else ()),
    ]
    sources: dict[str, Source] = {}
    for source in filter(None, in_order):
        sources = dict.fromkeys(source.values, source) | sources
    # What can write its reports only into the tree can run there only once at a time.
    values = {"gate.parallel": 1 if "runner.report_in_tree" in sources else usable_processors()}
    values |= {key: source.values[key] for key, source in sources.items()}
    settings = _settings(values)
    check_together(settings.runner, settings.gate, sources)
    return Loaded(settings, sources)


def _user_directory(environment: Mapping[str, str]) -> Path:
    """Found by hand on every system: a library for this would take a fifth of the time of `ledger status`."""
    base = environment.get("XDG_CONFIG_HOME", "").strip()
    return Path(base or os.path.expanduser("~/.config")) / "release-ledger"


def usable_processors() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def store_location(settings: Settings, repository: Repository) -> Path:
    """The directory of the ledger: the configured one, or `ledger` in the repository's common git directory.

    Raises StoreUnsupported for a database server.
    """
    if settings.store.startswith("postgres") and "://" in settings.store:
        raise StoreUnsupported(
            "a ledger on PostgreSQL is not supported by this version; it comes later",
            "leave `store` out to keep the ledger in SQLite, in the repository's git directory",
        )
    if "://" in settings.store:
        raise StoreUnsupported(
            f"the store {settings.store} is of no kind that this program knows", "use the path of a directory"
        )
    return Path(settings.store) if settings.store else repository.common_directory / "ledger"


def _settings(values: Mapping[str, Any]) -> Settings:
    def table(prefix: str) -> dict[str, Any]:
        return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}

    top = {key: value for key, value in values.items() if "." not in key}
    runner = table("runner.")
    chosen = RUNNERS[runner.get("runner", "pytest")]
    return Settings(
        gate=replace(Settings().gate, **table("gate.")),
        plan=PlanPolicy(**table("plan.")),
        machine=MachinePolicy(**table("machine.")),
        mutes=MuteSettings(**table("mutes.")),
        questions=QuestionPolicy(**table("questions.")),
        notify=NotifySettings(**table("notify.")),
        release=ReleaseSettings(**table("release.")),
        # A list that is empty is one that is not set.
        runner=chosen(**{name: one for name, one in runner.items() if name in chosen.__struct_fields__ and one != ()}),
        **top,
    )
