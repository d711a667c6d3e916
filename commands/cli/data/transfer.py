"""The commands that bring a ledger, or a run of it, to another place: export, import, backup."""

from pathlib import Path
from typing import Literal

import click
from msgspec import Struct

from commands.cli.common import emit_json, emit_lines, home, json_option, run_argument, say, store_option
from commands.cli.exits import ExitCode
from commands.render.words import count, safe
from ledger.archive import Manifest

_SHOWN_DAMAGES = 20
_OUTCOMES = {
    "proved": "proved     the archive is whole; nothing was written",
    "imported": "imported   the archive is whole",
    "already-there": "imported   before; there was nothing to do",
}


class ExportedArchive(Struct, frozen=True, kw_only=True):
    """The file that was written, and what it holds."""

    file: str
    manifest: Manifest


class ImportedArchive(Struct, frozen=True, kw_only=True):
    """What came of an archive, and what it holds. `restored` counts the evidence of a run that was already there which
    was missing or damaged, and is there again."""

    outcome: Literal["proved", "imported", "already-there"]
    manifest: Manifest
    restored: int = 0


@click.command(short_help="One run with its evidence, as one file that proves itself.")
@run_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The archive (default: RUN.ledger.tar here).",
)
@json_option
@store_option
def export(run: str, output: Path | None, as_json: bool, store: str | None) -> ExitCode:
    """Write RUN, as far as it has come, into one archive: its events, and all evidence that they name.

    The same run gives the same bytes. `ledger import` brings it into another ledger, or begins one with it.
    """
    from ledger.transfer import export_run

    place = home(store)
    with place.open_ledger() as opened:
        name = opened.find_run(run)
        gates = opened.gates_of(name)
    file = output or Path(f"{name}.ledger.tar")
    manifest = export_run(place.directory, name, file)
    if as_json:
        emit_json(ExportedArchive(file=str(file), manifest=manifest))
    else:
        emit_lines([f"wrote      {safe(str(file))}", *_manifest_lines(manifest)])
    if gates:
        say(f"the gates of this release are runs of their own, each with its archive: {', '.join(gates)}")
    return ExitCode.PASSED


@click.command("import", short_help="A run from an archive, after all of it was proved.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--check", is_flag=True, help="Only prove the archive; write nothing.")
@json_option
@store_option
def import_archive(file: Path, check: bool, as_json: bool, store: str | None) -> ExitCode:
    """Bring the run of an archive into a ledger, which is begun when there is none: with --store DIR in a directory of
    its own, where status, log, why, show, replay, query and verify then work, also without a repository. Evidence of
    a run that is there already, and has been lost or damaged since, is restored.
    """
    done = _proved(file) if check else _imported(file, home(store).directory)
    if as_json:
        emit_json(done)
    else:
        outcome = _OUTCOMES[done.outcome]
        if done.restored:
            outcome = f"imported   before; {count(done.restored, 'piece')} of evidence restored"
        emit_lines([outcome, *_manifest_lines(done.manifest)])
    return ExitCode.PASSED


def _proved(file: Path) -> ImportedArchive:
    from ledger.archive import check_archive

    with file.open("rb") as archive:
        return ImportedArchive(outcome="proved", manifest=check_archive(archive))


def _imported(file: Path, directory: Path) -> ImportedArchive:
    from ledger.transfer import import_run

    imported = import_run(file, directory)
    outcome: Literal["imported", "already-there"] = "already-there" if imported.already else "imported"
    return ImportedArchive(outcome=outcome, manifest=imported.manifest, restored=imported.restored)


def _manifest_lines(manifest: Manifest) -> list[str]:
    held = f"{count(manifest.events, 'event')}, {count(len(manifest.evidence), 'piece')} of evidence"
    return [
        f"run        {safe(manifest.run)} of {safe(manifest.project)}",
        f"holds      {held}",
        f"head       {manifest.head}",
    ]


@click.command(short_help="A second ledger directory, made while others write.")
@click.argument("destination", type=click.Path(file_okay=False, path_type=Path))
@json_option
@store_option
def backup(destination: Path, as_json: bool, store: str | None) -> ExitCode:
    """Copy the ledger to the directory DESTINATION, and verify the copy. Others may go on writing meanwhile.

    Asked for again, it takes up a backup that was cut short, and brings an older one up to date. Evidence that is
    missing or damaged in the ledger itself is told of and left out: the exit code is then 7.
    """
    from ledger.backup import back_up

    place = home(store)
    made = back_up(place.directory, destination)
    if as_json:
        emit_json(made)
    else:
        held = f"{count(made.head_sequence, 'event')}, {count(made.evidence, 'piece')} of evidence, {made.added} new"
        lines = [f"backed up  {safe(str(place.directory))} to {safe(str(destination))}", f"holds      {held}"]
        lines.append(f"head       @{made.head_sequence}:{made.head_digest}")
        lines += [f"damaged    {digest}" for digest in made.damaged[:_SHOWN_DAMAGES]]
        if len(made.damaged) > _SHOWN_DAMAGES:
            lines.append(f"           ... and {len(made.damaged) - _SHOWN_DAMAGES} more (--json has all)")
        emit_lines(lines)
    return ExitCode.INTEGRITY if made.damaged else ExitCode.PASSED
