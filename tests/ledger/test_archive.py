"""Archives: a run leaves one ledger and arrives in another as it was, and nothing else ever arrives."""

import io
import shutil
import tarfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from ledger.archive import (
    BLOCK_BYTES,
    EVENTS,
    EVIDENCE_PREFIX,
    MANIFEST,
    ArchivedEvent,
    ArchivedEvidence,
    ArchiveInvalid,
    ArchiveReader,
    Manifest,
    check_archive,
    encode_line,
    encode_manifest,
    member_header,
    write_end,
    write_member,
)
from ledger.codec import encode_header
from ledger.disk import FileOccupied
from ledger.errors import EvidenceDamaged, ForeignLedger, LedgerDamaged, NewerFormat, RunUnknown
from ledger.events import FORMAT_VERSION, RunStopped
from ledger.evidence import EvidenceStore
from ledger.proof.findings import Finding
from ledger.proof.verify import verify
from ledger.record import Header, NewEvent, event_digest
from ledger.store.api import EVIDENCE, LEDGER_FILE
from ledger.store.reader import Reader
from ledger.store.writer import Writer
from ledger.transfer import RunDiffers, export_run, import_run
from tests.ledger.stores import edited, stamp
from tests.support.ledgers import make_ledger

RUN = "run-1"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with two runs that nobody writes to."""
    return make_ledger(tmp_path_factory.mktemp("original"), "run-0", RUN)


@pytest.fixture(scope="module")
def archive(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of one of its runs."""
    file = tmp_path_factory.mktemp("archive") / "run.tar"
    export_run(original, RUN, file)
    return file


class Parts:
    """An archive taken apart, to be changed and put together again with everything that is only computed."""

    def __init__(self, data: bytes) -> None:
        reader = ArchiveReader(BytesIO(data))
        self.manifest = reader.manifest
        self.evidence = {digest: member.read(10**9) for digest, member in reader.evidence()}
        self.events = list(reader.events())

    def data(self, **changes: object) -> bytes:
        """The archive again; `changes` are to the manifest."""
        file = BytesIO()
        lines = b"".join(encode_line(one.header.encode(), one.payload.encode(), one.digest) for one in self.events)
        pieces = tuple(ArchivedEvidence(digest, len(data)) for digest, data in sorted(self.evidence.items()))
        values = {"events": len(self.events), "events_bytes": len(lines), "head": self.events[-1].digest}
        manifest = structs.replace(self.manifest, evidence=pieces, **values | changes)
        encoded = encode_manifest(manifest)
        write_member(file, MANIFEST, len(encoded), iter((encoded,)))
        for piece in manifest.evidence:
            data = self.evidence.get(piece.digest, b"")
            write_member(file, EVIDENCE_PREFIX + piece.digest, len(data), iter((data,)))
        write_member(file, EVENTS, len(lines), iter((lines,)))
        write_end(file)
        return file.getvalue()


@pytest.fixture
def parts(archive: Path) -> Parts:
    """The archive taken apart."""
    return Parts(archive.read_bytes())


def check(data: bytes) -> Manifest:
    """Prove these bytes to be an archive."""
    return check_archive(BytesIO(data))


def findings(directory: Path) -> list[Finding]:
    """What is wrong with a ledger."""
    found: list[Finding] = []
    verify(directory / LEDGER_FILE, directory / EVIDENCE, found.append)
    return found


def digests(directory: Path, run: str = RUN) -> list[str]:
    """The digests of a run's events."""
    with Reader.open(directory / LEDGER_FILE) as reader:
        return [one.digest for one in reader.events(run)]


def test_a_run_arrives_in_a_new_ledger_as_it_was(original: Path, archive: Path, tmp_path: Path) -> None:
    imported = import_run(archive, tmp_path / "new")
    assert not imported.already
    assert digests(tmp_path / "new") == digests(original)
    assert findings(tmp_path / "new") == []
    with Reader.open(tmp_path / "new" / LEDGER_FILE) as reader:
        assert [head.stream for head in reader.streams()] == ["ledger", RUN]
        assert [one.sequence for one in reader.events()] == list(range(1, imported.manifest.events + 1))


