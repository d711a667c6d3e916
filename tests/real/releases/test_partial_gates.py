"""Releases whose repair changed tests: what of their gate is measured again, what is taken over, and why not."""

from pathlib import Path

import pytest

from ledger.events import StepFinished, StepReport
from projections.release.resume import ReleasePlan
from tests.real.releases.repaired import FAILED, PASSED, STEPS, Hub, Run

pytestmark = [pytest.mark.slow, pytest.mark.real]

RIGHT = "def test_it():\n    assert 1 == 1\n"
WRONG = "def test_it():\n    assert 1 == 2\n"
BEFORE = {
    "ledger.toml": STEPS,
    "thing.py": "VALUE = 1\n",
    "test_thing.py": "import thing\n\n\ndef test_value():\n    assert thing.VALUE == 1\n",
    "test_steady.py": RIGHT,
}


def failed_hub(root: Path, **more: str) -> Hub:
    """A release whose gate failed for one wrong test; `more` are modules of the same commit."""
    hub = Hub(root, BEFORE, {"test_wrong.py": WRONG, **{f"{name}.py": text for name, text in more.items()}})
    started = hub.start()
    assert started.code == FAILED, started.err
    assert hub.gates()[-1].verdict.counts == {"new-test-failing": 1, "passed": 2 + len(more)}
    return hub


def measured_in_full(hub: Hub) -> Run:
    """The last gate, which has measured everything, and passed."""
    gate = hub.gates()[-1]
    assert gate.recheck is None
    assert gate.told_carried is None
    assert gate.carried() == set()
    assert gate.verdict.verdict == "passed"
    return gate


def test_a_repaired_test_is_measured_again_and_nothing_else(tmp_path: Path) -> None:
    hub = failed_hub(tmp_path)
    first = hub.gates()[-1]
    tip = hub.repair({"test_wrong.py": RIGHT, "NOTES.md": "mended\n"})
    planned = hub.planned()
    assert (planned["gate"], planned["to"]) == ("partial", tip)
    assert planned["gate_reason"].startswith(f"1 target; the rest is carried from gate {first.name}")
    resumed = hub.resume()
    assert resumed.code == PASSED, resumed.err
    gate = hub.gates()[-1]
    assert gate.recheck is not None
    assert (gate.recheck.targets, gate.recheck.changed) == (("test_wrong.py",), ("test_wrong.py",))
    assert gate.recheck.unsettled == ("test_wrong.py",)
    assert (gate.recheck.gate, gate.recheck.classes) == (first.name, first.verdict.classes)
    assert gate.attempts() == ["shard-1/candidate"]
    assert gate.measured() == ["test_wrong.py"]
    assert gate.carried() == {"test_thing.py", "test_steady.py"}
    assert gate.told_carried is not None
    assert (gate.told_carried.targets, gate.told_carried.cases) == (2, 2)
    assert (gate.verdict.verdict, gate.verdict.counts) == ("passed", {"passed": 3})
    assert hub.release().plan() == as_plan(planned)
    ended = [one for one in hub.release().of(StepFinished) if one.step == "gate"][-1]
    assert isinstance(ended.report, StepReport)
    assert ended.report.summary == f"gate {gate.name}: 3 passed (2 carried)"
    hub.check_proof()


def as_plan(planned: dict[str, object]) -> ReleasePlan:
    """The plan that a dry run printed."""
    import msgspec

    return msgspec.convert(planned, ReleasePlan)


def test_two_repairs_after_one_another_carry_what_was_carried(tmp_path: Path) -> None:
    hub = failed_hub(tmp_path, test_other=RIGHT)
    hub.repair({"test_wrong.py": WRONG.replace("2", "3")})
    assert hub.resume().code == FAILED
    assert hub.gates()[-1].measured() == ["test_wrong.py"]
    hub.repair({"test_wrong.py": RIGHT, "test_other.py": RIGHT.replace("1 == 1", "2 == 2")})
    assert hub.planned()["gate"] == "partial"
    assert hub.resume().code == PASSED
    gate = hub.gates()[-1]
    assert gate.measured() == ["test_other.py", "test_wrong.py"]
    assert gate.carried() == {"test_thing.py", "test_steady.py"}
    assert gate.verdict.counts == {"passed": 4}
    hub.check_proof()


