"""Collects what one report says: a record per planned target, and what is wrong beyond a single target."""

from collections.abc import Sequence

from commands.readers.junit.counts import Suite, absorb, disagreement, surplus, troubles_of
from commands.readers.junit.dialects import Dialect
from commands.readers.junit.document.elements import BENIGN_ATTRIBUTES, NOT_RUN, VERDICT_ATTRIBUTES, unclear
from commands.readers.junit.document.parser import NAME_CHARACTERS, PATH_CHARACTERS, Case, refuse_long
from commands.readers.junit.locate import Locator, Place, module_of
from commands.readers.junit.profiles import PROFILES, Profile
from commands.readers.junit.rows import Rows
from ledger.values import Outcome

_EXPECTED_FAILURE = "pytest.xfail"
_SPOTS = 1000


class Record:
    """What is known of one planned target. `executed` are cases that ran for certain and did not fail; `spare` is how
    many of the skips may have run, `doubtful` how many of the executed may not have."""

    __slots__ = ("cases", "cause", "detail", "doubtful", "executed", "failing", "reran", "skipped", "spare")

    def __init__(self) -> None:
        self.cases = self.executed = self.failing = self.skipped = self.reran = self.spare = self.doubtful = 0
        self.cause = self.detail = ""

    def blame(self, cause: str, detail: str) -> None:
        """Say why the target is not measured; the first reason stays."""
        if not self.cause:
            self.cause, self.detail = cause, detail

    def add(self, other: "Record") -> None:
        """Add what another report says of the same target."""
        for name in ("cases", "executed", "failing", "skipped", "reran", "spare", "doubtful"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.blame(other.cause, other.detail)


class Spot:
    """Where cases belong: their place, its number among the rows, the record of its target if that is planned, and how
    the name of a case would end that is named as the file."""

    __slots__ = ("ending", "number", "place", "record")

    def __init__(self, place: Place, number: int, record: Record | None) -> None:
        self.place, self.number, self.record = place, number, record
        self.ending = _ending(place.file)


class Gatherer:
    """Listens to the parser while it reads one report.

    `troubles` are reason codes with the first detail of each; `failing` counts the failures, also those of no planned
    target; `suggested` are the profiles under which every count would agree, None as long as all agree.
    """

    def __init__(self, dialect: Dialect, profile: Profile, locator: Locator, rows: Rows) -> None:
        self._dialect, self._profile, self._locator, self._rows = dialect, profile, locator, rows
        self._mark, self._looked = rows.mark(), False
        self._python = dialect.names == "python"
        self._numbers: dict[tuple[str, tuple[str, ...]], int] = {}
        self.records: dict[str, Record] = {}
        self.troubles: dict[str, str] = {}
        self.failing = 0
        self.suggested: set[str] | None = None

    def case(self, case: Case, suites: list[Suite]) -> None:
        """Take a case. Nearly all have passed, so what is only about others is looked at only for them."""
        attributes, suite = case.attributes, suites[-1]
        name, class_name = attributes.get("name", ""), attributes.get("classname", "")
        file = attributes.get("file", "") or attributes.get("filepath", "")
        if len(name) > NAME_CHARACTERS:
            refuse_long(name, NAME_CHARACTERS)
        spot = suite.spots.get((file, class_name)) or self._spot(file, class_name, name, suites)
        outcome: Outcome = "passed"
        if not case.plain or not BENIGN_ATTRIBUTES.issuperset(attributes):
            outcome = self._outcome(case, name, spot)
        seconds = _seconds(attributes.get("time"))
        suite.direct.cases += 1
        if outcome == "passed" and name and spot.record is not None:
            suite.direct.idle += seconds == 0.0
            suite.direct.reran += case.reruns > 0
            self._book_pass(spot, spot.record, name, case.reruns)
        else:
            self._count(suite, case, outcome, seconds)
            self._book(spot, name, class_name, outcome, case.reruns)
        if case.message or case.reason:
            self._rows.say(case.message, case.reason)
        self._add(spot, name, class_name, outcome, seconds, case.reruns)

    def suite_failure(self, kind: str, message: str, suites: list[Suite]) -> None:
        """Take a failure or error that stands beside the cases: it is one of the suite's target, as a whole."""
        suite = suites[-1]
        if kind == "failure":
            suite.direct.failure_elements += 1
        else:
            suite.direct.error_elements += 1
        target = self._locator.suite_target(suites)
        self.failing += 1
        if target is not None:
            self._record(target, suites).failing += 1
        number = self._number(target or "", () if target else (suite.name,))
        self._rows.say(message, "")
        self._rows.add(number, None, None, "error", 0.0, 0)

    def suite_ended(self, suite: Suite, suites: list[Suite]) -> None:
        """Compare what a suite declares with what was in it."""
        for code, detail in troubles_of(suite, self._profile):
            self._blame_all(suite, code, detail)
        different = disagreement(suite, self._profile)
        if different and not self._looked:
            # To find repetitions takes a look at every case, so it is done once, and only where counts differ.
            self._looked = True
            suite.direct.repeated = self._rows.repeated(self._mark)
            different = disagreement(suite, self._profile)
        if different:
            self._blame_all(suite, "counts-disagree", different)
            fitting = {
                name
                for name, profile in PROFILES.items()
                if self._dialect.name in profile.dialects and not disagreement(suite, profile)
            }
            self.suggested = fitting if self.suggested is None else self.suggested & fitting
        extra = surplus(suite)
        for target in suite.targets if extra else ():
            if extra > 0 and self._profile.skip_may_run:
                self.records[target].spare += extra
            elif extra < 0 and self._profile.surplus_may_not_run:
                self.records[target].doubtful -= extra
        if suites:
            absorb(suites[-1], suite, self._profile)

    def unknown_element(self, name: str, suites: list[Suite]) -> None:
        """An element beside the cases that nobody knows the meaning of."""
        self._trouble("element-unknown", f"an element {name[:40]!r} in the suite {suites[-1].name[:80]!r}")

    def _spot(self, file: str, class_name: str, name: str, suites: Sequence[Suite]) -> Spot:
        refuse_long(file, PATH_CHARACTERS)
        refuse_long(class_name, PATH_CHARACTERS)
        place = self._locator.place(file, class_name, name, suites)
        record = self._record(place.target, suites) if place.planned and place.target is not None else None
        spot = Spot(place, self._number(place.target or "", place.names), record)
        # Without a class the name itself may be what names the target, so that place is not that of other cases.
        if class_name or not self._python:
            # Some runners write the title of each case as its class, so these must not become as many as the cases.
            if len(suites[-1].spots) >= _SPOTS:
                suites[-1].spots.clear()
            suites[-1].spots[file, class_name] = spot
        return spot

    def _record(self, target: str, suites: Sequence[Suite]) -> Record:
        suites[-1].targets.add(target)
        return self.records.setdefault(target, Record())

    def _number(self, target: str, names: tuple[str, ...]) -> int:
        number = self._numbers.get((target, names))
        if number is None:
            number = self._numbers[target, names] = self._rows.place(target, names)
        return number

    def _outcome(self, case: Case, name: str, spot: Spot) -> Outcome:
        if case.unknown:
            self._blame(spot.record, "element-unknown", f"the case {name[:80]!r} has an element {case.unknown[:40]!r}")
        if case.failures or case.errors:
            return "failed" if case.failures else "error"
        if case.retried:
            self._blame(spot.record, "status-unclear", f"the case {name[:80]!r} was tried again, but has not failed")
        outcome: Outcome = "passed"
        if case.skips:
            outcome = "xfailed" if case.skip_type == _EXPECTED_FAILURE else "skipped"
        return self._by_attributes(case, outcome, spot)

    def _by_attributes(self, case: Case, outcome: Outcome, spot: Spot) -> Outcome:
        """The outcome where attributes speak of it too; without an element they prove neither a pass nor a failure."""
        for attribute, text in case.attributes.items():
            if attribute in VERDICT_ATTRIBUTES and text.strip().lower() in NOT_RUN:
                outcome = "skipped"
            elif unclear(attribute, text):
                detail = f'the case {case.attributes.get("name", "")[:80]!r} has {attribute[:40]}="{text[:40]}"'
                self._blame(spot.record, "status-unclear", detail)
        return outcome

    def _count(self, suite: Suite, case: Case, outcome: Outcome, seconds: float) -> None:
        tally = suite.direct
        if outcome == "passed":
            tally.idle += seconds == 0.0
        elif case.failures or case.errors:
            self.failing += 1
            tally.failed += case.failures > 0
            tally.errored += case.errors > 0
            tally.errored_only += case.failures == 0
            tally.failure_elements += case.failures
            tally.error_elements += case.errors
        else:
            tally.skipped += 1
            tally.not_run += not case.skips
        tally.skip_elements += case.skips
        tally.reran += case.reruns > 0

    def _book_pass(self, spot: Spot, record: Record, name: str, reruns: int) -> None:
        """Book a case that passed on its planned target."""
        record.cases += 1
        record.executed += 1
        record.reran += reruns > 0
        if spot.ending and name.endswith(spot.ending) and _is_file(name, spot.place.file):
            record.blame("case-is-file", f"the case {name[:80]!r} is named as its file, and is no test")

    def _book(self, spot: Spot, name: str, class_name: str, outcome: Outcome, reruns: int) -> None:
        """Book any case on its target; what has none, or one that was not asked for, is trouble of the whole."""
        place, record = spot.place, spot.record
        failing = outcome in ("failed", "error")
        if not name and not failing:
            self._trouble("case-unnamed", "a case without a name, as an interrupted run leaves it")
        if record is None:
            words = f"{class_name} {name}".strip()[:120]
            if place.target is None:
                self._trouble("cases-unattributed", f"nothing tells the target of {words!r}")
            else:
                self._trouble("foreign-tests", f"{words!r} of {place.target[:120]!r}, which was not asked for")
        elif outcome == "passed":
            self._book_pass(spot, record, name, reruns)
        else:
            record.cases += 1
            record.failing += failing
            record.reran += reruns > 0
            record.skipped += not failing and not self._is_whole(place, name, class_name)

    def _add(self, spot: Spot, name: str, class_name: str, outcome: Outcome, seconds: float, reruns: int) -> None:
        variant = None
        own: str | None = name
        if not name or (not class_name and self._is_whole(spot.place, name, class_name)):
            own = None
        elif name[-1] == "]" and self._python and "[" in name:
            own, _, rest = name.partition("[")
            variant = rest[:-1]
        self._rows.add(spot.number, own, variant, outcome, seconds, reruns)

    def _is_whole(self, place: Place, name: str, class_name: str) -> bool:
        """Whether a case is about the collection of its whole target."""
        return not class_name and self._python and name == module_of(place.target or "")

    def _blame(self, record: Record | None, code: str, detail: str) -> None:
        if record is None:
            self._trouble(code, detail)
        else:
            record.blame(code, detail)

    def _blame_all(self, suite: Suite, code: str, detail: str) -> None:
        """Blame a suite: the targets that have cases in it; the whole report when there are none."""
        if not suite.targets:
            self._trouble(code, detail)
        for target in suite.targets:
            self.records[target].blame(code, detail)

    def _trouble(self, code: str, detail: str) -> None:
        self.troubles.setdefault(code, detail)


def _ending(file: str) -> str:
    """What the name of a case ends with that is named as its file; "" where names cannot be told from files."""
    last = file.replace("\\", "/").rpartition("/")[2]
    return last if "." in last else ""


def _is_file(name: str, file: str) -> bool:
    """Whether a case is named as its file, as some runners write it for a file that ended without reporting a test."""
    path, whole = (text.replace("\\", "/").removeprefix("./") for text in (name, file))
    return f"/{whole}".endswith(f"/{path}")


def _seconds(text: str | None) -> float:
    """A duration; 0 for what is none: it decides nothing."""
    try:
        seconds = float(text or 0.0)
    except ValueError:
        return 0.0
    return seconds if 0.0 <= seconds < 1e9 else 0.0
