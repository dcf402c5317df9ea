"""Pages that list parts of the package list all of them, and name only parts that exist."""

import inspect
import operator
import re
import runpy
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import benchmark, checkpoints, coredumps, green_contexts, interop, libraries, multicast
from cudart_py.benchmark import pytest_plugin
from cudart_py.context.limits import Limits
from cudart_py.libraries.random_numbers import KINDS
from cudart_py.simulator.counters.metrics import MODELLED, NAMES
from tests.documentation.blocks import blocks_of
from tests.tables import quoted, rows

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def text_of(name):
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_page_of_the_h200_has_the_recorded_figures():
    script = runpy.run_path(str(ROOT / "scripts" / "record_tour.py"))
    made = script["page"](script["kept_bars"]())
    assert script["PAGE"].read_text(encoding="utf-8") == made, "run `python scripts/record_tour.py`"


# The architecture


def test_the_picture_has_each_room_of_the_contracts():
    drawn = set(re.findall(r"\w+", " ".join(re.findall(r"<text(?! class)[^>]*>([^<]+)<", text_of("architecture.svg")))))
    contracts = [
        contract
        for contract in PROJECT["tool"]["importlinter"]["contracts"]
        if contract.get("containers") in (["cudart_py"], ["cudart_py.simulator"])
    ]
    rooms = set(re.findall(r"\w+", " ".join(layer for contract in contracts for layer in contract["layers"])))
    # `__main__` only starts programs, and no other package depends on `version`.
    assert rooms - {"__main__", "version"} <= drawn


# The guide


