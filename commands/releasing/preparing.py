"""Carries out `prepare`: one archive in one place, built from the commit that counts, and nothing else in its place.

What stands in the place before:

| what stands there                                     | what is done                         |
|---|---|
| nothing                                               | it is built                          |
| the archive that this release recorded for this commit, unchanged | it is used again         |
| one that it recorded for an earlier commit            | set aside, then it is built          |
| what an attempt of this release left unfinished       | set aside, then it is built          |
| anything else, a link, something that was changed     | refused, and left as it is           |
"""

import json
from pathlib import Path
from tempfile import mkdtemp

from commands.effects.clock import Clock
from commands.effects.release.archive import Archive, Place, check_archive, examine, write_manifest
from commands.effects.release.quarantine import Receipt, complete, leftovers, set_aside
from commands.messages import RecordQuarantine, Refusal
from commands.readers.archive_manifest import Standing
from commands.releasing.command import run_command, settle_command
from commands.releasing.parts import Bench, Done, failed, passed, unmeasured
from ledger.disk import finished_file
from ledger.errors import LedgerError, StoreUnwritable
from ledger.events import Prepared
from ledger.steps import Step
from projections.release.state import ReleaseView, StepAttempt

QUARANTINE = "quarantine"
BUILDING = "building.json"
"""Says which directory an attempt of which release has begun to fill."""


def carry_prepare(bench: Bench, step: Step, attempt: StepAttempt, adopted: bool) -> Done:
    """Make the place free, build, check, and say what was built. Nothing is ever deleted."""
    place = Place(bench.workshop.home.directory, str(bench.views().run.begun.version))
    try:
        if adopted:
            return _settled(bench, step, attempt, place)
        reused = _make_free(bench, attempt, place)
        if reused is not None:
            return passed(f"the archive {reused.digest[:12]} of this commit is there already")
        _claim(bench, place)
    except LedgerError as problem:
        return failed(problem.code, f"{problem.message} {problem.hint}".strip())
    except OSError as problem:
        return unmeasured("archive-unreadable", f"{place.path}: {problem.strerror or problem}")
    told = {"LEDGER_ARCHIVE": str(place.path)}
    done = run_command(bench, step, attempt, told, archive_directory=str(place.path))
    return _checked(step, attempt, place, done) if done.outcome == "passed" else done


def _checked(step: Step, attempt: StepAttempt, place: Place, done: Done) -> Done:
    """Hold what was built against its manifest, and make that the archive of the release."""
    from msgspec.structs import replace

    try:
        if step.manifest == "write":
            write_manifest(place, commit=attempt.commit)
        archive = check_archive(place, commit=attempt.commit)
    except StoreUnwritable as problem:
        bad = unmeasured(problem.code, f"{problem.message} {problem.hint}".strip())
        return replace(bad, output=done.output, errors=done.errors)
    except LedgerError as problem:
        bad = failed(problem.code, f"{problem.message} {problem.hint}".strip())
        return replace(bad, output=done.output, errors=done.errors)
    except OSError as problem:
        bad = unmeasured("archive-unreadable", f"{place.path}: {problem.strerror or problem}")
        return replace(bad, output=done.output, errors=done.errors)
    return replace(done, archive=(archive.digest, archive.size_bytes, len(archive.files), str(place.path)))


def _settled(bench: Bench, step: Step, attempt: StepAttempt, place: Place) -> Done:
    """What the command of a dead driver had said counts, if what it built can be checked now."""
    done = settle_command(bench, step, attempt)
    return _checked(step, attempt, place, done) if done.outcome == "passed" else done


def _make_free(bench: Bench, attempt: StepAttempt, place: Place) -> Archive | None:
    """Free the place of what this release left there; the archive itself when it is the right one already."""
    _record_what_was_moved(bench, place)
    standing = examine(place)
    if standing is None:
        return None
    view = bench.views().release
    recorded = _recorded(view, place)
    if recorded is None:
        if not _is_ours(bench, place, standing):
            raise Refusal(
                "archive-unknown",
                f"{place.path} holds something that this release has not recorded; it was left as it is",
                "look at it, then move it away yourself",
            )
        _set_aside(bench, place, standing, "", "it was never finished")
        return None
    archive = check_archive(place, commit=recorded.commit) if standing.commit == recorded.commit else None
    if archive is None or archive.digest != recorded.digest:
        raise Refusal(
            "archive-changed",
            f"{place.path} is not what was prepared any more; it was left as it is",
            "look at it, then move it away yourself",
        )
    if recorded.commit == attempt.commit:
        return archive
    if recorded.commit not in view.commits():
        raise Refusal("archive-unknown", f"{place.path} is of a commit that this release never had", "")
    _set_aside(bench, place, standing, recorded.digest, f"it was built from {recorded.commit}")
    return None


def _recorded(view: ReleaseView, place: Place) -> Prepared | None:
    """The archive that the release has recorded in this place, if it was not set aside since."""
    here = [one for one in view.archives if one.place == str(place.path)]
    return here[-1] if here and here[-1].digest not in view.aside else None


def _set_aside(bench: Bench, place: Place, standing: Standing, digest: str, reason: str) -> None:
    receipt = set_aside(
        place,
        bench.workshop.home.directory / QUARANTINE,
        expected=standing,
        digest=digest,
        reason=reason,
        moved_at=Clock().utc_now(),
    )
    _record(bench, receipt)
    bench.display.note(f"the archive in {place.path} was set aside: {reason}; it is in {receipt.to}")


def _record_what_was_moved(bench: Bench, place: Place) -> None:
    """A driver that died after it had set something aside could not say so any more."""
    told = {one.place for one in bench.views().release.quarantined}
    names = {Path(one).parent.name for one in told}
    for leftover in leftovers(bench.workshop.home.directory / QUARANTINE, recorded=names):
        if leftover.receipt is not None and leftover.receipt.origin == str(place.path):
            receipt = complete(leftover.directory)
            # What was never moved has nothing to record, and of what was swapped nobody knows what it is.
            if receipt.status == "complete":
                _record(bench, receipt)


def _record(bench: Bench, receipt: Receipt) -> None:
    bench.workshop.loop.handle(
        RecordQuarantine(
            stream=bench.release,
            place=receipt.to,
            digest=receipt.digest,
            size_bytes=receipt.size_bytes,
            reason=receipt.reason,
        )
    )


def _claim(bench: Bench, place: Place) -> None:
    """Make the directory to build in; it gets its place only after a note says whose it is."""
    place.path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    made = Path(mkdtemp(prefix=".building-", dir=place.path.parent))
    made.chmod(0o755)
    identity = made.lstat()
    note = {"release": bench.release, "device": identity.st_dev, "inode": identity.st_ino}
    target = place.path.with_name(BUILDING)
    target.unlink(missing_ok=True)
    with finished_file(target) as file:
        file.write(json.dumps(note).encode())
    made.rename(place.path)


def _is_ours(bench: Bench, place: Place, standing: Standing) -> bool:
    """Whether an attempt of this release made the directory that stands there."""
    note = _note(place.path.with_name(BUILDING))
    here = (standing.archive.device, standing.archive.inode)
    return note.get("release") == bench.release and (note.get("device"), note.get("inode")) == here


def _note(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
