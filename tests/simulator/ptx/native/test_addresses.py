"""Addresses at both ends of the address space are refused in machine code as elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = r"""
extern "C" __global__ void before_each(const int* const* lists, int n, int* out) {
    int sum = 0;
    for (int j = 0; j < n; j++) sum += lists[j][-1];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void some_before(const int* const* lists, int* out) {
    out[threadIdx.x] = lists[threadIdx.x % 3][-1];
}
"""


@pytest.fixture
def kernels() -> Kernels:
    kernels = Kernels(SOURCE)
    kernels.engine = "native"
    return kernels


@pytest.mark.parametrize("good", [0, 1, 5])
def test_an_element_before_a_null_pointer_is_refused(kernels: Kernels, good: int) -> None:
    """Its address and its bytes add up to 2^64."""
    data = kernels.put(np.arange(8, dtype=np.int32))
    lists = kernels.put(np.array([data + 4] * good + [0], np.uint64))
    out = kernels.zeros(32)
    kernels.launch("before_each", 1, 32, lists, good, out)
    with pytest.raises(Fault, match="a global read of 4 bytes at 0xfffffffffffffffc is out of bounds"):
        kernels.launch("before_each", 1, 32, lists, good + 1, out)
    assert any(program_of(kernels.module.entries["before_each"]).native.values())


def test_lanes_apart_are_refused_too(kernels: Kernels) -> None:
    data = kernels.put(np.arange(8, dtype=np.int32))
    other = kernels.put(np.arange(8, dtype=np.int32))
    out = kernels.zeros(32)
    kernels.launch("some_before", 1, 32, kernels.put(np.array([data + 4, other + 8, data + 8], np.uint64)), out)
    assert kernels.get(out, 3).tolist() == [0, 1, 1]
    with pytest.raises(Fault, match="0xfffffffffffffffc is out of bounds.*thread \\(1, 0, 0\\)"):
        kernels.launch("some_before", 1, 32, kernels.put(np.array([data + 4, 0, other + 4], np.uint64)), out)
