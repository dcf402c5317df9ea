"""Answers: errors for names, operators and keywords of other packages, which say what to write instead."""

from __future__ import annotations

import dis
import functools
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from inspect import getattr_static
from types import FrameType, FunctionType, ModuleType
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

import numpy as np

from .keywords import KEYWORDS, POSITIONAL, STREAM
from .tables import ASSIGNMENTS, HINTS, IMPORTED_BY_NAME, KERNEL, NAMESPACES, OPERATORS, SYMBOLS

T = TypeVar("T")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_TOOLKIT = __name__.partition(".")[0]
# The names of the package that are imported on first use, since few programs need them: submodules, and functions with
# their modules.
_LATE_SUBMODULES = ("batches", "graphs", "images", "ipc", "profiling", "virtual")
_LATE_FUNCTIONS = {"debugger": "debugging.opening", "profile": "profiling.profiles"}
# The submodules that `import cudart_py` also imports. Users may look for their names at the top level.
_SUBMODULES = ("errors", "tensor_maps", "textures", *_LATE_SUBMODULES)

# The imports for the names in the code of hints.
_IMPORTS = {
    "cuda": f"import {_TOOLKIT} as cuda",
    **{name: f"from {_TOOLKIT} import {name}" for name in IMPORTED_BY_NAME},
    "np": "import numpy as np",
}
# The operators that Python's methods stand for.
_SYMBOLS = {
    **{f"__{name}__": symbol for name, symbol in SYMBOLS.items()},
    **{f"__r{name}__": symbol for name, symbol in SYMBOLS.items()},
}
_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


class _Hint:
    """An attribute that does not exist: accessing it raises an AttributeError that says what to write instead.

    A `__getattr__` of the class could do the same, but would slow down access to every existing attribute.
    """

    def __init__(self, kind: str, name: str, write: str) -> None:
        self._kind, self._name = kind, name
        self.__doc__ = f"Does not exist: write {write}"  # for `help`, which lists the names of the class

    def __get__(self, thing: object, kind: type) -> NoReturn:
        raise _missing(self._kind, [self._name], f"{self._kind!r} object", sys._getframe(1))

    def __set__(self, thing: object, value: object) -> NoReturn:
        self.__get__(thing, type(thing))


class _Refusal:
    """The method of an operator that a class does not have: it raises a TypeError that says what to write instead."""

    def __init__(self, kind: str, name: str, write: str) -> None:
        noun = "operator " * (name in _SYMBOLS)
        self._what, self._write = f"a {kind} has no {noun}{_SYMBOLS.get(name, name)}", write
        self.__name__, self.__doc__ = name, f"Does not exist: write {write}"  # for `help`

    def __get__(self, thing: object, kind: type) -> Callable[..., NoReturn]:
        return self if thing is None else functools.partial(self._refuse, thing)

    def __call__(self, thing: object, *operands: object) -> NoReturn:
        raise self._error(thing, operands, sys._getframe(1))

    def _refuse(self, thing: object, *operands: object) -> NoReturn:
        raise self._error(thing, operands, sys._getframe(1))

    def _error(self, thing: object, operands: tuple[object, ...], user: FrameType) -> TypeError:
        write = for_one_element(thing) if self._write == KERNEL else self._write
        if self._what.endswith(" +") and operands and type(operands[0]) is int and write == KERNEL:
            write = f"x[n:] for the elements from index n on; to add n to each element, write {KERNEL}"
        return TypeError(f"{self._what}: write {write}{_imports(write, user)}")


def _missing(kind: str, path: list[str], what: str, user: FrameType) -> AttributeError | ImportError:
    """Return the error that `what`, whose key in `HINTS` is `kind`, has no attribute, with the hint if any.

    `path` has the name of the attribute, and the names of the attributes of that attribute, which the frame of the user
    would read next. The most specific name that has a hint decides.
    """
    hint, path = _of_cuda(path) if kind in ("module", "libraries") else ("", path)
    if not hint:
        write, path = _instead(kind, path)
        hint = f": write {write}" if write else ""
    if not hint and kind == "module":
        from . import cuda_names  # imported late: only such errors need it

        hint, path = cuda_names.without_prefix(path[0]), path[:1]
    hint += _imports(hint, user)
    if hint and user.f_code.co_code[user.f_lasti] == _IMPORT_FROM:  # Python would drop the text of an AttributeError
        return ImportError(f"cannot import name {path[0]!r} from {what.partition(' ')[2]}{hint}", name=path[0])
    text = f"{what} has no attribute {'.'.join(path)!r}{hint}"
    # With a name but no object, Python does not add a similar name of the object to the hint.
    return AttributeError(text, name=path[0], obj=None) if hint else AttributeError(text)