def test_the_same_run_gives_the_same_bytes_also_from_where_it_was_imported(archive: Path, tmp_path: Path) -> None:
    import_run(archive, tmp_path / "new")
    export_run(tmp_path / "new", RUN, tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == archive.read_bytes()


def test_other_programs_can_read_it_as_a_tar(archive: Path) -> None:
    with tarfile.open(archive, "r:") as tar:
        for member in tar.getmembers():
            content = tar.extractfile(member)
            assert content is not None
            if member.name.startswith(EVIDENCE_PREFIX):
                assert sha256(content.read()).hexdigest() == member.name.removeprefix(EVIDENCE_PREFIX)
        names = tar.getnames()
    assert (names[0], names[-1]) == (MANIFEST, EVENTS)
    assert check(archive.read_bytes()).evidence == tuple(
        ArchivedEvidence(
            name.removeprefix(EVIDENCE_PREFIX), Parts(archive.read_bytes()).manifest.evidence[n].size_bytes
        )
        for n, name in enumerate(names[1:-1])
    )


def test_importing_again_does_nothing(archive: Path, original: Path, tmp_path: Path) -> None:
    import_run(archive, tmp_path / "new")
    before = (tmp_path / "new" / LEDGER_FILE).read_bytes()
    assert import_run(archive, tmp_path / "new").already
    assert import_run(archive, original).already
    assert (tmp_path / "new" / LEDGER_FILE).read_bytes() == before


def test_importing_again_restores_evidence_that_was_lost_or_damaged(archive: Path, tmp_path: Path) -> None:
    import_run(archive, tmp_path / "new")
    lost, damaged, *_ = sorted((tmp_path / "new" / EVIDENCE).glob("*/*.gz"))
    lost.unlink()
    damaged.write_bytes(b"")
    assert len(findings(tmp_path / "new")) == 2
    imported = import_run(archive, tmp_path / "new")
    assert (imported.already, imported.restored) == (True, 2)
    assert findings(tmp_path / "new") == []
    assert import_run(archive, tmp_path / "new").restored == 0


def test_a_second_run_joins_the_ledger_that_the_first_one_began(original: Path, archive: Path, tmp_path: Path) -> None:
    import_run(archive, tmp_path / "new")
    export_run(original, "run-0", tmp_path / "zero.tar")
    import_run(tmp_path / "zero.tar", tmp_path / "new")
    assert digests(tmp_path / "new", "run-0") == digests(original, "run-0")
    assert [finding for finding in findings(tmp_path / "new") if finding.code != "clock-back"] == []


def test_an_import_that_was_cut_short_is_done_again(archive: Path, parts: Parts, tmp_path: Path) -> None:
    digest, data = next(iter(parts.evidence.items()))
    assert EvidenceStore(tmp_path / EVIDENCE).put_bytes(data) == digest
    Writer.open(tmp_path / LEDGER_FILE, create=True).close()
    assert not import_run(archive, tmp_path).already
    assert findings(tmp_path) == []


def test_a_run_that_goes_on_has_another_archive_and_the_older_one_is_contained_in_it(
    original: Path, archive: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(original, tmp_path / "copy"))
    with Writer.open(copy / LEDGER_FILE) as writer:
        position = check(archive.read_bytes()).events - 1
        writer.append([NewEvent(RUN, RunStopped(reason="asked", term=1))], {RUN: position}, stamp("more"))
    export_run(copy, RUN, tmp_path / "longer.tar")
    assert import_run(archive, copy).already
    with pytest.raises(RunDiffers, match="#24"):
        import_run(tmp_path / "longer.tar", original)


def test_a_file_that_is_something_else_is_not_written_over(original: Path, archive: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("mine")
    with pytest.raises(FileOccupied):
        export_run(original, RUN, file)
    assert file.read_text() == "mine"
    export_run(original, RUN, archive)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_is_damaged_is_not_exported(original: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(original, tmp_path / "copy"))
    edited(copy / LEDGER_FILE, f"UPDATE events SET payload = '{{}}' WHERE stream = '{RUN}' AND position = 3")
    (copy / "edited.db").replace(copy / LEDGER_FILE)
    with pytest.raises(LedgerDamaged, match=f"{RUN} #3"):
        export_run(copy, RUN, tmp_path / "a.tar")
    copy = Path(shutil.copytree(original, tmp_path / "other"))
    piece = next((copy / EVIDENCE).glob("*/*.gz"))
    for path in (copy / EVIDENCE).glob("*/*.gz"):
        path.unlink()
    with pytest.raises(EvidenceDamaged):
        export_run(copy, RUN, tmp_path / "a.tar")
    assert piece.suffix == ".gz"
    assert not (tmp_path / "a.tar").exists()


@pytest.mark.parametrize("run", ["ledger", "nothing", ""])
def test_only_a_run_can_be_exported(original: Path, tmp_path: Path, run: str) -> None:
    with pytest.raises(RunUnknown):
        export_run(original, run, tmp_path / "a.tar")


def test_another_ledger_is_refused(archive: Path, tmp_path: Path) -> None:
    other = make_ledger(tmp_path / "other", "run-9", ledger_id="2" * 32)
    with pytest.raises(ForeignLedger):
        import_run(archive, other)


def test_a_run_with_other_contents_is_refused(archive: Path, parts: Parts, tmp_path: Path) -> None:
    changed = parts.events[-1]
    header = changed.header.replace("2030-01-02", "2031-01-02")
    digest = event_digest(header.encode(), changed.payload.encode())
    parts.events[-1] = ArchivedEvent(header=header, payload=changed.payload, digest=digest)
    (tmp_path / "other.tar").write_bytes(parts.data())
    import_run(archive, tmp_path / "new")
    with pytest.raises(RunDiffers, match="#23"):
        import_run(tmp_path / "other.tar", tmp_path / "new")


def test_a_newer_format_can_be_proved_and_is_not_imported(parts: Parts, tmp_path: Path) -> None:
    newer = FORMAT_VERSION + 1
    first = parts.events[0]
    payload = first.payload.replace(f'"format_version":{FORMAT_VERSION}', f'"format_version":{newer}')
    parts.events[0] = ArchivedEvent(
        header=first.header, payload=payload, digest=event_digest(first.header.encode(), payload.encode())
    )
    data = parts.data(format_version=newer)
    assert check(data).format_version == newer
    (tmp_path / "a.tar").write_bytes(data)
    with pytest.raises(NewerFormat):
        import_run(tmp_path / "a.tar", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_no_byte_can_be_changed(archive: Path) -> None:
    data = archive.read_bytes()
    for place in [*range(BLOCK_BYTES), *range(BLOCK_BYTES, len(data), 97)]:
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(ArchiveInvalid):
            check(bytes(changed))


def test_nothing_can_be_cut_off_or_added(archive: Path) -> None:
    data = archive.read_bytes()
    for length in [*range(0, len(data), BLOCK_BYTES), len(data) - 1]:
        with pytest.raises(ArchiveInvalid):
            check(data[:length])
    for more in (b"\0", b"x", data):
        with pytest.raises(ArchiveInvalid):
            check(data + more)


def _drop_event(parts: Parts) -> None:
    del parts.events[5]


def _drop_last_event(parts: Parts) -> None:
    parts.manifest = structs.replace(parts.manifest, head=parts.events.pop().digest)


def _swap_events(parts: Parts) -> None:
    parts.events[3], parts.events[4] = parts.events[4], parts.events[3]


def _repeat_event(parts: Parts) -> None:
    parts.events.insert(5, parts.events[5])


def _lose_the_creation(parts: Parts) -> None:
    del parts.events[0]


def _lose_the_run(parts: Parts) -> None:
    del parts.events[1:]


def _forge_payload(parts: Parts) -> None:
    parts.events[4] = structs.replace(parts.events[4], payload="{}")


def _forge_payload_and_digest(parts: Parts) -> None:
    one = parts.events[4]
    digest = event_digest(one.header.encode(), b"{}")
    parts.events[4] = structs.replace(one, payload="{}", digest=digest)


def _lose_evidence(parts: Parts) -> None:
    del parts.evidence[min(parts.evidence)]


def _add_evidence(parts: Parts) -> None:
    parts.evidence[sha256(b"more").hexdigest()] = b"more"


def _alter_evidence(parts: Parts) -> None:
    parts.evidence[min(parts.evidence)] += b"!"


def _escape_by_evidence(parts: Parts) -> None:
    parts.evidence["../../escaped"] = b"out"


def _begin_with_something_else(parts: Parts) -> None:
    _change_header(parts, 1, tag="step-started")


def _of_another_stream(parts: Parts) -> None:
    _change_header(parts, 2, stream="run-7", position=1, previous="")


def _change_header(parts: Parts, number: int, **changes: object) -> None:
    one = parts.events[number]
    header = encode_header(structs.replace(msgspec.json.decode(one.header, type=Header), **changes))
    digest = event_digest(header, one.payload.encode())
    parts.events[number] = ArchivedEvent(header=header.decode(), payload=one.payload, digest=digest)


@pytest.mark.parametrize(
    "tamper",
    [
        _drop_event, _swap_events, _repeat_event, _lose_the_creation, _lose_the_run, _forge_payload,
        _forge_payload_and_digest, _lose_evidence, _add_evidence, _alter_evidence, _escape_by_evidence,
        _begin_with_something_else, _of_another_stream,
    ],
)  # fmt: skip
def test_an_archive_that_was_put_together_again_is_refused(
    parts: Parts, tamper: Callable[[Parts], None], tmp_path: Path
) -> None:
    tamper(parts)
    (tmp_path / "a.tar").write_bytes(parts.data())
    with pytest.raises(ArchiveInvalid):
        import_run(tmp_path / "a.tar", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_a_tail_that_was_dropped_with_its_head_is_an_older_archive(parts: Parts) -> None:
    whole = parts.manifest.head
    _drop_last_event(parts)
    dropped = {one for one in parts.evidence if not any(one in event.header for event in parts.events)}
    named = "".join(event.header + event.payload for event in parts.events)
    for digest in dropped:
        if digest not in named:
            del parts.evidence[digest]
    assert check(parts.data()).head != whole


@pytest.mark.parametrize("run", ["../../escape", "/etc", "ledger", "", "a b", "x" * 200, "-rf"])
def test_the_name_of_a_run_cannot_be_a_path(parts: Parts, run: str) -> None:
    with pytest.raises(ArchiveInvalid, match="manifest"):
        check(parts.data(run=run))


def _tar(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def _link(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(MANIFEST)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def _hostile() -> Iterator[tuple[str, bytes]]:
    manifest = (tarfile.TarInfo(MANIFEST), b"{}")
    yield "nothing", b""
    yield "zeros", bytes(10 * BLOCK_BYTES)
    yield "a zip", b"PK\x03\x04" + bytes(BLOCK_BYTES)
    yield "a path to the root", _tar((tarfile.TarInfo("/etc/cron.d/x"), b"x"))
    yield "a path upwards", _tar((tarfile.TarInfo("../x"), b"x"))
    yield "a symbolic link", _tar((_link(tarfile.SYMTYPE), b""))
    yield "a hard link", _tar((_link(tarfile.LNKTYPE), b""))
    yield "a device", _tar((_link(tarfile.CHRTYPE), b""))
    yield "a manifest twice", _tar(manifest, manifest)
    yield "a manifest that is empty", _tar(manifest)
    long = tarfile.TarInfo(MANIFEST)
    long.pax_headers = {"comment": "x" * 10_000}
    yield "extended headers", _tar((long, b"{}"), form=tarfile.PAX_FORMAT)
    yield "a manifest of eight gigabytes", member_header(MANIFEST, 8**11 - 1) + bytes(BLOCK_BYTES)
    yield "a manifest of many", _tar((tarfile.TarInfo(MANIFEST), b"[" * 100_000))
    yield "text that is none", _tar((tarfile.TarInfo(MANIFEST), b'{"run":"\xff"}'))


HOSTILE = dict(_hostile())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_and_leave_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(HOSTILE[name])
    with pytest.raises(ArchiveInvalid):
        import_run(tmp_path / "a.tar", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


@given(st.binary(max_size=2000), st.integers(0, 3 * BLOCK_BYTES))
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_it_fail_in_another_way(archive: Path, noise: bytes, place: int) -> None:
    data = archive.read_bytes()
    changed = data[:place] + noise + data[place + len(noise) :]
    if changed != data:
        with pytest.raises(ArchiveInvalid):
            check(changed)
