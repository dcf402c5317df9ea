"""One kernel for each group of instructions and each point of semantics gives what a GPU gave.

Of CUB, cuda::atomic_ref, cooperative groups and cuRAND, unmodified, too. Random kernels do so bit for bit.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cudart_py as cuda
from tests.conformance.suite import printing
from tests.conformance.suite.frame import DATA, Case, MissingDataError, differences, expected, load, run
from tests.conformance.suite.random_kernels import batches, compiled, digest, result
from tests.conformance.suite.table import CASES

MARKS = {
    "shared_locks": pytest.mark.unsanitized(
        "racecheck knows barriers alone: what a lock in shared memory orders is a race to it"
    ),
    # NVRTC takes seconds for the headers.
    "block_reduce": pytest.mark.exhaustive,
    "block_histogram": pytest.mark.exhaustive,
    "groups": pytest.mark.exhaustive,
}
# More random kernels run at the exhaustive level.
FEW = 3


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=MARKS.get(case.kernel, ())) for case in CASES],
    ids=lambda case: f"{case.group}-{case.id}".replace(" ", "-"),
)
def test_kernel_agrees_with_the_recorded_gpu(case: Case) -> None:
    recorded = expected(case)
    with cuda.Device(0):
        got = run(case)
    wrong = [differences(case, out, recorded[out.name], got[out.name]) for out in case.outs]
    assert not any(wrong), f"{case.group}.cu, {case.id}\n" + "\n".join(filter(None, wrong))


@pytest.mark.parametrize("kernel", printing.KERNELS)
def test_printed_text_and_status_agree_with_the_recorded_gpu(kernel: str) -> None:
    path = DATA / "printing.json"
    if not path.is_file():
        raise MissingDataError(path.name)
    assert printing.run(kernel) == json.loads(path.read_text())["results"][kernel]


@pytest.mark.parametrize(
    "seeds",
    [pytest.param(seeds, marks=[pytest.mark.exhaustive] * (at >= FEW)) for at, seeds in enumerate(batches())],
    ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}",
)
def test_random_kernels_of_these_seeds_agree_with_the_recorded_gpu(seeds: range) -> None:
    arrays, digests = load("random")
    with cuda.Device(0):
        module = compiled(seeds)
        for seed in seeds:
            if digests.get(str(seed)) != digest(seed):
                raise MissingDataError(f"seed {seed}")
            np.testing.assert_array_equal(result(module, seed), arrays["words"][seed], f"seed {seed}")


@given(seed=st.integers(10_000, 10**9))
@settings(max_examples=4)
def test_a_kernel_gives_the_same_compiled_for_debugging(seed: int) -> None:
    """Optimised and unoptimised PTX of one kernel are different programs with one result."""
    with cuda.Device(0):
        fast, slow = (result(compiled([seed], *options), seed) for options in ((), ("--device-debug",)))
    np.testing.assert_array_equal(slow, fast)
