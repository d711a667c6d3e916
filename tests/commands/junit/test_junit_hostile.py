"""Hostile input: reports that try to exhaust the reader, to be read otherwise than they are, or to act through text."""

import codecs
import json
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.cli.common import json_text
from commands.readers.junit import Expectations, Report, read_reports
from commands.readers.junit.document import encoding
from commands.readers.junit.document.parser import DEPTH, MESSAGE_CHARACTERS, PIECE_BYTES
from commands.render.measures.reading import reading_lines
from tests.commands.junit.conftest import CASES, codes, ended, reading_of, suite

MEBIBYTE = 2**20
PASS = '<testcase name="a"/>'
GREEN = suite(PASS)
ACCENT = suite('<testcase name="é"/>')


class Fed:
    """Chunks that are made as they are asked for; `bytes_taken` says how many were."""

    def __init__(self, before: str, endless: str, chunks: int) -> None:
        self.before, self.endless, self.chunks = before, endless, chunks
        self.bytes_taken = 0

    def __iter__(self) -> Iterator[bytes]:
        chunk = (self.endless * (MEBIBYTE // 8 // len(self.endless))).encode()
        for piece in (self.before.encode(), *[chunk] * self.chunks):
            self.bytes_taken += len(piece)
            yield piece


@pytest.mark.parametrize(
    ("before", "endless"),
    [
        ('<testsuites><testsuite name="', "x"),
        ('<testsuites><testsuite><testcase message="', "&lt;"),
        ("<testsuites><!--", "x"),
        ("<testsuites><?x ", "x"),
        ("<testsuites><testsuite><system-out><![CDATA[", "x"),
        ("<testsuites><", "x"),
        ("<!--", "x"),
        ("", "\n"),
        ("", "<a>"),
        ("<testsuites>", "<testsuite>"),
        ("<testsuites><testsuite><testcase>", "<failure>"),
    ],
)
def test_what_has_no_end_is_refused_after_a_bounded_number_of_bytes(before: str, endless: str) -> None:
    fed = Fed(before, endless, 8 * 200)
    reading = read_reports([Report("r", fed)], ended(), Expectations(planned=("t.x",)))
    assert reading.verdict == "unmeasured"
    assert codes(reading) <= {"report-too-large", "report-malformed", "report-not-junit", "report-empty"}
    assert fed.bytes_taken < 12 * MEBIBYTE


@pytest.mark.parametrize(
    "element",
    ["<x{}/>", '<system-out x{}=""/>', "<?x{} y?>", '<note xmlns:x{}="urn:x"/>', '<testcase name="a" x{}=""/>'],
)
def test_only_so_many_different_names_are_kept(element: str) -> None:
    few, many = ("".join(element.format(number) for number in range(count)) for count in (900, 1100))
    assert "report-too-large" not in codes(reading_of(suite(PASS + few)))
    assert codes(reading_of(suite(PASS + many))) == {"report-too-large"}


def test_a_whole_report_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "REPORT_BYTES", MEBIBYTE)
    fed = Fed("<testsuites>", "<system-out>x</system-out>", 100)
    reading = read_reports([Report("r", fed)], ended(), Expectations(planned=("t.x",)), dialect="generic")
    assert codes(reading) == {"report-too-large"}
    assert fed.bytes_taken < 2 * MEBIBYTE


@pytest.mark.parametrize(
    ("document", "accepted"),
    [
        (suite(f'<testcase name="{"n" * 16384}"/>'), True),
        (suite(f'<testcase name="{"n" * 16385}"/>'), False),
        (suite(f'<testcase name="a" classname="{"c" * 4097}"/>'), False),
        (suite(f'<testcase name="a" file="{"f" * 4097}"/>'), False),
        (f'<testsuite name="{"n" * 4097}" file="t.x">{PASS}</testsuite>', False),
        (f'<testsuite filepath="{"f" * 4097}">{PASS}</testsuite>', False),
        (suite(PASS, " ".join(f'time{number}=""' for number in range(65))), False),
    ],
    ids=["name", "long-name", "class", "file", "suite-name", "suite-file", "attributes"],
)
def test_names_and_attributes_have_a_largest_size(document: str, accepted: bool) -> None:
    reading = reading_of(document)
    assert (reading.verdict, codes(reading)) == (
        ("accepted", set()) if accepted else ("unmeasured", {"report-too-large"})
    )


def test_a_path_may_be_as_long_as_paths_are() -> None:
    path = "p" * 4096
    assert reading_of(suite(PASS, file=path), planned=(path,)).verdict == "accepted"


def test_a_large_report_may_be_one_line() -> None:
    cases = "".join(f'<testcase name="{number:016000}"/>' for number in range(600))
    assert reading_of(suite(cases, 'tests="600"')).verdict == "accepted"


def test_the_names_of_all_cases_have_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    from commands.readers.junit import rows

    monkeypatch.setattr(rows, "ROW_BYTES", MEBIBYTE)
    few, many = (suite("".join(f'<testcase name="{n:01000}"/>' for n in range(count))) for count in (900, 2000))
    assert reading_of(few).verdict == "accepted"
    assert codes(reading_of(many)) == {"report-too-large"}
    assert codes(reading_of(few, many[:-5], few)) == {"report-too-large"}


def test_the_output_of_a_test_may_be_long_and_is_not_kept() -> None:
    head, tail = '<testsuite file="t.x"><testcase name="a"><system-out>', "</system-out></testcase></testsuite>"
    pieces = [head.encode(), *[b"a line of output\n" * 2**15] * 20, tail.encode()]
    assert sum(map(len, pieces)) > PIECE_BYTES
    reading = read_reports([Report("r", pieces)], ended(), Expectations(planned=("t.x",)))
    assert [(row.message, row.reason) for row in reading.cases()] == [("", "")]
    assert reading.verdict == "accepted"


def test_nesting_up_to_the_limit_is_read_and_no_deeper() -> None:
    for depth, expected in ((DEPTH - 2, set()), (DEPTH + 1, {"report-too-large"})):
        reading = reading_of('<testsuite file="t.x">' * depth + PASS + "</testsuite>" * depth)
        assert codes(reading) == expected


def test_long_messages_are_cut_and_many_lose_all_but_their_first_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    from commands.readers.junit import rows

    monkeypatch.setattr(rows, "TEXT_CHARACTERS", 3 * MESSAGE_CHARACTERS)
    failure = f"<failure>first line\n{'x' * 100_000}</failure>"
    cases = "".join(f'<testcase name="c{number:02}">{failure}</testcase>' for number in range(20))
    found = list(reading_of(suite(cases), exit_code=1).cases())
    assert [len(row.message) for row in found] == [MESSAGE_CHARACTERS] * 3 + [len("first line")] * 17
    assert {row.line for row in found} == {"first line"}


ENTITY = '<!DOCTYPE testsuites [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    "before",
    [
        ENTITY,
        "<!DOCTYPE testsuites>",
        f'<?xml version="1.0"?>\n<!-- {"c" * 1000} -->\n<?pi?>{ENTITY}',
        "<!ENTITY x 'y'>",
        "<![CDATA[x]]>",
    ],
)
@pytest.mark.parametrize("coded", ["utf-8", "utf-16"])
def test_a_doctype_is_refused_before_anything_in_it_can_act(before: str, coded: str) -> None:
    document = f'{before}<testsuites><testsuite file="t.x"><testcase name="&x;"/></testsuite></testsuites>'
    reading = reading_of(document.encode(coded))
    assert codes(reading) == {"report-doctype"}
    assert list(reading.cases()) == []


