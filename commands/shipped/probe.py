"""Says what the interpreter is that runs this file: prints one JSON document. Python >= 3.8, standard library only.

The document: `python` (version), `implementation`, `platform`, `architecture`, `executable`, `prefix`, `path`
(sys.path), `distributions` (name, version and, for an editable or local installation, where from), `path_entries`
(directories that path-style `.pth` files add), `mappings` (what the finders of editable installations map: module to
file or directory), `local_names` (the top-level modules that are copies of a local directory or archive, and where that
is), `pytest` (its version, "" if it cannot be imported) and `pytest_plugins` (distribution and version
of each).
"""

from __future__ import annotations

import ast
import json
import os
import platform
import re
import site
import sys
from importlib import metadata
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def main() -> None:
    """Print the document, in ASCII and with line feeds, whatever the locale."""
    sys.stdout.write(json.dumps(probe(), sort_keys=True) + "\n")


def probe() -> dict[str, Any]:
    """What this interpreter is and what is installed in it."""
    # The same distribution can be visible twice; the one that comes first on the path is the one in use.
    found = reversed([found for found in metadata.distributions() if found.metadata["Name"]])
    used = {canonical(distribution): distribution for distribution in found}
    installed = [used[name] for name in sorted(used)]
    directories = site_directories()
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": sys.platform,
        "architecture": platform.machine(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "path": [entry for entry in sys.path if entry != os.path.dirname(os.path.abspath(__file__))],
        "distributions": [describe(distribution) for distribution in installed],
        "path_entries": path_entries(directories),
        "mappings": mappings(directories),
        "local_names": local_names(installed),
        "pytest": version_of_pytest(),
        "pytest_plugins": [
            [canonical(distribution), distribution.version]
            for distribution in installed
            if any(entry.group == "pytest11" for entry in distribution.entry_points)
        ],
    }


def canonical(distribution: metadata.Distribution) -> str:
    """The name in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"])).lower()


def describe(distribution: metadata.Distribution) -> list[str]:
    """Name, version, and the local directory or address of one that did not come from an index, else ""."""
    source = ""
    try:
        source = source_of(json.loads(distribution.read_text("direct_url.json") or "{}"))
    except (ValueError, AttributeError):
        source = "unreadable"
    return [canonical(distribution), str(distribution.version), source]


def source_of(direct: dict[str, Any]) -> str:
    """The local path or the address that a `direct_url.json` names, else ""."""
    url = urlsplit(str(direct.get("url", "")))
    return url2pathname(url.path) if url.scheme == "file" else url.geturl()


def local_names(distributions: list[metadata.Distribution]) -> dict[str, str]:
    """The packages and modules that were copied from a local place; not those of editable installations."""
    found: dict[str, str] = {}
    for distribution in distributions:
        try:
            direct = json.loads(distribution.read_text("direct_url.json") or "{}")
            source = source_of(direct)
            editable = direct.get("dir_info", {}).get("editable", False)
        except (ValueError, AttributeError):
            continue
        if os.path.isabs(source) and not editable:
            for file in distribution.files or []:
                package = len(file.parts) == 2 and file.name.startswith("__init__.")
                module = len(file.parts) == 1 and file.suffix in (".py", ".so", ".pyd")
                name = file.parts[0].partition(".")[0]
                if (package or module) and name.isidentifier():
                    found[name] = source
    return found


def site_directories() -> list[str]:
    """The directories whose `.pth` files this interpreter reads."""
    directories = [*site.getsitepackages(), site.getusersitepackages() if site.ENABLE_USER_SITE else ""]
    return [directory for directory in dict.fromkeys(directories) if directory and directory in sys.path]


def files_in(directory: str, prefix: str, suffix: str) -> list[tuple[str, str]]:
    """Name and text of the readable files of this form, in the order of names."""
    files = []
    for name in sorted(os.listdir(directory)):
        if name.startswith(prefix) and name.endswith(suffix):
            try:
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    files.append((name, file.read()))
            except (OSError, UnicodeDecodeError):
                continue
    return files


def path_entries(directories: list[str]) -> list[str]:
    """The existing directories that `.pth` files name, in order."""
    entries = []
    for directory in directories:
        for _, text in files_in(directory, "", ".pth"):
            for line in text.splitlines():
                if line.strip() and not line.startswith(("#", "import ", "import\t")):
                    entries.append(os.path.abspath(os.path.join(directory, line.rstrip())))
    return [entry for entry in dict.fromkeys(entries) if os.path.isdir(entry)]


def mappings(directories: list[str]) -> dict[str, str]:
    """What the `__editable__` finders of PEP 660 installations map, read without running them."""
    found: dict[str, str] = {}
    for directory in directories:
        for name, text in files_in(directory, "__editable__", ".py"):
            for node in parsed(text, name):
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                if any(isinstance(target, ast.Name) and target.id == "MAPPING" for target in targets):
                    found.update(literal(node.value))
    return found


def parsed(text: str, name: str) -> list[Any]:
    """The statements of a file; none if it is not Python."""
    try:
        return list(ast.parse(text, name).body)
    except (SyntaxError, ValueError):
        return []


def literal(value: Any) -> dict[str, str]:
    """A dictionary of strings that is written out in full; empty for anything else."""
    try:
        mapping = dict(ast.literal_eval(value))
    except (TypeError, ValueError):
        return {}
    return {str(key): str(target) for key, target in mapping.items()}


def version_of_pytest() -> str:
    """The version of pytest, "" if this interpreter does not have it."""
    if find_spec("pytest") is None:
        return ""
    try:
        return metadata.version("pytest")
    except metadata.PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    main()
