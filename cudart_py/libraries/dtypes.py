"""The dtypes of CUDA's libraries, including those that NumPy lacks: bfloat16, complex32 and the 8-bit floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..base import arguments

# A structure with one field, since a plain uint16 array would be mistaken for integers.
bfloat16: np.dtype[Any] = np.dtype([("bfloat16", np.uint16)])
"""The dtype of bfloat16 arrays. NumPy cannot compute with it: convert with `to_bfloat16` and `from_bfloat16`."""

float8_e4m3: np.dtype[Any] = np.dtype([("float8_e4m3", np.uint8)])
"""The dtype of 8-bit floats with a 4-bit exponent, up to 448 and without infinities; see `to_float8`."""

float8_e5m2: np.dtype[Any] = np.dtype([("float8_e5m2", np.uint8)])
"""The dtype of 8-bit floats with a 5-bit exponent, up to 57344; see `to_float8`."""

# NumPy has no complex dtype with float16 components.
complex32: np.dtype[Any] = np.dtype([("real", np.float16), ("imag", np.float16)])
"""The dtype of complex numbers with two float16 components."""


@dataclass(frozen=True)
class Kind:
    """A dtype in the libraries' terms.

    `code` is its cudaDataType, and `letter` is its letter in the names of BLAS functions, empty if it has none. `real`
    is the dtype of norms and singular values, and `scalar` is the dtype of alpha, beta and the arithmetic.
    """

    name: str
    code: int
    letter: str
    real: np.dtype[Any]
    scalar: np.dtype[Any]

    @property
    def is_complex(self) -> bool:
        """Whether the numbers are complex."""
        return self.scalar.kind == "c"

    @property
    def scalar_code(self) -> int:
        """The cudaDataType of `scalar`."""
        return KINDS[self.scalar].code


def _kind(name: str, code: int, letter: str, scalar: str) -> Kind:
    kind = np.dtype(scalar)
    return Kind(name, code, letter, np.empty(0, kind).real.dtype, kind)


# The codes are values of cudaDataType in library_types.h.
KINDS: dict[np.dtype[Any], Kind] = {
    np.dtype(np.float16): _kind("float16", 2, "", "float32"),
    bfloat16: _kind("bfloat16", 14, "", "float32"),
    np.dtype(np.float32): _kind("float32", 0, "s", "float32"),
    np.dtype(np.float64): _kind("float64", 1, "d", "float64"),
    np.dtype(np.complex64): _kind("complex64", 4, "c", "complex64"),
    np.dtype(np.complex128): _kind("complex128", 5, "z", "complex128"),
    float8_e4m3: _kind("float8_e4m3", 28, "", "float32"),
    float8_e5m2: _kind("float8_e5m2", 29, "", "float32"),
    np.dtype(np.int8): _kind("int8", 3, "", "int32"),
    np.dtype(np.int32): _kind("int32", 10, "", "int32"),
}


# The names that other packages, such as ml_dtypes, have for dtypes that NumPy lacks.
_FOREIGN = {"bfloat16": bfloat16, "float8_e4m3fn": float8_e4m3, "float8_e5m2": float8_e5m2}
_NAMES = {bfloat16: "bfloat16", complex32: "complex32", float8_e4m3: "float8_e4m3", float8_e5m2: "float8_e5m2"}


def kind_of(dtype: np.dtype[Any]) -> Kind | None:
    """Return the `Kind` of a dtype, or None if the libraries have no arithmetic for it.

    A bfloat16 dtype, or one of 8-bit floats, of another package is recognised by its name.
    """
    kind = KINDS.get(dtype)
    return KINDS[_FOREIGN[dtype.name]] if kind is None and dtype.name in _FOREIGN else kind


def name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype for messages."""
    return _NAMES.get(dtype, str(dtype))


def to_bfloat16(x: ArrayLike) -> NDArray[Any]:
    """Round each number to the nearest bfloat16, with ties to even. NaNs remain NaNs."""
    numbers = arguments.host_array("to_bfloat16", "x", x)
    if numbers.dtype.kind not in "biuf":
        raise arguments.wrong_type("to_bfloat16", "x", "numbers", x)
    singles = _rounded_to_odd(numbers)
    bits = singles.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    with np.errstate(over="ignore"):  # the bits of a NaN may wrap around; they are replaced below
        halves = ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    halves = np.where(np.isnan(singles), np.uint16(0x7FC0), halves)
    return np.ascontiguousarray(halves).view(bfloat16).reshape(singles.shape)