@pytest.mark.parametrize(
    ("repair", "reason"),
    [
        ({"test_wrong.py": RIGHT, "thing.py": "VALUE = 1  # one\n"}, "source-changed (thing.py)"),
        ({"test_wrong.py": RIGHT, "test_added.py": RIGHT}, "source-changed (test_added.py)"),
        ({"test_wrong.py": RIGHT, "conftest.py": ""}, "source-changed (conftest.py)"),
        ({"test_wrong.py": RIGHT, "tests/notes.md": "x"}, "source-changed (tests/notes.md)"),
    ],
    ids=["source", "new-test", "conftest", "markdown-of-tests"],
)
def test_what_any_test_may_depend_on_has_all_measured(tmp_path: Path, repair: dict[str, str], reason: str) -> None:
    hub = failed_hub(tmp_path)
    hub.repair(repair)
    planned = hub.planned()
    assert (planned["gate"], planned["gate_reason"].partition(", ")[2]) == ("full", reason)
    assert hub.resume().code == PASSED
    assert {"test_wrong.py", "test_thing.py", "test_steady.py"} <= set(measured_in_full(hub).measured())


def test_what_was_collected_beside_the_tests_has_all_measured(tmp_path: Path) -> None:
    """The examples of a module and of a conftest are collected, which does not make test files of them."""
    source = 'def value():\n    """\n    >>> 1\n    1\n    """\n    return 1\n'
    options = {"pytest.ini": "[pytest]\naddopts = --doctest-modules\n", "test_wrong.py": WRONG}
    hub = Hub(tmp_path, BEFORE, {**options, "calc/__init__.py": source, "conftest.py": source, "shared.py": source})
    assert hub.start().code == FAILED
    files = ("calc/__init__.py", "conftest.py", "shared.py")
    assert {*files, "test_wrong.py"} <= set(hub.gates()[-1].measured())
    hub.repair({"test_wrong.py": RIGHT, **dict.fromkeys(files, source.replace("return 1", "return 2"))})
    assert hub.planned()["gate_reason"].endswith(f"source-changed ({', '.join(files)})")


def test_markdown_that_something_uses_has_all_measured(tmp_path: Path) -> None:
    texts = dict.fromkeys(("TOLD.md", "LINKED.md", "calc/prompt.md", "guides/desk.md", "guides/wall.md"), "one\n")
    reads = "from pathlib import Path\nTOLD = Path('TOLD.md')\n"
    hub = Hub(
        tmp_path, BEFORE, {"test_wrong.py": WRONG, "calc/code.py": reads, "NAMES.md": "TOLD, desk, wall\n", **texts}
    )
    (hub.project.path / "calc" / "link").symlink_to("../LINKED.md")
    hub.land({})
    assert hub.start().code == FAILED
    hub.repair({"test_wrong.py": RIGHT, "guides/desk.md": "two\n", "NAMES.md": "TOLD, desk, wall, more\n"})
    assert hub.planned()["gate"] == "partial"
    hub.repair(dict.fromkeys(texts, "three\n"))
    assert hub.planned()["gate_reason"].endswith("source-changed (LINKED.md, TOLD.md, calc/prompt.md)")


def test_a_test_that_another_one_imports_has_all_measured(tmp_path: Path) -> None:
    hub = failed_hub(
        tmp_path, test_user="from test_wrong import test_it as told\n\n\ndef test_user():\n    assert told\n"
    )
    hub.repair({"test_wrong.py": RIGHT})
    planned = hub.planned()
    assert planned["gate"] == "full"
    assert planned["gate_reason"].endswith("test-named-elsewhere (test_wrong.py)")


def test_a_test_that_a_link_leads_to_has_all_measured(tmp_path: Path) -> None:
    hub = Hub(tmp_path, BEFORE, {"test_wrong.py": WRONG})
    (hub.project.path / "more").mkdir()
    (hub.project.path / "more" / "test_linked.py").symlink_to("../test_wrong.py")
    hub.land({})
    assert hub.start().code == FAILED
    assert "more/test_linked.py" in hub.gates()[-1].measured()
    hub.repair({"test_wrong.py": RIGHT})
    assert hub.planned()["gate_reason"].endswith("test-named-elsewhere (test_wrong.py)")


def test_a_submodule_that_moved_has_all_measured_even_where_git_is_told_to_hide_it(tmp_path: Path) -> None:
    hub = Hub(tmp_path, BEFORE)
    (hub.project.path / "part").mkdir()
    modules = '[submodule "part"]\n\tpath = part\n\turl = ../part\n\tignore = all\n'
    hub.project.write({".gitmodules": modules, "test_wrong.py": WRONG})
    hub.project.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},part")
    hub.land({})
    assert hub.start().code == FAILED
    hub.project.git("update-index", "--cacheinfo", f"160000,{'2' * 40},part")
    tip = hub.repair({"test_wrong.py": RIGHT})
    assert "2" * 40 in hub.project.git("ls-tree", tip)
    assert hub.planned()["gate_reason"].endswith("source-changed (part)")


