"""docs/nvmath-functions.md: every public name of the installed nvmath-python has its place, and no other name."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

import cudart_py as cuda
from cudart_py import libraries
from tests.tables import quoted, rows

FOUND = importlib.util.find_spec("nvmath")
PAGE = (Path(__file__).parents[2] / "docs" / "nvmath-functions.md").read_text(encoding="utf-8")
MODULES = {
    *("nvmath", "nvmath.fft", "nvmath.linalg", "nvmath.linalg.advanced", "nvmath.linalg.advanced.helpers.matmul"),
    *("nvmath.sparse", "nvmath.sparse.advanced", "nvmath.sparse.ust", "nvmath.tensor", "nvmath.device"),
    *("nvmath.sparse.ust.interfaces.torch_interface", "nvmath.device.random", "nvmath.device.random_helpers"),
    *("nvmath.distributed", "nvmath.distributed.fft", "nvmath.distributed.linalg"),
    "nvmath.distributed.process_group",
    *("nvmath.distributed.linalg.advanced", "nvmath.distributed.distribution", "nvmath.bindings"),
}

pytestmark = pytest.mark.skipif(FOUND is None, reason="nvmath-python is not installed")


def file_of(module):
    base = Path(FOUND.origin).parent.joinpath(*module.split(".")[1:])
    return base.with_suffix(".py") if base.with_suffix(".py").exists() else base / "__init__.py"


def value_of(node, tree):
    """Return the list that an expression of lists stands for, with the lists of its module by name."""
    if isinstance(node, ast.BinOp):
        return [*value_of(node.left, tree), *value_of(node.right, tree)]
    if isinstance(node, ast.Name):
        assigned = (each for each in tree.body if isinstance(each, ast.Assign))
        return value_of(next(each.value for each in assigned if getattr(each.targets[0], "id", "") == node.id), tree)
    return ast.literal_eval(node)


def names_of(path):
    """Return the public names of a module from its text: its `__all__`, or what it imports from its package.

    Importing would need numba for some of the modules.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return set(value_of(node.value, tree))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            source = base.with_suffix(".py") if base.with_suffix(".py").exists() else base / "__init__.py"
            for name in (alias.asname or alias.name for alias in node.names):
                if name == "*":
                    found |= names_of(source)
                elif not (base / f"{name}.py").exists() and not (base / name).is_dir():
                    found.add(name)
    return {name for name in found if not name.startswith("_")}


def tables():
    """Return the rows of the page by module: that of the heading above a table, or that which its first cell names."""
    found, module = {}, ""
    for part in re.split(r"^(?=## |\| name)", PAGE, flags=re.MULTILINE):
        named = re.match(r"## (nvmath[\w.]*)$|\| name in `(nvmath[\w.]*)`", part, re.MULTILINE)
        module = (named[1] or named[2]) if named else module
        if part.startswith("| name"):
            found[module] = rows(part)[1:]
    return found


def test_every_public_name_has_its_place():
    found = tables()
    assert set(found) == MODULES
    for module, table in found.items():
        listed = [name for row in table for name in quoted(row[0])]
        assert len(listed) == len(set(listed)), module
        assert set(listed) == names_of(file_of(module)), module


def public_modules(pattern):
    """Return the files of public modules by name.

    Packages named `generic` are left out: their parents have the same functions, some under other names.
    """
    root, apart = Path(FOUND.origin).parent, {"bindings", "generic", "internal"}
    paths = {path.relative_to(root.parent).with_suffix("").parts: path for path in root.rglob(pattern)}
    files = {tuple(part for part in parts if part != "__init__"): path for parts, path in paths.items()}
    return {
        ".".join(parts): path
        for parts, path in files.items()
        if apart.isdisjoint(parts) and not any(part.startswith("_") for part in parts)
    }


def test_every_public_package_has_a_table():
    public = {module for module, path in public_modules("__init__.py").items() if names_of(path)}
    assert public <= MODULES


def test_every_name_that_a_module_exports_is_in_a_table():
    """Most modules export names that are also those of their package."""
    listed = {name for table in tables().values() for row in table for name in quoted(row[0])}
    # The first registers types with Numba. The second computes the names of its states, which are in a table.
    left_out = {"nvmath.device.common_numba_cuda_mlir", "nvmath.device.random_states"}
    for module, path in public_modules("*.py").items():
        if module not in left_out and "__all__" in path.read_text(encoding="utf-8"):
            assert names_of(path) <= listed, module


def test_every_place_is_one_of_three_and_has_a_reason():
    for table in tables().values():
        for names, place, reason in table:
            assert set(place.split(", ")) <= {"wrapped", "taught", "not"}, names
            assert reason, names
            for name in re.findall(r"`libraries\.(\w+)", reason):
                assert hasattr(libraries, name), name
            for name in re.findall(r"`cuda\.(\w+)", reason):
                assert hasattr(cuda, name), name
