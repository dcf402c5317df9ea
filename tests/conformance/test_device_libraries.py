"""CUB, cuda::atomic_ref, cooperative groups and cuRAND, unmodified, give what a GPU gave."""

from __future__ import annotations

import pytest
from suite import store, table
from suite.frame import Case, differences, run

import cudart_py as cuda


@pytest.mark.parametrize("case", table.LIBRARIES, ids=lambda case: case.id)
def test_library_agrees_with_the_recorded_gpu(case: Case) -> None:
    recorded = store.expected(case)
    with cuda.Device(0):
        got = run(case)
    wrong = [differences(case, out, recorded[out.name], got[out.name]) for out in case.outs]
    assert not any(wrong), f"{case.group}.cu\n" + "\n".join(filter(None, wrong))
