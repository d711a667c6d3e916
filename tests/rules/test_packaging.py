"""What is installed is what is declared: versions, locked requirements, the content of the wheel."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import ledger
from tests.rules.sources import PRODUCT_ROOMS, ROOT, tracked_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
DEVELOPMENT = [Requirement(line) for line in PROJECT["dependency-groups"]["dev"]]
LOCK_FILES = ("requirements.lock", "requirements-dev.lock")

PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>[^\\]+?))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")
# Only the machine on which something was written has these folders.
PRIVATE_PLACE = re.compile(r"(?<![\w.~$}/-])/(?:home|root|work|Users)/")


def pins_of(lock: str) -> dict[str, Version]:
    """The pinned version of each distribution of a lock file; any line but a pin or a hash is refused."""
    pins: dict[str, Version] = {}
    hashes: dict[str, int] = {}
    current = ""
    for number, line in enumerate(lock.splitlines(), start=1):
        if pin := PIN.match(line):
            current = pin["name"]
            assert current not in pins, f"line {number} pins {current} again"
            pins[current] = Version(pin["version"])
            hashes[current] = 0
        else:
            assert HASH.match(line), f"line {number} is neither a pin nor a hash: {line}"
            hashes[current] += 1
    without = [name for name, count in hashes.items() if count == 0]
    assert not without, f"pinned without a hash: {without}"
    return pins


def private_places(text: str) -> list[str]:
    """The lines that name a folder of somebody's own machine."""
    return [line.strip() for line in text.splitlines() if PRIVATE_PLACE.search(line)]


@pytest.fixture(scope="module")
def pins() -> dict[str, dict[str, Version]]:
    """The pins of each lock file."""
    return {name: pins_of((ROOT / name).read_text()) for name in LOCK_FILES}


def test_the_versions_agree() -> None:
    assert ledger.__version__ == PROJECT["project"]["version"]


@pytest.mark.parametrize(
    ("lock_file", "requirement"),
    [
        *(("requirements.lock", requirement) for requirement in RUNTIME),
        *(("requirements-dev.lock", requirement) for requirement in (*RUNTIME, *DEVELOPMENT)),
    ],
    ids=lambda value: value.name if isinstance(value, Requirement) else value,
)
def test_each_declared_requirement_is_locked(
    pins: dict[str, dict[str, Version]], lock_file: str, requirement: Requirement
) -> None:
    pinned = pins[lock_file].get(canonicalize_name(requirement.name))
    assert pinned is not None, f"{lock_file} does not pin {requirement.name}"
    assert requirement.specifier.contains(pinned), f"{lock_file} pins {pinned}, which is not {requirement}"


def test_development_runs_on_the_versions_that_users_get(pins: dict[str, dict[str, Version]]) -> None:
    runtime, development = (pins[name] for name in LOCK_FILES)
    assert {name: development.get(name) for name in runtime} == runtime


def test_the_build_backend_is_locked(pins: dict[str, dict[str, Version]]) -> None:
    for requirement in map(Requirement, PROJECT["build-system"]["requires"]):
        assert requirement.specifier.contains(pins["requirements-dev.lock"][requirement.name])


def test_the_rooms_hold_nothing_that_the_wheel_would_leave_out() -> None:
    inside = [name for name in tracked_files() if name.split("/")[0] in PRODUCT_ROOMS]
    packed = [
        f"{room}/{name}" for room, names in PROJECT["tool"]["setuptools"]["package-data"].items() for name in names
    ]
    assert [name for name in inside if not name.endswith((".py", "README.md"))] == packed


def test_no_file_names_a_private_place() -> None:
    # Reports of other programs are kept as they wrote them, with the places of the machine that they ran on.
    ours = [name for name in tracked_files() if not name.startswith("tests/junit/real/")]
    texts = {name: (ROOT / name).read_bytes().decode("utf-8", errors="replace") for name in ours}
    found = {name: lines for name, text in texts.items() if (lines := private_places(text))}
    assert found == {}


def test_a_private_place_is_found() -> None:
    assert private_places("a\ncache = '" + "/ro" + "ot/.cache'\nb") == ["cache = '" + "/ro" + "ot/.cache'"]
    assert private_places("usr/home/thing $HOME/root/x https://example.invalid/home/x") == []


PINNED = f"click==8.2.0 \\\n    --hash=sha256:{'0' * 64}\n"


def test_a_sound_lock_file_is_read() -> None:
    windows = f"colorama==0.4.6 ; sys_platform == 'win32' \\\n    --hash=sha256:{'1' * 64}\n"
    assert pins_of(PINNED + windows) == {"click": Version("8.2.0"), "colorama": Version("0.4.6")}


@pytest.mark.parametrize(
    "text",
    [
        "click==8.2.0\n",
        "click==8.2.0 \\\n",
        "click>=8.2.0 \\\n    --hash=sha256:00\n",
        PINNED + PINNED,
        "--index-url https://registry.example.invalid/simple\n" + PINNED,
        PINNED + "--find-links wheels\n",
    ],
)
def test_an_unsound_lock_file_is_refused(text: str) -> None:
    with pytest.raises(AssertionError, match=r"line|hash"):
        pins_of(text)
