"""Random kernels race exactly if a comparison of all pairs of their accesses, made without the simulator, says so."""

import pytest

from tests.fuzz import random_races
from tests.simulator.checks.reports import WRONG_ON_PURPOSE

pytestmark = WRONG_ON_PURPOSE


# Compiling to machine code takes most of the time, so the native engine runs fewer kernels by default.
@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize(
    ("engine", "seed", "count"),
    [
        ("numpy", 1, 75),
        ("native", 1, 10),
        pytest.param("numpy", 2, 500, marks=pytest.mark.exhaustive),
        pytest.param("native", 2, 50, marks=pytest.mark.exhaustive),
    ],
    indirect=["engine"],
    ids=str,
)
@pytest.mark.usefixtures("engine")
def test_threads_race_if_a_comparison_of_all_their_accesses_says_so(seed: int, count: int, space: str) -> None:
    for first in range(0, count, random_races.BATCH):
        numbers = range(first, min(first + random_races.BATCH, count))
        made = [random_races.make(seed, number, space) for number in numbers]
        wrong = [(kernel.source, texts) for kernel, texts in random_races.mistakes(made)]
        assert not wrong, wrong
