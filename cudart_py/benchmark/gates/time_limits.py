"""Refusal of time limits (`--benchmark-compare-fail`) on drivers without GPU timing, where nothing is compared."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ...driver.capabilities import capabilities

_OURS = ("gpu_benchmark", "host_benchmark")
_REFUSAL = (
    "--benchmark-compare-fail limits times, and this driver does not measure any. Limit what it counts instead, for "
    "example by --counters-compare-fail=sectors:5%"
)


def why_not_limited(config: pytest.Config, items: Iterable[pytest.Item]) -> str | None:
    """Return why the time limits of a run cannot be applied to its tests, or None if they can or there are none.

    Without times, pytest-benchmark would let the run pass. It has times to compare if some test uses only
    pytest-benchmark's own fixture, which needs no driver.
    """
    if not config.getoption("benchmark_compare_fail", None) or config.getoption("benchmark_skip"):
        return None
    fixtures = [set(getattr(item, "fixturenames", ())) for item in items]
    benchmarks = [names for names in fixtures if "benchmark" in names]
    if not benchmarks or any(names.isdisjoint(_OURS) for names in benchmarks):
        return None
    # The capabilities are queried last, because this selects the driver.
    return None if "gpu_timing" in capabilities() else _REFUSAL
