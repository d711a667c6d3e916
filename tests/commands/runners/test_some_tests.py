"""Some tests of a target: exactly these run, and the attempt is complete when exactly these came to their end."""

import pytest

from ledger.values import TestId
from tests.commands.runners.sessions import Project

FILES = {
    "test_a.py": """
        import pytest

        def test_one(): pass

        @pytest.mark.parametrize("n", [1, 2, 3])
        def test_many(n): assert n != 2

        class TestInner:
            def test_one(self): pass
            def test_two(self): raise SystemExit(1)
        """,
    "test_b.py": "def test_b(): pass\n",
}


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("project"))
    made.write(FILES)
    return made


@pytest.mark.parametrize(
    "tests",
    [
        (TestId("test_a.py", ("test_one",)),),
        (TestId("test_a.py", ("test_many",), "1"), TestId("test_a.py", ("test_many",), "3")),
        (TestId("test_a.py", ("TestInner", "test_one")), TestId("test_b.py", ("test_b",))),
    ],
)
def test_exactly_the_chosen_tests_run(project: Project, tests: tuple[TestId, ...]) -> None:
    targets = tuple(dict.fromkeys(test.target for test in tests))
    reading = project.run(*targets, tests=tests)
    assert (reading.complete, reading.cause) == (True, None), (reading.detail, project.log)
    assert [row.test for row in reading.table.cases] == list(tests)
    assert {row.outcome for row in reading.table.cases} == {"passed"}


def test_a_chosen_test_that_fails_is_told_and_the_attempt_is_complete(project: Project) -> None:
    reading = project.run("test_a.py", tests=(TestId("test_a.py", ("test_many",), "2"),))
    assert reading.complete
    assert reading.counts == {"failed": 1}
    assert reading.attention == ("test_a.py",)


def test_a_chosen_test_that_is_not_there_leaves_its_target_unmeasured(project: Project) -> None:
    there, gone = TestId("test_a.py", ("test_one",)), TestId("test_a.py", ("test_gone",))
    reading = project.run("test_a.py", tests=(there, gone))
    assert (reading.complete, reading.cause) == (False, "cases-missing")


def test_when_nothing_of_what_was_chosen_is_there_nothing_is_measured(project: Project) -> None:
    reading = project.run("test_b.py", tests=(TestId("test_b.py", ("test_gone",)),))
    assert (reading.complete, reading.measured_targets) == (False, 0)


def test_tests_of_one_name_run_together_whichever_of_them_is_chosen(project: Project) -> None:
    project.write(
        {
            "conftest.py": """
                import pytest

                def pytest_pycollect_makeitem(collector, name, obj):
                    if name == "test_same":
                        return [pytest.Function.from_parent(collector, name=name) for _ in range(2)]
                """,
            "test_twice.py": """
                def test_same(): pass
                def test_other(): pass
                """,
        }
    )
    (target,) = [target for target in project.inventory().targets if target.target == "test_twice.py"]
    same, again, _ = target.cases
    assert (same.variant, again.variant) == (None, "#2")
    for chosen in (same, again):
        reading = project.run("test_twice.py", tests=(chosen,))
        assert reading.complete
        assert [row.test for row in reading.table.cases] == [same, again]
