"""What is measured beside its peers: in turns, with the ratios of the rounds."""

from __future__ import annotations

import pytest

from cudart_py.benchmark import Measurement, MeasureOptions, measure_host
from cudart_py.benchmark.peers import in_turns, measure_beside


def test_every_other_round_goes_the_other_way():
    order = []
    works = {name: lambda name=name: order.append(name) or len(order) for name in "abc"}
    assert in_turns(works, 3) == {"a": [1, 6, 7], "b": [2, 5, 8], "c": [3, 4, 9]}
    assert "".join(order) == "abccbaabc"


@pytest.fixture
def method():
    """A measurement that takes what the code returns as its samples, and notes what it is told."""

    def measure(fn, *, options, stream=None, batch=None):
        measure.told.append((options, stream, batch))
        return Measurement(tuple(fn()), batch=7, rejected=1, clock_mhz=1980.0)

    measure.told = []
    return measure


def test_the_ratio_is_the_median_of_the_rounds(method, event_times):
    ours = iter([(2.0, 2.0), (3.0, 3.0), (5.0, 5.0)])
    found = measure_beside(method, lambda: next(ours), {"other": lambda: (2.0,)}, options=MeasureOptions())
    assert found.samples == (2.0, 2.0, 3.0, 3.0, 5.0, 5.0)
    assert (found.rejected, found.clock_mhz, found.batch) == (3, 1980.0, 7)
    assert found.peers["other"] == pytest.approx((2.0, 1.5, 1.0))
    assert found.as_dict()["beside"]["other"]["ratio"] == 1.5


def test_the_rounds_share_the_time_and_keep_the_first_ones_batch(method, event_times):
    options = MeasureOptions(min_samples=10, min_seconds=0.3, max_seconds=0.6)
    measure_beside(method, lambda: (1.0,), {"other": lambda: (1.0,)}, options=options, stream="s")
    shares = [told for told, _, _ in method.told]
    assert {(one.min_samples, round(one.max_seconds, 3)) for one in shares} == {(4, 0.2)}
    assert [(stream, batch) for _, stream, batch in method.told] == [("s", None)] * 2 + [("s", 7)] * 4


def test_the_hosts_cost_is_measured_beside_another_calls(device, event_times):
    options = MeasureOptions(min_samples=3, min_seconds=0, max_seconds=0, warm_up_seconds=0)
    assert measure_beside(measure_host, list, {"other": dict}, options=options).peers["other"].ratio > 0
