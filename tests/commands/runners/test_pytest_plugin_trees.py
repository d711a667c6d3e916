"""A session proves that it tested its own tree: code from anywhere else makes it unmeasured."""

import subprocess
import textwrap
from pathlib import Path

import msgspec
import pytest

from commands.config.settings import RunnerSettings
from commands.runners import pytest as adapter
from tests.commands.runners.sessions import PYTHON, Project, outcomes

pytestmark = pytest.mark.real

GOOD = "def answer():\n    return 42\n"
REGRESSION = "def answer():\n    return 41\n"
TEST = "from product import answer\ndef test_answer():\n    assert answer() == 42\n"
OPTIONS = {"first_party": ("product",)}

FINDER = """
import importlib.util
import sys

MAPPING: dict = {mapping!r}

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return importlib.util.spec_from_file_location(name, MAPPING[name] + "/__init__.py")

def install():
    sys.meta_path.append(Finder)
"""


class Environment:
    """A virtual environment that can also import what the interpreter of the sessions can."""

    def __init__(self, directory: Path) -> None:
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", directory], check=True, timeout=120)
        self.python = directory / "bin" / "python"
        self.packages = Path(self._printed(self.python))
        (self.packages / "outer.pth").write_text(self._printed(PYTHON) + "\n")

    def _printed(self, python: Path) -> str:
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        return subprocess.run(
            [python, "-c", code], check=True, timeout=60, capture_output=True, text=True
        ).stdout.strip()

    def probe(self) -> adapter.Probe:
        """What the interpreter says of itself."""
        answer = subprocess.run([self.python, adapter.PROBE], check=True, timeout=60, capture_output=True)
        return msgspec.json.decode(answer.stdout, type=adapter.Probe)

    def install_by_path(self, source: Path) -> None:
        """As an editable installation of the path style does."""
        (self.packages / "__editable__.product-1.pth").write_text(f"{source}\n")

    def install_by_finder(self, source: Path) -> None:
        """As an editable installation with a finder does."""
        finder = FINDER.format(mapping={"product": str(source / "product")})
        (self.packages / "__editable___product_1_finder.py").write_text(finder)
        hook = "import __editable___product_1_finder; __editable___product_1_finder.install()\n"
        (self.packages / "__editable__.product-1.pth").write_text(hook)


@pytest.fixture(scope="module")
def environment_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the virtual environment is made."""
    return tmp_path_factory.mktemp("environment") / "venv"


@pytest.fixture(scope="module")
def environment(environment_directory: Path) -> Environment:
    """One virtual environment for all tests; each test replaces the editable installation."""
    return Environment(environment_directory)


def write(place: Path, name: str, text: str) -> None:
    """Write a file and the directories that lead to it."""
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(textwrap.dedent(text), "utf-8")


def product(directory: Path, python: Path = PYTHON) -> Project:
    """A project with a `src` layout: the user's checkout is good, the tree under test has a regression."""
    project = Project(directory, python)
    for place, source in ((project.checkout, GOOD), (project.tree, REGRESSION), (project.other_tree, GOOD)):
        write(place, "src/product/__init__.py", source)
        write(place, "tests/test_product.py", TEST)
    return project


@pytest.mark.parametrize("style", ["path", "finder"])
def test_an_editable_installation_of_the_checkout_cannot_hide_a_regression(
    tmp_path: Path, environment: Environment, style: str
) -> None:
    project = product(tmp_path, environment.python)
    install = environment.install_by_path if style == "path" else environment.install_by_finder
    install(project.checkout / "src")
    tracked = ("src/product/__init__.py", "tests/test_product.py")

    blind = project.collect(**OPTIONS)
    assert blind.cause == "wrong-tree"
    assert "product from" in blind.detail
    assert blind.targets == ()

    paths = adapter.import_paths(RunnerSettings(), tracked, environment.probe(), project.checkout)
    assert paths == ("src",)
    inventory = project.inventory(import_paths=paths, **OPTIONS)
    without_paths = project.run(inventory=inventory, **OPTIONS)
    assert (without_paths.cause, without_paths.measured_targets) == ("wrong-tree", 0)
    assert outcomes(without_paths) == {"tests/test_product.py::test_answer": "passed"}

    reading = project.run(inventory=inventory, import_paths=paths, **OPTIONS)
    assert reading.complete, (reading.detail, project.log)
    assert outcomes(reading) == {"tests/test_product.py::test_answer": "failed"}


def test_a_checkout_that_is_a_package_in_a_monorepo_is_found_where_it_is(
    tmp_path: Path, environment: Environment
) -> None:
    project = Project(tmp_path, environment.python)
    for place, source in ((project.checkout, GOOD), (project.tree, REGRESSION)):
        write(place, "packages/one/lib/product/__init__.py", source)
        write(place, "packages/one/tests/test_product.py", TEST)
    environment.install_by_path(project.checkout / "packages" / "one" / "lib")
    tracked = ("packages/one/lib/product/__init__.py", "packages/one/tests/test_product.py")
    paths = adapter.import_paths(RunnerSettings(), tracked, environment.probe(), project.checkout)
    assert paths == ("packages/one/lib",)
    reading = project.run(import_paths=paths, **OPTIONS)
    assert outcomes(reading) == {"packages/one/tests/test_product.py::test_answer": "failed"}
    assert project.collect().cause == "wrong-tree"


