"""Sizes for the benchmarks, and the level at which they run, which depend on whether they are timed."""

from collections.abc import Callable
from typing import Any

import pytest

import cudart_py as cuda


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave benchmarks of stops that are not timed to the exhaustive level: the tour's tests run these variants too."""
    if not config.getoption("benchmark_enable"):
        for item in items:
            if item.path.name == "bench_stops.py" and hasattr(item, "callspec"):
                item.add_marker(pytest.mark.exhaustive)


@pytest.fixture
def size(benchmark: Any) -> Callable[[int, int], int]:
    """Return a function `size(full, small)` that returns the size for timing, or the small one for a test."""
    timed = benchmark.enabled and "gpu_timing" in cuda.capabilities()
    return lambda full, small: full if timed else small
