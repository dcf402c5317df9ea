"""Random kernels give a GPU's results, bit for bit."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suite import random_run, store
from suite.frame import Array
from suite.random_kernels import LANES, source

import cudart_py as cuda


@functools.cache
def recorded() -> tuple[Array, dict[str, int]]:
    arrays, metadata = store.load("random")
    return arrays["words"], metadata["digests"]


def first_difference(expected: Array, got: Array) -> str:
    where = np.flatnonzero(expected != got)
    if not where.size:
        return ""
    at = int(where[0])
    array, lane = ("out", at % (2 * LANES)) if at < 8 * LANES else ("totals", at - 8 * LANES)
    return f"{where.size} words differ; word {at} ({array}, lane {lane}): {expected[at]:#010x}, got {got[at]:#010x}"


# The others run at the exhaustive level.
FEW = 4
BATCHES = [
    pytest.param(seeds, marks=[pytest.mark.exhaustive] if at >= FEW else [])
    for at, seeds in enumerate(random_run.batches())
]


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_kernels_of_these_seeds_agree_with_the_recorded_gpu(seeds: range) -> None:
    words, digests = recorded()
    wrong = []
    with cuda.Device(0):
        module = random_run.compiled(seeds)
        for seed in seeds:
            if digests.get(str(seed)) != random_run.digest(seed):
                raise store.MissingDataError(
                    f"seed {seed} was never recorded as it is now: run `{store.COMMAND}` on a machine with a GPU"
                )
            if difference := first_difference(words[seed], random_run.result(module, seed)):
                wrong.append(f"seed {seed}: {difference}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the software counts, and has no tool beside it")
def test_both_engines_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    seeds = range(12)
    counted = {}
    with cuda.Device(0), cuda.checks("off"):
        module = random_run.compiled(seeds)
        for engine in ("numpy", "native"):
            monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
            with cuda.profile() as profile:
                for seed in seeds:
                    random_run.result(module, seed)
            counted[engine] = profile.launches
    assert len(counted["native"]) == len(seeds)
    assert counted["native"] == counted["numpy"]


@given(seed=st.integers(10_000, 10**9))
@settings(max_examples=6)
def test_a_kernel_gives_the_same_compiled_for_debugging(seed: int) -> None:
    """Optimised and unoptimised PTX of one kernel are different programs with one result."""
    with cuda.Device(0):
        fast = random_run.result(random_run.compiled([seed]), seed)
        slow = random_run.result(random_run.compiled([seed], "--device-debug"), seed)
    assert not first_difference(fast, slow)


def test_a_seed_always_gives_the_same_kernel() -> None:
    assert source([3, 4]) == source([3, 4])
    assert source([3]) != source([4])
