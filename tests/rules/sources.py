"""The repository's own source files, read as text and as syntax trees, for the rules to look at."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT_ROOMS = ("ledger", "projections", "commands")
ROOMS = (*PRODUCT_ROOMS, "tests", "scripts")


@dataclass(frozen=True)
class Source:
    """One Python file: its path from the root, and its text."""

    path: str
    text: str

    @property
    def module(self) -> str:
        """The dotted name under which the file is imported; a package has the name of its folder."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def is_package(self) -> bool:
        """Whether the file is a package's `__init__.py`."""
        return self.path.endswith("/__init__.py")

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the text."""
        return ast.parse(self.text, self.path)


@dataclass(frozen=True)
class Violation:
    """One broken rule, with the place where it is broken."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Import:
    """One imported name: `module` is where it is taken from, `name` what is taken (empty: all of it)."""

    line: int
    module: str
    name: str = ""

    @property
    def full(self) -> str:
        """The whole dotted name, whether its last part is a module or something inside one."""
        return f"{self.module}.{self.name}" if self.name else self.module


def imports_of(source: Source) -> list[Import]:
    """Every import anywhere in the file, inside functions and type-checking blocks too."""
    return [found for node in ast.walk(source.tree) for found in imports_in(node, source)]


def imports_at_load(source: Source) -> list[Import]:
    """The imports that run when the module is loaded: not those in functions or for type checkers."""

    def loaded(node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for child in ast.iter_child_nodes(node):
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            never = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
            if not (later or never):
                yield from loaded(child)

    return [found for node in loaded(source.tree) for found in imports_in(node, source)]


def imports_in(node: ast.AST, source: Source) -> Iterator[Import]:
    """The imports of one statement, with relative ones resolved; nothing for any other node."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(node.lineno, alias.name)
    elif isinstance(node, ast.ImportFrom):
        package = source.module.split(".") if source.is_package else source.module.split(".")[:-1]
        anchor = package[: len(package) - node.level + 1] if node.level else []
        module = ".".join([*anchor, *([node.module] if node.module else [])])
        for alias in node.names:
            yield Import(node.lineno, module, alias.name)


@cache
def tracked_files() -> tuple[str, ...]:
    """Each file that git tracks or would add, by its path from the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


@cache
def python_sources(*rooms: str) -> tuple[Source, ...]:
    """The Python files of the rooms, in a fixed order."""
    return tuple(
        Source(name, (ROOT / name).read_text(encoding="utf-8"))
        for name in tracked_files()
        if name.endswith(".py") and name.split("/")[0] in rooms
    )


def within(module: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the dotted name is one of the prefixes or lies below one."""
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes)


def listing(violations: list[Violation]) -> str:
    """The violations one a line, as an assertion's message."""
    return "\n".join(["", *map(str, violations)])
