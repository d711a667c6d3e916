"""What a side needs before its tests run: prepared once per content of its lock files, and an interpreter."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from commands.config.settings import RunnerSettings
from commands.effects import clock
from commands.effects.locks import OwnedLock, owner_details
from commands.effects.prepare import PrepareFailed, PythonMissing, expand, find_python, prepare_side
from ledger.errors import StoreUnwritable

pytestmark = pytest.mark.real

# Appends a line per run to a file outside, and leaves a file in the directory that it prepares.
NOTE = "import sys; open(sys.argv[1], 'a').write('ran\\n'); open(sys.argv[2] + '/installed', 'w').write('x')"


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "requirements.txt").write_text("a==1\n")
    return tmp_path / "tree"


@pytest.fixture
def count(tmp_path):
    """How often the command of `noting` has run."""
    return lambda: (tmp_path / "runs").read_text().count("ran") if (tmp_path / "runs").exists() else 0


@pytest.fixture
def noting(tmp_path):
    """Settings whose one command leaves a trace."""
    argv = (sys.executable, "-c", NOTE, str(tmp_path / "runs"), "{cache}")
    return RunnerSettings(prepare=(argv,), lock=("requirements.txt",))


@pytest.fixture
def prepare(tree, tmp_path):
    """Prepares the tree with the given settings."""

    def prepared(settings, **changed):
        arguments = {
            "tree": tree,
            "tree_id": "tree-1",
            "cache_root": tmp_path / "cache",
            "version": "3.12.1",
            "environment": {"PATH": os.environ["PATH"]},
            "owner": owner_details("run-1", "now"),
        }
        return prepare_side(settings, **(arguments | changed))

    return prepared


class TestOnce:
    def test_the_second_side_with_the_same_lock_file_uses_what_the_first_made(self, prepare, noting, count, tmp_path):
        other_tree = tmp_path / "other"
        other_tree.mkdir()
        (other_tree / "requirements.txt").write_text("a==1\n")

        first = prepare(noting)
        second = prepare(noting, tree=other_tree, tree_id="tree-2")

        assert (first.made, second.made, count()) == (True, False, 1)
        assert first.cache == second.cache
        assert (first.cache / "installed").exists()

    def test_another_lock_file_python_or_command_is_prepared_apart(self, prepare, noting, tree):
        first = prepare(noting)
        by_python = prepare(noting, version="3.13.0")
        by_command = prepare(RunnerSettings(prepare=(*noting.prepare, (sys.executable, "-c", "")), lock=noting.lock))
        (tree / "requirements.txt").write_text("a==2\n")
        by_lock = prepare(noting)
        (tree / "requirements.txt").unlink()
        by_absence = prepare(noting)

        caches = {first.cache, by_python.cache, by_command.cache, by_lock.cache, by_absence.cache}
        assert len(caches) == 5

    def test_without_a_lock_file_every_tree_is_prepared_apart(self, prepare, noting, count):
        unpinned = RunnerSettings(prepare=noting.prepare)

        one, again, other = prepare(unpinned), prepare(unpinned), prepare(unpinned, tree_id="tree-2")

        assert one.cache == again.cache != other.cache
        assert count() == 2

    def test_nothing_to_prepare_makes_nothing(self, prepare, tmp_path):
        assert not prepare(RunnerSettings()).made
        assert not (tmp_path / "cache").exists()

    def test_commands_run_in_the_tree_in_order_with_only_the_given_environment(self, prepare, tree, monkeypatch):
        monkeypatch.setenv("SECRET", "hush")
        program = (
            "import os, sys; cache, word = sys.argv[1:];"
            "print(word, os.getcwd(), 'SECRET' in os.environ, file=open(cache + '/log', 'a'))"
        )
        settings = RunnerSettings(
            prepare=tuple((sys.executable, "-c", program, "{cache}", f"{{tree}}/{n}") for n in range(2))
        )

        cache = prepare(settings).cache

        assert (cache / "log").read_text() == f"{tree}/0 {tree} False\n{tree}/1 {tree} False\n"

    def test_a_waiting_process_uses_what_the_other_makes(self, prepare, noting, tmp_path, count):
        key = prepare(noting).key
        lock = OwnedLock(tmp_path / "cache" / f"{key}.lock", owner_details("run-2", "now"))
        lock.acquire()
        release = threading.Timer(0.3, lock.release)
        release.start()

        assert not prepare(noting, timeout_seconds=10).made
        assert not release.is_alive()
        assert count() == 1


class TestInterrupted:
    def test_a_killed_preparation_is_left_aside_and_made_anew(self, prepare, tmp_path, wait_until, count):
        # The first run hangs half way and is killed with its driver; the second finds the switch and succeeds.
        program = (
            "import os, sys, time; cache, switch = sys.argv[1:]; open(cache + '/half', 'w').close();"
            "os.path.exists(switch) or time.sleep(300); open(cache + '/whole', 'w').close()"
        )
        driver = (
            "import sys, pathlib\nfrom commands.config.settings import RunnerSettings\n"
            "from commands.effects.prepare import prepare_side\n"
            "tree, cache, program, switch = sys.argv[1:]\n"
            "settings = RunnerSettings(prepare=((sys.executable, '-c', program, '{cache}', switch),))\n"
            "prepare_side(settings, tree=pathlib.Path(tree), tree_id='tree-1', cache_root=pathlib.Path(cache),\n"
            "             version='3.12.1', environment={}, owner={})\n"
        )
        switch, cache = tmp_path / "switch", tmp_path / "cache"
        argv = [sys.executable, "-c", driver, str(tmp_path / "tree"), str(cache), program, str(switch)]
        root = Path(clock.__file__).parents[2]
        with subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(root)}) as process:
            wait_until(lambda: any(cache.glob("*/1/half")))
            process.kill()
        orphan = _child_that_runs(program)
        switch.touch()
        try:
            made = prepare(
                RunnerSettings(prepare=((sys.executable, "-c", program, "{cache}", str(switch)),)), environment={}
            )
        finally:
            os.kill(orphan, 9)

        assert made.made
        assert made.cache.name == "2"
        assert (made.cache / "whole").exists()
        assert not (made.cache.parent / "1" / "whole").exists()
        assert (
            made.cache
            == prepare(
                RunnerSettings(prepare=((sys.executable, "-c", program, "{cache}", str(switch)),)), environment={}
            ).cache
        )

    def test_a_finished_directory_that_somebody_removed_is_made_anew(self, prepare, noting, count):
        first = prepare(noting)
        (first.cache / "installed").unlink()
        first.cache.rmdir()

        second = prepare(noting)

        assert second.made
        assert (second.cache / "installed").exists()
        assert count() == 2

    @pytest.mark.parametrize("name", ["", "../elsewhere", "x", "7", "é"])
    def test_a_marker_that_names_no_directory_of_ours_is_not_believed(self, prepare, noting, name):
        first = prepare(noting)
        (first.cache.parent / "complete").write_text(name, "utf-8")

        assert prepare(noting).made


def _child_that_runs(program):
    """The number of the process whose command line holds the program's text."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (directory / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if arguments[2:3] == [program.encode()]:
            return int(directory.name)
    raise AssertionError("the program is not running")


