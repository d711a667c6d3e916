"""How real pytest sessions end, and what then counts as measured: exits, signals, interrupts, crashing workers."""

import signal
from pathlib import Path

import pytest

from commands.readers.attempt import AttemptReading
from tests.commands.runners.sessions import Project, outcomes, pytest_version, rows, unmeasured

pytestmark = pytest.mark.real

VERSION = pytest_version()

GOOD = {f"test_{name}.py": f"def test_{name}(): pass\ndef test_{name}_too(): pass\n" for name in "acd"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Four files, of which the tests will make the second one end the session."""
    project = Project(tmp_path)
    project.write({**GOOD, "test_b.py": "def test_before(): pass\ndef test_ends(): pass\ndef test_after(): pass\n"})
    return project


def end_in_the_middle(project: Project, statement: str, *arguments: str, more: str = "") -> AttemptReading:
    """Run the four files when `test_ends` executes this statement."""
    inventory = project.inventory()
    project.write(
        {
            "test_b.py": "import atexit, os, signal, sys, pytest\n"
            + more
            + f"def test_before(): pass\ndef test_ends(): {statement}\ndef test_after(): pass\n"
        }
    )
    return project.run(inventory=inventory, arguments=arguments)


DEATHS = [
    ("os._exit(0)", "session-ended-early", 0),
    ("os._exit(1)", "session-ended-early", 1),
    ("os._exit(4)", "session-ended-early", 4),
    ("os._exit(77)", "session-ended-early", 77),
    ("os.kill(os.getpid(), signal.SIGKILL)", "signalled", -signal.SIGKILL),
    ("os.kill(os.getpid(), signal.SIGSEGV)", "signalled", -signal.SIGSEGV),
    ("pytest.exit('enough', returncode=0)", "session-ended-early", 0),
    ("pytest.exit('enough', returncode=1)", "session-ended-early", 1),
    ("pytest.exit('enough')", "interrupted", 2),
    ("raise_(KeyboardInterrupt)", "interrupted", 2),
]


@pytest.mark.parametrize(("statement", "cause", "code"), DEATHS, ids=[death[0] for death in DEATHS])
def test_a_session_that_ends_in_a_test_leaves_what_was_finished_before(
    project: Project, statement: str, cause: str, code: int
) -> None:
    reading = end_in_the_middle(project, statement, more="def raise_(error): raise error\n")
    assert project.exit_code == code
    assert not reading.complete
    assert reading.cause == cause
    assert "test_b.py::test_ends" in reading.detail
    assert unmeasured(reading) == {"test_b.py": cause, "test_c.py": "not-run", "test_d.py": "not-run"}
    assert [(missing.target, missing.cause) for missing in reading.missing] == list(unmeasured(reading).items())
    assert reading.measured_targets == 1
    assert set(outcomes(reading)) == {"test_a.py::test_a", "test_a.py::test_a_too", "test_b.py::test_before"}


def test_the_detail_repeats_what_was_said_at_the_exit(project: Project) -> None:
    assert "Exit: enough" in end_in_the_middle(project, "pytest.exit('enough', returncode=0)").detail


def test_an_exit_with_success_after_a_failure_measures_nothing(project: Project) -> None:
    project.write({"test_a.py": "def test_a(): assert False\ndef test_a_too(): pass\n"})
    reading = end_in_the_middle(project, "pytest.exit('enough', returncode=0)")
    assert reading.cause == "exit-contradicts-cases"
    assert reading.measured_targets == 0
    assert reading.missing == ()
    assert set(unmeasured(reading).values()) == {"exit-contradicts-cases"}
    assert outcomes(reading)["test_a.py::test_a"] == "failed"
    assert [line.test for line in reading.failures] == ["test_a.py::test_a"]


def test_an_exit_code_that_is_changed_after_the_session_measures_nothing(project: Project) -> None:
    reading = end_in_the_middle(project, "assert False", more="atexit.register(os._exit, 0)\n")
    assert project.exit_code == 0
    assert reading.cause == "exit-contradicts-record"
    assert "exit with 1" in reading.detail
    assert "exited with 0" in reading.detail
    assert reading.measured_targets == 0


def test_a_crash_while_the_interpreter_shuts_down_measures_nothing(project: Project) -> None:
    reading = end_in_the_middle(project, "pass", more="atexit.register(os.kill, os.getpid(), signal.SIGSEGV)\n")
    assert project.exit_code == -signal.SIGSEGV
    assert reading.cause == "exit-contradicts-record"
    assert reading.measured_targets == 0


def test_an_end_in_a_teardown_leaves_the_test_unmeasured_although_its_call_passed(project: Project) -> None:
    fixture = "@pytest.fixture(autouse=True, scope='module')\ndef deadly():\n    yield\n    os._exit(0)\n"
    reading = end_in_the_middle(project, "pass", more=fixture)
    assert "test_b.py::test_after" in reading.detail
    assert unmeasured(reading)["test_b.py"] == "session-ended-early"
    assert "test_b.py::test_after" not in outcomes(reading)


def test_an_end_while_a_file_is_imported_measures_nothing(project: Project) -> None:
    inventory = project.inventory()
    project.write({"test_b.py": "import os\nos._exit(0)\n"})
    reading = project.run(inventory=inventory)
    assert reading.cause == "session-ended-early"
    assert reading.measured_targets == 0
    collection = project.collect()
    assert (collection.complete, collection.cause, collection.targets) == (False, "session-ended-early", ())


@pytest.mark.skipif(VERSION < (8, 1), reason="older versions take an interrupt at import for an error of the file")
def test_an_interrupt_while_a_file_is_imported_measures_nothing(project: Project) -> None:
    inventory = project.inventory()
    project.write({"test_b.py": "raise KeyboardInterrupt\n"})
    reading = project.run(inventory=inventory)
    assert project.exit_code == 2
    assert (reading.cause, reading.measured_targets) == ("interrupted", 0)
    assert project.collect().cause == "interrupted"


def test_the_projects_own_early_stop_does_not_stop_the_session(project: Project) -> None:
    project.write({"pytest.ini": "[pytest]\naddopts = -x\n"})
    reading = end_in_the_middle(project, "assert False", "--exitfirst")
    assert reading.complete, (reading.detail, project.log)
    assert reading.measured_targets == 4


def test_a_plug_in_that_stops_the_session_leaves_the_rest_unmeasured(project: Project) -> None:
    stop = "@pytest.fixture\ndef stop(request):\n    request.session.shouldstop = 'a budget'\n"
    tests = "def test_before(): pass\ndef test_ends(stop): pass\ndef test_after(): pass\n"
    project.write({"test_b.py": f"import pytest\n{stop}{tests}"})
    reading = project.run()
    assert reading.cause == "interrupted"
    assert "a budget" in reading.detail
    assert unmeasured(reading) == {"test_b.py": "interrupted", "test_c.py": "not-run", "test_d.py": "not-run"}


def test_a_session_that_fails_without_a_failed_test_measures_nothing(project: Project) -> None:
    inventory = project.inventory()
    project.write(
        {
            "conftest.py": """
                import pytest

                def pytest_sessionfinish(session):
                    session.exitstatus = 1
                """,
        }
    )
    reading = project.run(inventory=inventory)
    assert (reading.cause, reading.measured_targets) == ("exit-contradicts-cases", 0)


def test_an_exit_code_that_is_not_pytests_measures_nothing(project: Project) -> None:
    inventory = project.inventory()
    project.write({"conftest.py": "def pytest_sessionfinish(session): session.exitstatus = 42"})
    reading = project.run(inventory=inventory)
    assert project.exit_code == 42
    assert (reading.cause, reading.measured_targets) == ("exit-code-unexpected", 0)


def test_a_broken_hook_is_named(project: Project) -> None:
    inventory = project.inventory()
    project.write({"conftest.py": "def pytest_runtest_setup(item): pass\ndef pytest_runtest_logfinish(): 1 / 0"})
    reading = project.run(inventory=inventory)
    assert project.exit_code == 3
    assert (reading.cause, reading.measured_targets) == ("runner-internal-error", 0)
    assert "ZeroDivisionError" in reading.detail


def test_a_conftest_that_cannot_be_imported_is_named(project: Project) -> None:
    inventory = project.inventory()
    project.write({"conftest.py": "import a_module_that_is_not_there"})
    reading = project.run(inventory=inventory)
    assert project.exit_code == 4
    assert (reading.cause, reading.measured_targets) == ("runner-usage-error", 0)
    assert "conftest.py: " in reading.detail
    assert "a_module_that_is_not_there" in reading.detail
    assert project.collect().cause == "runner-usage-error"


@pytest.mark.skipif(VERSION < (8, 0), reason="pytest 7 gives up its whole collection here")
def test_a_conftest_deeper_in_the_tree_that_cannot_be_imported_is_an_error_of_its_directory(project: Project) -> None:
    project.write({"deep/er/test_e.py": "def test_e(): pass"})
    project.write({"deep/er/conftest.py": "import a_module_that_is_not_there"})
    inventory = project.inventory()
    broken = [target.target for target in inventory.targets if target.error is not None]
    assert len(broken) == 1
    assert broken[0].startswith("deep/er")
    reading = project.run(inventory=inventory)
    assert reading.complete, (reading.detail, project.log)
    assert outcomes(reading)[broken[0]] == "error"
    assert reading.measured_targets == 5


def test_a_command_line_that_pytest_refuses_measures_nothing(project: Project) -> None:
    inventory = project.inventory()
    project.write({"pytest.ini": "[pytest]\naddopts = --no-such-option\n"})
    reading = project.run(inventory=inventory)
    assert project.exit_code == 4
    assert (reading.cause, reading.measured_targets) == ("runner-usage-error", 0)


def test_a_configuration_that_pytest_cannot_read_measures_nothing(project: Project) -> None:
    inventory = project.inventory()
    project.write({"pytest.ini": "no section\n"})
    reading = project.run(inventory=inventory)
    assert project.exit_code == 4
    assert reading.cause == "runner-usage-error"


def test_an_interpreter_without_pytest_leaves_no_record(project: Project) -> None:
    inventory = project.inventory()
    project.write({"pytest/__init__.py": "", "pytest/__main__.py": "raise SystemExit(1)"})
    reading = project.run(inventory=inventory)
    assert (reading.cause, reading.measured_targets) == ("record-missing", 0)
    assert project.collect().cause == "record-missing"


def test_a_project_without_tests_has_nothing_collected(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write({"test_empty.py": "VALUE = 1"})
    reading = project.collect()
    assert project.exit_code == 5
    assert (reading.complete, reading.cause) == (False, "nothing-collected")


def test_an_attempt_that_suddenly_finds_no_tests_measures_nothing(project: Project) -> None:
    inventory = project.inventory()
    reading = project.run(inventory=inventory, arguments=("-k", "nothing_has_this_name"))
    assert project.exit_code == 5
    assert (reading.cause, reading.measured_targets) == ("nothing-collected", 0)


def test_a_case_that_is_silently_left_out_leaves_its_target_unmeasured(project: Project) -> None:
    inventory = project.inventory()
    reading = project.run(inventory=inventory, arguments=("--deselect", "test_c.py::test_c_too"))
    assert reading.cause == "cases-missing"
    assert "test_c.py" in reading.detail
    assert unmeasured(reading) == {"test_c.py": "cases-missing"}
    assert reading.measured_targets == 3


def test_a_plug_in_that_runs_no_teardown_leaves_its_target_unmeasured(project: Project) -> None:
    inventory = project.inventory()
    project.write(
        {
            "conftest.py": """
                import pytest

                @pytest.hookimpl(tryfirst=True)
                def pytest_runtest_protocol(item):
                    return True if item.name == "test_c" else None
                """,
        }
    )
    reading = project.run(inventory=inventory)
    assert unmeasured(reading) == {"test_c.py": "cases-missing"}


WORKERS = ("-n", "2")


def test_workers_of_a_distributed_session_are_read_as_one(project: Project) -> None:
    project.write(
        {
            "test_b.py": "def test_before(): pass\ndef test_ends(): assert False\ndef test_after(): pass\n",
            "test_broken.py": "import a_module_that_is_not_there",
            "test_skipped.py": "import pytest\npytest.skip('not here', allow_module_level=True)",
        }
    )
    inventory = project.inventory(arguments=WORKERS)
    assert sum(len(target.cases) for target in inventory.targets) == 9
    for more in ((), ("--dist", "loadfile")):
        reading = project.run(inventory=inventory, arguments=(*WORKERS, *more))
        assert reading.complete, (reading.detail, project.log)
        assert reading.counts == {"error": 1, "failed": 1, "passed": 8}
        assert {row.worker for row in rows(reading).values()} == {"gw0", "gw1"}
    few = project.run("test_a.py", "test_d.py", inventory=inventory, arguments=WORKERS)
    assert few.complete
    assert few.counts == {"passed": 4}


@pytest.mark.parametrize("more", [(), ("--reruns", "1")], ids=["plain", "with reruns"])
def test_a_worker_that_crashes_leaves_only_the_target_of_its_test_unmeasured(
    project: Project, more: tuple[str, ...]
) -> None:
    reading = end_in_the_middle(project, "os.kill(os.getpid(), signal.SIGKILL)", *WORKERS, *more)
    assert reading.cause == "worker-crashed", (reading.detail, project.log)
    assert unmeasured(reading) == {"test_b.py": "worker-crashed"}
    assert "test_b.py::test_ends" in reading.detail
    assert "test_b.py::test_ends" not in outcomes(reading)
    assert reading.measured_targets == 3


def test_a_worker_that_crashes_where_none_may_follow_leaves_the_rest_unmeasured(project: Project) -> None:
    reading = end_in_the_middle(project, "os._exit(0)", "-n", "1", "--max-worker-restart", "0")
    assert not reading.complete
    assert reading.measured_targets < 4
    assert unmeasured(reading)["test_b.py"] != "not-run"
    assert unmeasured(reading)["test_d.py"] in ("not-run", "cases-missing")


def test_an_exit_in_a_worker_never_counts_as_complete(project: Project) -> None:
    reading = end_in_the_middle(project, "pytest.exit('enough', returncode=0)", *WORKERS)
    assert not reading.complete
    assert "test_b.py" in unmeasured(reading)


def test_a_suspect_that_runs_last_cannot_keep_the_others_from_being_measured(project: Project) -> None:
    inventory = project.inventory()
    project.write({"test_b.py": "import os\ndef test_before(): pass\ndef test_ends(): os._exit(9)\n"})
    owed = ("test_b.py", "test_c.py", "test_d.py")
    assert unmeasured(project.run(*owed, inventory=inventory)) == {
        "test_b.py": "session-ended-early",
        "test_c.py": "not-run",
        "test_d.py": "not-run",
    }
    again = project.run(*owed, inventory=inventory, last=("test_b.py",))
    assert unmeasured(again) == {"test_b.py": "session-ended-early"}


@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only"])
def test_a_session_that_only_sets_up_measures_nothing(project: Project, option: str) -> None:
    inventory = project.inventory()
    project.write({"pytest.ini": f"[pytest]\naddopts = {option}\n"})
    reading = project.run(inventory=inventory)
    assert (reading.complete, reading.cause, reading.measured_targets) == (False, "cases-missing", 0)
