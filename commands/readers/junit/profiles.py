"""The named meanings of counts that a producer may have, as data. A team opts into one; none is ever guessed.

Without a profile a count is the number of what it names: of cases (or, for failures, errors and skips, of elements),
directly in the suite or below it, or the sum of what the suites in it declare.
"""

from typing import Literal

from msgspec import Struct

Allowance = Literal["none", "any", "skipped", "reran", "idle", "repeated"]
"""How far a count may be off: not at all, by any number, or by at most the number of cases that are skipped, that were
run again, that passed in no time at all, or that have the name of an earlier one."""


class Profile(Struct, frozen=True, kw_only=True):
    """One meaning of the counts, under a name with a version: `name/1`.

    `tests` may be above or below the number of cases by what is allowed, and failures and errors above. `renamed`
    says what an attribute of another name means. `skips_unwritten`: skips have no element, and are declared by the
    root. `skip_may_run`: what is shown as a skip may be a test that ran, as far as the surplus of `tests` accounts for
    it. `surplus_may_not_run`: so many cases beyond `tests` may be tests that never ran. `dialects` are those whose
    users may need it, which is all that recognition is used for.
    """

    name: str
    meaning: str
    dialects: tuple[str, ...]
    tests_above: Allowance = "none"
    tests_below: Allowance = "none"
    failures_above: Allowance = "none"
    renamed: tuple[tuple[str, str], ...] = ()
    skips_unwritten: bool = False
    skip_may_run: bool = False
    surplus_may_not_run: bool = False


STRICT = Profile(name="", meaning="", dialects=())

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="pytest-subtests/1",
            meaning="`tests` counts subtests too, and phases that failed beside a test; they have no element.",
            dialects=("pytest",),
            tests_above="any",
            skip_may_run=True,
        ),
        Profile(
            name="pytest-reruns/1",
            meaning="A try that pytest-rerunfailures repeats has an element like a pass, and is not in `tests`.",
            dialects=("pytest",),
            tests_below="repeated",
        ),
        Profile(
            name="pytest-skips/1",
            meaning="As pytest before 3.0 wrote it: skips are in `skips`, and are not in `tests`.",
            dialects=("pytest",),
            tests_below="skipped",
            renamed=(("skips", "skipped"),),
        ),
        Profile(
            name="jest-todo/1",
            meaning="A `test.todo` has an element that looks like a pass, and is in no count.",
            dialects=("jest-junit",),
            tests_below="idle",
            surplus_may_not_run=True,
        ),
        Profile(
            name="surefire-reruns/1",
            meaning="`tests` counts the last re-run only; cases that were run again may be missing in it.",
            dialects=("surefire",),
            tests_below="reran",
        ),
        Profile(
            name="mocha-pending/1",
            meaning="Pending tests are in `tests` and in the root's `skipped`, and have no element.",
            dialects=("mocha",),
            skips_unwritten=True,
        ),
        Profile(
            name="catch2-assertions/1",
            meaning="`tests`, `failures` and `errors` count assertions, not cases.",
            dialects=("catch2",),
            tests_above="any",
            failures_above="any",
        ),
    )
}
