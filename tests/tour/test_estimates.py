"""The estimates of variants' costs, compared with the times that an H200 took for them."""

import pytest

from cudart_py.profiling.metric_names import WARPS
from tests.benchmarks.peers.estimates import LEAST_CORRELATION, Variant, correlation, estimated_variants, ranks


@pytest.mark.needs("profile")
def test_estimates_order_the_variants_of_a_stop_as_measured_times_do():
    variants = estimated_variants("launch_shapes", 2**18 + 3)[""]
    assert len(variants) == 10
    assert correlation(variants) >= LEAST_CORRELATION
    # Latency limits both of these, which are five times as fast with 32 lanes as with one.
    few, warp = (next(one for one in variants if one.name == name) for name in ("1 thread", "32 threads"))
    assert few.estimate / warp.estimate == pytest.approx(few.measured / warp.measured, rel=0.5)


def test_values_that_differ_by_little_share_their_mean_rank():
    assert ranks([1.0, 5.0, 1.02, 3.0, 1.029, 5.3]) == [2, 5, 2, 4, 2, 6]


def test_the_correlation_is_spearmans():
    # By hand: the differences of the ranks are 0, 1, -1, 0, so that 1 - 6 * 2 / (4 * 15) remains.
    variants = [Variant("", estimate, time, WARPS) for estimate, time in ((1, 10), (2, 30), (4, 20), (8, 40))]
    assert correlation(variants) == pytest.approx(0.8)
    assert correlation([variant._replace(measured=1.0) for variant in variants]) == 0
