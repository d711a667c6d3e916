"""What real pytest sessions collect and run: broken and skipped files, chosen targets, hostile projects."""

import json

import pytest

from ledger.values import TestId
from tests.commands.runners.sessions import Project, outcomes, unmeasured

pytestmark = pytest.mark.real


def test_a_broken_file_hides_no_other(project: Project) -> None:
    project.write(
        {
            "test_a.py": "def test_a(): pass",
            "test_import.py": "import a_module_that_is_not_there",
            "test_syntax.py": "def test_b(:",
            "test_raise.py": "raise RuntimeError('while importing')",
            "test_class.py": """
                class TestBroken:
                    import a_module_that_is_not_there
                """,
            "test_z.py": "def test_z(): assert False",
            "pytest.ini": "[pytest]\naddopts = -x\n",
        }
    )
    inventory = project.inventory()
    errors = {target.target: target.error for target in inventory.targets}
    assert errors["test_a.py"] is None
    assert errors["test_z.py"] is None
    assert errors["test_import.py"] == "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"
    assert "SyntaxError" in (errors["test_syntax.py"] or "")
    assert errors["test_raise.py"] == "RuntimeError: while importing"
    reading = project.run(inventory=inventory)
    assert reading.complete, (reading.detail, project.log)
    assert outcomes(reading) == {
        "test_a.py::test_a": "passed",
        "test_class.py": "error",
        "test_import.py": "error",
        "test_raise.py": "error",
        "test_syntax.py": "error",
        "test_z.py::test_z": "failed",
    }
    alone = project.run("test_syntax.py", inventory=inventory)
    assert alone.complete
    assert outcomes(alone) == {"test_syntax.py": "error"}


def test_a_file_that_cannot_be_imported_only_when_it_is_run_is_an_error_not_a_gap(project: Project) -> None:
    project.write({"test_a.py": "def test_a(): pass", "test_b.py": "def test_b(): pass"})
    inventory = project.inventory()
    project.write({"test_a.py": "import a_module_that_is_not_there"})
    reading = project.run(inventory=inventory)
    assert reading.complete
    assert outcomes(reading) == {"test_a.py": "error", "test_b.py::test_b": "passed"}
    assert reading.attention == ("test_a.py",)


def test_a_file_that_skips_itself_is_measured_with_its_reason_and_no_case(project: Project) -> None:
    project.write(
        {
            "test_a.py": "def test_a(): pass",
            "test_skipped.py": "import pytest\npytest.skip('not here', allow_module_level=True)",
            "test_old.py": "import unittest\nraise unittest.SkipTest('the old way')",
            "test_needs.py": "import pytest\npytest.importorskip('a_module_that_is_not_there')",
        }
    )
    inventory = project.inventory()
    skipped = {target.target: (target.skipped, target.cases) for target in inventory.targets if target.skipped}
    assert skipped["test_skipped.py"] == ("not here", ())
    assert str(skipped["test_old.py"][0]).endswith("the old way")
    assert sorted(skipped) == ["test_needs.py", "test_old.py", "test_skipped.py"]
    reading = project.run(inventory=inventory)
    assert reading.complete
    assert reading.measured_targets == 4
    assert reading.attention == ("test_needs.py", "test_old.py", "test_skipped.py")
    alone = project.run("test_skipped.py", inventory=inventory)
    assert project.exit_code == 5
    assert alone.complete
    assert alone.measured_targets == 1


def test_a_file_that_starts_to_skip_itself_after_its_collection_is_not_measured(project: Project) -> None:
    project.write({"test_a.py": "def test_a(): pass", "test_b.py": "def test_b(): pass"})
    inventory = project.inventory()
    project.write({"test_a.py": "import pytest\npytest.skip('not here', allow_module_level=True)"})
    reading = project.run(inventory=inventory)
    assert not reading.complete
    assert unmeasured(reading) == {"test_a.py": "cases-missing"}
    assert reading.cause == "cases-missing"


def test_tests_with_one_identity_are_counted_one_by_one(project: Project) -> None:
    project.write(
        {
            "conftest.py": """
                import pytest

                class Twin(pytest.Item):
                    def runtest(self):
                        assert self.good

                class Twins(pytest.File):
                    def collect(self):
                        for good in (True, False, True):
                            item = Twin.from_parent(self, name="twin")
                            item.good = good
                            yield item

                def pytest_collect_file(file_path, parent):
                    if file_path.suffix == ".twins":
                        return Twins.from_parent(parent, path=file_path)
                """,
            "three.twins": "",
        }
    )
    reading = project.run()
    assert reading.complete
    assert {row.test: row.outcome for row in reading.table.cases} == {
        TestId("three.twins", ("twin",)): "passed",
        TestId("three.twins", ("twin",), "#2"): "failed",
        TestId("three.twins", ("twin",), "#3"): "passed",
    }