def _path(name: str, user: FrameType) -> list[str]:
    """Return `name` and the names that the expression of a frame reads from that attribute: `linalg.svd`."""
    instructions = dis.get_instructions(user.f_code)
    following = (each for each in instructions if each.offset > user.f_lasti and each.opname != "EXTENDED_ARG")
    reads = itertools.takewhile(lambda each: each.opname in ("LOAD_ATTR", "LOAD_METHOD"), following)
    return [name, *(each.argval for each in reads)]


def _of_cuda(path: list[str]) -> tuple[str, list[str]]:
    """Return the end of the sentence for the last name of a path that is one of CUDA's, and the path up to that name.

    CuPy's `cuda.runtime` has the runtime's names without their prefix. Without such a name, the result is "" and the
    path.
    """
    from . import cuda_names  # imported late, as above

    for place in reversed(range(len(path))):
        name = path[place]
        if place and path[place - 1] == "runtime":
            name = f"cuda{name[:1].upper()}{name[1:]}"
        if hint := cuda_names.equivalent(name):
            return hint, path[: place + 1]
    return "", path


def _instead(kind: str, path: list[str]) -> tuple[str, list[str]]:
    """Return what to write instead of a path of attributes, and the part of the path that the hint is for.

    Without a hint, these are "" and the first name.
    """
    for place in reversed(range(len(path))):
        owner, name = path[place - 1] if place else kind, path[place]
        if place and f"{owner}.{name}" in HINTS[kind]:
            return HINTS[kind][f"{owner}.{name}"][1], path[: place + 1]
        kind_of_owner = NAMESPACES.get(owner, owner if owner in HINTS else "module")
        if name in HINTS[kind_of_owner]:
            return HINTS[kind_of_owner][name][1], path[: place + 1]
        module = {"module": _TOOLKIT, "libraries": f"{_TOOLKIT}.libraries"}.get(kind_of_owner)
        if place and module and name in import_module(module).__all__:
            return f"{'cuda' if module == _TOOLKIT else 'libraries'}.{name}", path[: place + 1]
        namespaces = [getattr(np, owner, None)] if owner in np.__all__ else [np]
        if kind_of_owner == "libraries":  # its functions are named like those of these modules
            namespaces += [np.linalg, np.fft]
        for namespace in namespaces:
            if write := _with_numpy(namespace, name):
                return write, path[: place + 1]
    return "", path[:1]


def _with_numpy(namespace: Any, name: str) -> str:
    """Return how to use a name of NumPy, of the package itself or of `np.linalg`, `np.fft` or `np.random`."""
    if namespace not in (np, np.linalg, np.fft, np.random) or name not in namespace.__all__:
        return ""
    thing, dotted = getattr(namespace, name), f"{namespace.__name__}.{name}".replace("numpy", "np")
    if not callable(thing) or isinstance(thing, type):  # a constant or a dtype
        return "" if isinstance(thing, ModuleType) else dotted
    return KERNEL if namespace is np else f"{dotted}, with host arrays such as x.to_host()"


def _imports(write: str, user: FrameType) -> str:
    """Return the imports that a frame lacks for the code of a hint, as the end of the sentence."""
    known = user.f_globals.keys() | user.f_locals.keys()
    lacking = [line for name, line in _IMPORTS.items() if name not in known and re.search(rf"\b{name}\.", write)]
    return f" (after {', '.join(lacking)})" if lacking else ""


def _refuse_assignment(kind: str, name: str, write: str, thing: object, value: object) -> NoReturn:
    raise AttributeError(f"the {name} of a {kind} cannot be set: write {write}")


def for_one_element(thing: object) -> str:
    """Return what to write for arithmetic with an array: `float(x)` if it has one element."""
    is_one = getattr(thing, "size", 0) == 1
    return "float(x), which copies the only element of the array x to the host" if is_one else KERNEL


