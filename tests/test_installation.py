"""Errors for a Python that is too old, and for packages that are not installed.

`.ci/run` checks the same with the built wheel, in an environment without extras.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from cudart_py import version
from cudart_py.__main__ import main

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLD_PYTHON = "import sys; sys.version_info = (3, 10, 13, 'final', 0)\n"
RUN_THE_TOUR = "import runpy; runpy.run_module('library_tour', run_name='__main__')"
# `python -m cudart_py` and `python -m library_tour` import these modules before Python's version is checked.
FIRST_MODULES = (
    "cudart_py/__init__.py",
    "cudart_py/version.py",
    "library_tour/__init__.py",
    "library_tour/__main__.py",
)


def test_the_oldest_python_is_that_of_the_project():
    oldest = ".".join(map(str, version._OLDEST_PYTHON))
    assert PROJECT["requires-python"].split(",")[0] == f">={oldest}"


@pytest.mark.parametrize("module", FIRST_MODULES)
def test_an_older_python_can_parse_what_it_imports_first(module):
    ast.parse((ROOT / module).read_text(encoding="utf-8"), feature_version=(3, 10))


def test_the_version_is_the_first_module_that_the_package_imports():
    body = ast.parse((ROOT / "cudart_py" / "__init__.py").read_text(encoding="utf-8")).body
    first = next(node for node in body if isinstance(node, ast.ImportFrom) and node.level)
    assert (first.module, first.names[0].name) == (None, "version")


def test_the_package_tells_an_older_python_what_it_needs(python):
    said = python(f"{OLD_PYTHON}import cudart_py", check=False, own_imports=True).stderr.splitlines()[-1]
    assert re.match(r"ImportError: .*3\.11.*3\.10\.13.*uv run", said)


def test_the_tour_tells_an_older_python_the_same_without_a_traceback(python):
    done = python(OLD_PYTHON + RUN_THE_TOUR, check=False, own_imports=True)
    assert done.returncode == 2
    assert re.fullmatch(r"library-tour: .*3\.11.*3\.10\.13.*uv run.*\n", done.stderr)


@pytest.mark.parametrize("package", ["jinja2", "markdown_it", "pygments", "rich"])
def test_the_tour_names_its_extra_where_it_is_missing(python, package):
    done = python(f"import sys; sys.modules[{package!r}] = None\n{RUN_THE_TOUR}", check=False, own_imports=True)
    assert done.returncode == 2
    assert re.fullmatch(rf"library-tour: .*{package}.*pip install 'cudart-py\[tour\]'\n", done.stderr)


def test_the_gate_says_that_it_needs_pytest_benchmark(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pytest_benchmark", None)
    assert main(["gate", "--record", str(tmp_path / "baseline.json"), str(tmp_path / "bench_nothing.py")]) == 2
    assert "pip install pytest-benchmark" in capsys.readouterr().out


def test_the_support_page_has_a_place_for_each_python_of_the_project():
    page = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    _, ci, gpu, expected, refused, _ = re.search(r"^\| Python (\|.*)$", page, re.MULTILINE)[1].split("|")
    named = [version for cell in (ci, gpu, expected) for version in re.findall(r"3\.\d+", cell)]
    classifiers = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert sorted(named) == sorted(classifiers)
    assert "3.10 and older" in refused
    assert re.search(r"UV_PYTHON:-([\d.]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))[1] == ci.strip()


def test_importing_the_package_imports_no_workbench_and_names_of_it_are_imported_on_first_use(python):
    program = """
import sys
import cudart_py as cuda
workbench = ("benchmark", "debugging", "findings", "notebook", "pages", "profiling", "standins")
print([name for name in sys.modules if name.startswith(tuple(f"cudart_py.{package}" for package in workbench))])
from cudart_py import debugger, profile
print(profile is cuda.profile is cuda.profiling.profiles.profile, debugger is cuda.debugger, cuda.ipc.__name__)
"""
    assert python(program, own_imports=True).stdout.splitlines() == ["[]", "True True cudart_py.ipc"]
