"""Calls of the driver in use: `raw` has its functions unchanged, and `api` has the same functions unwrapped.

The functions of `raw` return a tuple of the status and the values. The functions of `api` return the value, or a tuple
of the values, and raise an exception for any status other than success.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .backend import chosen
from .unwrap import check, failure

__all__ = ["api", "device_ordinal", "library", "raw"]

_RAW = """The functions of the driver in use, as `cuda.bindings.driver` has them: `raw.cuMemAlloc(1024)`.

Each returns the tuple of its status and its values, which `check` unwraps. The first use chooses the driver. A function
that the driver does not have is an AttributeError; the simulator has fewer than a GPU's driver.
"""


def _fill_raw(name: str) -> Any:
    """Fill `raw` with all functions of the chosen driver at its first use, and return the requested function.

    Afterwards `raw` has no `__getattr__`, because with one Python would read attributes several times as slowly.
    """
    if name.startswith("__"):  # a program that only inspects `raw` must not choose a driver
        raise AttributeError(f"module 'raw' has no attribute {name!r}")
    for known, function in vars(chosen().functions).items():
        if not known.startswith("_"):
            raw.__dict__.setdefault(known, function)
    raw.__dict__.pop("__getattr__", None)  # with a default, since another thread may have removed it
    return getattr(raw, name)


class _Api:
    """The functions of the chosen driver, unwrapped."""

    def __getattr__(self, name: str) -> Any:
        value = _unwrapped(getattr(raw, name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    # The bindings have no type annotations. The simulator's functions have the same names, arguments and result tuples,
    # and type checkers and editors can read their annotations.
    from ..simulator import driver as raw
else:
    # A module, because Python reads a module's attributes several times as fast as attributes that `__getattr__` of an
    # object finds.
    raw = ModuleType("raw", _RAW)
    raw.__getattr__ = _fill_raw
api = _Api()


def driver_functions() -> ModuleType:
    """Return the functions of the driver in use, which `intercept` does not replace."""
    return chosen().functions


def intercept(seen: Callable[[str, Callable[..., Any]], Callable[..., Any]] | None) -> None:
    """Replace each function of the driver in `raw` and `api` by what `seen(name, function)` returns.

    None restores the driver's own functions. Code that has kept a function from before is not affected.
    """
    for name, function in vars(driver_functions()).items():
        if re.match("cu[A-Z]", name):
            raw.__dict__[name] = function if seen is None else seen(name, function)
    api.__dict__.clear()


def _unwrapped(function: Callable[..., tuple[Any, ...]], name: str) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        result = function(*arguments)
        if result[0]:
            raise failure(result[0], name)
        count = len(result)
        if count == 2:
            return result[1]
        return None if count == 1 else result[1:]

    call.__name__ = name
    return call


def _forget() -> None:
    # In a forked child, functions kept from the parent would bypass the error that `chosen` raises.
    raw.__dict__.clear()
    raw.__dict__["__getattr__"] = _fill_raw
    api.__dict__.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, where the first CUDA call raises an error anyway
    os.register_at_fork(after_in_child=_forget)


def device_ordinal(address: int) -> int:
    """Return the ordinal of the device of the memory at an address (CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)."""
    ordinal: int = check(chosen().device_of(address))
    return ordinal


@functools.cache
def library(name: str) -> Any:
    """Return one of CUDA's libraries for the driver in use; `name` is its module's name in nvmath's bindings."""
    return chosen().library(name)
