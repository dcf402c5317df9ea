"""The public API is the accepted one, and its listing shows every change of a signature."""

import ast
import dataclasses
import importlib
import inspect
import runpy
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import cudart_py as cuda
from cudart_py.base.set_once import SetOnce

SCRIPT = Path(__file__).parents[1] / "scripts" / "public_api.py"

SOURCE = """
__all__ = ["Array", "copy", "load"]

from typing import overload
from .inside import Handle

class Array(Handle):
    size: int = 0

    def __init__(self, size: int) -> None:
        self._secret = size

    def __repr__(self) -> str: ...
    def __len__(self) -> int: ...
    def fill(self, value: float = 0.0, *, stream: int | None = None) -> None: ...
    def _hidden(self): ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @classmethod
    def borrow(cls, pointer: int) -> Array: ...

    @staticmethod
    def none() -> None: ...

def copy(source: Array, target: Array) -> None: ...

@overload
def load(name: str) -> Array: ...
@overload
def load(name: bytes) -> bytes: ...
def load(name): ...

def helper(): ...
"""
INSIDE = "class Handle(Exception):\n    def close(self) -> None: ...\n"


@pytest.fixture(scope="module")
def script():
    return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


def test_the_public_api_is_the_accepted_one(script):
    now = script.public_api(script.ROOT, script.public_modules())
    found = script.changes(script.FILE.read_text(encoding="utf-8").splitlines(), now)
    assert not found, "\n".join(["see CONTRIBUTING.md, Public names; python scripts/public_api.py --accept", *found])


def test_a_line_has_a_name_with_its_signature_and_its_kind_and_other_names_have_none(script, tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").write_text(SOURCE)
    (folder / "inside.py").write_text(INSIDE)
    assert script.public_api(tmp_path, ["package"]) == [
        "class package.Array(Handle)",
        "package.Array.__init__(size: int) -> None",
        "package.Array.__len__() -> int",
        "package.Array.borrow(pointer: int) -> Array  [classmethod]",
        "package.Array.close() -> None",
        "package.Array.fill(value: float = 0.0, *, stream: int | None = None) -> None",
        "package.Array.none() -> None  [staticmethod]",
        "package.Array.shape: tuple[int, ...]  [property]",
        "package.Array.size: int",
        "package.copy(source: Array, target: Array) -> None",
        "package.load(name: bytes) -> bytes",
        "package.load(name: str) -> Array",
    ]


def test_the_lines_that_differ_are_the_changes(script):
    found = script.changes(["a.f(x: int)", "a.g()", "a.h()"], ["a.f(y: int)", "a.g()", "class a.I"])
    assert found == ["- a.f(x: int)", "+ a.f(y: int)", "- a.h()", "+ class a.I"]


def test_the_top_level_has_at_most_75_names():
    assert len(cuda.__all__) <= 75


def attributes_set_by(kind):
    """Return the public attributes that the methods of a class and its bases in this package set on `self`."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("cudart_py")]
    trees = [ast.parse(textwrap.dedent(inspect.getsource(base))) for base in bases]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    stores = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return {node.attr for node in stores if ast.unparse(node.value) == "self" and not node.attr.startswith("_")}


def test_an_attribute_that_cannot_be_changed_refuses_assignment(script):
    modules = [importlib.import_module(name) for name in script.public_modules()]
    things = [getattr(module, name) for module in modules for name in module.__all__]
    kinds = {thing for thing in things if inspect.isclass(thing) and thing.__module__.startswith("cudart_py")}
    assert len(kinds) > 60
    free = {kind for kind in kinds if issubclass(kind, BaseException | SetOnce) or kind is cuda.profiling.Diagram}
    assert [
        f"{kind.__name__}.{name}"
        for kind in kinds - free
        for name in attributes_set_by(kind)
        if not isinstance(inspect.getattr_static(kind, name, None), property)
    ] == []
    records = {kind for kind in kinds if dataclasses.is_dataclass(kind)}
    assert all(kind.__dataclass_params__.frozen for kind in records)
