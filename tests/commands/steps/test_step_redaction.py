"""Secrets in a stream: no cut lets one through, in none of its forms, and nothing else is touched or withheld."""

import base64
import html
import json
import textwrap
import time
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.shipped.redaction import PIECE_CHARACTERS, Redactor

TOKEN = "tok/en+ ~ÿ?>?ü:end".encode()
LONG = "s3cret&pass<word>-'long'-\"enough\"-to-be-broken-into-lines-0123456789-é$x".encode()


def redacted(data: bytes, secrets: dict[str, bytes], *cuts: int) -> bytes:
    """The stream `data`, handed over in pieces."""
    redactor = Redactor(secrets)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    told = b"".join(redactor.take(data[begin:end]) for begin, end in pairwise(edges))
    return told + redactor.take(b"", last=True)


@pytest.mark.parametrize(
    "form",
    [
        TOKEN,
        base64.b64encode(TOKEN),
        base64.urlsafe_b64encode(TOKEN),
        quote(TOKEN, safe="").encode(),
        quote(TOKEN, safe="").lower().encode(),
        quote(TOKEN).encode(),
        quote_plus(TOKEN).encode(),
        TOKEN.hex().encode(),
        TOKEN.hex().upper().encode(),
        html.escape(TOKEN.decode()).encode(),
    ],
    ids=["plain", "base64", "base64url", "url", "lower-url", "path", "form", "hex", "upper-hex", "html"],
)
def test_each_form_is_replaced_wherever_the_stream_is_cut(form: bytes) -> None:
    stream = b"before " + form + b" after\n"
    for cut in range(len(stream)):
        told = redacted(stream, {"TOKEN": TOKEN}, cut)
        assert told == b"before [secret TOKEN] after\n", cut


def hexdump(value: bytes) -> bytes:
    """As `xxd -p` prints it."""
    return "\n".join(textwrap.wrap(value.hex(), 60)).encode() + b"\n"


def openssl(value: bytes) -> bytes:
    """As `openssl base64` prints it."""
    return "\n".join(textwrap.wrap(base64.b64encode(value).decode(), 64)).encode() + b"\n"


