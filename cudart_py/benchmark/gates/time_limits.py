"""Limits of times, `--benchmark-compare-fail`, where the driver does not time: nothing would be compared."""

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
    """Return why the limits of times of a run of some tests can't be applied; None where they can, or there are none.

    pytest-benchmark finds no times then, and would let the run pass. It has something to compare where one of the tests
    uses its own fixture alone, which needs no driver.
    """
    if not config.getoption("benchmark_compare_fail", None) or config.getoption("benchmark_skip"):
        return None
    fixtures = [set(getattr(item, "fixturenames", ())) for item in items]
    benchmarks = [names for names in fixtures if "benchmark" in names]
    if not benchmarks or any(names.isdisjoint(_OURS) for names in benchmarks):
        return None
    # Only here, since asking chooses the driver.
    return None if "gpu_timing" in capabilities() else _REFUSAL