def hinted(cls: type[T]) -> type[T]:
    """Make a class in `HINTS` answer other packages' names and operators with errors that say what to write instead."""
    for name, (_, write) in HINTS[cls.__name__].items():
        setattr(cls, name, _Hint(cls.__name__, name, write))
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

    If `HINTS` has the class of the array, the error also suggests the hint for the function, the function of this
    package with that name, or `instead`.
    """
    kind, path = type(thing).__name__, function.split(".")[1:]
    if kind not in HINTS:
        instead = ""
    elif path[0] in sys.modules[_TOOLKIT].__all__:
        instead = f"cuda.{path[0]}"
    else:
        instead = _instead("module", path)[0] or instead
    if instead == KERNEL:
        write = for_one_element(thing)
    else:
        write = f"x.to_host(){f', or {instead}' if instead and 'x.to_host()' not in instead else ''}"
    write += _imports(write, sys._getframe(2))
    return TypeError(f"{function} takes host arrays, but this is a {kind}: write {write}")


def unexpected(name: str, surplus: Sequence[object], named: Iterable[str]) -> TypeError:
    """Return the error for arguments that a function does not have, which says what to write instead if known.

    `surplus` are positional arguments beyond those of the function, and `named` the names of keyword arguments.
    """
    hints = KEYWORDS.get(name.removesuffix(".plan"), STREAM)
    unknown = list(named)
    for keyword in unknown:
        if keyword in hints:
            return TypeError(f"{name}: there is no argument {keyword!r}: {hints[keyword]}")
    if unknown:
        return TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r}")
    count = f"{len(surplus)} positional argument{'s' * (len(surplus) > 1)} too many"
    return TypeError(f"{name}: there {'are' if len(surplus) > 1 else 'is'} {count}: {POSITIONAL[name]}")


def answers_keywords(name: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Return a decorator for a function in `KEYWORDS`: its error for such a keyword says what to write instead.

    For a function in `POSITIONAL`, this also holds for the error for too many positional arguments. The decorator adds
    a call to each call. A function that takes only a few microseconds passes its unknown arguments to `unexpected`.
    """
    hints = KEYWORDS[name]

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        most = cast(FunctionType, function).__code__.co_argcount if name in POSITIONAL else sys.maxsize

        @functools.wraps(function)
        def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
            if (named and not hints.keys().isdisjoint(named)) or len(arguments) > most:
                raise unexpected(name, arguments[most:], [each for each in named if each in hints])
            return function(*arguments, **named)

        return call

    return decorate


def absent_from_libraries(name: str) -> NoReturn:
    """Raise AttributeError for a name that `libraries` does not have; serves as that package's `__getattr__`."""
    user = sys._getframe(1)
    raise _missing("libraries", _path(name, user), f"module '{_TOOLKIT}.libraries'", user)


def late_or_absent(name: str) -> Any:
    """Import a name of the package on its first use; serves as the package's `__getattr__`.

    Raises AttributeError for a name that the package does not have. The error says where to find names of submodules,
    and the equivalents of other packages' and CUDA's names.
    """
    if name in _LATE_SUBMODULES:
        return import_module(f"{_TOOLKIT}.{name}")
    if name in _LATE_FUNCTIONS:
        function = getattr(import_module(f"{_TOOLKIT}.{_LATE_FUNCTIONS[name]}"), name)
        setattr(sys.modules[_TOOLKIT], name, function)
        return function
    what = f"module {_TOOLKIT!r}"
    if name in IMPORTED_BY_NAME:
        raise AttributeError(f"{what} has no attribute {name!r} yet: write from cudart_py import {name}")
    for submodule in _SUBMODULES:
        if name in import_module(f"{_TOOLKIT}.{submodule}").__all__:
            raise AttributeError(f"{what} has no attribute {name!r}: write cuda.{submodule}.{name}")
    user = sys._getframe(1)
    raise _missing("module", _path(name, user), what, user)


def public_names() -> list[str]:
    """Return the public names and the imported public submodules; serves as the package's `__dir__`."""
    package = sys.modules[_TOOLKIT]
    return [*package.__all__, *(name for name in IMPORTED_BY_NAME if name in vars(package))]
