"""Products: the arithmetic of matrix products in the precisions of cublasComputeType_t."""

from __future__ import annotations

from typing import Any

import numpy as np
from nvmath.bindings.cublas import ComputeType, Operation

from .numbers import BFLOAT16, E4M3, E5M2, Numbers, rounded, rounded_to_tf32, widened

_HALF = np.dtype(np.float16)
_HALVES = (_HALF, BFLOAT16)
_SINGLES = (np.dtype(np.float32), np.dtype(np.complex64))
_DOUBLES = (np.dtype(np.float64), np.dtype(np.complex128))
_BYTES = (np.dtype(np.int8),)
EIGHT_BIT_FLOATS = (E4M3, E5M2)
# The dtypes of the factors for each precision. Emulated arithmetic has the results of the emulated precision.
_FACTORS: dict[int, tuple[np.dtype[Any], ...]] = {
    int(ComputeType.COMPUTE_16F): (_HALF,),
    int(ComputeType.COMPUTE_32F): (*_HALVES, *_SINGLES, *EIGHT_BIT_FLOATS),
    int(ComputeType.COMPUTE_32F_PEDANTIC): (*_HALVES, *_SINGLES),
    int(ComputeType.COMPUTE_32F_FAST_16F): _SINGLES,
    int(ComputeType.COMPUTE_32F_FAST_16BF): _SINGLES,
    int(ComputeType.COMPUTE_32F_FAST_TF32): _SINGLES,
    int(ComputeType.COMPUTE_32F_EMULATED_16BFX9): _SINGLES,
    int(ComputeType.COMPUTE_64F): _DOUBLES,
    int(ComputeType.COMPUTE_64F_PEDANTIC): _DOUBLES,
    int(ComputeType.COMPUTE_64F_EMULATED_FIXEDPOINT): _DOUBLES,
    int(ComputeType.COMPUTE_32I): _BYTES,
    int(ComputeType.COMPUTE_32I_PEDANTIC): _BYTES,
}


def supported(a: np.dtype[Any] | None, b: np.dtype[Any] | None, c: np.dtype[Any] | None, compute: int) -> bool:
    """Return whether cuBLAS multiplies matrices of the dtypes `a` and `b` to one of the dtype `c` in a precision."""
    if a in EIGHT_BIT_FLOATS:
        known = (*_HALVES, np.dtype(np.float32), E4M3)
        return (
            b in EIGHT_BIT_FLOATS and (a, b) != (E5M2, E5M2) and c in known and int(compute) == ComputeType.COMPUTE_32F
        )
    if a is None or a != b or a not in _FACTORS.get(int(compute), ()):
        return False
    if a in _BYTES:
        return c == np.int32
    return c == a or (a in _HALVES and c == np.float32 and int(compute) != ComputeType.COMPUTE_16F)


def scale_dtype(dtype: np.dtype[Any], compute: int) -> np.dtype[Any]:
    """Return the dtype of alpha and beta for factors of a dtype."""
    if dtype in _BYTES:
        return np.dtype(np.int32)
    if dtype in EIGHT_BIT_FLOATS:
        return np.dtype(np.float32)
    if dtype in _HALVES:
        return _HALF if int(compute) == ComputeType.COMPUTE_16F else np.dtype(np.float32)
    return dtype


def multiplied(a: Numbers, b: Numbers, compute: int) -> Numbers:
    """Return a b, with the factors rounded as the precision requires; products of int8 numbers are int64."""
    if a.dtype in _BYTES:
        # NumPy multiplies integers slowly. In double precision, sums of up to 2**39 products are exact.
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    left, right = widened(a), widened(b)
    if compute == ComputeType.COMPUTE_32F_FAST_TF32:
        left, right = rounded_to_tf32(left), rounded_to_tf32(right)
    elif compute in (ComputeType.COMPUTE_32F_FAST_16F, ComputeType.COMPUTE_32F_FAST_16BF):
        kind = _HALF if compute == ComputeType.COMPUTE_32F_FAST_16F else BFLOAT16
        left, right = rounded(left, kind), rounded(right, kind)
    return np.asarray(left @ right)


def turned(matrix: Numbers, operation: int) -> Numbers:
    """Return op(matrix) for a cublasOperation_t."""
    if operation == Operation.N:
        return matrix
    return matrix.conj().T if operation == Operation.C and matrix.dtype.kind == "c" else matrix.T
