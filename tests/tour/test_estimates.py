"""The estimates of variants' costs, compared with the times that an H200 took for them."""

import pytest

from cudart_py.profiling.metric_names import WARPS
from tests.benchmarks.peers.estimates import LEAST_CORRELATION, Variant, correlation, ranks, variants_of
from tests.tour import outcomes


@outcomes.counted
@pytest.mark.parametrize(("name", "least"), [("coalescing", 7), ("transpose", 8)])
def test_estimates_order_the_variants_of_a_stop_as_measured_times_do(name, least):
    variants = variants_of(name, outcomes.outcome(name).result)[""]
    assert len(variants) >= least
    assert correlation(variants) >= LEAST_CORRELATION


def test_values_that_differ_by_little_share_their_mean_rank():
    assert ranks([1.0, 5.0, 1.02, 3.0, 1.029, 5.3]) == [2, 5, 2, 4, 2, 6]


def test_the_correlation_is_spearmans():
    # By hand: the differences of the ranks are 0, 1, -1, 0, so that 1 - 6 * 2 / (4 * 15) remains.
    variants = [Variant("", estimate, time, WARPS) for estimate, time in ((1, 10), (2, 30), (4, 20), (8, 40))]
    assert correlation(variants) == pytest.approx(0.8)
    assert correlation([variant._replace(measured=1.0) for variant in variants]) == 0
