"""What the commands about releases print with --json is what their schemas say."""

import json
from pathlib import Path

import msgspec
import pytest

from commands.cli.data.schemas import everything_described
from tests.commands.releasing.projects import BROKEN, ReleaseProject

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_every_document_is_of_its_type_all_the_way_down(tmp_path: Path) -> None:
    types = {one.name: one.type for one in everything_described()}
    project = ReleaseProject.with_steps(tmp_path, BROKEN)
    printed = {
        "release-check": ("release", "check"),
        "release-start": ("release", "start", "1.1.0", "--branch", "--dry-run"),
        "release": ("release", "start", "1.1.0", "--branch"),
        "release-list": ("release", "list"),
        "release-plan": ("resume", "1.1.0", "--from", "gate", "--dry-run"),
        "archives": ("archives", "1.1.0"),
    }
    for name, command in printed.items():
        document = json.loads(project.ledger(*command, "--json").out)
        assert json.loads(msgspec.json.encode(msgspec.convert(document, types[name]))) == document, name
    landed = project.land({"thing.txt": "mended\n"})
    repaired = json.loads(project.ledger("release", "repair", "1.1.0", "--pick", landed, "--json").out)
    assert json.loads(msgspec.json.encode(msgspec.convert(repaired, types["release-repair"]))) == repaired
