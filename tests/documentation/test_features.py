"""The comparison with other packages: each feature that is said to be here has a test, and each other one a reason."""

import ast
import functools
import re
from operator import attrgetter
from pathlib import Path

import pytest

import cudart_py as cuda
from cudart_py import checkpoints, coredumps, green_contexts, interop, multicast

ROOT = Path(__file__).parents[2]
# The submodules that the package does not import.
EXPLICIT = {
    module.__name__.rpartition(".")[2]: module
    for module in (checkpoints, coredumps, green_contexts, interop, multicast)
}
ROWS = [
    tuple(cell.strip() for cell in line.strip("|\n").split("|"))
    for line in (ROOT / "docs" / "features.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| feature ")
]


@functools.cache
def known_in(path: Path) -> frozenset[str]:
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_feature_has_a_part_of_the_package_and_a_test_or_else_a_reason(row):
    _, _, here, last = row
    tests = re.findall(r"`tests/([\w/.]+)::(\w+)`", last)
    if here == "no":
        assert not tests
        assert len(last.split()) >= 3, "a reason"
        return
    assert here.startswith("yes: ")
    assert tests
    for path, name in tests:
        assert name in known_in(ROOT / "tests" / path), f"{path} has no {name}"
    for name in re.findall(r"`(\w[\w.]*)`", here):
        owner, _, rest = name.partition(".")
        attrgetter(rest)(EXPLICIT[owner]) if owner in EXPLICIT else attrgetter(name)(cuda)


def test_no_feature_is_listed_twice_in_a_table():
    assert len(ROWS) >= 80
    assert len({(row[0], row[2]) for row in ROWS}) == len(ROWS)
