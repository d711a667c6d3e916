"""Sets an archive aside: moved whole into a private directory of the quarantine, with a receipt, and never deleted.

What is decided elsewhere is that this archive may go. Here it is made sure that what goes is that archive, at any
instant at which this program may end or somebody else may work there:

step         what is on the disk when it is done
`opened`     nothing: what stands at the place is what was looked at, and the quarantine is on the same file system
`private`    an empty directory `.quarantine-<random>`, mode 0700, locked for as long as this program lives
`intended`   the receipt in it, `pending`, synced; the archive is untouched
`verified`   the same: everything was looked at again, from the ledger's directory down
`moved`      the archive is in the private directory, next to its receipt
`checked`    the same: it was looked at again, there
`measured`   the same: its size is known, or why it is not
`completed`  the receipt says so

Whatever ended before `moved` left the archive where it was; whatever ended after it left it with a receipt that
`complete` brings to its end. `leftovers` finds both.
"""

import errno
import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from commands.effects.release.archive import PREPARED, Held, Place, held, manifest_of
from commands.effects.release.held import Directory, walk
from commands.messages.base import Refusal
from commands.readers.archive_manifest import DEPTH_MAX, MANIFEST, MANIFEST_BYTES_MAX, Standing
from ledger.errors import LedgerError
from ledger.values import Commit, Digest

RECEIPT = "receipt.json"
STEPS = ("opened", "private", "intended", "verified", "moved", "checked", "measured", "completed")

_PREFIX = ".quarantine-"
_RECEIPT_BYTES_MAX = 1 << 20
_LOOK = "look who else works there; nothing is ever deleted"


class ArchiveSwapped(LedgerError):
    """While an archive was set aside, something else took its place or that of its directories. Nothing is lost."""

    code = "archive-swapped"
    exit_code = 4

    def __init__(self, problem: str, preserved: Path) -> None:
        super().__init__(f"{problem}; what was moved is preserved at {preserved}", _LOOK)
        self.preserved = preserved


class QuarantineFailed(LedgerError):
    """The quarantine cannot be used, or a receipt in it cannot be written; the message says where the archive is."""

    code = "quarantine-failed"
    exit_code = 4

    def __init__(self, problem: str, preserved: Path) -> None:
        super().__init__(f"{problem}; the archive is preserved at {preserved}", "check space, quota and permissions")
        self.preserved = preserved


class Receipt(Struct, frozen=True, kw_only=True):
    """What was set aside, from where to where, and how that ended; `receipt.json` next to it.

    `status`: `pending` until everything is known; then `complete`, or `swapped` when what is there is not what was
    meant, or `not-moved` when the archive never came here. `moved_at` is when it was decided. `digest` is that of the
    archive as the ledger has it, `manifest_digest` the SHA-256 of its manifest, both "" when there is none; `inode` is
    its directory's. `size_bytes` is that of all files in it, counted under each of their names.
    """

    status: Literal["pending", "complete", "swapped", "not-moved"] = "pending"
    version: str
    commit: Commit
    origin: str = field(name="from")
    to: str
    moved_at: str
    reason: str
    digest: Digest
    manifest_digest: Digest
    inode: int
    size_status: Literal["pending", "measured", "unmeasured"] = "pending"
    size_bytes: int = 0
    size_error: str = ""


class Leftover(NamedTuple):
    """A private directory of the quarantine that something is still to be said of.

    `intended`: a receipt without its archive, which was not moved. `moved`: the archive, and a receipt that is pending.
    `complete` and `swapped`: as the receipt says. `unexplained`: something is there, and no receipt that can be read.
    """

    directory: Path
    state: Literal["intended", "moved", "complete", "swapped", "unexplained"]
    receipt: Receipt | None


