"""Numbers: the dtypes for the libraries' type codes, and conversions to dtypes in which NumPy can compute."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from cuda.bindings.runtime import cudaDataType
from numpy.typing import NDArray

from ...ptx.operations.formats import widen

Numbers = NDArray[Any]

# Structures, because NumPy has no such dtypes.
BFLOAT16: np.dtype[Any] = np.dtype([("bfloat16", np.uint16)])
COMPLEX_HALF: np.dtype[Any] = np.dtype([("real", np.float16), ("imag", np.float16)])
E4M3: np.dtype[Any] = np.dtype([("float8_e4m3", np.uint8)])
E5M2: np.dtype[Any] = np.dtype([("float8_e5m2", np.uint8)])
# The formats of the PTX machine for the 8-bit floats.
_FORMATS = {E4M3: "e4m3", E5M2: "e5m2"}

# Keyed by cudaDataType.
DTYPES: dict[int, np.dtype[Any]] = {
    int(cudaDataType.CUDA_R_16F): np.dtype(np.float16),
    int(cudaDataType.CUDA_R_16BF): BFLOAT16,
    int(cudaDataType.CUDA_R_8F_E4M3): E4M3,
    int(cudaDataType.CUDA_R_8F_E5M2): E5M2,
    int(cudaDataType.CUDA_R_32F): np.dtype(np.float32),
    int(cudaDataType.CUDA_R_64F): np.dtype(np.float64),
    int(cudaDataType.CUDA_R_8I): np.dtype(np.int8),
    int(cudaDataType.CUDA_R_32I): np.dtype(np.int32),
    int(cudaDataType.CUDA_C_16F): COMPLEX_HALF,
    int(cudaDataType.CUDA_C_32F): np.dtype(np.complex64),
    int(cudaDataType.CUDA_C_64F): np.dtype(np.complex128),
}
# Keyed by the first letter of a function's name in BLAS and LAPACK.
LETTERS: dict[str, np.dtype[Any]] = {
    "s": np.dtype(np.float32),
    "d": np.dtype(np.float64),
    "c": np.dtype(np.complex64),
    "z": np.dtype(np.complex128),
}


def routine(name: str, dtype: np.dtype[Any]) -> str:
    """Return the name of a routine for a dtype, with its letter for `<t>`: "cublasDgemv" for "cublas<t>gemv"."""
    letter = next(letter for letter, known in LETTERS.items() if known == dtype)
    return name.replace("<t>", letter.upper())


def widened(numbers: Numbers) -> Numbers:
    """Return numbers in a dtype in which NumPy can compute: smaller floats become single precision."""
    if numbers.dtype in _FORMATS:
        patterns = np.ascontiguousarray(numbers).view(np.uint8)
        values: Numbers = _all_values(_FORMATS[numbers.dtype])[patterns]
        return values.reshape(numbers.shape)
    if numbers.dtype == BFLOAT16:
        bits = np.ascontiguousarray(numbers).view(np.uint16).astype(np.uint32) << np.uint32(16)
        return bits.view(np.float32).reshape(numbers.shape)
    if numbers.dtype == COMPLEX_HALF:
        return np.asarray(numbers["real"].astype(np.float32) + np.complex64(1j) * numbers["imag"])
    return numbers.astype(np.float32) if numbers.dtype == np.float16 else numbers


@functools.cache
def _all_values(kind: str) -> Numbers:
    """Return the values of all 256 patterns of a format of 8-bit floats."""
    return np.asarray(widen(np.arange(256, dtype=np.uint8), kind), np.float32)


def narrowed(numbers: Numbers, dtype: np.dtype[Any]) -> Numbers:
    """Return numbers rounded to a library's dtype: to nearest, ties to even."""
    if dtype == BFLOAT16:
        singles = np.ascontiguousarray(numbers, np.float32)
        bits = singles.view(np.uint32)
        with np.errstate(over="ignore"):  # the bits of a NaN may wrap around; they are replaced below
            rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
        halves = np.where(np.isnan(singles), np.uint32(0x7FC0), rounded).astype(np.uint16)
        return halves.view(BFLOAT16).reshape(singles.shape)
    if dtype == COMPLEX_HALF:
        pairs = np.empty(numbers.shape, COMPLEX_HALF)
        pairs["real"], pairs["imag"] = numbers.real, numbers.imag
        return pairs
    if dtype in _FORMATS:
        return _nearest(dtype, np.asarray(numbers, np.float32))
    with np.errstate(over="ignore"):  # a number that is too large becomes infinite, as on the device
        return numbers.astype(dtype)


def _nearest(dtype: np.dtype[Any], numbers: Numbers) -> Numbers:
    """Return single-precision numbers, none of them above the largest finite one, rounded to 8-bit floats."""
    values = _all_values(_FORMATS[dtype])[:128]
    finite = values[np.isfinite(values)].astype(np.float64)
    middles = (finite[1:] + finite[:-1]) / 2
    sizes = np.abs(numbers.astype(np.float64))
    below, above = np.searchsorted(middles, sizes, "left"), np.searchsorted(middles, sizes, "right")
    patterns = np.where(below % 2 == 0, below, above)  # of a tie, the even one
    patterns = np.where(np.isnan(numbers), 0x7F, patterns) | np.signbit(numbers).astype(np.int64) << 7
    found: Numbers = patterns.astype(np.uint8).view(dtype)
    return found.reshape(numbers.shape)


def rounded_to_tf32(numbers: Numbers) -> Numbers:
    """Return single-precision numbers rounded to TF32, which has 11 significant bits."""
    parts = np.ascontiguousarray(numbers)
    bits = parts.view(np.uint32)
    # Infinities and NaNs are not rounded.
    finite = np.isfinite(parts.view(np.float32))
    kept = np.where(finite, (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000), bits)
    return kept.view(numbers.dtype).reshape(numbers.shape)


def rounded(numbers: Numbers, dtype: np.dtype[Any]) -> Numbers:
    """Return single-precision numbers, real or complex, rounded to the values of float16 or BFLOAT16."""
    parts = np.ascontiguousarray(numbers)
    return widened(narrowed(parts.view(np.float32), dtype)).view(numbers.dtype).reshape(numbers.shape)


def from_host(address: int, dtype: Any) -> Any:
    """Return the number at a host address."""
    return _at(address, dtype)[0]


def to_host(address: int, dtype: Any, number: Any) -> None:
    """Write a number to a host address."""
    _at(address, dtype)[0] = number


def _at(address: int, dtype: Any) -> Numbers:
    kind = np.dtype(dtype)
    return np.ndarray(1, kind, (ctypes.c_char * kind.itemsize).from_address(address))
