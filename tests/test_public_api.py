"""The public API is the accepted one, and the comparison of the two names each change."""

import importlib.util
import re
from pathlib import Path

import pytest

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
    spec = importlib.util.spec_from_file_location("public_api", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_public_api_is_the_accepted_one(script):
    now = script.public_api(script.ROOT, script.public_modules())
    found = script.changes(script.FILE.read_text(encoding="utf-8").splitlines(), now)
    assert not found, "\n".join(["see CONTRIBUTING.md, Public names; python scripts/public_api.py --accept", *found])


@pytest.fixture
def api(script, tmp_path):
    """Return the lines of a package of two modules, of which one is public, after some replacements of their text."""
    count = 0

    def read(*replacements):
        nonlocal count
        count += 1
        folder = tmp_path / str(count) / "package"
        folder.mkdir(parents=True)
        for name, text in (("__init__", SOURCE), ("inside", INSIDE)):
            for old, new in replacements:
                text = text.replace(old, new)
            (folder / f"{name}.py").write_text(text)
        return script.public_api(folder.parent, ["package"])

    return read


def test_a_line_has_a_name_with_its_signature_and_its_kind(api):
    assert api() == [
        "class package.Array(Handle)",
        "package.Array.__init__(size: int) -> None",
        "package.Array.__len__() -> int",
        "package.Array.borrow(pointer: int) -> Array  [classmethod]",
        "package.Array.close() -> None",
        "package.Array.fill(value: float = 0.0, *, stream: int | None = None) -> None",
        "package.Array.shape: tuple[int, ...]  [property]",
        "package.Array.size: int",
        "package.copy(source: Array, target: Array) -> None",
        "package.load(name: bytes) -> bytes",
        "package.load(name: str) -> Array",
    ]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("value: float = 0.0", "number: float = 0.0", "changed: package.Array.fill"),
        ("value: float = 0.0", "value: float = 1.0", "changed: package.Array.fill"),
        ("value: float = 0.0", "value: float", "changed: package.Array.fill"),
        ("value: float", "value: int", "changed: package.Array.fill"),
        ("0.0, *, stream", "0.0, stream", "changed: package.Array.fill"),
        ("-> tuple[int, ...]", "-> int", "changed: package.Array.shape"),
        ("    @property\n", "", "changed: package.Array.shape"),
        ("    @classmethod\n", "    @staticmethod\n", "changed: package.Array.borrow"),
        ("size: int = 0", "size: float = 0", "changed: package.Array.size"),
        ("size: int)", "size: int = 4)", "changed: package.Array.__init__"),
        ("(name: bytes)", "(name: bytearray)", "changed: package.load"),
        ("class Array(Handle)", "class Array(Handle, LookupError)", "changed: package.Array"),
        ("def close", "def free", "added: package.Array.free removed: package.Array.close"),
        ("def __len__", "def __bool__", "added: package.Array.__bool__ removed: package.Array.__len__"),
        ('"copy", ', "", "removed: package.copy"),
        ('"load"]', '"helper", "load"]', "added: package.helper"),
        ("def _hidden(self)", "def _hidden(self, more)", ""),
        ("def helper()", "def helper(more)", ""),
        ("def __repr__(self) -> str: ...", "", ""),
    ],
)
def test_each_change_is_named(script, api, old, new, change):
    found = script.changes(api(), api((old, new)))
    assert " ".join(sorted(re.match(r"\w+: [\w.]+", text)[0] for text in found)) == change
    assert all(new.strip() in text for text in found if text.startswith("changed: package.Array.fill"))