def test_nothing_is_taken_over_that_cannot_be_read(tmp_path: Path) -> None:
    hub = failed_hub(tmp_path)
    gate = hub.gates()[-1]
    (damaged,) = (hub.project.store / "evidence").rglob(f"*{gate.verdict.classes[2:]}*")
    hub.repair({"test_wrong.py": RIGHT})
    kept = damaged.read_bytes()
    damaged.unlink()
    planned = hub.planned()
    assert planned["gate"] == "full"
    assert planned["gate_reason"].endswith("prior-unreadable")
    assert hub.resume().code == PASSED
    assert sorted(measured_in_full(hub).measured()) == ["test_steady.py", "test_thing.py", "test_wrong.py"]
    assert hub.project.ledger("verify").code == 7
    damaged.write_bytes(kept)
    hub.check_proof()


def test_a_part_is_not_measured_where_nobody_wants_it(tmp_path: Path) -> None:
    hub = failed_hub(tmp_path)
    hub.repair({"test_wrong.py": RIGHT})
    assert hub.planned()["gate"] == hub.planned("--partial", "yes")["gate"] == "partial"
    planned = hub.planned("--partial", "no")
    assert planned["gate"] == "full"
    assert planned["gate_reason"].endswith("partial-unwanted")
    assert hub.resume("--partial", "no").code == PASSED
    assert sorted(measured_in_full(hub).measured()) == ["test_steady.py", "test_thing.py", "test_wrong.py"]


@pytest.mark.parametrize("wanted", ["auto", "yes"])
def test_on_the_same_commit_only_what_is_owed_is_run(tmp_path: Path, wanted: str) -> None:
    hub = failed_hub(tmp_path)
    before = hub.gates()[-1].attempts()
    planned = hub.planned("--partial", wanted)
    assert (planned["gate"], planned["moved"]) == ("owed", False)
    assert planned["recheck"] is None
    assert hub.resume("--partial", wanted).code == FAILED
    assert [gate.recheck for gate in hub.gates()] == [None] * len(hub.gates())
    assert hub.gates()[0].attempts() == before


def test_the_only_thing_to_measure_again_is_gone(tmp_path: Path) -> None:
    hub = failed_hub(tmp_path)
    hub.repair({}, delete=("test_wrong.py",))
    planned = hub.planned()
    assert planned["gate"] == "full"
    assert planned["gate_reason"].endswith("nothing-to-recheck")
    assert hub.resume().code == PASSED
    assert sorted(measured_in_full(hub).measured()) == ["test_steady.py", "test_thing.py"]


def test_a_deleted_test_beside_a_repaired_one_is_not_told_of_any_more(tmp_path: Path) -> None:
    hub = failed_hub(tmp_path, test_other=RIGHT)
    hub.repair({"test_wrong.py": RIGHT}, delete=("test_other.py",))
    assert hub.planned()["recheck"]["targets"] == ["test_other.py", "test_wrong.py"]
    assert hub.resume().code == PASSED
    gate = hub.gates()[-1]
    assert gate.measured() == ["test_wrong.py"]
    assert gate.verdict.counts == {"passed": 3}
    assert gate.carried() == {"test_thing.py", "test_steady.py"}
    hub.check_proof()


def test_a_deleted_test_that_the_baseline_has_is_shown_as_gone(tmp_path: Path) -> None:
    hub = failed_hub(tmp_path)
    hub.repair({"test_wrong.py": RIGHT}, delete=("test_steady.py",))
    assert hub.planned()["gate"] == "partial"
    assert hub.resume().code == PASSED
    gate = hub.gates()[-1]
    assert gate.verdict.counts == {"passed": 2, "vanished": 1}
    assert gate.carried() == {"test_thing.py"}
    hub.check_proof()


def test_a_test_file_that_was_emptied_has_all_measured_after_all(tmp_path: Path) -> None:
    """The file is there, so that a part is planned; that no test is in it any more is known when it is collected."""
    hub = failed_hub(tmp_path)
    hub.repair({"test_wrong.py": "# nothing\n"})
    assert hub.planned()["gate"] == "partial"
    resumed = hub.resume()
    assert resumed.code == PASSED, resumed.err
    gate = hub.gates()[-1]
    assert sorted(gate.measured()) == ["test_steady.py", "test_thing.py"]
    assert (gate.told_carried, gate.carried()) == (None, set())
    hub.check_proof()


def test_a_repair_that_does_not_mend_fails_as_all_of_it_would(tmp_path: Path) -> None:
    hub = failed_hub(tmp_path)
    hub.repair({"test_wrong.py": WRONG + "\n\ndef test_more():\n    assert 0\n"})
    assert hub.resume().code == FAILED
    gate = hub.gates()[-1]
    assert gate.measured() == ["test_wrong.py"]
    assert gate.verdict.counts == {"new-test-failing": 2, "passed": 2}
    assert len(gate.verdict.blocking) == 2
    hub.check_proof()
