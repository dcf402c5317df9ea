"""Blocks whose lanes may wait for others run one after the other until one of them does wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault
from cudart_py.simulator.ptx.compiling.program import program_of
from cudart_py.simulator.ptx.native.launching import launch
from tests.simulator.ptx.machine import PROPERTIES, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = r"""
extern "C" __global__ void claim(int n, int* owners, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < n; j++)
        if (atomicCAS(&owners[(i + j) % 64], -1, i) == -1) atomicAdd(count, 1);
}
extern "C" __global__ void claim_slowly(int n, int* owners) {
    for (int j = 0; j < n; j++)
        if (atomicCAS(&owners[j % 64], -1, threadIdx.x) == -1) owners[j] = -1;
}
extern "C" __global__ void meet(int* arrived) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {}
    }
    __syncthreads();
}
extern "C" __global__ void add_up(int n, const int* in, int* out) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum = sum * 3 + in[i % 32];
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
"""


@pytest.fixture
def kernels() -> Kernels:
    kernels = Kernels(SOURCE)
    kernels.engine = "native"
    return kernels


def calls_of(kernels: Kernels, name: str) -> list[int]:
    """Return a list that grows by each call of a kernel's machine code, which a launch has made."""
    (kernel,) = program_of(kernels.module.entries[name]).native.values()
    run, calls = kernel.run, []

    def counted(context: int) -> Any:
        calls.append(context)
        return run(context)

    kernel.run = counted
    return calls


def test_blocks_that_try_in_a_loop_need_no_call_each(kernels: Kernels) -> None:
    """Those of the second kernel go back in the loop a few times each."""
    owners, count = kernels.put(np.full(64, -1, np.int32)), kernels.zeros(1)
    for name, arguments in (("claim", [4, owners, count]), ("claim_slowly", [10, owners])):
        kernels.launch(name, 1, 32, *arguments)
        calls = calls_of(kernels, name)
        kernels.launch(name, 100, 32, *arguments)
        assert len(calls) == 1
        assert kernels.get(count, 1)[0] == 64
        kernels.memory.view(owners, 64, np.int32)[:] = 0


def test_as_many_blocks_may_wait_for_each_other_as_a_device_holds(kernels: Kernels) -> None:
    """Lanes that look by an atomic that changes nothing let others go on soon."""
    kernels.launch("meet", 40, 32, kernels.zeros(1), steps=1000)
    blocks, arrived = PROPERTIES["sm_count"] * 2, kernels.zeros(1)
    kernels.launch("meet", blocks, 1024, arrived)
    assert kernels.get(arrived, 1)[0] == blocks


def test_the_limit_of_instructions_counts_anew_in_each_block(kernels: Kernels) -> None:
    owners, count, one_block = kernels.zeros(64), kernels.zeros(1), 30_000
    for blocks in (1, 6):
        kernels.launch("claim", blocks, 32, one_block, owners, count, steps=10_000)
    with pytest.raises(Fault, match="limit of executed instructions"):
        kernels.launch("claim", 1, 32, 20 * one_block, owners, count, steps=10_000)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_blocks_that_take_long_end_in_each_thread(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """A loop over loads may wait for another block, so that others begin beside it once it has taken long."""
    monkeypatch.setattr(launch, "_BUDGET", 1 << 10)
    kernels.threads = threads
    n, blocks = 20_000, 12
    out = kernels.zeros(blocks)
    kernels.launch("add_up", blocks, 32, n, kernels.put(np.ones(32, np.int32)), out)
    assert set(kernels.get(out, blocks, np.uint32).tolist()) == {(pow(3, n, 1 << 33) - 1) // 2 % (1 << 32)}
