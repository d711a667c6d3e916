"""Gates of tiny suites of Bun, Vitest and Go: every way in which a suite can end, through the command runner."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands.generic.suites import Files, Gate, gate
from tests.real.runners.tools import Tool, bun, gotestsum, vitest

pytestmark = pytest.mark.slow


class Suite(NamedTuple):
    """A suite that passes, and what makes it end in another way; each of these changes one of its files.

    `failing` fails `one` and skips `two`. `crashing` kills the runner, `leaving` ends the process in mid-run with 0.
    `ids` are the texts of the tests `one`, `two`, `three` and of one whose name is in several scripts.
    """

    passing: Files
    failing: Files
    crashing: Files
    leaving: Files
    ids: tuple[str, str, str, str]


def _javascript(module: str, victim: str, path: str) -> Suite:
    head = f'import {{ test, expect, describe }} from "{module}";\n'
    nested = 'describe("größe > 日本 ☃", () => { test("läuft", () => {}); });\n'
    return Suite(
        passing={
            "package.json": '{"type": "module"}\n',
            "a.test.js": head + 'test("one", () => {});\ntest("two", () => {});\n' + nested,
            "sub/b.test.js": head + 'test("three", () => {});\n',
        },
        failing={
            "a.test.js": head + 'test("one", () => { expect(1).toBe(2); });\ntest.skip("two", () => {});\n' + nested
        },
        crashing={"sub/b.test.js": head + f'test("three", () => {{ process.kill({victim}, "SIGKILL"); }});\n'},
        leaving={"sub/b.test.js": head + 'test("three", () => { process.exit(0); });\n'},
        ids=("a.test.js::one", "a.test.js::two", "sub/b.test.js::three", f"a.test.js::größe > 日本 ☃{path}läuft"),
    )


def _go() -> Suite:
    head = 'package suite\nimport ("os"; "syscall"; "testing")\nvar _, _ = os.Exit, syscall.Kill\n'
    nested = 'func TestGröße(t *testing.T) { t.Run("日本 ☃", func(t *testing.T) {}) }\n'
    one, two = "func TestOne(t *testing.T) { %s }\n", "func TestTwo(t *testing.T) { %s }\n"
    three = "func TestThree(t *testing.T) { %s }\n"
    return Suite(
        passing={
            "go.mod": "module example.org/suite\n\ngo 1.21\n",
            "a/a_test.go": head + one % "" + two % "" + nested,
            "b/b_test.go": head + three % "",
        },
        failing={"a/a_test.go": head + one % 't.Error("no")' + two % 't.Skip("later")' + nested},
        crashing={"b/b_test.go": head + three % "syscall.Kill(syscall.Getppid(), syscall.SIGKILL)"},
        leaving={"b/b_test.go": head + three % "os.Exit(0)"},
        ids=(
            "example.org/suite/a::TestOne",
            "example.org/suite/a::TestTwo",
            "example.org/suite/b::TestThree",
            "example.org/suite/a::TestGröße/日本_☃",
        ),
    )


SUITES: dict[str, tuple[Callable[[], Tool], Suite]] = {
    "bun": (cache(bun), _javascript("bun:test", "process.pid", "::")),
    # A worker of Vitest may die without harm, so the crash is that of the process that started it.
    "vitest": (cache(vitest), _javascript("vitest", "process.ppid", " > ")),
    "gotestsum": (cache(gotestsum), _go()),
}


@pytest.fixture(params=SUITES)
def runner(request: pytest.FixtureRequest) -> str:
    """The name of a runner."""
    return str(request.param)


def gated(runner: str, root: Path, candidate: Files) -> Gate:
    """The gate of a suite that passed, changed like this."""
    tool = SUITES[runner][0]()
    return gate(root, SUITES[runner][1].passing, candidate, tool.settings, **tool.variables)


def test_a_suite_that_passes_passes_whatever_its_tests_are_called(runner: str, tmp_path: Path) -> None:
    found = gated(runner, tmp_path, {})
    assert (found.answer.code, found.classes) == (0, {}), found.told()
    assert {row["test"] for row in found.rows("classes")} >= set(SUITES[runner][1].ids)


def test_what_fails_and_what_is_skipped_now_is_told_apart(runner: str, tmp_path: Path) -> None:
    suite = SUITES[runner][1]
    found = gated(runner, tmp_path, suite.failing)
    one, two, *_ = suite.ids
    assert (found.answer.code, found.classes) == (1, {one: "introduced", two: "newly-skipped"}), found.told()


def test_a_runner_that_is_killed_measures_nothing(runner: str, tmp_path: Path) -> None:
    suite = SUITES[runner][1]
    found = gated(runner, tmp_path, suite.crashing)
    assert found.answer.code == 3, found.told()
    assert found.classes.keys() >= set(suite.ids)
    assert set(found.classes.values()) == {"unmeasured"}


def test_a_test_that_ends_its_process_with_0_never_passes(runner: str, tmp_path: Path) -> None:
    suite = SUITES[runner][1]
    found = gated(runner, tmp_path, suite.leaving)
    # Go and Vitest notice it and fail; of Bun nothing is left.
    assert found.answer.code == (3 if runner == "bun" else 1), found.told()
    assert suite.ids[2] in found.classes
    assert found.classes[suite.ids[2]] in ("introduced", "unmeasured")


def test_a_go_test_that_is_gone_from_a_package_of_the_same_files_blocks(tmp_path: Path) -> None:
    """The package is identified by its directory, since its name is no path."""
    gone = 'if os.Getenv("NOWHERE") == "" { t.Run(name(), func(t *testing.T) {}) }'
    head = 'package a\nimport ("os"; "testing"; "example.org/suite/names")\nfunc name() string { return names.Name }\n'
    suite = {
        "go.mod": "module example.org/suite\n\ngo 1.21\n",
        "names/names.go": 'package names\nconst Name = "before"\n',
        "a/a_test.go": head + f"func TestOne(t *testing.T) {{ {gone} }}\n",
    }
    tool = SUITES["gotestsum"][0]()
    changed = {"names/names.go": 'package names\nconst Name = "after"\n'}
    found = gate(tmp_path, suite, changed, tool.settings, **tool.variables)
    vanished = {"example.org/suite/a::TestOne/before": "vanished"}
    assert (found.answer.code, found.classes) == (1, vanished), found.told()
