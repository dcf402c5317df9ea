"""Kernels for each group of instructions and each point of semantics give the results recorded on a GPU.

The kernels include uses of unmodified CUB, cuda::atomic_ref, cooperative groups and cuRAND.
"""

import json

import pytest

import cudart_py as cuda
from tests.conformance.suite import printing
from tests.conformance.suite.frame import DATA, Case, MissingDataError, differences, expected, run
from tests.conformance.suite.table import CASES

MARKS = {
    "shared_locks": pytest.mark.unsanitized(
        "racecheck knows barriers alone: what a lock in shared memory orders is a race to it"
    ),
    # NVRTC takes seconds to compile the headers.
    "block_reduce": pytest.mark.exhaustive,
    "block_histogram": pytest.mark.exhaustive,
    "groups": pytest.mark.exhaustive,
}


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
