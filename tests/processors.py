"""Machine code for other processors than this one: each level of features that LLVM may choose, and of optimisation.

`tests/conftest.py` has the fixture `processor_level`, which runs a test with the native engine at each level.
"""

import platform
from typing import Any, NamedTuple

import pytest

# The features that each level adds, by LLVM's names, beyond those of x86-64 itself.
_ADDED = {
    "x86-64-v2": ("sse4.2", "popcnt", "ssse3"),
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}


class Level(NamedTuple):
    """A level of x86-64's features, or ``host`` for all that this processor has, and of LLVM's optimisation."""

    features: str
    optimisation: int

    def __str__(self) -> str:
        return f"{self.features}-O{self.optimisation}"


# Each level of features as the engine optimises, and each level of optimisation.
LEVELS = [
    Level("x86-64-v2", 2),
    Level("x86-64-v3", 2),
    Level("x86-64-v4", 2),
    Level("host", 0),
    Level("host", 1),
    Level("host", 3),
]
# Parameters of tests for which one level is enough by default: that of most processors in use.
ONE_BY_DEFAULT = [
    pytest.param(level, marks=() if level == Level("x86-64-v3", 2) else pytest.mark.exhaustive) for level in LEVELS
]


def compiled_for(level: Level) -> Any:
    """Return a context in which the native engine makes machine code for a level, whether or not it runs here."""
    from cudart_py.simulator.ptx.native import machine  # which needs llvmlite

    if level.features == "host":
        return machine.compile_for(machine.host()._replace(optimisation=level.optimisation))
    # As for a host with AVX-512, whose widest registers are used.
    features = "-prefer-256-bit" if level.features == "x86-64-v4" else ""
    return machine.compile_for(machine.Processor(level.features, features, level.optimisation))


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
