"""Answers: errors for names, operators and keywords of other packages, which say what to write instead."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import getattr_static
from typing import Any, NoReturn, ParamSpec, TypeVar

from .tables import ASSIGNMENTS, HINTS, KERNEL, KEYWORDS, OPERATORS

T = TypeVar("T")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_TOOLKIT = __name__.partition(".")[0]
# The names of the package that are imported on first use, since few programs need them: submodules, and functions with
# their modules.
_LATE_SUBMODULES = ("batches", "graphs", "images", "ipc", "profiling", "virtual")
_LATE_FUNCTIONS = {"debugger": "debugging.opening", "profile": "profiling.profiles"}
# The submodules that need no import of their own. Users may look for their names at the top level.
_SUBMODULES = ("errors", "tensor_maps", "textures", *_LATE_SUBMODULES)
# The submodules that must be imported explicitly.
_IMPORTED_BY_NAME = ("benchmark", "checkpoints", "coredumps", "green_contexts", "interop", "libraries", "multicast")


class _Hint:
    """An attribute that does not exist: accessing it raises an AttributeError that says what to write instead.

    A `__getattr__` of the class could do the same, but would slow down access to every existing attribute.
    """

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name

    def __get__(self, thing: object, kind: type) -> NoReturn:
        raise _missing(self._kind, self._name, f"{self._kind!r} object")

    def __set__(self, thing: object, value: object) -> NoReturn:
        self.__get__(thing, type(thing))


class _Refusal:
    """The method of an operator that a class does not have: it raises a TypeError that says what to write instead."""

    def __init__(self, kind: str, name: str, write: str) -> None:
        self._what, self._write = f"a {kind} has no operator {name}", write

    def __get__(self, thing: object, kind: type) -> Callable[..., NoReturn]:
        return functools.partial(self._refuse, thing)

    def _refuse(self, thing: object, *operands: object) -> NoReturn:
        raise TypeError(f"{self._what}: write {for_one_element(thing) if self._write == KERNEL else self._write}")


def _refuse_assignment(kind: str, name: str, write: str, thing: object, value: object) -> NoReturn:
    raise AttributeError(f"the {name} of a {kind} cannot be set: write {write}")


def for_one_element(thing: object) -> str:
    """Return what to write for arithmetic with an array: `float(x)` if it has one element."""
    return "float(x), which copies its only element to the host" if getattr(thing, "size", 0) == 1 else KERNEL


def _missing(kind: str, name: str, what: str) -> AttributeError:
    """Return the error that `what`, whose key in `HINTS` is `kind`, has no attribute `name`, with the hint if any."""
    hint = f": write {HINTS[kind][name][1]}" if name in HINTS[kind] else ""
    return AttributeError(f"{what} has no attribute {name!r}{hint}")


def hinted(cls: type[T]) -> type[T]:
    """Make a class in `HINTS` answer other packages' names and operators with errors that say what to write instead."""
    for name in HINTS[cls.__name__]:
        setattr(cls, name, _Hint(cls.__name__, name))
    for name, write in OPERATORS.get(cls.__name__, {}).items():
        setattr(cls, name, _Refusal(cls.__name__, name, write))
    for name, write in ASSIGNMENTS.get(cls.__name__, {}).items():
        setattr(cls, name, getattr(cls, name).setter(functools.partial(_refuse_assignment, cls.__name__, name, write)))

    def listed(self: T) -> list[str]:
        answered = (_Hint, _Refusal)
        return [name for name in object.__dir__(self) if not isinstance(getattr_static(self, name, None), answered)]

    cls.__dir__ = listed  # type: ignore[assignment]  # its `self` is an instance of `cls`
    return cls


def host_only(thing: object, function: str, instead: str = "") -> TypeError:
    """Return the TypeError for a NumPy function, such as `np.linalg.norm`, that was called with an array on the device.

    If `HINTS` has the class of the array, the error also suggests the hint for the function's name, the function of
    this package with that name, or `instead`.
    """
    kind, name = type(thing).__name__, function.rpartition(".")[2]
    if kind not in HINTS:
        instead = ""
    elif name in HINTS["module"]:
        instead = HINTS["module"][name][1]
    elif name in sys.modules[_TOOLKIT].__all__:
        instead = f"cuda.{name}"
    write = for_one_element(thing) if instead == KERNEL else f"x.to_host(){instead and f', or {instead}'}"
    return TypeError(f"{function} takes host arrays, but this is a {kind}: write {write}")


def answers_keywords(name: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Return a decorator for a function in `KEYWORDS`: its error for such a keyword says what to write instead."""
    hints = KEYWORDS[name]

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
            if named and not hints.keys().isdisjoint(named):
                keyword = next(each for each in named if each in hints)
                raise TypeError(f"{name}: there is no argument {keyword!r}: {hints[keyword]}")
            return function(*arguments, **named)

        return call

    return decorate


def absent_from_libraries(name: str) -> NoReturn:
    """Raise AttributeError for a name that `libraries` does not have; serves as that package's `__getattr__`."""
    raise _missing("libraries", name, f"module '{_TOOLKIT}.libraries'")


def late_or_absent(name: str) -> Any:
    """Import a name of the package on its first use; serves as the package's `__getattr__`.

    Raises AttributeError for a name that the package does not have. The error says where to find names of submodules,
    and equivalents of the CUDA runtime's and driver's functions.
    """
    if name in _LATE_SUBMODULES:
        return import_module(f"{_TOOLKIT}.{name}")
    if name in _LATE_FUNCTIONS:
        function = getattr(import_module(f"{_TOOLKIT}.{_LATE_FUNCTIONS[name]}"), name)
        setattr(sys.modules[_TOOLKIT], name, function)
        return function
    what = f"module {_TOOLKIT!r}"
    if name in _IMPORTED_BY_NAME:
        raise AttributeError(f"{what} has no attribute {name!r} yet: write from cudart_py import {name}")
    for submodule in _SUBMODULES:
        if name in import_module(f"{_TOOLKIT}.{submodule}").__all__:
            raise AttributeError(f"{what} has no attribute {name!r}: write cuda.{submodule}.{name}")
    if re.match("cuda[A-Z]", name):
        raise AttributeError(f"{what} has no attribute {name!r}: see docs/names.md for its equivalent")
    if re.match("cu[A-Z]", name):
        raise AttributeError(f"{what} has no attribute {name!r}: write cuda.raw.{name}, or see docs/names.md")
    raise _missing("module", name, what)


def public_names() -> list[str]:
    """Return the public names and the imported public submodules; serves as the package's `__dir__`."""
    package = sys.modules[_TOOLKIT]
    return [*package.__all__, *(name for name in _IMPORTED_BY_NAME if name in vars(package))]