def test_the_settings_are_gone_before_the_project_sees_its_environment(project: Project) -> None:
    project.write(
        {
            "conftest.py": """
                import os
                assert not [name for name in os.environ if name.startswith("LEDGER_")]
                """,
            "test_a.py": """
                import os
                def test_environment():
                    assert not [name for name in os.environ if name.startswith("LEDGER_")]
                """,
        }
    )
    assert outcomes(project.run()) == {"test_a.py::test_environment": "passed"}


def test_sessions_inside_of_tests_leave_no_trace(project: Project) -> None:
    project.write(
        {
            "pytest.ini": "[pytest]\npytester_example_dir = .\n",
            "conftest.py": "pytest_plugins = ['pytester']",
            "test_nested.py": """
                import os, subprocess, sys

                def test_subprocess(pytester):
                    pytester.makepyfile("def test_inner(): assert False")
                    result = subprocess.run([sys.executable, "-m", "pytest", "-p", "release_ledger_pytest"])
                    assert result.returncode == 1

                def test_in_process(pytester):
                    pytester.makepyfile("def test_inner(): assert False")
                    pytester.runpytest_inprocess("-p", "release_ledger_pytest").assert_outcomes(failed=1)

                def test_fork():
                    if os.fork() == 0:
                        raise RuntimeError("the child goes on as a second pytest")
                    os.wait()
                """,
        }
    )
    reading = project.run()
    assert reading.complete, (reading.detail, project.log)
    assert outcomes(reading) == {
        "test_nested.py::test_fork": "passed",
        "test_nested.py::test_in_process": "passed",
        "test_nested.py::test_subprocess": "passed",
    }


def test_a_project_that_turns_the_process_upside_down_is_recorded_all_the_same(project: Project) -> None:
    project.write(
        {
            "test_hostile.py": """
                import json, os, tempfile, pytest

                def test_descriptors():
                    os.closerange(3, 64)

                def test_descriptor_reuse():
                    os.closerange(3, 64)
                    for _ in range(20):
                        os.open(__file__, os.O_RDWR)

                def test_directory(tmp_path):
                    os.chdir(tmp_path)

                def test_functions(monkeypatch):
                    def broken(*arguments, **options):
                        raise RuntimeError("replaced")
                    monkeypatch.setattr(json, "dumps", broken)
                    monkeypatch.setattr(json.JSONEncoder, "encode", broken)
                    monkeypatch.setattr(os, "write", broken)
                    monkeypatch.setattr(os, "fstat", broken)
                    monkeypatch.setattr(os, "getpid", lambda: 1)

                def test_environment(monkeypatch):
                    for name in list(os.environ):
                        monkeypatch.delenv(name)

                def test_last():
                    assert False
                """,
        }
    )
    before = {"test_hostile.py": None}
    source = (project.tree / "test_hostile.py").read_bytes()
    reading = project.run(arguments=("--capture=no",))
    assert (project.tree / "test_hostile.py").read_bytes() == source
    assert reading.complete, (reading.cause, reading.detail, project.log)
    assert list(outcomes(reading).values()).count("passed") == 5
    assert {row.target: row.cause for row in reading.table.targets} == before


def test_a_project_may_leave_out_the_plug_ins_that_own_our_options(project: Project) -> None:
    project.write(
        {
            "pytest.ini": "[pytest]\naddopts = -p no:terminal -p no:cacheprovider\nfilterwarnings = error\n",
            "test_a.py": "def test_a(): pass",
        }
    )
    reading = project.run()
    assert reading.complete, (reading.cause, reading.detail, project.log)


def test_what_the_project_deselects_is_not_planned(project: Project) -> None:
    project.write(
        {
            "pytest.ini": "[pytest]\naddopts = --deselect test_a.py::test_two -k 'not three'\n",
            "test_a.py": "def test_one(): pass\ndef test_two(): assert False\ndef test_three(): assert False",
            "test_b.py": "def test_three(): assert False",
        }
    )
    reading = project.run()
    assert reading.complete
    assert outcomes(reading) == {"test_a.py::test_one": "passed"}
    assert [row.target for row in reading.table.targets] == ["test_a.py"]


