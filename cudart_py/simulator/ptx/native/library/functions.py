"""Build the functions of the library that a kernel uses, by their names."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from .accesses import build_access
from .atomics import build_atomic
from .hosts import HOSTS
from .warps import build_match, build_math, build_permute, build_redux

__all__ = ["add_library"]

_BUILDERS: dict[str, Callable[[ir.Module, str], None]] = {
    "load": build_access,
    "store": build_access,
    "atom": build_atomic,
    "permute": build_permute,
    "redux": build_redux,
    "match": build_match,
    "math": build_math,
    "hosts": lambda module, name: HOSTS[name.partition(".")[2]](module),
}


def add_library(module: ir.Module) -> None:
    """Build all functions of the library that a module calls and that call each other."""
    done = False
    while not done:
        waiting = [
            function.name
            for function in module.functions
            if not function.blocks and function.name.partition(".")[0] in _BUILDERS
        ]
        done = not waiting
        for name in waiting:
            _BUILDERS[name.partition(".")[0]](module, name)
