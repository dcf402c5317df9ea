"""Sizes of the benchmarks, which depend on whether they are timed."""

from collections.abc import Callable
from typing import Any

import pytest

import cudart_py as cuda


@pytest.fixture
def size(benchmark: Any) -> Callable[[int, int], int]:
    """Choose between the size to be timed and the one that runs as a test: `size(full, small)`."""
    timed = benchmark.enabled and "gpu_timing" in cuda.capabilities()
    return lambda full, small: full if timed else small