def test_an_undefined_entity_is_not_well_formed_and_the_five_known_ones_are_read() -> None:
    assert codes(reading_of(suite('<testcase name="&x;"/>'))) == {"report-malformed"}
    (row,) = reading_of(suite('<testcase name="&lt;&amp;amp;&gt;&quot;&apos;&#x9;&#233;"/>')).cases()
    assert row.test.path == ("<&amp;>\"'\té",)


@pytest.mark.parametrize(
    ("document", "accepted"),
    [
        (GREEN.encode("utf-16"), True),
        (codecs.BOM_UTF16_BE + GREEN.encode("utf-16-be"), True),
        (codecs.BOM_UTF8 + f'<?xml version="1.0" encoding="UTF-8"?>{GREEN}'.encode(), True),
        (f'<?xml version="1.0" encoding="ISO-8859-1"?>{ACCENT}'.encode("latin-1"), True),
        (f'<?xml version="1.0" encoding="us-ascii"?>{GREEN}'.encode(), True),
        (f"<?xml version='1.0' encoding='utf8' standalone='yes' ?>{GREEN}".encode(), True),
        (GREEN.encode("utf-16-le"), False),
        (GREEN.encode("utf-32"), False),
        (codecs.BOM_UTF16_LE + GREEN.encode(), False),
        (codecs.BOM_UTF8 + f'<?xml version="1.0" encoding="utf-16"?>{GREEN}'.encode(), False),
        (codecs.BOM_UTF16_LE + f'<?xml version="1.0" encoding="utf-8"?>{GREEN}'.encode("utf-16-le"), False),
        (codecs.BOM_UTF8 * 2 + GREEN.encode(), False),
        (f'<?xml version="1.0" encoding="utf-7"?>{GREEN}'.encode(), False),
        (f'<?xml version="1.0" encoding="us-ascii"?>{ACCENT}'.encode(), False),
        (f'<?xml version="1.0" encoding=""?>{GREEN}'.encode(), False),
        (f'<?xml encoding="utf-8"?>{GREEN}'.encode(), False),
        (f' <?xml version="1.0"?>{GREEN}'.encode(), False),
        (suite('<testcase name="\udcff"/>').encode("utf-8", "surrogateescape"), False),
        (suite('<testcase name="\ud800"/>').encode("utf-8", "surrogatepass"), False),
        (suite('<testcase name="x"/>').replace("x", "\0").encode(), False),
        (GREEN.encode() + b"\0", False),
        (GREEN.encode() + b"<testsuites/>", False),
        (b"\0" * 100, False),
    ],
)  # fmt: skip
def test_bytes_are_what_they_say_or_are_not_read(document: bytes, accepted: bool) -> None:
    reading = reading_of(document)
    assert (reading.verdict == "accepted") is accepted
    if not accepted:
        assert codes(reading) <= {"report-encoding", "report-malformed", "report-empty"}