def test_warnings_as_errors_fail_the_tests_that_warn(project: Project) -> None:
    project.write(
        {
            "pytest.ini": "[pytest]\nfilterwarnings = error\n",
            "test_a.py": "import warnings\ndef test_warns(): warnings.warn('old')\ndef test_other(): pass",
            "test_b.py": "import warnings\nwarnings.warn('at import')\ndef test_b(): pass",
        }
    )
    reading = project.run()
    assert reading.complete
    assert outcomes(reading) == {
        "test_a.py::test_other": "passed",
        "test_a.py::test_warns": "failed",
        "test_b.py": "error",
    }


def test_only_the_files_that_are_asked_for_run_in_the_order_of_the_project(project: Project) -> None:
    project.write(
        {
            "pytest.ini": "[pytest]\ntestpaths = tests\n",
            **{f"tests/test_{name}.py": f"def test_{name}(): pass" for name in "abcd"},
        }
    )
    inventory = project.inventory()
    reading = project.run("tests/test_d.py", "tests/test_b.py", inventory=inventory)
    assert reading.complete
    assert list(outcomes(reading)) == ["tests/test_b.py::test_b", "tests/test_d.py::test_d"]
    lines = [json.loads(line) for line in project.record.splitlines() if line]
    assert [line[4] for line in lines if line[0] == "items"] == ["tests/test_b.py", "tests/test_d.py"]


def test_files_that_the_settings_name_one_by_one_are_left_out_when_they_are_not_asked_for(project: Project) -> None:
    project.write(
        {
            "tests/test_a.py": "def test_a(): pass",
            "tests/test_b.py": "class TestB:\n    def test_b(self): pass\ndef test_not_named(): pass",
            "more/test_c.py": "def test_c(): pass",
            "more/test_d.py": "raise RuntimeError('not to be imported')",
        }
    )
    options = {"paths": ("tests/test_a.py", "tests/test_b.py::TestB", "more/test_c.py")}
    inventory = project.inventory(**options)
    reading = project.run("tests/test_b.py", inventory=inventory, **options)
    assert reading.complete, (reading.detail, project.log)
    assert outcomes(reading) == {"tests/test_b.py::TestB::test_b": "passed"}


def test_files_of_packages_run_alone_with_the_fixtures_of_their_package(project: Project) -> None:
    project.write(
        {
            "pytest.ini": "[pytest]\npython_files = *.py\n",
            "__init__.py": "",
            "pkg/__init__.py": "def test_in_the_package_file(): pass",
            "pkg/conftest.py": "import pytest\n@pytest.fixture(scope='package')\ndef shared(): return 1",
            "pkg/test_a.py": "from .helper import VALUE\ndef test_a(shared): assert shared == VALUE",
            "pkg/test_b.py": "def test_b(shared): pass",
            "pkg/helper.py": "VALUE = 1",
        }
    )
    inventory = project.inventory()
    assert [target.target for target in inventory.targets] == ["pkg/__init__.py", "pkg/test_a.py", "pkg/test_b.py"]
    for target in inventory.targets:
        reading = project.run(target.target, inventory=inventory)
        assert reading.complete, (reading.detail, project.log)
        assert len(reading.table.cases) == 1


def test_a_file_with_a_name_that_pytest_cannot_be_told_on_its_command_line_is_run(project: Project) -> None:
    project.write({"test_[a]::b.py": "def test_a(): pass", "test_c.py": "def test_c(): pass"})
    reading = project.run("test_[a]::b.py", inventory=project.inventory())
    assert reading.complete, (reading.detail, project.log)
    assert [row.test for row in reading.table.cases] == [TestId("test_[a]::b.py", ("test_a",))]


def test_every_session_of_a_tree_has_the_configuration_of_its_root(project: Project) -> None:
    """pytest looks for its configuration next to its arguments; the gate gives the same ones each time."""
    project.write(
        {
            "inner/pytest.ini": "[pytest]\naddopts = --deselect test_a.py::test_a\n",
            "inner/conftest.py": "def pytest_addoption(parser): parser.addoption('--inner')",
            "inner/test_a.py": "def test_a(): pass",
            "test_b.py": "def test_b(): pass",
        }
    )
    inventory = project.inventory()
    reading = project.run("inner/test_a.py", inventory=inventory)
    assert reading.complete, (reading.detail, project.log)
    assert outcomes(reading) == {"inner/test_a.py::test_a": "passed"}


@pytest.mark.slow
def test_five_thousand_targets_fit(project: Project) -> None:
    names = [f"a_directory_with_a_rather_long_name/test_{number:05}.py" for number in range(5000)]
    project.write(dict.fromkeys(names, "def test_it(): pass\n"))
    reading = project.run()
    assert reading.complete, (reading.detail, project.log[-2000:])
    assert reading.measured_targets == 5000
    assert reading.counts == {"passed": 5000}