def test_an_installed_copy_of_the_product_is_the_wrong_tree(tmp_path: Path) -> None:
    project = product(tmp_path)
    write(tmp_path, "somewhere/site-packages/product/__init__.py", GOOD)
    reading = project.collect(import_paths=(str(tmp_path / "somewhere/site-packages"),), **OPTIONS)
    assert reading.cause == "wrong-tree"


def test_code_of_the_other_side_is_the_wrong_tree_whatever_its_name(tmp_path: Path) -> None:
    project = product(tmp_path)
    write(project.other_tree, "src/helper.py", "VALUE = 1")
    project.write({"tests/test_product.py": "import helper\ndef test_it(): pass"})
    reading = project.collect(import_paths=(str(project.other_tree / "src"),))
    assert reading.cause == "wrong-tree"
    assert "helper from" in reading.detail


def test_what_is_installed_in_the_checkouts_own_environment_is_not_the_checkout(tmp_path: Path) -> None:
    project = product(tmp_path)
    write(project.checkout, ".venv/lib/python3/site-packages/library.py", "VALUE = 1")
    project.write({"tests/test_product.py": "import library\ndef test_it(): pass"})
    options = {"import_paths": (str(project.checkout / ".venv/lib/python3/site-packages"),), **OPTIONS}
    assert project.run(**options).complete


def test_an_import_that_only_a_test_makes_is_found_in_the_worker_that_makes_it(tmp_path: Path) -> None:
    project = product(tmp_path)
    project.write(
        {
            "tests/test_product.py": "def test_late():\n    import product\ndef test_b(): pass",
            "tests/test_other.py": "def test_c(): pass",
        }
    )
    inventory = project.inventory(**OPTIONS)
    for arguments in ((), ("-n", "2")):
        reading = project.run(
            inventory=inventory, import_paths=(str(project.checkout / "src"),), arguments=arguments, **OPTIONS
        )
        assert (reading.cause, reading.measured_targets) == ("wrong-tree", 0), project.log


def test_a_partial_record_already_tells_of_the_wrong_tree(tmp_path: Path) -> None:
    project = product(tmp_path)
    project.write(
        {
            "tests/test_a.py": "def test_late():\n    import product",
            "tests/test_b.py": "def test_b(): pass",
            "tests/test_product.py": "def test_c(): pass",
        }
    )
    inventory = project.inventory(**OPTIONS)
    project.write({"tests/test_b.py": "import os\ndef test_b(): os._exit(0)"})
    reading = project.run(inventory=inventory, import_paths=(str(project.checkout / "src"),), **OPTIONS)
    assert (reading.cause, reading.measured_targets) == ("wrong-tree", 0)


def test_a_tree_that_is_reached_by_a_link_is_the_tree(tmp_path: Path) -> None:
    project = product(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(project.tree)
    project.tree = link
    reading = project.run(import_paths=("src",), **OPTIONS)
    assert reading.complete, (reading.cause, reading.detail, project.log)
    assert outcomes(reading) == {"tests/test_product.py::test_answer": "failed"}


def test_a_link_in_the_tree_that_leads_out_of_it_is_the_wrong_tree(tmp_path: Path) -> None:
    project = product(tmp_path)
    (project.tree / "lib").mkdir()
    (project.tree / "lib" / "product").symlink_to(project.checkout / "src" / "product")
    assert project.collect(import_paths=("lib",), **OPTIONS).cause == "wrong-tree"


def test_a_checkout_inside_of_an_environment_is_still_the_checkout(tmp_path: Path) -> None:
    """In a container the code is often below the prefix of the interpreter."""
    project = product(tmp_path)
    project.write(
        {
            "sitecustomize.py": f"import sys\nsys.prefix = {str(tmp_path)!r}\n",
            "tests/test_product.py": "import product\ndef test_it(): pass",
        }
    )
    reading = project.collect(import_paths=(str(project.checkout / "src"), "."))
    assert reading.cause == "wrong-tree"


def test_modules_that_load_themselves_late_are_left_asleep(tmp_path: Path) -> None:
    project = product(tmp_path)
    project.write(
        {
            "lazily.py": "raise RuntimeError('woken up')",
            "tests/test_product.py": """
                import importlib.util, sys

                def put_asleep(name):
                    spec = importlib.util.find_spec(name)
                    spec.loader = importlib.util.LazyLoader(spec.loader)
                    module = importlib.util.module_from_spec(spec)
                    sys.modules[name] = module
                    spec.loader.exec_module(module)

                put_asleep("lazily")
                sys.modules["odd"] = 5

                def test_it(): pass
                """,
        }
    )
    reading = project.run(first_party=("product", "lazily", "odd"), import_paths=(".",))
    assert reading.complete, (reading.detail, project.log)


def test_the_plug_in_itself_may_come_from_the_checkout(tmp_path: Path) -> None:
    """The ledger's own project is gated from its own checkout."""
    project = Project(tmp_path)
    project.write({"test_a.py": "def test_a(): pass"})
    project.checkout = adapter.PLUGIN_DIRECTORY
    assert project.run(first_party=("release_ledger_pytest",)).complete
