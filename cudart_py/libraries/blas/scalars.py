"""What calls of BLAS take besides arrays: factors in the host's memory, operations, the precision of the arithmetic."""

from __future__ import annotations

import cmath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arguments import describe
from ...driver.calls import library
from ..dtypes import Kind

__all__ = ["Factor", "Scalar", "check_number", "check_unread", "compute_type", "operation", "scalar"]

Scalar = float | complex

MOST_FACTORS = 256


class Factor(NamedTuple):
    """A number in the host's memory, and its address there."""

    memory: NDArray[Any]
    address: int


OPERATIONS = ("N", "T", "C")


def operation(name: str, op: str) -> int:
    """Return cublasOperation_t of "N", "T" or "C"; ValueError for another."""
    if not isinstance(op, str) or op not in OPERATIONS:
        raise ValueError(f"{name} is one of 'N', 'T', 'C', not {describe(op)}")
    return int(library("cublas").Operation[op])


_factors: dict[tuple[Any, ...], Factor] = {}


def scalar(name: str, value: Any, kind: Kind) -> Factor:
    """Return a number where and as a library reads it; TypeError where it cannot be one.

    The caller keeps what is returned until the library has read it.
    """
    check_number(name, value)
    if isinstance(value, complex | np.complexfloating) and not kind.is_complex:
        raise TypeError(f"{name} is complex, and the matrices are {kind.name}")
    key = value, kind.scalar
    found = _factors.get(key)
    if found is None:
        if len(_factors) >= MOST_FACTORS:
            _factors.clear()
        memory = _rounded(name, value, kind.scalar)
        found = _factors[key] = Factor(memory, memory.ctypes.data)
    return found


def check_number(name: str, value: Any) -> None:
    """Raise TypeError for what is no number; a bool is none."""
    if not isinstance(value, int | float | complex | np.number) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")


def _rounded(name: str, value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        with np.errstate(over="ignore"):
            memory = np.array([value], dtype)
        is_lost = bool(np.isinf(memory[0])) and not cmath.isinf(complex(value))
    except OverflowError:  # an int that no float holds
        is_lost = True
    if is_lost:
        raise ValueError(f"{name} is beyond the largest number of {dtype}")
    return memory


def check_unread(beta: Any) -> None:
    """Check the factor of an output that is not given, of which nothing can be read."""
    check_number("beta", beta)
    if beta != 0:
        raise ValueError(f"beta is {describe(beta)} and adds to out, which is not given")


def compute_type(kind: Kind, compute: str | None) -> int:
    """Return cublasComputeType_t for matrices of a kind; ValueError for a `compute` that they do not have."""
    if compute is not None and not isinstance(compute, str):
        raise TypeError(f"compute must be a str or None, not {type(compute).__name__}")
    types = library("cublas").ComputeType
    if compute is None:
        return int(types.COMPUTE_64F if kind.real == np.float64 else types.COMPUTE_32F)
    if compute == "tf32" and kind.name in ("float32", "complex64"):
        return int(types.COMPUTE_32F_FAST_TF32)
    raise ValueError(f"compute={compute!r} is not None, or 'tf32' for single precision; the matrices are {kind.name}")
