"""The 8-bit and 16-bit float formats on arrays: lowerings as array functions, for use outside of generated code."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from numpy.typing import NDArray

from ..arrays.functions import array_function
from ..instructions.number_formats import formats

Array = NDArray[Any]


def widen(patterns: Array, kind: str) -> Array:
    """Widen patterns of ``f16``, ``bf16``, ``e4m3`` or ``e5m2`` to single precision."""
    return _widening(kind)(patterns)


@lru_cache
def _widening(kind: str) -> Callable[[Array], Array]:
    return array_function(partial(formats.to_single, kind), f"u{formats.FORMATS[kind].width}")


def narrow(numbers: Array, kind: str) -> Array:
    """Round double precision to patterns of ``f16`` or ``bf16``."""
    return _narrowing(kind)(numbers)


@lru_cache
def _narrowing(kind: str) -> Callable[[Array], Array]:
    return array_function(partial(formats.narrow, kind), "f64")