PROGRAMS: dict[str, Callable[[bytes], bytes]] = {
    "xxd": hexdump,
    "xxd -u": lambda value: hexdump(value).upper(),
    "base64": base64.encodebytes,
    "mime": lambda value: base64.encodebytes(value).replace(b"\n", b"\r\n"),
    "base64url": lambda value: base64.encodebytes(value).translate(bytes.maketrans(b"+/", b"-_")),
    "openssl": openssl,
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("end", [b"", b"\n"], ids=["alone", "line"])
def test_an_encoding_that_is_broken_into_lines_is_replaced_to_its_last_character_wherever_the_stream_is_cut(
    program: str, end: bytes
) -> None:
    stream = b"begin\n" + (printed := PROGRAMS[program](LONG + end)) + b"end\n"
    assert printed.count(b"\n") > 1
    line_break = b"\r\n" if program == "mime" else b"\n"
    for cut in range(len(stream)):
        assert redacted(stream, {"LONG": LONG}, cut) == b"begin\n[secret LONG]" + line_break + b"end\n", cut


@pytest.mark.parametrize("program", PROGRAMS)
@given(st.binary(min_size=8, max_size=200), st.sampled_from([b"", b"\n"]), st.lists(st.integers(0), max_size=6))
def test_of_an_encoding_whose_lines_stand_apart_no_line_is_left_that_could_tell_something(
    program: str, value: bytes, end: bytes, cuts: list[int]
) -> None:
    secret = b"<" + value + b">"
    lines = PROGRAMS[program](secret + end).splitlines()
    told = redacted(b"".join(b"12:00 | " + line + b"\n" for line in lines), {"S": secret}, *cuts).splitlines()
    for line, instead in zip(lines, told, strict=True):
        kept = line if len(line) < PIECE_CHARACTERS else b"[secret S]"
        assert instead in (b"12:00 | " + kept, b"12:00 | [secret S]")


@pytest.mark.parametrize(
    "text",
    [
        html.escape(LONG.decode()),
        html.escape(LONG.decode(), quote=False),
        html.escape(LONG.decode()).replace("&#x27;", "&#39;"),
        html.escape(LONG.decode()).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
        html.escape(LONG.decode()).replace("&#x27;", "&apos;"),
        html.escape(LONG.decode()).replace("&#x27;", "'"),
        html.escape(LONG.decode(), quote=False).replace("&gt;", ">"),
    ],
    ids=["python", "text", "php", "go", "xml", "attribute", "bare"],
)
def test_a_secret_inside_of_html_is_replaced_wherever_the_stream_is_cut(text: str) -> None:
    stream = f"<p>{text}</p>\n".encode()
    for cut in range(len(stream)):
        assert redacted(stream, {"LONG": LONG}, cut) == b"<p>[secret LONG]</p>\n", cut


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("angles", ["\\u003c\\u003e", "\\u003C\\u003E", "\\u003c>"])
def test_a_secret_inside_of_json_that_is_safe_in_html_is_replaced_wherever_the_stream_is_cut(
    ascii_only: bool, angles: str
) -> None:
    text = json.dumps(LONG.decode(), ensure_ascii=ascii_only)
    text = text.replace("&", "\\u0026").replace("<", angles[:6]).replace(">", angles[6:])
    assert json.loads(text) == LONG.decode()
    for cut in range(len(text.encode())):
        assert redacted(text.encode(), {"LONG": LONG}, cut) == b'"[secret LONG]"', cut


@pytest.mark.parametrize("user", ["", "u", "us", "use", "user"])
def test_a_secret_inside_of_base64_is_found_wherever_it_begins(user: str) -> None:
    before, after = user.encode() + b":", b"@host"
    stream = b"Authorization: Basic " + base64.b64encode(before + TOKEN + after)
    told = redacted(stream, {"TOKEN": TOKEN})
    left = told.removeprefix(b"Authorization: Basic ").split(b"[secret TOKEN]")
    assert len(left) == 2
    # What is left of it is in the characters that it shares with its neighbours: less than one at each side.
    assert [len(part.rstrip(b"=")) for part in left] == [-(-len(before) * 8 // 6), left_after(before, after)]


def left_after(before: bytes, after: bytes) -> int:
    """How many characters of Base64 hold at least one bit of what is after the token."""
    return -(-len(before + TOKEN + after) * 8 // 6) - len(before + TOKEN) * 8 // 6


@pytest.mark.parametrize("secret", ['pa"ss\\word', "päss wörd", "two\nlines of it", "😀" * 4])
def test_a_secret_inside_of_json_is_found(secret: str) -> None:
    for ascii_only in (True, False):
        stream = json.dumps({"outcome": "ok", "said": secret}, ensure_ascii=ascii_only).encode()
        told = redacted(stream, {"PASSWORD": secret.encode()})
        assert json.loads(told) == {"outcome": "ok", "said": "[secret PASSWORD]"}


def test_each_line_of_a_key_is_a_secret_and_its_short_lines_are_not() -> None:
    key = b"-----BEGIN KEY-----\nAAAABBBBCCCC\r\nDDDDEEEEFFFF\nend\n-----END KEY-----\n"
    told = redacted(b"x AAAABBBBCCCC y\nz DDDDEEEEFFFF\nthe end\n" + key, {"KEY": key})
    assert told == b"x [secret KEY] y\nz [secret KEY]\nthe end\n[secret KEY]\n"


def test_a_short_secret_is_replaced_as_it_is_only() -> None:
    assert redacted(b"pin 4711 " + base64.b64encode(b"4711"), {"PIN": b"4711"}) == b"pin [secret PIN] NDcxMQ=="


def test_an_empty_secret_hides_nothing() -> None:
    assert redacted(b"all of it\n", {"A": b"", "B": b" \n"}) == b"all of it\n"


def test_the_longer_of_two_secrets_that_begin_alike_is_replaced_as_a_whole() -> None:
    secrets = {"SHORT": b"abcdefgh", "LONG": b"abcdefghij"}
    for cut in range(14):
        assert redacted(b"<abcdefghij>", secrets, cut) == b"<[secret LONG]>"
        assert redacted(b"<abcdefghi>", secrets, cut) == b"<[secret SHORT]i>"


def test_nothing_is_held_back_that_cannot_be_the_beginning_of_a_secret() -> None:
    redactor = Redactor({"TOKEN": b"secret-value"})
    assert redactor.take(b'{"outcome":"ok"}\n') == b'{"outcome":"ok"}\n'
    assert redactor.take(b"a secret-va") == b"a "
    assert redactor.take(b"cation\n") == b"secret-vacation\n"
    assert redactor.take(b"secret-val") == b""
    assert redactor.take(b"", last=True) == b"secret-val"


ALPHABET = st.lists(st.sampled_from([b"a", b"b", b"ab"]), max_size=12).map(b"".join)


@given(ALPHABET, st.dictionaries(st.sampled_from("XYZ"), ALPHABET, max_size=3), st.lists(st.integers(0), max_size=6))
def test_cuts_change_nothing(stream: bytes, secrets: dict[str, bytes], cuts: list[int]) -> None:
    in_pieces = redacted(stream, secrets, *cuts)
    assert in_pieces == redacted(stream, secrets)
    assert in_pieces == by_hand(stream, secrets)


def by_hand(stream: bytes, secrets: dict[str, bytes]) -> bytes:
    """From the left, the longest form at each place."""
    names = Redactor(secrets)._names
    told, position = b"", 0
    while position < len(stream):
        here = [form for form in names if stream.startswith(form, position)]
        longest = max(here, key=len, default=None)
        told += stream[position : position + 1] if longest is None else names[longest]
        position += 1 if longest is None else len(longest)
    return told


def test_a_long_stream_is_read_in_a_time_that_fits_a_build() -> None:
    key = b"\n".join(b"%064x" % number for number in range(60))
    redactor = Redactor({"KEY": key, "TOKEN": TOKEN})
    chunk = b"0123456789abcdef the output of a compiler\n" * 1560
    began = time.perf_counter()
    told = sum(len(redactor.take(chunk)) for _ in range(160))
    assert told >= 159 * len(chunk)
    # Ten megabytes; a hundredth of this is usual.
    assert time.perf_counter() - began < 20
