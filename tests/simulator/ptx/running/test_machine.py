"""The machine executes kernels that plain CUDA C++ compiles to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
struct Big { int a[6]; };
extern "C" __global__ void parameter(int* out, Big b, int k) { out[threadIdx.x] = b.a[(k + threadIdx.x) % 6]; }
__device__ int table[4] = {5, 6, 7, 8};
__device__ int* pointer = &table[2];
__constant__ float constants[3] = {0.5f, 1.5f, 2.5f};
extern "C" __global__ void symbols(float* out) {
    out[threadIdx.x] = constants[threadIdx.x % 3] + *pointer + table[threadIdx.x & 3];
}
extern "C" __global__ void guarded(float* out) {
    float x = threadIdx.x * 0.5f;
    asm volatile("{ .reg .pred p; setp.gt.f32 p, %1, 0f3F800000;"
        "@p st.global.f32 [%0], %1; @!p st.global.f32 [%0], 0f40000000; }"
        :: "l"(out + threadIdx.x), "f"(x));
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def test_a_structure_parameter_can_be_indexed(kernels: Kernels) -> None:
    out = kernels.zeros(32)
    kernels.launch("parameter", 1, 32, out, np.arange(10, 16, dtype=np.int32), 4)
    assert kernels.get(out, 32).tolist() == [10 + (4 + t) % 6 for t in range(32)]


def test_variables_start_with_their_initial_values(kernels: Kernels) -> None:
    out = kernels.zeros(32, np.float32)
    kernels.launch("symbols", 1, 32, out)
    assert kernels.get(out, 32, np.float32).tolist() == [t % 3 + 0.5 + 7 + 5 + (t & 3) for t in range(32)]


def test_guarded_instructions_act_on_their_lanes_only(kernels: Kernels) -> None:
    out = kernels.zeros(32, np.float32)
    kernels.launch("guarded", 1, 32, out)
    assert kernels.get(out, 32, np.float32).tolist() == [t * 0.5 if t * 0.5 > 1 else 2.0 for t in range(32)]


def test_a_launch_of_another_module_s_entry_is_refused(kernels: Kernels) -> None:
    other: Any = Kernels('extern "C" __global__ void other() {}')
    kernels.module.entries["other"] = other.module.entries["other"]
    with pytest.raises(ValueError, match="another module"):
        kernels.launch("other", 1, 1)
    del kernels.module.entries["other"]
