"""Find the NumPy function that executes an opcode."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from .conversions import converter

__all__ = ["find", "has_conversion", "one"]

# In the order of search; a module may be absent while its group of opcodes is.
_MODULES = (
    "integers", "bits", "carry", "floating", "double", "conversions", "approximations", "half", "brain", "video",
)  # fmt: skip  # grouped by meaning
# Parts of an opcode that are options of its function rather than part of its name.
_OPTIONS = ("sat", "ftz", "relu", "satfinite", "NaN", "nan", "xorsign", "abs")


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for name in reversed(_MODULES):
        try:
            module = importlib.import_module(f"{__package__}.{name}")
        except ModuleNotFoundError:
            continue
        found.update({key: value for key, value in vars(module).items() if callable(value) and key[0] != "_"})
    return found


def find(opcode: str) -> Callable[..., Any] | None:
    """Give the function for an opcode, its options bound, or None when there is none."""
    parts = opcode.split(".")
    if parts[0] == "cvt":
        return _conversion(parts)
    functions = _functions()
    name = "_".join(parts)
    if name in functions:
        return functions[name]
    options = [part for part in parts[1:] if part in _OPTIONS]
    plain = "_".join([parts[0], *(part for part in parts[1:] if part not in _OPTIONS)])
    function = functions.get(plain)
    if function is None or not options:
        return function
    return partial(function, **{option.lower(): True for option in options})


@cache
def has_conversion(opcode: str) -> bool:
    """Tell whether a ``cvt`` between these types is there."""
    parts = opcode.split(".")
    integers = all(part[0] in "us" and part[1:].isdigit() for part in parts[-2:])
    return parts[1] == "pack" or (integers and "sat" not in parts) or _conversion(parts) is not None


def _conversion(parts: list[str]) -> Callable[..., Any] | None:
    """Give the function of a ``cvt`` opcode."""
    options = {part: True for part in parts[1:-2] if part in ("ftz", "sat", "relu", "satfinite")}
    rounding = "".join(part for part in parts[1:-2] if part not in options)
    try:
        return converter(parts[-2], parts[-1], rounding=rounding, **options)
    except (KeyError, ValueError):
        return None


def one(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of arrays with scalars, and give scalars back."""
    arrays = [np.array([a]) if isinstance(a, np.generic) else a for a in arguments]
    result = function(*arrays)
    if isinstance(result, tuple):
        return tuple(item[0] for item in result)
    return result[0]
