"""How each producer writes a report, one entry a producer: where target and names stand, and what exit codes mean.

To add a producer, add an entry. A producer that needs a new way to find a target or a name adds that to `locate.py`.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Source = Literal["file", "suite-file", "class", "class-file", "class-prefix", "module", "suite-name"]
"""Where a target is found: the case's `file`, that of its nearest suite, its `classname` (of a class, also of the
class around it; as a path; or up to a dot), the module that begins its dotted `classname`, the name of a suite."""

Names = Literal["name", "class-and-name", "suites-and-name", "nested-class", "python"]
"""What names a case inside its target: its `name`; `classname` and `name`; the suites around it within the file; the
classes within the target's class; Python classes and parameters."""


class Dialect(Struct, frozen=True, kw_only=True):
    """One producer's way to write.

    `certain` sources are the target wherever they are present: another target is then a foreign one. `planned` sources,
    tried after them, count only when they name a planned target. `repeated`: two cases of one name are one test that
    was reported twice (the worst counts), or two tests (they are numbered). `exits` maps exit codes to `passed`,
    `failed` or a reason code; any other is unexpected. `marks` are values of attributes of the root, the first suite or
    its first property by which a report is recognised; one that ends in a slash is the beginning of such a value.
    """

    name: str
    certain: tuple[Source, ...]
    planned: tuple[Source, ...] = ()
    names: Names
    repeated: Literal["worst", "numbered"]
    exits: dict[int, str]
    marks: tuple[str, ...] = ()


_PLAIN = {0: "passed", 1: "failed"}

GENERIC = Dialect(
    name="generic",
    certain=("file", "suite-file"),
    planned=("class", "suite-name"),
    names="class-and-name",
    repeated="numbered",
    exits=_PLAIN,
)

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        GENERIC,
        Dialect(
            name="pytest",
            certain=("file",),
            planned=("module",),
            names="python",
            repeated="worst",
            exits={
                **_PLAIN,
                2: "interrupted",
                3: "runner-internal-error",
                4: "runner-usage-error",
                5: "nothing-collected",
            },
            marks=("pytest tests", "pytest"),
        ),
        Dialect(
            name="bun",
            certain=("file", "suite-file"),
            names="suites-and-name",
            repeated="numbered",
            exits=_PLAIN,
            marks=("bun test",),
        ),
        Dialect(
            name="vitest",
            certain=("file", "class-file"),
            names="name",
            repeated="numbered",
            exits=_PLAIN,
            marks=("vitest tests",),
        ),
        Dialect(
            name="jest-junit",
            certain=("file",),
            planned=("class-file", "suite-name"),
            names="name",
            repeated="numbered",
            exits=_PLAIN,
            marks=("jest tests",),
        ),
        Dialect(
            name="gotestsum",
            certain=("suite-name",),
            names="name",
            # With --rerun-fails a test is reported once per try; Go itself numbers subtests of equal names.
            repeated="worst",
            exits=_PLAIN,
            marks=("go.version",),
        ),
        Dialect(
            name="cargo-nextest",
            certain=("suite-name",),
            names="name",
            repeated="worst",
            exits={0: "passed", 100: "failed", 4: "nothing-collected"},
            marks=("nextest-run",),
        ),
        Dialect(
            name="surefire",
            certain=("class",),
            names="nested-class",
            repeated="numbered",
            exits=_PLAIN,
            marks=("https://maven.apache.org/surefire/",),
        ),
        Dialect(
            name="mocha",
            certain=("file", "suite-file"),
            names="name",
            repeated="numbered",
            # The number of failures, as far as an exit code can say it.
            exits={0: "passed", **dict.fromkeys((*range(1, 126), 255), "failed")},
            marks=("Mocha Tests",),
        ),
        Dialect(
            name="catch2",
            certain=("class-prefix",),
            names="class-and-name",
            repeated="numbered",
            exits={0: "passed", **dict.fromkeys(range(1, 126), "failed")},
        ),
    )
}


def recognised(values: Iterable[str]) -> Dialect:
    """The dialect whose marks are among the values of the first elements' attributes; the generic one where none is."""
    found = list(values)
    for dialect in DIALECTS.values():
        for mark in dialect.marks:
            if any(value == mark or (mark.endswith("/") and value.startswith(mark)) for value in found):
                return dialect
    return GENERIC