class TestFailure:
    def test_a_failing_command_is_told_with_its_exit_code_and_the_end_of_its_output(self, prepare, count, noting):
        loud = (sys.executable, "-c", "print('x' * 9999); print('no matching version'); raise SystemExit(7)")

        with pytest.raises(PrepareFailed, match="exit code 7") as failure:
            prepare(RunnerSettings(prepare=(loud, *noting.prepare)))

        assert (failure.value.code, failure.value.exit_code) == ("prepare-failed", 3)
        assert failure.value.argv == loud
        assert failure.value.log_tail.endswith("no matching version")
        assert len(failure.value.log_tail) <= 4000
        assert "x" * 9999 in failure.value.log.read_text()
        assert count() == 0, "the commands after it did not run"

    def test_what_failed_is_tried_again_the_next_time(self, prepare, tmp_path):
        program = "import os, sys; sys.exit(not os.path.exists(sys.argv[1]))"
        settings = RunnerSettings(prepare=((sys.executable, "-c", program, str(tmp_path / "switch")),))
        with pytest.raises(PrepareFailed):
            prepare(settings)

        (tmp_path / "switch").touch()

        assert prepare(settings).made

    def test_a_missing_program_is_told(self, prepare):
        with pytest.raises(PrepareFailed, match="could not be started"):
            prepare(RunnerSettings(prepare=(("no-such-program-anywhere",),)))

    def test_a_command_that_takes_too_long_is_ended(self, prepare, wait_until):
        program = "import time; print('waiting', flush=True); time.sleep(301)"
        settings = RunnerSettings(prepare=((sys.executable, "-c", program),))

        with pytest.raises(PrepareFailed, match="took more than 1 s") as failure:
            prepare(settings, timeout_seconds=1)

        assert failure.value.log_tail == "waiting"
        with pytest.raises(AssertionError, match="not running"):
            _child_that_runs(program)

    def test_a_lock_file_that_is_a_directory_is_like_none(self, prepare, noting, tree):
        (tree / "requirements.txt").unlink()
        (tree / "requirements.txt").mkdir()

        assert prepare(noting).made

    def test_a_cache_that_cannot_be_written_is_told(self, prepare, noting, tmp_path):
        (tmp_path / "file").touch()

        with pytest.raises(StoreUnwritable):
            prepare(noting, cache_root=tmp_path / "file" / "cache")


