"""Steps: planted steps are found, and noise alone rarely contains any."""

import itertools
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudart_py.benchmark.history import find_steps
from cudart_py.benchmark.history.steps import best_fits

RUNS = 20
SEEDS = range(200)


def noise(kind, seed, count, size):
    """Return numbers around 1 with noise of standard deviation `size`, of a kind that occurs on real machines."""
    rng = np.random.default_rng(seed)
    if kind == "laplace":
        return 1 + rng.laplace(0, size / 2**0.5, count)
    found = rng.normal(0, size, count)
    if kind == "outliers":  # one run in twenty is slow
        found += (rng.random(count) < 0.05) * rng.exponential(8 * size, count)
    if kind == "drifting":  # each run resembles the previous one
        for place in range(1, count):
            found[place] += 0.5 * found[place - 1]
    return 1 + found


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=7), st.integers(1, 3))
def test_each_fit_is_the_best_of_its_number_of_steps(values, shortest):
    count = len(values)
    for steps, (error, found) in enumerate(best_fits(values, shortest)):
        if count < shortest:
            continue
        every = {
            positions: sum(
                abs(value - statistics.median(values[start:end]))
                for start, end in itertools.pairwise((0, *positions, count))
                for value in values[start:end]
            )
            for positions in itertools.combinations(range(1, count), steps)
            if all(end - start >= shortest for start, end in itertools.pairwise((0, *positions, count)))
        }
        assert len(found) == steps
        assert error == pytest.approx(min(every.values()))
        assert every[tuple(found)] == pytest.approx(error)


@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_two_planted_steps_in_twenty_runs_are_found_and_no_other(kind):
    """The steps are about 10 % in noise of 1 %, and are found in at least 99 % of the histories."""
    planted = np.repeat([1.0, 1.1, 0.99], [7, 7, 6])
    found = [find_steps(planted * noise(kind, seed, RUNS, 0.01)) for seed in SEEDS]
    assert found.count([7, 14]) >= 0.99 * len(SEEDS)


@pytest.mark.parametrize(
    ("kind", "count", "size", "rate"),
    [
        ("normal", RUNS, 0.003, 0.005),
        ("laplace", RUNS, 0.05, 0.005),
        ("outliers", RUNS, 0.01, 0.005),
        ("drifting", RUNS, 0.01, 0.03),
        ("normal", 6, 0.02, 0.02),
        ("normal", 8, 0.02, 0.02),
    ],
)
def test_noise_alone_has_a_step_at_most_so_often(kind, count, size, rate):
    """The rate is 1 in 200 histories if the runs are independent, and higher if they drift or are few."""
    alarms = sum(bool(find_steps(noise(kind, seed, count, size))) for seed in SEEDS)
    assert alarms <= rate * len(SEEDS)


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([1.0] * 7 + [1.5] * 3, [7]),
        ([1.0] * 3 + [2.0] * 3, [3]),
        (np.tile(np.repeat([1.0, 1.2], 20), 6), list(range(20, 240, 20))),
        # One or two slow runs are not a step.
        ([1.0, 1.001, 0.999, 1.5, 1.0, 1.001, 0.999, 1.0, 1.5, 1.5, 1.0, 0.999, 1.001, 1.0], []),
        # A change of less than 1 % is not a step.
        ([1.0] * 10 + [1.009] * 10, []),
        ([1.0] * 10 + [1.011] * 10, [10]),
        # The unit does not matter.
        ([1e-9] * 5 + [2e-9] * 5 + [10e-9] * 5, [5, 10]),
        ([1e6] * 5 + [2e6] * 5 + [10e6] * 5, [5, 10]),
        # Constant values and short histories have no steps.
        ([], []),
        ([1.0], []),
        ([1.0] * 2 + [2.0] * 3, []),
        ([1.0] * 30, []),
        ([0.0] * 30, []),
    ],
)
def test_steps_are_found_where_they_are(values, steps):
    assert find_steps(list(values)) == steps
