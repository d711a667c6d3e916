"""The reader beside what the original was recorded to do: every difference has a name, and is counted."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from commands.readers.junit import Expectations, Reading, Report, read_reports
from tests.commands.junit.conftest import VECTORS, codes, ended, reading_of

WHY = {
    "skips are kept": "The first version gives up a report with a skip in it; a skip is a result.",
    "names may repeat": "The original gives up, or invents `#2` names that collide; repeated names are numbered apart.",
    "a suite may be named as its file": "Without `file`, a suite that is named as a planned file stands for it.",
    "legal XML is read": "Instructions anywhere, namespaces, and any attribute and element that says nothing.",
    "counts may be left out or be direct": "A suite may declare nothing, or only what stands directly in it.",
    "cases may stand anywhere": "Cases directly below the root, and suites of suites, are common.",
    "a failure beats a skip": "A case with both failed.",
    "not well-formed": "The original's own parser lets through what is not XML, such as control characters.",
    "count-invalid": "The original reads `01`, ` 1 `, `1.0` and nothing as numbers.",
    "count-unknown": "A second count of an unknown meaning contradicts the first as much as a known one would.",
    "counts-disagree": "The original does not compare `skipped`.",
    "only-skipped": "A file that executes nothing is not measured, unless the plan lets it skip.",
    "element-unknown": "The original overlooks a failure within an unknown element: it fails open.",
    "status-unclear": "A case with further failed tries but no failure contradicts itself; the original overlooks it.",
    "a failure beside the cases": "The original overlooks a failure that stands in a suite: it fails open.",
    "class and file": "The original's second reader takes a class for the file where the suite has the file.",
    "untrusted": "The original's second reader takes passes from reports that contradict themselves.",
    "more passes": "The original's second reader does not see the suite's file.",
    "white space": "A tab or line feed in an attribute is a space to every XML parser.",
    "names may repeat or be skipped": "Both make the first version measure a shard again for ever.",
}  # fmt: skip

_HAND = {
    "pi-after-root": "legal XML is read", "pi-inside": "legal XML is read", "elem-unicode": "legal XML is read",
    "attr-proto-tostring": "legal XML is read", "attr-proto-proto": "legal XML is read",
    "namespaced": "legal XML is read", "tests-missing": "counts may be left out or be direct",
    "root-case": "cases may stand anywhere",
    "root-nested-testsuites": "cases may stand anywhere", "skipped-and-failure": "a failure beats a skip",
    "nested-parent-own-only": "counts may be left out or be direct",
    "dup-each-row": "names may repeat", "dup-across-suites": "names may repeat",
    "dup-literal-ordinal": "names may repeat", "failure-in-suite-ignored": "a failure beside the cases",
}  # fmt: skip

READ = {
    "junit-read": {
        "agree": 164,
        "skips are kept": 13,
        "names may repeat": 5,
        "legal XML is read": 6,
        "not well-formed": 11,
        "count-invalid": 4,
        "a suite may be named as its file": 2,
        "count-unknown": 2,
        "counts may be left out or be direct": 2,
        "cases may stand anywhere": 2,
        "only-skipped": 1,
        "element-unknown": 1,
        "status-unclear": 1,
        "a failure beside the cases": 1,
        "a failure beats a skip": 1,
    },
    "junit-read-later": {
        "agree": 49,
        "only-skipped": 11,
        "names may repeat": 9,
        "count-unknown": 1,
        "counts-disagree": 1,
        "a failure beats a skip": 1,
    },
}

Vector = dict[str, Any]


def vectors(name: str) -> list[Vector]:
    """The vectors of a set."""
    found = json.loads((VECTORS / f"{name}.public.json").read_text("utf-8"))["vectors"]
    assert isinstance(found, list)
    return found


def document(text: str) -> bytes:
    """The bytes of a report; a lone surrogate stays one, as a careless writer leaves it."""
    return text.encode("utf-8", "surrogatepass")


def read_vector(vector: Vector) -> Reading:
    """The reading of a vector's report, at the end that fits its cases: the original is not told of one here."""
    xml, files = document(vector["input"]["xml"]), vector["input"]["files"]
    green = reading_of(xml, planned=files, exit_code=0)
    return reading_of(xml, planned=files, exit_code=1) if green.verdict == "failed" else green


def complete(reading: Reading) -> bool:
    """Whether the evidence is whole."""
    return not codes(reading)


def difference(vector: Vector) -> str:
    """The name of what is different, "agree" when nothing is."""
    reading, theirs = read_vector(vector), vector["output"]["cases"] if vector["output"] else None
    if complete(reading) != (theirs is not None):
        return _named(vector) if complete(reading) else _refused(codes(reading))
    if theirs is None:
        return "agree"
    ours = sorted((row.test.target, row.outcome in ("failed", "error")) for row in reading.cases())
    return "agree" if ours == sorted((case["file"], "failure" in case) for case in theirs) else _named(vector)


