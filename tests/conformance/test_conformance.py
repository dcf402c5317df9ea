"""Kernels for each group of instructions and each point of semantics give the results recorded on a GPU.

The kernels include uses of unmodified CUB, cuda::atomic_ref, cooperative groups and cuRAND.
"""

import json
from functools import partial
from typing import Any

import pytest

import cudart_py as cuda
from tests.conformance.suite import printing
from tests.conformance.suite.frame import DATA, TOGETHER, Case, differences, expected, run
from tests.conformance.suite.table import CASES

SHARED_LOCKS = pytest.mark.unsanitized(
    "racecheck knows barriers alone: what a lock in shared memory orders is a race to it"
)


def case_with_marks(case: Case) -> Any:
    marks = [SHARED_LOCKS] if case.kernel == "shared_locks" else []
    # NVRTC takes seconds to compile these groups' headers.
    if case.group in TOGETHER or case.group == "curand":
        marks.append(pytest.mark.exhaustive)
    return pytest.param(case, marks=marks, id=f"{case.group}-{case.id}".replace(" ", "-"))


def in_machine_code(case: Case) -> Any:
    """Return a case for the native engine, to which `auto` leaves few of these small launches."""
    marks = [] if case.group == "atomics" else [pytest.mark.exhaustive]
    return pytest.param(case, marks=marks, id=f"{case.group}-{case.id}".replace(" ", "-"))


@pytest.mark.parametrize("case", [case_with_marks(case) for case in CASES])
def test_kernel_agrees_with_the_recorded_gpu(case: Case) -> None:
    check(case)


@pytest.mark.needs("in_process")
@pytest.mark.parametrize("case", [in_machine_code(case) for case in CASES])
def test_machine_code_agrees_with_the_recorded_gpu(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "native")
    check(case)


def check(case: Case) -> None:
    recorded = expected(case)
    with cuda.Device(0):
        got = run(case)
    wrong = [differences(case, out, recorded[out.name], got[out.name]) for out in case.outs]
    assert not any(wrong), f"{case.group}.cu, {case.id}\n" + "\n".join(filter(None, wrong))


@pytest.mark.parametrize("kernel", printing.KERNELS)
def test_printed_text_and_status_agree_with_the_recorded_gpu(python: Any, kernel: str) -> None:
    recorded = json.loads((DATA / "printing.json").read_text())["results"]
    assert printing.run(kernel, partial(python, check=False)) == recorded[kernel]
