"""CUDA's own names: the error for such a name says what docs/names.md and docs/enumerators.md say about it.

Both pages are tables whose last column is about this package. They are read when the first such error is raised.
"""

from __future__ import annotations

import fnmatch
import functools
import inspect
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from .tables import IMPORTED_BY_NAME

_TOOLKIT = __name__.partition(".")[0]
_PAGES = ("names.md", "enumerators.md")
# The beginnings of cells that do not say what to write.
_UNWRITTEN = ("left out", "done ", "used by ", "created ")
# cuBLAS and the other libraries have the same routine for real and complex numbers of both precisions.
_PRECISIONS = "SDCZ"
# A name of this package or of one of its submodules, and the names of attributes.
_DOTTED = re.compile(r"""(?<![\w."'])([A-Za-z]\w*)((?:\.[A-Za-z]\w*)*)(?![\w"'=])""")


def find(page: str, package: Path = Path(__file__).parent) -> Path:
    """Return the path of a page: next to this module in a wheel, and in the documentation in a checkout."""
    inside = package / page
    return inside if inside.is_file() else package.parents[1] / "docs" / page


@functools.cache
def cells() -> Mapping[str, str]:
    """Return what the rows of the pages say, keyed by CUDA's names and by patterns with `*`."""
    said: dict[str, str] = {}
    for path in map(find, _PAGES):
        # The pages are missing if only the package's folder was copied.
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            *columns, ours = line.strip("|").split("|") if line.startswith("|") else ("",)
            for column in columns:
                names = re.findall("`([^`]+)`", column)
                for name, text in zip(names, _each(ours.strip(), len(names)), strict=True):
                    for letter in _PRECISIONS if "<t>" in name else "_":
                        # A few routines have two rows, of which the first is about the more common use.
                        said.setdefault(name.replace("<t>", letter), text)
    return said


def _each(text: str, count: int) -> list[str]:
    """Return what a cell says about each of `count` names: the cell itself, or its n-th code if it lists one each."""
    codes = re.findall("`[^`]+`", text)
    return codes if len(codes) == count and text == ", ".join(codes) else [text] * count


def equivalent(name: str) -> str:
    """Return what to write for one of CUDA's names, as the end of the sentence that there is no such attribute.

    The text is "" for names that are not CUDA's.
    """
    if not re.match("cu[A-Z]|cu(da|blas|dss|fft|rand|solver|sparse)[A-Z]|cudss|CU[A-Z]*_|CU[a-z]|curand", name):
        return ""
    said = cells()
    pattern = next((each for each in said if "*" in each and fnmatch.fnmatchcase(name, each)), "")
    text = said.get(name, said.get(pattern, ""))
    if not text:
        return ": docs/names.md lists CUDA's functions and types, and docs/enumerators.md its enumerators"
    joint = ": write " if text.startswith("`") else ": "
    if text.startswith(_UNWRITTEN):
        joint = ", which is "
    # Links lose their targets, which the reader of an error cannot follow.
    text = re.sub(r"`([^`]+)`|\[([^\]]+)\]\([^)]*\)", lambda span: span[2] or _code(span[1]), text)
    raw = f"; the raw call is cuda.raw.{name}" if re.match("cu[A-Z]", name) else ""
    return f"{joint}{text}{raw}"


def without_prefix(name: str) -> str:
    """Return the same for a name of the runtime without its prefix, such as `stream_create` or `streamCreate`.

    The text is "" for all other names.
    """
    words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    return equivalent(f"cuda{words}") if f"cuda{words}" in cells() else ""


def _code(span: str) -> str:
    """Return the code of a page as a program writes it: `cuda.empty(shape)` for `empty`.

    Functions and methods get their required parameters. A method or property gets a variable named after its class.
    """
    return _DOTTED.sub(lambda dotted: _written(dotted[1], dotted[2], dotted.end() == len(span)), span)


def _written(first: str, rest: str, is_last: bool) -> str:
    """Return a dotted name as a program writes it; `is_last` says that the code ends there, without arguments."""
    package = sys.modules[_TOOLKIT]
    if first in package.__all__:
        prefix, thing = "cuda.", getattr(package, first)
    elif first in IMPORTED_BY_NAME and first != "libraries":  # importing that takes long, or it may be impossible
        prefix, thing = "", import_module(f"{_TOOLKIT}.{first}")
    else:
        return first + rest
    owner, name = None, first
    for name in rest.split(".")[1:]:
        owner, thing = thing, inspect.getattr_static(thing, name, None)
    if isinstance(owner, type) and not isinstance(thing, staticmethod | classmethod):
        return f"{_variable(owner)}.{name}{_parameters(thing, skip=True) if is_last else ''}"
    return f"{prefix}{first}{rest}{_parameters(thing) if is_last else ''}"


def _variable(kind: type) -> str:
    """Return the name for an object of a class: `memory_pool` for `MemoryPool`."""
    if kind.__name__ == "DeviceProperties":
        return "device.properties"
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _parameters(thing: Any, skip: bool = False) -> str:
    """Return the required parameters of a function in parentheses, "()" for a class without any, and otherwise "".

    `skip` leaves out the first parameter, `self` or `cls`.
    """
    if isinstance(thing, staticmethod | classmethod):
        thing, skip = thing.__func__, isinstance(thing, classmethod)
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
        return ""
    parameters = list(inspect.signature(thing).parameters.values())[skip:]
    required = [
        "..." if each.kind is each.VAR_POSITIONAL else each.name
        for each in parameters
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD and each.annotation != "Never"
    ]
    return "" if inspect.isclass(thing) and required else f"({', '.join(required)})"
