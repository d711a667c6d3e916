"""Each room's README lists the room's files under its heading "Files", and nothing that does not exist."""

import re

import pytest

from tests.rules.sources import ROOMS, ROOT, tracked_files

HEADING = re.compile(r"^(#+)\s+(.*?)\s*$")
ENTRY = re.compile(r"^\s*(?:[-*]|\|)\s*`([^`]+)`")


def listed_files(readme: str) -> list[str]:
    """The entries of the section "Files": list items and table rows that begin with a path in backquotes.

    A path is relative to the room. One that ends in `/` stands for everything in a folder of data.
    """
    entries = []
    level_of_section = 0
    for line in readme.splitlines():
        if heading := HEADING.match(line):
            level = len(heading[1])
            if heading[2] == "Files":
                level_of_section = level
            elif level <= level_of_section:
                level_of_section = 0
        elif level_of_section and (entry := ENTRY.match(line)):
            entries.append(entry[1])
    return entries


def differences(entries: list[str], files: set[str]) -> list[str]:
    """What the list and the folder do not agree about, one sentence each.

    A package's `__init__.py` need not be listed; a folder may stand for its files when none is Python code.
    """
    found = []
    for entry in entries:
        if entry.endswith("/"):
            inside = {file for file in files if file.startswith(entry)}
            if not inside:
                found.append(f"`{entry}` is listed and does not exist")
            elif any(file.endswith(".py") for file in inside):
                found.append(f"`{entry}` holds Python code, which is listed file by file")
        elif entry not in files:
            found.append(f"`{entry}` is listed and does not exist")
    folders = tuple(entry for entry in entries if entry.endswith("/"))
    for file in sorted(files):
        name = file.rpartition("/")[2]
        if name not in ("README.md", "__init__.py") and file not in entries and not file.startswith(folders):
            found.append(f"`{file}` is not listed")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_the_readme_lists_what_is_there(room: str) -> None:
    files = {name.removeprefix(f"{room}/") for name in tracked_files() if name.startswith(f"{room}/")}
    assert "README.md" in files, f"{room}/ has no README.md"
    found = differences(listed_files((ROOT / room / "README.md").read_text(encoding="utf-8")), files)
    assert not found, "\n".join([f"{room}/README.md, section Files:", *found])


def test_entries_are_read_from_lists_and_tables_of_the_section_only() -> None:
    readme = """
# Room
- `outside.py` is no entry

## Files
- `record.py`: the header, see `other.py`
| `store/api.py` | the interface |
| file | what it is |
### Below
* `events/gate.py` one topic
## Next
- `after.py`
"""
    assert listed_files(readme) == ["record.py", "store/api.py", "events/gate.py"]


def test_differences_are_found_both_ways() -> None:
    files = {"README.md", "__init__.py", "record.py", "store/api.py", "reports/one.xml", "reports/two.xml"}
    assert differences(["record.py", "store/api.py", "reports/"], files) == []
    assert differences(["gone.py", "empty/", "store/", "reports/one.xml"], files) == [
        "`gone.py` is listed and does not exist",
        "`empty/` is listed and does not exist",
        "`store/` holds Python code, which is listed file by file",
        "`record.py` is not listed",
        "`reports/two.xml` is not listed",
    ]
