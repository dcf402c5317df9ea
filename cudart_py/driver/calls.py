"""Calls of the driver in use: `raw` has its functions as they are, `api` the same ones unwrapped.

The functions of `raw` return the tuple of their status and values. Those of `api` return the value, or a tuple of the
values, and raise on any status but success.
"""

from __future__ import annotations

import functools
import os
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
    """Give `raw` all functions of the chosen driver when the first one is asked for, and return that one.

    After that `raw` has no `__getattr__`: Python reads the attributes of modules with one several times as slowly.
    """
    if name.startswith("__"):  # a program that only inspects `raw` chooses no driver
        raise AttributeError(f"module 'raw' has no attribute {name!r}")
    for known, function in vars(chosen().functions).items():
        if not known.startswith("_"):
            raw.__dict__.setdefault(known, function)
    raw.__dict__.pop("__getattr__", None)  # another thread may be here too
    return getattr(raw, name)


class _Api:
    """The chosen driver's functions, each unwrapped."""

    def __getattr__(self, name: str) -> Any:
        value = _unwrapped(getattr(raw, name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    # The bindings come without types. The simulator has their functions with the same names, arguments and result
    # tuples, which type checkers and editors then see.
    from ..simulator import driver as raw
else:
    # A module, because Python reads the attributes of modules several times as fast as those of an object that finds
    # them by a method.
    raw = ModuleType("raw", _RAW)
    raw.__getattr__ = _fill_raw
api = _Api()


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
    # In a forked child the functions that were found would go round the refusal of `chosen`.
    raw.__dict__.clear()
    raw.__dict__["__getattr__"] = _fill_raw
    api.__dict__.clear()


if hasattr(os, "register_at_fork"):  # Windows has no fork, and the first CUDA call says what it needs
    os.register_at_fork(after_in_child=_forget)


def device_ordinal(address: int) -> int:
    """Return the ordinal of the device that the memory at an address is on (CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)."""
    ordinal: int = check(chosen().device_of(address))
    return ordinal


@functools.cache
def library(name: str) -> Any:
    """Return the functions of one of CUDA's libraries for the driver in use, by the name of nvmath's bindings."""
    return chosen().library(name)