EVIL = "evil\n > x\r\x1b[31m".replace("\x1b", "\u009b") + "\u202e\u2066\u200bgpj.exe../../etc [a] ::b\\"


def test_names_cannot_act_on_a_terminal_or_be_taken_for_others() -> None:
    quoted = EVIL.replace("\n", "&#10;").replace("\r", "&#13;")
    document = suite(
        f'<testcase name="{quoted}" classname="{quoted}"><failure message="{quoted}">{EVIL}</failure></testcase>'
    )
    reading = reading_of(document, planned=("t.x", EVIL), exit_code=1)
    (row,) = reading.cases()
    assert row.test.path == (EVIL, EVIL)
    lines = reading_lines(reading, 80)
    assert not {letter for line in lines for letter in line if unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")}
    text = json_text(msgspec.to_builtins(row))
    assert text.isascii()
    assert json.loads(text)["test"][1] == [EVIL, EVIL]


@pytest.mark.parametrize("file", ["../t.x", "a/../t.x", "/etc/t.x", "t.x/", "./../t.x", "t.x\u200b", "T.X"])
def test_a_path_that_is_not_the_planned_one_is_foreign(file: str) -> None:
    assert codes(reading_of(suite(PASS, file=file), root="/etc/x")) == {"foreign-tests"}


def test_a_message_that_looks_like_a_report_is_a_message() -> None:
    inner = GREEN.replace("<", "&lt;").replace('"', "&quot;")
    for content in (f"<![CDATA[{GREEN}]]>", inner):
        document = suite(f'<testcase name="b"><failure message="{inner}">{content}</failure></testcase>', 'tests="1"')
        reading = reading_of(document, exit_code=1)
        assert (reading.verdict, [row.test.path for row in reading.cases()]) == ("failed", [("b",)])
    output = "<system-out><![CDATA[<failure/>]]></system-out>"
    hidden = suite(f"<!-- <testcase><failure/></testcase> --><?x <failure/> ?>{PASS}{output}")
    assert reading_of(hidden).verdict == "accepted"


WHOLE = (CASES / "B00" / "report.xml").read_bytes()
PLANNED = ("tests/orders_test.x",)


def test_a_report_that_is_cut_anywhere_is_not_accepted() -> None:
    whole = WHOLE.rstrip()
    assert reading_of(whole, planned=PLANNED).verdict == "accepted"
    assert {reading_of(whole[:length], planned=PLANNED).verdict for length in range(len(whole))} == {"unmeasured"}


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, len(WHOLE)), st.integers(0, 40))
def test_bytes_put_into_a_report_never_raise_and_lose_no_case_unseen(junk: bytes, place: int, dropped: int) -> None:
    reading = reading_of(WHOLE[:place] + junk + WHOLE[place + dropped :], planned=PLANNED)
    if reading.verdict == "accepted":
        # Both cases are still there; what was changed is a name, a time or white space.
        assert sum(1 for _ in reading.cases()) >= 2


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400) | st.text(alphabet="<>/!-?[]&;=\"' testcasuifr0\n", max_size=200).map(str.encode))
def test_any_bytes_are_read_without_an_error(document: bytes) -> None:
    assert reading_of(document).verdict in ("unmeasured", "failed", "accepted")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 500), max_size=20), st.sampled_from(["utf-8", "utf-16"]))
def test_how_a_report_is_cut_into_pieces_makes_no_difference(places: list[int], coded: str) -> None:
    document = suite('<testcase name="日本 ✓"/><testcase name="b"><failure>é\u1234</failure></testcase>').encode(coded)
    edges = sorted({0, len(document), *(place for place in places if place < len(document))})
    chunks = [document[start:end] for start, end in pairwise(edges)]
    reading = read_reports([Report("r", chunks)], ended(1), Expectations(planned=("t.x",)))
    assert list(reading.cases()) == list(reading_of(document, exit_code=1).cases())
    assert (reading.verdict, len(list(reading.cases()))) == ("failed", 2)
