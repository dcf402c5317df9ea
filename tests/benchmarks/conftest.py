"""Sizes for the benchmarks, which depend on whether they are timed."""

from collections.abc import Callable
from typing import Any

import pytest

import cudart_py as cuda


@pytest.fixture
def size(benchmark: Any) -> Callable[[int, int], int]:
    """Return a function `size(full, small)` that returns the size for timing, or the small one for a test."""
    timed = benchmark.enabled and "gpu_timing" in cuda.capabilities()
    return lambda full, small: full if timed else small