def test_the_install_page_lists_every_extra_every_capability_and_every_variable():
    cells = re.findall(r"^\| (`.*?) \| ", text_of("guide/install.md"), re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert set(PROJECT["project"]["optional-dependencies"]) <= names
    assert set(re.findall(r"^    \| `(\w+)`", cuda.capabilities.__doc__, re.MULTILINE)) <= names
    packages = (ROOT / "cudart_py", ROOT / "library_tour")
    sources = [path.read_text(encoding="utf-8") for package in packages for path in package.rglob("*.py")]
    used = {name for source in sources for name in re.findall(r"\bCUDART_PY_[A-Z]+(?:_[A-Z]+)*\b", source)}
    assert used == {name for name in names if name.startswith("CUDART_PY_")}


def test_the_guides_table_names_all_pages_in_the_order_of_the_menu():
    """Each page also begins with a program that runs, unless it is about programs that do not use the package."""
    listed = re.findall(r"^\| \[[^]]+\]\(([\w-]+\.md)\)", text_of("guide/index.md"), re.MULTILINE)
    menu = re.findall(r"- guide/([\w-]+\.md)$", text_of("mkdocs.yml"), re.MULTILINE)
    assert sorted(["index.md", *listed]) == sorted(path.name for path in (DOCS / "guide").glob("*.md"))
    assert ["index.md", *listed] == menu
    for page in set(listed) - {"run.md"}:
        heading = text_of(f"guide/{page}").partition("\n## ")[0].count("\n")
        first = [block for block in blocks_of(DOCS / "guide" / page) if block.line < heading]
        marks = [block.mark for block in first if block.language == "python"]
        assert marks, page
        assert not any(mark.startswith("not run") for mark in marks), page


# The guides to adding things, and the tests that notice a forgotten step
NOTICES = {
    "adding-a-driver-call": {"tests/documentation", "tests/test_names.py", "tests/fuzz/test_arguments.py"},
    "adding-a-library-function": {"tests/documentation", "tests/test_enumerators.py", "tests/fuzz/test_arguments.py"},
}


@pytest.mark.parametrize("guide", NOTICES)
def test_a_guide_names_files_that_exist_and_its_commands_run_the_tests_of_its_lists(guide):
    text = text_of(f"{guide}.md")
    named = set(re.findall(r"`((?:cudart_py|scripts|tests|docs)/[\w./-]+)`", text))
    run = {
        path for command in re.findall(r"^    uv run pytest -q (.*)$", text, re.MULTILINE) for path in command.split()
    }
    assert named
    assert run >= NOTICES[guide]
    assert [path for path in named | run if not (ROOT / path).exists()] == []


# The reference

REFERENCE = {path.stem: path.read_text(encoding="utf-8") for path in DOCS.glob("reference/*.md")}
# Names of a module and of a string have headings, since they have no docstring to show.
BY_HAND = Counter(f"cudart_py.{name}" for name in re.findall(r"^## `?(\w+)`?$", REFERENCE["driver"], re.MULTILINE))
NAMED = Counter(name for text in REFERENCE.values() for name in re.findall(r"^::: (\S+)", text, re.MULTILINE)) + BY_HAND


PACKAGES = {
    package.__name__: package
    for package in (
        *(cuda, cuda.batches, cuda.errors, cuda.graphs, cuda.images, cuda.ipc),
        *(cuda.profiling, cuda.tensor_maps, cuda.textures, cuda.virtual),
        *(benchmark, checkpoints, coredumps, green_contexts, multicast, pytest_plugin, libraries),
        *(interop.allocators, interop.numba, interop.triton),
    )
}


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_every_public_name_is_in_the_reference_once(package):
    # Three errors are also at the top level, where the reference has them. Submodules are tested as packages here.
    elsewhere = {*cuda.__all__} if package is cuda.errors else {name.rpartition(".")[2] for name in PACKAGES}
    names = [f"{package.__name__}.{name}" for name in package.__all__ if name not in elsewhere]
    found = Counter({name: count for name, count in NAMED.items() if name.rpartition(".")[0] == package.__name__})
    del found["cudart_py.errors"]  # the page shows its tree of classes
    assert found == Counter(names)


def test_the_references_pages_are_on_its_first_one_and_the_limits_of_a_device_are_all_there():
    assert set(re.findall(r"\]\((\w+)\.md\)", REFERENCE["index"])) == set(REFERENCE) - {"index"}
    limits = {name for name in vars(Limits) if not name.startswith("_")}
    assert set(re.findall(r"^\| `(\w+)`", REFERENCE["devices"], re.MULTILINE)) == limits


# The counters


def expanded(name):
    """Return the names that a name with alternatives in braces stands for."""
    head, brace, rest = name.partition("{")
    if not brace:
        return {name}
    choices, _, tail = rest.partition("}")
    return {head + choice + end for choice in choices.split(",") for end in expanded(tail)}


def test_the_page_of_the_counters_lists_each_metric_and_whether_it_is_modelled():
    exact, modelled = text_of("counters.md").partition("\n## Metrics\n")[2].split("*modelled*")
    for text, metrics in ((exact, {*NAMES} - MODELLED), (modelled, MODELLED)):
        cells = [cells[0] for cells in rows(text) if cells[0] != "metric"]
        assert set().union(*(expanded(name) for cell in cells for name in quoted(cell))) == metrics


# The libraries


def test_the_page_of_the_libraries_has_each_function_with_its_parameters():
    calls = re.findall(r"^\| `([\w.]+)\((.*?)\)` \|", text_of("libraries.md"), re.MULTILINE)
    functions = {
        name for name in libraries.__all__ if callable(getattr(libraries, name)) and not name.endswith("Error")
    }
    assert functions - {"IllConditionedWarning", "LuFactors", "Plan", "TransformPlan"} == {
        name for name, _ in calls if "." not in name
    }  # functions return plans
    for name, written in calls:
        signature = inspect.signature(eval(f"lambda {written}: None", {"np": np, **vars(libraries)}))
        known = inspect.signature(operator.attrgetter(name)(libraries)).parameters.values()
        expected = [(each.name, each.kind, each.default) for each in known if each.name not in ("self", "stream")]
        assert [(each.name, each.kind, each.default) for each in signature.parameters.values()] == expected, name


def test_the_kinds_of_generators_are_all_in_its_docstring():
    kinds = re.search("`kind`:(.*?)^- `seed`", inspect.getdoc(libraries.Generator), re.DOTALL | re.MULTILINE)[1]
    assert re.findall('"(.*?)"', kinds) == list(KINDS)
