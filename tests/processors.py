"""Machine code for other processors: each x86-64 level that LLVM may target, and each level of optimisation.

The fixture `processor_level` in `tests/conftest.py` runs a test with the native engine at each level.
"""

import platform
from typing import Any, NamedTuple
from unittest import mock

import pytest

# The CPU features that each level adds to the previous one, by LLVM's names.
_ADDED = {
    "x86-64-v2": ("sse4.2", "popcnt", "ssse3"),
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}


class Level(NamedTuple):
    """An x86-64 level, or ``host`` for all features of this processor, with a level of LLVM's optimisation."""

    features: str
    optimisation: int

    def __str__(self) -> str:
        return f"{self.features}-O{self.optimisation}"


# Each x86-64 level with the engine's usual optimisation, and this processor with each other level of optimisation.
LEVELS = [
    Level("x86-64-v2", 2),
    Level("x86-64-v3", 2),
    Level("x86-64-v4", 2),
    Level("host", 0),
    Level("host", 1),
    Level("host", 3),
]
# Parameters of tests for which one level is enough by default: the level of most processors in use.
ONE_BY_DEFAULT = [
    pytest.param(level, marks=() if level == Level("x86-64-v3", 2) else pytest.mark.exhaustive) for level in LEVELS
]


def compile_for(processor: Any) -> Any:
    """Return a context in which the native engine generates code for another processor than this one.

    Code for features that this processor lacks can be inspected, but not run.
    """
    from cudart_py.simulator.ptx.native import machine  # here, because it needs llvmlite

    machine.host()  # because it initialises LLVM
    return mock.patch.object(machine, "_chosen", processor)


def compiled_for(level: Level) -> Any:
    """Return a context in which the native engine generates code for a level, even if this processor cannot run it."""
    from cudart_py.simulator.ptx.native import machine  # here, because it needs llvmlite

    if level.features == "host":
        return compile_for(machine.host()._replace(optimisation=level.optimisation))
    # Use the 512-bit registers, as the engine does on a host with AVX-512.
    features = "-prefer-256-bit" if level.features == "x86-64-v4" else ""
    return compile_for(machine.Processor(level.features, features, level.optimisation))


def runs_here(level: Level) -> bool:
    """Return whether this processor has all features of a level."""
    if level.features == "host":
        return True
    if platform.machine() != "x86_64":
        return False
    llvm = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed (the extra native)")
    have = llvm.get_host_cpu_features()
    names = list(_ADDED)
    return all(have.get(name) for added in names[: names.index(level.features) + 1] for name in _ADDED[added])