def _rounded_to_odd(numbers: NDArray[Any]) -> NDArray[np.float32]:
    """Return contiguous float32 numbers; those that are not exact have been rounded to one with an odd last bit.

    Rounding them again, to a type with fewer bits, then gives the number nearest to the original one. Rounding to the
    nearest float32 first would not: it can produce a tie.
    """
    with np.errstate(all="ignore"):
        singles = np.ascontiguousarray(numbers.astype(np.float32)).reshape(numbers.shape)
    if numbers.dtype.kind == "b" or numbers.dtype.itemsize <= 2 or numbers.dtype == np.float32:
        return singles
    exact = numbers.astype(np.longdouble)  # which represents 64-bit integers
    bits = singles.view(np.uint32)
    bits -= np.abs(singles.astype(np.longdouble)) > np.abs(exact)  # truncated towards zero
    bits |= singles.astype(np.longdouble) != exact
    return singles


def from_bfloat16(x: NDArray[Any]) -> NDArray[np.float32]:
    """Convert bfloat16 numbers to float32, which represents them exactly."""
    arguments.instance("from_bfloat16", "x", x, np.ndarray, "a NumPy array of bfloat16")
    if kind_of(x.dtype) is not KINDS[bfloat16] and x.dtype != np.uint16:
        raise arguments.wrong_type("from_bfloat16", "x", "a NumPy array of bfloat16", x)
    halves = np.ascontiguousarray(x).view(np.uint16).astype(np.uint32) << np.uint32(16)
    return halves.view(np.float32).reshape(x.shape)


def to_float8(x: ArrayLike, dtype: DTypeLike = float8_e4m3) -> NDArray[Any]:
    """Round each number to the nearest 8-bit float, with ties to even.

    `dtype` is `float8_e4m3` or `float8_e5m2`. Larger numbers, and infinities, become the largest finite number, as in
    CUDA's saturating conversions. NaNs remain NaNs.
    """
    call = "to_float8"
    numbers, kind = arguments.host_array(call, "x", x), _float8(call, dtype)
    if numbers.dtype.kind not in "biuf":
        raise arguments.wrong_type(call, "x", "numbers", x)
    values = _values(kind)
    numbers = np.asarray(numbers, np.float64)
    sizes = np.minimum(np.abs(numbers), values[-1])
    middles = (values[1:] + values[:-1]) / 2
    below, above = np.searchsorted(middles, sizes, "left"), np.searchsorted(middles, sizes, "right")
    patterns = np.where(below % 2 == 0, below, above)  # of the two nearest, the even one
    patterns = np.where(np.isnan(numbers), 0x7F, patterns) | np.signbit(numbers).astype(np.int64) << 7
    return np.ascontiguousarray(patterns.astype(np.uint8)).view(kind).reshape(numbers.shape)


def from_float8(x: NDArray[Any]) -> NDArray[np.float32]:
    """Convert 8-bit floats to float32, which represents them exactly."""
    call = "from_float8"
    arguments.instance(call, "x", x, np.ndarray, "a NumPy array of 8-bit floats")
    kind = kind_of(x.dtype)
    if kind is None or not kind.name.startswith("float8"):
        raise arguments.wrong_type(call, "x", "a NumPy array of 8-bit floats", x)
    values = _values(float8_e4m3 if kind.name == "float8_e4m3" else float8_e5m2)
    infinities = [np.inf] if kind.name == "float8_e5m2" else []
    positive = np.concatenate([values, infinities, np.full(128 - len(values) - len(infinities), np.nan)])
    patterns = np.ascontiguousarray(x).view(np.uint8)
    return np.concatenate([positive, -positive]).astype(np.float32)[patterns].reshape(x.shape)


def _float8(call: str, dtype: DTypeLike) -> np.dtype[Any]:
    kind = kind_of(arguments.dtype(call, "dtype", dtype))
    if kind is None or not kind.name.startswith("float8"):
        raise arguments.wrong_dtype(call, "dtype", "float8_e4m3 or float8_e5m2", name_of(np.dtype(dtype)))
    return float8_e4m3 if kind.name == "float8_e4m3" else float8_e5m2


def _values(dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Return the finite 8-bit floats that are not negative, in the order of their patterns."""
    bits, bias, last = (3, 7, 0x7E) if dtype == float8_e4m3 else (2, 15, 0x7B)
    patterns = np.arange(last + 1)
    exponents, fractions = patterns >> bits, (patterns & ((1 << bits) - 1)) / (1 << bits)
    return np.asarray(np.where(exponents, 1 + fractions, fractions) * 2.0 ** (np.maximum(exponents, 1) - bias))