def set_aside(
    place: Place,
    quarantine: Path,
    *,
    expected: Standing,
    digest: Digest,
    reason: str,
    moved_at: str,
    step: Callable[[str], None] = lambda name: None,
) -> Receipt:
    """Move the archive that was looked at (`examine`) into the quarantine, which is made if it is not there.

    `digest` is the archive's as the ledger has it, "" for none. `step` is told each step when it is done. Raises with
    the archive untouched: Refusal as `examine` does, with `archive-changed` when another thing stands there than was
    looked at, and with `quarantine-cross-device`; QuarantineFailed, which may also come after the move and then says
    where the archive is; ArchiveSwapped.
    """
    with ExitStack() as stack:
        standing = _as_expected(stack.enter_context(held(place)), place, expected)
        home = stack.enter_context(_quarantine(quarantine, standing.archive, place))
        step("opened")
        name = _PREFIX + os.urandom(8).hex()
        with _explained("the quarantine cannot be used", place.path):
            os.mkdir(name, 0o700, dir_fd=home.descriptor)
            private = stack.enter_context(home.directory(name))
            fcntl.flock(private.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        step("private")
        receipt = Receipt(
            version=expected.version,
            commit=expected.commit,
            origin=str(place.path),
            to=str(quarantine / name / PREPARED),
            moved_at=moved_at,
            reason=reason,
            digest=digest,
            manifest_digest=expected.manifest_digest,
            inode=expected.archive.inode,
        )
        with _explained(f"the receipt {quarantine / name / RECEIPT} cannot be written", place.path):
            private.create(RECEIPT, _encoded(receipt))
            private.sync()
            home.sync()
        step("intended")
        try:
            _move(place, expected, private, step)
        except LedgerError:
            # That it was not moved is also found later, so that a disk that is full now must not hide the reason.
            with suppress(OSError):
                _rewrite(private, replace(receipt, status="not-moved"))
            raise
        step("moved")
        receipt = _finished(private, quarantine / name, receipt, step, standing.release)
    if receipt.status == "swapped":
        raise ArchiveSwapped(receipt.size_error, quarantine / name)
    _left_free(place, expected, quarantine / name)
    return receipt


def leftovers(quarantine: Path, *, recorded: Collection[str] = ()) -> tuple[Leftover, ...]:
    """What the quarantine holds beside the directories whose names are `recorded`, in the order of their names.

    What somebody is moving right now is left out, and so is what says that nothing was moved. Raises OSError.
    """
    found: list[Leftover] = []
    try:
        home = Directory.at(quarantine)
    except FileNotFoundError:
        return ()
    with home:
        for name in home.names():
            if name.startswith(_PREFIX) and name not in recorded and home.kind(name) == "directory":
                with home.directory(name) as private:
                    if _locked(private) and (leftover := _leftover(private, quarantine / name)):
                        found.append(leftover)
    return tuple(found)


def complete(directory: Path, *, step: Callable[[str], None] = lambda name: None) -> Receipt:
    """Bring a move that was interrupted to its end, in its private directory; the same again changes nothing.

    What was moved is checked and measured; what was not moved yet never will be by this, and its receipt says so: the
    world may have changed since that was decided. Raises OSError when it cannot be looked at, QuarantineFailed, and
    Refusal with `quarantine-busy` while another program is moving it, with `quarantine-unexplained` when nothing says
    what is there.
    """
    with Directory.at(directory) as private:
        if not _locked(private):
            raise Refusal("quarantine-busy", f"{directory} is in the hands of another program", "wait for its end")
        receipt = _read_receipt(private)
        if receipt is None:
            told = f"{directory} has no receipt that can be read; what is there is preserved"
            raise Refusal("quarantine-unexplained", told, _LOOK)
        if receipt.status != "pending":
            return receipt
        if private.kind(PREPARED) is not None:
            return _finished(private, directory, receipt, step, None)
        closed = replace(receipt, status="not-moved")
        with _explained(f"the receipt {directory / RECEIPT} cannot be written", Path(receipt.origin)):
            _rewrite(private, closed)
        return closed


def _as_expected(found: Held, place: Place, expected: Standing) -> Held:
    """Refuse what is not what was looked at."""
    problem = ""
    for directory, identity, path in (
        (found.releases, expected.releases, place.path.parent.parent),
        (found.release, expected.release, place.path.parent),
        (found.archive, expected.archive, place.path),
    ):
        if directory.identity != identity:
            problem = problem or f"{path} is another directory than the one that was looked at"
    if not problem and _manifest_digest(manifest_of(found.archive, place)) != expected.manifest_digest:
        problem = f"{place.path / MANIFEST} is not what it was when it was looked at"
    if problem:
        raise Refusal("archive-changed", f"{problem}; nothing was moved", _LOOK)
    return found


@contextmanager
def _quarantine(path: Path, archive: Directory, place: Place) -> Iterator[Directory]:
    """The directory of the quarantine, held open and made if it is not there, on the file system of the archive."""
    with _explained(f"the quarantine {path} cannot be used", place.path):
        if not os.path.lexists(path):
            with Directory.at(path.parent, follow=True) as parent:
                _same_device(parent, archive, path)
                os.mkdir(path.name, 0o700, dir_fd=parent.descriptor)
                parent.sync()
        home = Directory.at(path)
    with home:
        _same_device(home, archive, path)
        yield home


def _same_device(one: Directory, archive: Directory, path: Path) -> None:
    """Refuse two directories that nothing can be renamed between; a second mount of a file system counts, too."""
    if one.identity.device != archive.identity.device or _mount(one) != _mount(archive):
        _cross_device(path)


def _cross_device(path: Path) -> NoReturn:
    told = f"{path} is on another file system than the archive, which can only be moved whole, so it stayed where it is"
    raise Refusal("quarantine-cross-device", told, "keep the quarantine and `releases` on one file system")


def _mount(directory: Directory) -> str:
    """Which mount a directory was reached through; "" where the system does not tell."""
    try:
        told = Path(f"/proc/self/fdinfo/{directory.descriptor}").read_text("ascii")
    except OSError:
        return ""
    return next((line for line in told.splitlines() if line.startswith("mnt_id:")), "")


def _move(place: Place, expected: Standing, private: Directory, step: Callable[[str], None]) -> None:
    """Look at everything again and move the archive in the next instant."""
    try:
        with held(place) as found:
            _as_expected(found, place, expected)
            step("verified")
            os.rename(PREPARED, PREPARED, src_dir_fd=found.release.descriptor, dst_dir_fd=private.descriptor)
    except OSError as error:
        if error.errno == errno.EXDEV:
            _cross_device(place.path)
        if error.errno == errno.ENOENT:
            raise Refusal("archive-changed", f"{place.path} was taken away by somebody else", _LOOK) from error
        raise QuarantineFailed(f"{place.path} cannot be moved: {error.strerror}", place.path) from error


def _finished(
    private: Directory, directory: Path, receipt: Receipt, step: Callable[[str], None], release: Directory | None
) -> Receipt:
    """Check and measure what was moved, and complete its receipt. `release` is where it was, to be synced."""
    with _explained(f"the receipt {directory / RECEIPT} cannot be completed", directory):
        private.sync()
        if release is not None:
            release.sync()
        problem = _difference(private, receipt)
        step("checked")
        if problem:
            receipt = replace(receipt, status="swapped", size_status="unmeasured", size_error=problem)
        else:
            size_bytes, error = _size(private)
            status = "unmeasured" if error else "measured"
            receipt = replace(receipt, status="complete", size_status=status, size_bytes=size_bytes, size_error=error)
        step("measured")
        _rewrite(private, receipt)
    step("completed")
    return receipt


def _difference(private: Directory, receipt: Receipt) -> str:
    """What tells what was moved from what was meant; "" for nothing.

    A rename stays on one file system, where no two directories share an inode; what a device is numbered may change
    with the next boot.
    """
    if private.kind(PREPARED) != "directory":
        return f"what was moved from {receipt.origin} is no directory"
    try:
        with private.directory(PREPARED) as moved:
            if moved.identity.inode != receipt.inode:
                return f"what was moved from {receipt.origin} is another directory"
            kind = moved.kind(MANIFEST)
            found = moved.read(MANIFEST, MANIFEST_BYTES_MAX) if kind is not None else None
    except OSError as error:
        return f"what was moved from {receipt.origin} cannot be looked at: {error.strerror or error}"
    if _manifest_digest(found) != receipt.manifest_digest:
        return f"{MANIFEST} in what was moved from {receipt.origin} is another one"
    return ""


def _size(private: Directory) -> tuple[int, str]:
    """The bytes of all files of the archive, and "", or those that were seen, and why it is not all of them."""
    size_bytes = 0
    try:
        with private.directory(PREPARED) as archive:
            for entry in walk(archive, lambda path: path.count("/") < 4 * DEPTH_MAX):
                if entry.kind == "directory" and entry.path.count("/") >= 4 * DEPTH_MAX:
                    return size_bytes, f"{entry.path[:200]} lies too deep"
                if entry.kind == "file":
                    size_bytes += os.lstat(entry.name, dir_fd=entry.within.descriptor).st_size
    except OSError as error:
        return size_bytes, str(error)
    return size_bytes, ""


def _left_free(place: Place, expected: Standing, preserved: Path) -> None:
    """Make sure that the place is free now, and still where it was."""
    release = place.path.parent
    try:
        with Directory.at(release.parent) as releases, releases.directory(place.version) as found:
            unchanged = (releases.identity, found.identity) == (expected.releases, expected.release)
            free = found.kind(PREPARED) is None
    except OSError:
        unchanged = free = False
    if not unchanged or not free:
        what = f"{place.path} was taken by something else" if unchanged else f"{release} is not what it was"
        raise ArchiveSwapped(f"{what} while the archive was set aside", preserved)


def _leftover(private: Directory, directory: Path) -> Leftover | None:
    """What is left to say of a private directory; None when nothing is there, or nothing was moved."""
    receipt = _read_receipt(private)
    is_there = private.kind(PREPARED) is not None
    if receipt is None:
        return Leftover(directory, "unexplained", None) if is_there else None
    if receipt.status == "pending":
        return Leftover(directory, "moved" if is_there else "intended", receipt)
    return None if receipt.status == "not-moved" else Leftover(directory, receipt.status, receipt)


def _locked(private: Directory) -> bool:
    """Whether no other program holds this private directory; if so, this one does until it is closed."""
    try:
        fcntl.flock(private.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_receipt(private: Directory) -> Receipt | None:
    """The receipt of a private directory; None when there is none, or only a part of one."""
    try:
        # Paths may be bytes that are no text, which only this module reads back from what it has written.
        return msgspec.convert(json.loads(private.read(RECEIPT, _RECEIPT_BYTES_MAX)), Receipt)
    except (OSError, ValueError, RecursionError):
        return None


def _rewrite(private: Directory, receipt: Receipt) -> None:
    """Put another receipt in the place of the one that is there, at once. Raises OSError and leaves the old one."""
    temporary = f"{RECEIPT}.{os.urandom(4).hex()}.new"
    try:
        private.create(temporary, _encoded(receipt))
        os.rename(temporary, RECEIPT, src_dir_fd=private.descriptor, dst_dir_fd=private.descriptor)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=private.descriptor)
        raise
    private.sync()


def _encoded(receipt: Receipt) -> bytes:
    return json.dumps(msgspec.to_builtins(receipt), ensure_ascii=True, indent=1).encode() + b"\n"


def _manifest_digest(manifest: bytes | None) -> Digest:
    return "" if manifest is None else sha256(manifest).hexdigest()


@contextmanager
def _explained(problem: str, preserved: Path) -> Iterator[None]:
    """Say where the archive is when the disk refuses something."""
    try:
        yield
    except OSError as error:
        raise QuarantineFailed(f"{problem}: {error.strerror or error}", preserved) from error
