import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import monte_carlo
from library_tour.course.nested_monte_carlo import (
    BLOCK,
    WAYS,
    Pricer,
    Stages,
    reference,
)
from tests.tour.outcomes import counted


@pytest.fixture(scope="module")
def pricer():
    device = cuda.Device(0)
    with device:
        yield Pricer(device)


def sums_of(pricer, name, stages, seed):
    """Return the sums for each start value, added up over all of its blocks."""
    sums = pricer.sums(WAYS[name], stages)
    pricer.launch(WAYS[name], stages, seed, sums)()
    return sums.to_host().sum(axis=1)


@pytest.mark.usefixtures("numpy_engine")
@pytest.mark.parametrize("shape", [(1, 1), (3, 33)])
def test_every_way_simulates_the_paths_of_every_start_value(pricer, shape):
    stages, seed = Stages(*shape, strike=30.0), 2**40 + 3
    expected = reference(stages, seed, 1)[:, 0]
    for name in WAYS:
        assert np.allclose(sums_of(pricer, name, stages, seed), expected, rtol=1e-4, atol=0.01), name


def test_the_paths_from_one_start_value_are_those_of_the_stop_monte_carlo(pricer):
    """The first indices belong to the first start value, 20; both kernels multiply by the same factors."""
    scheme = monte_carlo.SCHEMES["Euler"]
    one = monte_carlo.reference(scheme, 64, 5).sum(axis=0)
    stages = Stages(1, 64, strike=20.0)
    assert sums_of(pricer, "one warp each", stages, 5)[0, 0] == pytest.approx(one[0] * 20 / monte_carlo.START, rel=1e-4)


def test_many_paths_have_several_waves_of_blocks(pricer):
    for way, stages in ((WAYS[name], Stages(8, 2**24)) for name in ("one launch each", "several blocks each")):
        blocks = pricer.sums(way, stages).shape[1] * (stages.outer if way.one_launch else 1)
        wave = cuda.current_device().sm_count * pricer.module[way.kernel].occupancy(BLOCK).blocks
        assert 8 <= blocks / wave <= 32


@counted
def test_counters_tell_which_way_leaves_lanes_idle(rows):
    thread, warp, blocks = (rows[name].values for name in ("one thread each", "one warp each", "several blocks each"))
    assert thread["active lanes"] < 6 < 25 < blocks["active lanes"]
    assert thread["at 40"] > blocks["at 40"] > warp["at 40"]
