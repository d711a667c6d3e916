"""Where a case belongs: from its attributes and the suites around it to a target and the names within it."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from commands.readers.junit.counts import Suite
from commands.readers.junit.dialects import Dialect, Source

_FILES: tuple[Source, ...] = ("file", "suite-file", "class-file")


class Place(Struct, frozen=True):
    """A target, whether it is planned, and the names around a case within it. Without a target nobody can tell.

    `file` is how the report itself writes the file that is the target, "" where it names none.
    """

    target: str | None
    planned: bool
    names: tuple[str, ...] = ()
    file: str = ""


class Locator:
    """Finds the places of the cases of one attempt."""

    def __init__(self, dialect: Dialect, planned: Iterable[str], root: str) -> None:
        self._dialect = dialect
        self._planned = frozenset(planned)
        self._root = root.rstrip("/") + "/" if root else ""
        self._modules = _unique_modules(self._planned)

    def place(self, file: str, class_name: str, name: str, suites: Sequence[Suite]) -> Place:
        """The place of a case, by its `file`, `classname` and `name` and the suites around it, outermost first."""
        # A module that cannot be collected is a case without a class, named as the module.
        dotted = class_name or name
        for source in (*self._dialect.certain, *self._dialect.planned):
            text = self._text(source, file, class_name, dotted, suites)
            if not text:
                continue
            target = self._target(source, text)
            if target in self._planned or source in self._dialect.certain:
                names = self._names(target, class_name, suites)
                return Place(target, target in self._planned, names, text if source in _FILES else "")
        return Place(None, False, (class_name,) if class_name else ())

    def suite_target(self, suites: Sequence[Suite]) -> str | None:
        """The planned target that a suite itself stands for, if any."""
        for suite in reversed(suites):
            for text in (suite.file, suite.name):
                target = self._path(text)
                if target in self._planned:
                    return target
        return None

    def _text(self, source: Source, file: str, class_name: str, dotted: str, suites: Sequence[Suite]) -> str:
        match source:
            case "file":
                return file
            case "suite-file":
                return next((suite.file for suite in reversed(suites) if suite.file), "")
            case "suite-name":
                return self._suite_name(suites)
            case "module":
                return dotted
            case _:
                return class_name

    def _suite_name(self, suites: Sequence[Suite]) -> str:
        """The name of the nearest suite that is planned, else of the nearest that has a name."""
        names = [suite.name for suite in reversed(suites) if suite.name]
        return next((name for name in names if self._path(name) in self._planned), names[0] if names else "")

    def _target(self, source: Source, text: str) -> str:
        match source:
            case "class":
                return self._class(text)
            case "class-prefix":
                return text.partition(".")[0]
            case "module":
                return self._module_target(text)
            case _:
                return self._path(text)

    def _path(self, text: str) -> str:
        """A path as the plan writes it. Only what cannot change its meaning is done to it."""
        if text in self._planned:
            return text
        path = text.removeprefix(self._root) if self._root else text
        while path.startswith("./"):
            path = path[2:]
        turned = path.replace("\\", "/")
        return turned if turned in self._planned else path

    def _class(self, text: str) -> str:
        """A planned class: this one, or the nearest class around it."""
        outer = text
        while outer not in self._planned and "$" in outer:
            outer = outer.rpartition("$")[0]
        return outer if outer in self._planned else text

    def _module_target(self, dotted: str) -> str:
        """The planned file whose module begins the dotted name; nobody knows which when there are two."""
        parts = dotted.split(".")
        prefixes = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        found = [self._modules[prefix] for prefix in prefixes if prefix in self._modules]
        return found[0] if len(found) == 1 else dotted

    def _names(self, target: str, class_name: str, suites: Sequence[Suite]) -> tuple[str, ...]:
        match self._dialect.names:
            case "suites-and-name":
                inside = [suite.name for suite in suites if suite.name][1:]
                names = tuple(name for name in inside if self._path(name) != target)
                return names or ((class_name,) if class_name and self._path(class_name) != target else ())
            case "nested-class":
                rest = class_name[len(target) :] if class_name.startswith(target) else ""
                return tuple(part for part in rest.split("$") if part)
            case "python":
                return _classes(module_of(target), class_name)
            case "class-and-name":
                return (class_name,) if class_name and self._path(class_name) != target else ()
            case _:
                return ()


def module_of(target: str) -> str:
    """The dotted module of a Python file."""
    return target.removesuffix(".py").replace("/", ".")


def _unique_modules(planned: frozenset[str]) -> dict[str, str]:
    modules: dict[str, list[str]] = {}
    for target in planned:
        modules.setdefault(module_of(target), []).append(target)
    return {module: targets[0] for module, targets in modules.items() if len(targets) == 1}


def _classes(module: str, class_name: str) -> tuple[str, ...]:
    """The Python classes in a dotted `classname` after its module."""
    if class_name == module or not class_name:
        return ()
    if class_name.startswith(module + "."):
        return tuple(class_name[len(module) + 1 :].split("."))
    return (class_name,)