def _refused(reasons: set[str]) -> str:
    reasons = {"not well-formed" if code == "report-malformed" else code for code in reasons}
    return ", ".join(sorted(reasons))


def _named(vector: Vector) -> str:
    for tag in vector["tags"]:
        if tag in _HAND:
            return _HAND[tag]
    xml = vector["input"]["xml"]
    if "<skipped" in xml and vector["id"].startswith("junit-read-0"):
        return "skips are kept"
    return "names may repeat" if "file=" in xml else "a suite may be named as its file"


@pytest.mark.parametrize("name", READ)
def test_every_difference_to_the_original_reader_is_a_known_one(name: str) -> None:
    found = Counter(difference(vector) for vector in vectors(name))
    assert found == READ[name]
    assert set(found) - {"agree"} <= set(WHY)


@pytest.mark.parametrize("name", READ)
def test_wherever_the_original_sees_a_failure_it_is_seen(name: str) -> None:
    for vector in vectors(name):
        cases = (vector["output"] or {}).get("cases") or ()
        reading = read_vector(vector)
        if any("failure" in case for case in cases) and "report-malformed" not in codes(reading):
            assert reading.verdict == "failed", vector["id"]


PASSED = {
    "agree": 29,
    "legal XML is read": 1,
    "class and file": 8,
    "more passes": 10,
    "not well-formed": 7,
    "untrusted": 3,
    "white space": 2,
}


def passed_difference(vector: Vector) -> str:
    """As `difference`, for the set of passed tests."""
    xml = vector["input"]["xml"]
    theirs = Counter((one["file"], one["name"]) for one in vector["output"])
    files = {one["file"] for one in vector["output"]} | set(re.findall('file="([^"]*)"', xml)) or {"t.x"}
    reading = reading_of(document(xml), planned=sorted(files))
    ours = Counter(
        (row.test.target, " > ".join((row.test.target, *row.test.path[-1:])))
        for row in reading.cases()
        if row.outcome == "passed"
    )
    if ours == theirs:
        return "agree"
    if "report-malformed" in codes(reading):
        return "not well-formed"
    if ours == Counter({tuple(" ".join(re.split("[\t\n]", text)) for text in one): n for one, n in theirs.items()}):
        return "white space"
    if "namespaced" in vector["tags"]:
        return _HAND["namespaced"]
    if any(file not in re.findall('file="([^"]*)"', xml) for file, _ in theirs - ours):
        return "class and file"
    return "untrusted" if codes(reading) & {"count-invalid", "counts-disagree"} else "more passes"


def test_every_difference_to_the_original_reader_of_passes_is_a_known_one() -> None:
    found = Counter(passed_difference(vector) for vector in vectors("junit-passed"))
    assert found == PASSED
    assert set(found) - {"agree"} <= set(WHY)


MEASURED = {
    "aggregate": {"agree": 234, "not well-formed": 11, "names may repeat or be skipped": 11},
    "aggregate-later": {"agree": 78, "not well-formed": 10, "only-skipped": 8},
}
"""Of the shards of a whole run, which have to be measured again; the verdict itself is compared elsewhere."""


def shard_reasons(files: Iterable[str], attempt: Vector | None) -> set[str]:
    """Why a shard has to be measured again."""
    if attempt is None:
        return {"report-missing"}
    found = set()
    for side in ("current", "baseline"):
        planned = attempt.get("baselineFiles", files) if side == "baseline" else files
        text, code = attempt.get(f"{side}JUnit"), attempt.get(f"{side}ExitCode")
        end = ended(code if type(code) is int else None)
        if attempt.get(f"{side}Signal"):
            end = ended(None, end="signalled", signal=9)
        if planned or side == "current":
            report = Report("report", None if text is None else (document(text),))
            found |= codes(read_reports([report], end, Expectations(planned=tuple(planned))))
    return found


def retry_difference(vector: Vector) -> str:
    """As `difference`, for the shards that have to be measured again."""
    latest: dict[str, Vector] = {}
    for attempt in vector["input"]["attempts"]:
        if attempt["attempt"] >= latest.get(attempt["shardId"], attempt)["attempt"]:
            latest[attempt["shardId"]] = attempt
    shards = vector["input"]["shards"]
    reasons = {shard["id"]: shard_reasons(shard["files"], latest.get(shard["id"])) for shard in shards}
    ours, theirs = {shard for shard in reasons if reasons[shard]}, set(vector["output"]["retryShardIds"])
    if ours == theirs:
        return "agree"
    if not ours - theirs:
        return "names may repeat or be skipped"
    found = set.union(*(reasons[shard] for shard in ours - theirs)) - {"exit-contradicts-cases"}
    return "not well-formed" if "report-malformed" in found else _refused(found)


@pytest.mark.parametrize("name", MEASURED)
def test_every_shard_that_is_measured_again_otherwise_than_by_the_original_is_known(name: str) -> None:
    found = Counter(retry_difference(vector) for vector in vectors(name) if "error" not in vector)
    assert found == MEASURED[name]
    assert set(found) - {"agree"} <= set(WHY)
