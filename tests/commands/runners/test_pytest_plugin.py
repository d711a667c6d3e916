"""What a real pytest session puts on record, and what the reader makes of it: identities, outcomes, collections."""

import pytest

from commands.readers.attempt import AttemptReading
from ledger.values import TestId
from tests.commands.runners.sessions import Project, outcomes, pytest_version, rows

pytestmark = pytest.mark.real

VERSION = pytest_version()


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
