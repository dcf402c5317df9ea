import numpy as np
import pytest

import cudart_py as cuda
from library_tour import timing
from library_tour.course import crank_nicolson
from library_tour.course.crank_nicolson import FACTORED, SHOWN, STRIKE, WAYS, Library, Systems, option
from library_tour.device_code import load
from library_tour.limits import latency_limit
from tests.tour.outcomes import counted


@pytest.fixture(scope="module")
def module():
    names = [f"{way.kernel}<double>" for way in WAYS.values()]
    with cuda.Device(0):
        yield load("crank_nicolson", names=[*names, f"{FACTORED.kernel}<float>", "advance<float>"])


def random_systems(rng, cells, steps=3, dtype=np.float64, count=3):
    """Return systems of random values, and the reference values of their nodes after the time steps."""
    start, edges = rng.random((count, cells + 1)), rng.random((count, 2, steps))
    numbers = crank_nicolson.scheme(rng.uniform(0.1, 0.5, count), cells, 1000)
    return Systems(start, numbers, edges, steps, dtype), crank_nicolson.reference(start, numbers, edges)


@pytest.mark.parametrize("name", WAYS)
def test_every_way_is_right_in_double_precision_and_those_of_a_block_with_any_number_of_cells(
    module, rng, monkeypatch, name
):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")  # too little work for compiling machine code
    of_a_block = name in ("cyclic reduction", "parallel reduction", "parallel, permuted")
    # More and fewer systems than a block has threads where one thread solves one system (32).
    for cells, count in ((16, 33), *((cells, 3) for cells in ((3, 129) if of_a_block else (40,)))):
        systems, expected = random_systems(rng, cells, count=count)
        systems.launch(module, WAYS[name])()
        assert np.abs(systems.end.to_host() - expected).max() < 1e-11


def test_the_prices_are_those_of_the_closed_form(module):
    assert crank_nicolson.errors_of(module, option(SHOWN, 64, 64, exact=True)).max() < 0.02


def test_at_half_the_strike_the_courses_boundary_is_wrong_by_interest(module):
    error = crank_nicolson.errors_of(module, option(SHOWN, 64, 64, exact=False))[0]
    assert error.max() == error[0] == pytest.approx(STRIKE / 2 * (1 - np.exp(-crank_nicolson.RATE)), rel=1e-3)


@pytest.mark.needs("libraries")
def test_graphs_of_cusparse_do_the_same_steps(module, monkeypatch):
    monkeypatch.setattr(crank_nicolson, "GRAPH_STEPS", 10)
    systems = option(SHOWN, 40, 2 * crank_nicolson.GRAPH_STEPS, exact=False)
    library = Library(module, systems)
    library.launch_graphs()
    by_graphs = systems.end.to_host()
    systems.launch(module, FACTORED)()
    assert np.abs(by_graphs - systems.end.to_host()).max() < 1e-3


def test_the_limit_is_the_latency_of_the_longest_chain(monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: True)
    device = cuda.Device(0)
    rate = latency_limit(device, operations=10, shuffles=2, amount=86, unit="Gcells/s").rate
    assert rate == pytest.approx(device.properties.clock_rate * 1e3 / 1e9)


@counted
def test_counters_tell_why_a_warp_is_faster(rows):
    names = ("parallel reduction", "one warp, eliminating", "one warp, factored")
    block, warp, factored = (rows[name].values for name in names)
    assert block["instructions"] > 5 * warp["instructions"] > 5 * factored["instructions"]
    assert rows["cyclic reduction"].values["conflicts"] > 5000 > block["conflicts"] == 0
