"""One kernel for each group of instructions and each point of semantics gives what a GPU gave."""

from __future__ import annotations

import json

import pytest
from suite import printing, store, table
from suite.frame import Case, differences, run

import cudart_py as cuda


def agree(case: Case) -> None:
    """Run a case and compare everything it leaves with what was recorded."""
    recorded = store.expected(case)
    with cuda.Device(0):
        got = run(case)
    wrong = [differences(case, out, recorded[out.name], got[out.name]) for out in case.outs]
    assert not any(wrong), f"{case.group}.cu, {case.id}\n" + "\n".join(filter(None, wrong))


LOCKS = {"shared_locks"}
BARRIERS = pytest.mark.unsanitized(
    "racecheck knows barriers alone: what a lock in shared memory orders is a race to it"
)
CASES = [pytest.param(case, marks=BARRIERS) if case.kernel in LOCKS else case for case in table.CONFORMANCE]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}-{case.id}".replace(" ", "-"))
def test_kernel_agrees_with_the_recorded_gpu(case: Case) -> None:
    agree(case)


@pytest.mark.parametrize("kernel", printing.KERNELS)
def test_printed_text_and_status_agree_with_the_recorded_gpu(kernel: str) -> None:
    path = store.DATA / "printing.json"
    if not path.is_file():
        raise store.MissingDataError(f"{path.name} was never recorded: run `{store.COMMAND}` on a machine with a GPU")
    assert printing.run(kernel) == json.loads(path.read_text())["results"][kernel]


def test_every_row_of_a_kernel_has_a_name() -> None:
    assert all(out.labels or not out.bounds for case in table.CONFORMANCE for out in case.outs)
    assert all(out.shape[0] == len(out.labels) > 0 for case in table.CONFORMANCE for out in case.outs if out.labels)


def test_the_recorded_data_stay_small() -> None:
    sizes = [path.stat().st_size for path in store.DATA.glob("*")]
    assert sum(sizes) < 6_000_000
