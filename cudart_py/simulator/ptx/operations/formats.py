"""The 8-bit and 16-bit float formats on arrays: lowerings as array functions, for use outside of generated code."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..instructions.number_formats import formats

Array = NDArray[Any]


def widen(patterns: Array, kind: str) -> Array:
    """Widen patterns of ``f16``, ``bf16``, ``e4m3`` or ``e5m2`` to single precision."""
    found: Array = array_function(formats.to_single, formats.FORMATS[kind].type, told=(kind,))(patterns)
    return found


def narrow(numbers: Array, kind: str) -> Array:
    """Round double precision to patterns of ``f16`` or ``bf16``."""
    found: Array = array_function(formats.narrow, "f64", told=(kind,))(numbers)
    return found
