"""What the benchmarks share: whether times are wanted, sizes for that, and what the scripts measure too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cudart_py as cuda

# The modules of scripts/ import each other by their names alone.
sys.path.append(str(Path(__file__).parents[2] / "scripts"))


@pytest.fixture
def size(benchmark: Any) -> Callable[[int, int], int]:
    """Choose between the size to be timed and the one that runs as a test: `size(full, small)`."""
    timed = benchmark.enabled and "gpu_timing" in cuda.capabilities()
    return lambda full, small: full if timed else small
