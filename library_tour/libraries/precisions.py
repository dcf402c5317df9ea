"""The precisions of matrix products: their dtypes, random numbers, error bounds and peak rates."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.benchmark.device.ceilings import measured_ceiling
from cudart_py.libraries import bfloat16, from_bfloat16, to_bfloat16

from ..inputs import INPUT_BLOCK, repeated

Array = NDArray[Any]


class Precision(NamedTuple):
    """A dtype and how its products are computed; `operations` is the number of operations per multiply-add."""

    dtype: Any
    unit: str
    compute: str | None = None
    operations: int = 2


PRECISIONS = {
    "float32": Precision(np.float32, "fp32"),
    "float64": Precision(np.float64, "fp64"),
    "complex64": Precision(np.complex64, "fp32", operations=8),
    "complex128": Precision(np.complex128, "fp64", operations=8),
    "float16": Precision(np.float16, "halves"),
    "bfloat16": Precision(bfloat16, "halves"),
    "TF32": Precision(np.float32, "tf32", "tf32"),
}
# Multiply-adds per clock of a multiprocessor's tensor cores, by compute capability; they do not support fp32.
TENSOR_LANES = {
    (8, 0): {"fp64": 64, "tf32": 512, "halves": 1024, "8-bit": 2048},
    (9, 0): {"fp64": 128, "tf32": 1024, "halves": 2048, "8-bit": 4096},
}


def numbers(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return normally distributed elements of a dtype."""
    random = np.random.default_rng()
    kind = np.dtype(dtype)
    if kind.itemsize <= 4:  # single precision is generated faster
        values: Array = random.standard_normal(shape, np.float32)
        return to_bfloat16(values) if kind == bfloat16 else values.astype(kind)
    values = random.standard_normal(shape)
    if kind.kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(kind)


def on_device(shape: tuple[int, ...], dtype: Any) -> cuda.DeviceArray:
    """Return normally distributed elements on the device, which repeat one block."""
    count = math.prod(shape)
    return repeated(numbers((min(count, INPUT_BLOCK),), dtype), count).reshape(*shape)


def exact(x: Array) -> Array:
    """Return the elements in NumPy's longest precision."""
    if x.dtype == bfloat16:
        x = from_bfloat16(x)
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def unit_roundoff(dtype: Any, compute: str | None = None) -> float:
    """Return the largest relative error of rounding to a dtype, or with compute="tf32" to 11 significant bits."""
    if compute == "tf32":
        return 2.0**-11
    kind = np.dtype(dtype)
    return 2.0**-8 if kind == bfloat16 else float(np.finfo(kind).eps) / 2


def bound_of(dtype: Any, inner: int, compute: str | None = None) -> float:
    """Return the bound of a product's error, relative to the product of the norms.

    Each of `inner` additions rounds once, in single precision for halves; inputs of TF32 and results of halves
    round once more. A complex product takes four real products and two sums.
    """
    kind = np.dtype(dtype)
    inside = 2.0**-53 if kind in (np.float64, np.complex128) else 2.0**-24
    return (4 if kind.kind == "c" else 1) * inner * inside + 2 * unit_roundoff(kind, compute)


def peak_of(device: cuda.Device, unit: str) -> float | None:
    """Return a unit's peak in TFLOP/s: of tensor cores at the maximum clock, else as measured; None if unknown."""
    lanes = TENSOR_LANES.get(device.compute_capability, {}).get(unit)
    if lanes:
        return 2e-9 * lanes * device.sm_count * device.properties.clock_rate
    return 1e-12 * measured_ceiling(device, unit) if unit in ("fp32", "fp64") else None