class TestPython:
    @pytest.fixture
    def find(self, tmp_path):
        (tmp_path / "checkout").mkdir()

        def found(python="", **parent):
            return find_python(
                RunnerSettings(python=python),
                tree=tmp_path / "tree", cache=tmp_path / "cache", checkout=tmp_path / "checkout",
                parent={"PATH": "/nonexistent", **parent},
            )  # fmt: skip

        return found

    @pytest.fixture
    def interpreter(self, tmp_path):
        """Makes a link to a real interpreter."""

        def made(*names):
            path = tmp_path.joinpath(*names)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(sys.executable)
            return path

        return made

    def test_the_configured_one_comes_first_with_its_places_filled_in(self, find, interpreter, tmp_path):
        in_tree, in_cache = interpreter("tree", "bin", "python"), interpreter("cache", "bin", "python")
        in_checkout, on_path = interpreter("checkout", ".venv", "bin", "python"), interpreter("bin", "python3.12")

        assert find("{tree}/bin/python", VIRTUAL_ENV="/v") == (in_tree, "configured")
        assert find("{cache}/bin/python").path == in_cache
        assert find(".venv/bin/python").path == in_checkout
        assert find("python3.12", PATH=str(tmp_path / "bin")).path == on_path
        assert find(str(on_path)).path == on_path

    def test_a_configured_one_that_is_missing_is_told_and_not_replaced(self, find, interpreter, tmp_path):
        interpreter("bin", "python3")

        with pytest.raises(PythonMissing, match=r"\{tree\}|tree/bin/python") as refusal:
            find("{tree}/bin/python", PATH=str(tmp_path / "bin"))

        assert (refusal.value.code, refusal.value.exit_code) == ("python-missing", 2)

    def test_then_the_active_environment_then_the_checkouts_then_path(self, find, interpreter, tmp_path):
        active = interpreter("active", "bin", "python")
        parent = {"VIRTUAL_ENV": str(tmp_path / "active"), "PATH": str(tmp_path / "bin")}
        on_path = interpreter("bin", "python3")

        assert find(**{**parent, "VIRTUAL_ENV": ""}) == (on_path, "python3 on PATH")
        second = interpreter("checkout", "venv", "bin", "python")
        assert find(**{**parent, "VIRTUAL_ENV": ""}) == (second, "venv in the checkout")
        first = interpreter("checkout", ".venv", "bin", "python")
        assert find(**{**parent, "VIRTUAL_ENV": ""}) == (first, ".venv in the checkout")
        assert find(**parent) == (active, "VIRTUAL_ENV")

    def test_none_at_all_is_told_with_what_was_looked_at(self, find):
        with pytest.raises(PythonMissing, match="python3 on PATH") as refusal:
            find()

        assert "[runner]" in refusal.value.hint

    def test_the_link_is_kept_because_it_makes_the_environment(self, find, interpreter):
        link = interpreter("checkout", ".venv", "bin", "python")

        assert find().path == link != Path(os.path.realpath(link))


def test_only_the_two_places_are_filled_in():
    assert expand(("{tree}/a", "{cache}", "{other} {{tree}} ${HOME}"), Path("/t"), Path("/c")) == (
        "/t/a", "/c", "{other} {/t} ${HOME}",
    )  # fmt: skip
