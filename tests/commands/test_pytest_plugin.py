"""What a real pytest session puts on record, and what the reader makes of it: identities, outcomes, collections."""

import json
from pathlib import Path

import pytest

from commands.readers.pytest_lines import AttemptReading
from ledger.values import TestId
from tests.commands.sessions import Project, outcomes, pytest_version, rows, unmeasured

pytestmark = pytest.mark.real

VERSION = pytest_version()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project."""
    return Project(tmp_path)


IDENTITIES = {
    "tests/unit/test_names.py": """
        import pytest

        @pytest.mark.parametrize("value", ["a::b", "[x]", "", " > ", "line\\nbreak", "é", "gw0", "a/b.py::test_x[1]"])
        def test_value(value):
            pass

        @pytest.mark.parametrize("first", [1, 2])
        @pytest.mark.parametrize("second", ["x"])
        def test_pair(first, second):
            pass

        def test_plain():
            pass

        class TestOuter:
            class TestInner:
                def test_deep(self):
                    pass

            @pytest.mark.parametrize("n", [1])
            def test_plain(self, n):
                pass
        """,
    "tests/unit/test_old.py": """
        import unittest

        class OldTest(unittest.TestCase):
            def test_old(self):
                pass
        """,
    "tests/unit/test_names_twin.py": """
        def test_plain():
            pass
        """,
    "pkg/__init__.py": "",
    "pkg/sub/__init__.py": "",
    "pkg/sub/test_packaged.py": "def test_packaged(): pass",
    "docs/usage.txt": """
        >>> 1 + 1
        2
        """,
    "pkg/documented.py": '''
        def twice(n):
            """
            >>> twice(2)
            4
            """
            return 2 * n
        ''',
}


def test_identities_come_from_the_structure_of_the_nodes(project: Project) -> None:
    project.write(IDENTITIES)
    options = {"arguments": ("--doctest-modules", "--doctest-glob=*.txt")}
    inventory = project.inventory(**options)
    names = "tests/unit/test_names.py"
    by_target = {target.target: target.cases for target in inventory.targets}
    assert by_target == {
        "docs/usage.txt": (TestId("docs/usage.txt", ("usage.txt",)),),
        "pkg/documented.py": (TestId("pkg/documented.py", ("pkg.documented.twice",)),),
        "pkg/sub/test_packaged.py": (TestId("pkg/sub/test_packaged.py", ("test_packaged",)),),
        names: (
            *(
                TestId(names, ("test_value",), variant)
                for variant in ("a::b", "[x]", "", " > ", "line\\nbreak", "\\xe9", "gw0", "a/b.py::test_x[1]")
            ),
            TestId(names, ("test_pair",), "x-1"),
            TestId(names, ("test_pair",), "x-2"),
            TestId(names, ("test_plain",)),
            TestId(names, ("TestOuter", "TestInner", "test_deep")),
            TestId(names, ("TestOuter", "test_plain"), "1"),
        ),
        "tests/unit/test_names_twin.py": (TestId("tests/unit/test_names_twin.py", ("test_plain",)),),
        "tests/unit/test_old.py": (TestId("tests/unit/test_old.py", ("OldTest", "test_old")),),
    }
    reading = project.run(inventory=inventory, **options)
    assert reading.complete, (reading.detail, project.log)
    assert {row.test for row in reading.table.cases} == {case for cases in by_target.values() for case in cases}
    assert {TestId.parse(text) for text in outcomes(reading)} == {row.test for row in reading.table.cases}


OUTCOMES = {
    "test_outcomes.py": """
        import unittest
        import pytest

        @pytest.fixture
        def broken_setup():
            raise RuntimeError("no setup")

        @pytest.fixture
        def broken_teardown():
            yield
            raise RuntimeError("no teardown")

        def test_pass(): pass
        def test_fail(): assert 1 == 2, "one is not two"
        def test_setup(broken_setup): pass
        def test_teardown(broken_teardown): pass
        def test_fail_and_teardown(broken_teardown): assert False, "the call"
        def test_skip(): pytest.skip("no reason")
        def test_skip_and_teardown(broken_teardown): pytest.skip("not now")

        @pytest.mark.skip(reason="by mark")
        def test_skip_mark(): pass

        @pytest.mark.skipif(True, reason="")
        def test_skip_no_reason(): pass

        @pytest.mark.xfail(reason="known")
        def test_xfail(): assert False

        @pytest.mark.xfail(reason="known", run=False)
        def test_xfail_not_run(): assert False

        @pytest.mark.xfail(reason="known")
        def test_xpass(): pass

        @pytest.mark.xfail(reason="known", strict=True)
        def test_xpass_strict(): pass

        @pytest.mark.xfail(raises=ValueError)
        def test_xfail_other_error(): raise KeyError("other")

        def test_imperative_xfail(): pytest.xfail("gave up")
        def test_exit(): raise SystemExit(0)
        def test_long(): raise ValueError("x" * 9000 + "\\nlast")
        def test_control(): raise ValueError("\\x1b[31mred\\x00\\x07")
        def test_surrogate(): raise ValueError("half \\udc80 of it")

        def test_lookalike(capfd):
            print('["end","main",9,0,true]')
            print('["case","main",3,0,[["teardown","passed",0.0]]]', flush=True)
            assert False, '["end","main",4,0,true]'

        class Old(unittest.TestCase):
            @unittest.skip("old way")
            def test_skip(self): pass

            @unittest.expectedFailure
            def test_expected(self): self.fail()

            def test_error(self): raise OSError("old error")
        """,
}

EXPECTED_OUTCOMES = {
    "test_pass": "passed",
    "test_fail": "failed",
    "test_setup": "error",
    "test_teardown": "error",
    "test_fail_and_teardown": "failed",
    "test_skip": "skipped",
    "test_skip_and_teardown": "error",
    "test_skip_mark": "skipped",
    "test_skip_no_reason": "skipped",
    "test_xfail": "xfailed",
    "test_xfail_not_run": "xfailed",
    "test_xpass": "xpassed",
    "test_xpass_strict": "failed",
    "test_xfail_other_error": "failed",
    "test_imperative_xfail": "xfailed",
    "test_exit": "failed",
    "test_long": "failed",
    "test_control": "failed",
    "test_surrogate": "failed",
    "test_lookalike": "failed",
    "Old::test_skip": "skipped",
    "Old::test_expected": "xfailed",
    "Old::test_error": "failed",
}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> AttemptReading:
    """The reading of a session with every outcome."""
    project = Project(tmp_path_factory.mktemp("gallery"))
    project.write(OUTCOMES)
    return project.run()


def test_every_outcome_is_told_apart(gallery: AttemptReading) -> None:
    expected = {f"test_outcomes.py::{name}": outcome for name, outcome in EXPECTED_OUTCOMES.items()}
    assert outcomes(gallery) == expected
    assert gallery.complete
    assert gallery.cause is None
    assert gallery.measured_targets == 1
    assert gallery.attention == ("test_outcomes.py",)
    assert gallery.counts == {"error": 3, "failed": 10, "passed": 1, "skipped": 4, "xfailed": 4, "xpassed": 1}
    assert [line.test for line in gallery.failures] == [
        row.test.text() for row in gallery.table.cases if row.outcome in ("failed", "error")
    ]


def test_the_line_says_what_went_wrong_and_the_reason_why_not(gallery: AttemptReading) -> None:
    found = {test.removeprefix("test_outcomes.py::"): row for test, row in rows(gallery).items()}
    assert found["test_fail"].line == "AssertionError: one is not two"
    assert found["test_setup"].line == "RuntimeError: no setup"
    assert found["test_teardown"].line == "RuntimeError: no teardown"
    assert found["test_fail_and_teardown"].line == "AssertionError: the call"
    assert found["test_skip_and_teardown"].line == "RuntimeError: no teardown"
    assert found["test_skip"].reason == "no reason"
    assert found["test_skip"].line == found["test_skip"].message == ""
    assert found["test_skip_mark"].reason == "by mark"
    assert found["Old::test_skip"].reason == "old way"
    assert found["test_xfail"].reason == found["test_xpass"].reason == "known"
    assert "one is not two" in found["test_fail"].message


def test_messages_are_bounded_and_keep_their_end_and_their_control_characters(gallery: AttemptReading) -> None:
    found = {test.removeprefix("test_outcomes.py::"): row for test, row in rows(gallery).items()}
    long = found["test_long"]
    assert len(long.line) == 200
    assert len(long.message) == 4000
    assert long.message.rstrip().endswith("ValueError")
    assert "\x1b[31mred\x00\x07" in found["test_control"].message
    assert "half \\udc80 of it" in found["test_surrogate"].line


@pytest.mark.skipif(VERSION < (9, 0), reason="subtests came with pytest 9")
def test_a_failing_subtest_fails_its_test_and_is_counted(project: Project) -> None:
    project.write(
        {
            "test_sub.py": """
                import unittest

                def test_some_fail(subtests):
                    for number in range(4):
                        with subtests.test(number=number):
                            assert number % 2

                def test_all_pass(subtests):
                    with subtests.test("fine"):
                        pass

                class Old(unittest.TestCase):
                    def test_some_fail(self):
                        for number in range(3):
                            with self.subTest(number=number):
                                self.assertEqual(number, 1)
                """,
        }
    )
    found = rows(project.run())
    told = {test.removeprefix("test_sub.py::"): (row.outcome, row.subtests_failed) for test, row in found.items()}
    assert told == {
        "test_some_fail": ("failed", 2),
        "test_all_pass": ("passed", 0),
        "Old::test_some_fail": ("failed", 2),
    }


def test_reports_of_failing_subtests_fail_a_test_that_calls_itself_passed(project: Project) -> None:
    """The plug-in pytest-subtests reports the test that holds failing subtests as passed."""
    project.write(
        {
            "conftest.py": """
                import copy
                import pytest

                class SubTestReport(pytest.TestReport):
                    pass

                @pytest.fixture
                def failing_subtest(request):
                    report = SubTestReport(
                        request.node.nodeid, request.node.location, {}, "failed", "the part", "call", duration=0.5
                    )
                    request.node.ihook.pytest_runtest_logreport(report=report)
                """,
            "test_sub.py": "def test_sub(failing_subtest): pass\ndef test_other(): pass",
        }
    )
    reading = project.run()
    assert outcomes(reading) == {"test_sub.py::test_other": "passed", "test_sub.py::test_sub": "failed"}
    row = rows(reading)["test_sub.py::test_sub"]
    assert (row.subtests_failed, row.line) == (1, "the part")
    assert row.duration_seconds < 0.5
    assert reading.complete


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


def test_reruns_are_counted_and_only_the_last_try_decides(project: Project) -> None:
    project.write(
        {
            "test_flaky.py": """
                import pytest
                tries = {"call": 0, "setup": 0, "teardown": 0}

                def fails_once(name):
                    tries[name] += 1
                    assert tries[name] > 1, "the first try"

                @pytest.fixture
                def shaky_setup(): fails_once("setup")

                @pytest.fixture
                def shaky_teardown():
                    yield
                    fails_once("teardown")

                def test_call(): fails_once("call")
                def test_setup(shaky_setup): pass
                def test_always(): assert False, "every try"
                def test_pass(): pass
                """,
        }
    )
    reading = project.run(arguments=("--reruns", "2"))
    assert reading.complete, (reading.detail, project.log)
    told = {test.partition("::")[2]: (row.outcome, row.reruns) for test, row in rows(reading).items()}
    assert told == {
        "test_call": ("passed", 1),
        "test_setup": ("passed", 1),
        "test_always": ("failed", 2),
        "test_pass": ("passed", 0),
    }


@pytest.mark.slow
def test_five_thousand_targets_fit(project: Project) -> None:
    names = [f"a_directory_with_a_rather_long_name/test_{number:05}.py" for number in range(5000)]
    project.write(dict.fromkeys(names, "def test_it(): pass\n"))
    reading = project.run()
    assert reading.complete, (reading.detail, project.log[-2000:])
    assert reading.measured_targets == 5000
    assert reading.counts == {"passed": 5000}
