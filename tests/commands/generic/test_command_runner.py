"""The command runner: what it starts, what it keeps of the tree, and what its evidence counts for."""

import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from commands.config.settings import CommandSettings
from commands.effects.git import Blob
from commands.effects.targets.holders import Holders
from commands.runners.api import Answer, Circumstances, Ground, Wanted
from commands.runners.choice import runner_of
from commands.runners.command import CommandRunner, CommandSide, LinkInTheWay, ReportNotFresh, VersionUnknown

SETTINGS = CommandSettings(command=("run", "--out={report}", "./{targets}", "{tree}", "{cache}"), targets=("**/*.js",))
ANSWER = Answer(0, b" 1.2 \n", b"")


class Hands:
    """Answers of helper programs, by hand."""

    def __init__(self, answer: Answer | OSError = ANSWER) -> None:
        self.answer = answer
        self.asked: list[Sequence[str]] = []

    def find_python(self, settings: Any, cache: Path) -> Path:
        """Nobody looks for one."""
        raise AssertionError

    def ask(self, argv: Sequence[str], purpose: str) -> Answer:
        """The answer that was given."""
        self.asked.append(argv)
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A side with an empty worktree."""
    places = {name: tmp_path / name for name in ("tree", "other_tree", "checkout", "work", "cache")}
    for place in places.values():
        place.mkdir()
    return Ground(side="candidate", tracked=(), **places)


def ready(ground: Ground, settings: CommandSettings = SETTINGS, hands: Hands | None = None) -> CommandSide:
    """The runner for the side."""
    return CommandRunner(settings).make_ready(ground, hands or Hands())


def test_every_target_is_an_argument_of_its_own_and_places_are_filled_in(ground: Ground, tmp_path: Path) -> None:
    launch = ready(ground).run(tmp_path / "a", Wanted(targets=("x.js", "{tree}.js", "y z.js")))
    assert launch.argv == (
        "run", f"--out={tmp_path}/a/report.xml", "./x.js", "./{tree}.js", "./y z.js",
        str(ground.tree), str(ground.cache),
    )  # fmt: skip
    assert launch.command == SETTINGS.command


def test_a_place_that_looks_like_a_name_is_not_filled_in_again(ground: Ground, tmp_path: Path) -> None:
    odd = replace(ground, cache=Path("/c/{report}"))
    assert ready(odd).run(tmp_path / "a", Wanted(targets=("x.js",))).argv[-1] == "/c/{report}"


def test_what_earlier_attempts_did_not_come_past_runs_last(ground: Ground, tmp_path: Path) -> None:
    launch = ready(ground).run(tmp_path, Wanted(targets=("x.js", "y.js", "z.js"), last=("x.js",)))
    assert launch.argv[2:5] == ("./y.js", "./z.js", "./x.js")


def test_globs_are_answered_by_git_and_a_list_by_its_command(ground: Ground, tmp_path: Path) -> None:
    assert ready(ground).collect(tmp_path).argv[-4:] == ("ls-files", "-z", "--", ":(glob)**/*.js")
    listing = replace(SETTINGS, targets=(), list=("show", "{tree}", "{directory}"))
    assert ready(ground, listing).collect(tmp_path).argv == ("show", str(ground.tree), str(tmp_path))


def test_variables_may_name_places(ground: Ground, tmp_path: Path) -> None:
    settings = replace(SETTINGS, set_environment={"OUT": "{report}", "PLAIN": "1"})
    launch = ready(ground, settings).run(tmp_path, Wanted(targets=("x.js",)))
    # The others are set for every test anyway.
    assert launch.environment == {"OUT": f"{tmp_path}/report.xml"}


def key_of(ground: Ground, settings: CommandSettings, hands: Hands | None = None, **changed: Any) -> Any:
    """What a run of the side counts for."""
    side = ready(ground, settings, hands)
    given = {"tree_id": "t", "lock": "l", "environment": {"B": "2", "A": "1"}, "memory_limit_bytes": 0, **changed}
    return side.evidence_key(side.run(ground.work, Wanted(targets=("x.js",))), Circumstances(**given))


def test_the_evidence_key_changes_with_everything_that_can_change_a_result(ground: Ground) -> None:
    settings = replace(SETTINGS, version=("run", "-v"))
    keys = [
        key_of(ground, settings),
        key_of(ground, settings, Hands(Answer(0, b"1.3", b""))),
        key_of(ground, replace(settings, command=("run", "{targets}"))),
        key_of(ground, replace(settings, dialect="bun")),
        key_of(ground, replace(settings, profile="jest-todo/1")),
        key_of(ground, replace(settings, exit_codes={"3": "failed"})),
        *(key_of(ground, settings, **{name: "x"}) for name in ("tree_id", "lock")),
        key_of(ground, settings, environment={"A": "2"}),
        key_of(ground, settings, memory_limit_bytes=1),
    ]
    assert all(one != other for number, one in enumerate(keys) for other in keys[:number])


def test_the_evidence_key_does_not_change_with_places(ground: Ground) -> None:
    moved = replace(ground, tree=ground.other_tree, cache=ground.work)
    settings = replace(SETTINGS, set_environment={"A": "{cache}", "API_TOKEN": "{tree}", "B": "2"})
    keys = [
        key_of(place, settings, environment={"A": str(place.cache), "API_TOKEN": "(set)", "B": "2"})
        for place in (ground, moved)
    ]
    assert keys[0] == keys[1]
    assert keys[0].environment == {"A": "{cache}", "API_TOKEN": "(set)", "B": "2"}


@pytest.mark.parametrize("answer", [Answer(1, b"", b"no such option"), OSError("no such file")])
def test_a_version_that_is_not_told_is_said_with_what_was(ground: Ground, answer: Answer | OSError) -> None:
    with pytest.raises(VersionUnknown, match="no such"):
        ready(ground, replace(SETTINGS, version=("run", "-v")), Hands(answer))


def test_links_lead_to_what_was_installed_and_never_over_a_file_of_the_tree(ground: Ground) -> None:
    settings = replace(SETTINGS, links={"sub/packages": "{cache}/packages"})
    (ground.cache / "packages").mkdir()
    ready(ground, settings)
    assert (ground.tree / "sub" / "packages").resolve() == (ground.cache / "packages").resolve()
    with pytest.raises(LinkInTheWay, match="sub/packages"):
        ready(ground, settings)


def test_reports_are_moved_out_of_the_tree_and_all_go_into_the_record(ground: Ground, tmp_path: Path) -> None:
    runner = CommandRunner(replace(SETTINGS, report_in_tree="out/*.xml"))
    directory = tmp_path / "attempt"
    (ground.tree / "out").mkdir()
    directory.mkdir()
    for name in ("b.xml", "a.xml", "a.txt"):
        (ground.tree / "out" / name).write_text(name)
    record = runner.record(directory, ground.tree, collection=False)
    assert [path.name for path in (ground.tree / "out").iterdir()] == ["a.txt"]
    assert record is not None
    before = record.read_bytes()
    with tarfile.open(record) as archive:
        assert archive.getnames() == ["from-tree/out/a.xml", "from-tree/out/b.xml"]
    again = runner.record(directory, ground.tree, collection=False)
    assert again is not None
    assert again.read_bytes() == before


def test_a_report_in_the_tree_before_the_run_is_refused_and_a_link_is_no_report(ground: Ground, tmp_path: Path) -> None:
    side = ready(ground, replace(SETTINGS, report_in_tree="*.xml"))
    (ground.tree / "link.xml").symlink_to(tmp_path)
    side.run(tmp_path, Wanted(targets=("x.js",)))
    (ground.tree / "old.xml").write_text("")
    with pytest.raises(ReportNotFresh, match=r"old\.xml"):
        side.run(tmp_path, Wanted(targets=("x.js",)))


def test_reports_behind_links_are_none(ground: Ground, tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "attempt", tmp_path / "elsewhere"
    directory.mkdir()
    elsewhere.mkdir()
    (elsewhere / "report.xml").write_text("<testsuites/>")
    (directory / "report.xml").symlink_to(elsewhere / "report.xml")
    (directory / "sub").symlink_to(elsewhere)
    runner = CommandRunner(replace(SETTINGS, report="**/*.xml"))
    assert runner.record(directory, ground.tree, collection=False) is None


def test_the_settings_choose_the_runner() -> None:
    assert isinstance(runner_of(SETTINGS), CommandRunner)


def test_a_directory_is_identified_by_the_files_right_in_it() -> None:
    def place(**files: str) -> Blob | None:
        return Holders({name.replace("_", "/"): Blob("100644", oid) for name, oid in files.items()}).get("a")

    same = place(a_x="1", a_y="2")
    assert same == place(a_x="1", a_y="2", a_deep_z="3", b="4")
    assert place(b="1") is None
    others = [place(a_x="1"), place(a_x="1", a_y="3"), place(a_x="2", a_y="1"), place(a_x="1", a_z="2")]
    assert same not in others
    assert Holders({"a/x": Blob("100644", "1")}).get("a/x") == Blob("100644", "1")
