"""The machine executes kernels that plain CUDA C++ compiles to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault
from cudart_py.simulator.ptx.operations.textures import Texture
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void branches(int* out) {
    int t = threadIdx.x, r = 0;
    for (int i = 0; i < t % 7; i++) switch ((t + i) % 6) {
        case 0: r += 3; break;
        case 1: r *= 2; break;
        case 2: r -= 5; break;
        case 3: r ^= t; break;
        case 4: r += t * t; break;
        default: if (r > 50) { out[t] = -1; return; } r += 1;
    }
    out[t] = r;
}
extern "C" __global__ void windows(int* out, int* global) {
    __shared__ int shared[64];
    int local[4] = {1, 2, 3, 4}, t = threadIdx.x;
    shared[t] = t * 10;
    __syncthreads();
    int* p = t % 3 == 0 ? shared + t : t % 3 == 1 ? global + t : local + (t & 3);
    *p += 5;
    out[t] = *p;
}
extern "C" __global__ void reversed(int* out, int n) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
struct Value { float4 a; double2 d; };
extern "C" __global__ void vectors(Value* out, const Value* in) {
    Value v = in[threadIdx.x];
    v.a.x += 1;
    v.d.y *= 2;
    out[threadIdx.x] = v;
}
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
extern "C" __global__ void sample(unsigned long long texture, float* out) {
    float x = threadIdx.x * 0.5f, r, g, b, a;
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
        : "=f"(r), "=f"(g), "=f"(b), "=f"(a) : "l"(texture), "f"(x), "f"(0.5f));
    out[threadIdx.x] = r;
}
extern "C" __global__ void wide(unsigned long long* out, unsigned __int128 a) {
    unsigned __int128 v = a * (threadIdx.x + 1) + a / (threadIdx.x + 7);
    out[2 * threadIdx.x] = v;
    out[2 * threadIdx.x + 1] = v >> 64;
}
extern "C" __global__ void heap(int* out) {
    int t = threadIdx.x;
    int* h = (int*)malloc(4 + t * 4);
    h[t] = t;
    out[t] = h[t];
    free(h);
}
#include <mma.h>
extern "C" __global__ void matrices(const __half* a, const __half* b, float* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 1.0f);
    load_matrix_sync(left, a, 16);
    load_matrix_sync(right, b, 16);
    mma_sync(sum, left, right, sum);
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= 2;
    store_matrix_sync(c, sum, 16, mem_row_major);
}
extern "C" __global__ void print(int n) {
    if (threadIdx.x < n) printf("%d of %d: %s\n", threadIdx.x, blockIdx.x, "text");
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE, "--device-int128")


def test_lanes_behind_the_end_store_nothing(kernels: Kernels) -> None:
    n = 100_000
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    on_y = kernels.put(y)
    kernels.launch("saxpy", 391, 256, n - 50, np.float32(2), kernels.put(x), on_y)
    expected = np.where(np.arange(n) < n - 50, 2 * x + 1, y)
    np.testing.assert_array_equal(kernels.get(on_y, n, np.float32), expected)


def branches(t: int) -> int:
    r = 0
    for i in range(t % 7):
        match (t + i) % 6:
            case 0:
                r += 3
            case 1:
                r *= 2
            case 2:
                r -= 5
            case 3:
                r ^= t
            case 4:
                r += t * t
            case _:
                if r > 50:
                    return -1
                r += 1
    return r


def test_a_switch_in_a_loop_takes_each_lane_its_way(kernels: Kernels) -> None:
    out = kernels.zeros(256)
    kernels.launch("branches", 1, 256, out)
    assert kernels.get(out, 256).tolist() == [branches(t) for t in range(256)]


def test_generic_pointers_reach_every_space(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("windows", 1, 64, out, kernels.put(np.arange(64, dtype=np.int32) * 100))
    expected = [t * 10 + 5 if t % 3 == 0 else t * 100 + 5 if t % 3 == 1 else (t & 3) + 6 for t in range(64)]
    assert kernels.get(out, 64).tolist() == expected


def test_dynamic_shared_memory_has_the_launch_s_size(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("reversed", 1, 64, out, 64, shared_bytes=256)
    assert kernels.get(out, 64).tolist() == list(range(63, -1, -1))
    with pytest.raises(Fault, match="the block's 124 bytes of shared memory"):
        kernels.launch("reversed", 1, 64, out, 64, shared_bytes=124)


def test_vector_accesses_keep_their_components_apart(kernels: Kernels) -> None:
    values = np.zeros(64, [("a", "f4", 4), ("d", "f8", 2)])
    values["a"], values["d"] = np.random.rand(64, 4), np.random.rand(64, 2)
    out = kernels.zeros(64 * 32, np.uint8)
    kernels.launch("vectors", 1, 64, out, kernels.put(values.view(np.uint8)))
    values["a"][:, 0] += 1
    values["d"][:, 1] *= 2
    np.testing.assert_array_equal(kernels.get(out, 64 * 32, np.uint8).view(values.dtype), values)


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


@pytest.mark.parametrize(("linear", "expected"), [(False, [0, 0, 1, 1, 2, 2]), (True, [0, 0, 0.5, 1, 1.5, 2])])
def test_textures_are_sampled(kernels: Kernels, linear: bool, expected: list[float]) -> None:
    pixels = np.tile(np.arange(8, dtype=np.float32), (4, 1))
    kernels.memory.textures[1] = Texture(kernels.put(pixels), 8, 4, 32, 1, "f4", linear=linear)
    out = kernels.zeros(32, np.float32)
    kernels.launch("sample", 1, 6, 1, out)
    assert kernels.get(out, 6, np.float32).tolist() == expected


def test_128_bit_arithmetic_carries(kernels: Kernels) -> None:
    a = 0x123456789ABCDEF0FEDCBA9876543210
    out = kernels.zeros(64, np.uint64)
    kernels.launch("wide", 1, 32, out, a.to_bytes(16, "little"))
    words = [int(word) for word in kernels.get(out, 64, np.uint64)]
    expected = [(a * (t + 1) + a // (t + 7)) % 2**128 for t in range(32)]
    assert [low | high << 64 for low, high in zip(words[::2], words[1::2], strict=True)] == expected


def test_a_warp_multiplies_matrices(kernels: Kernels) -> None:
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-8, 9, (16, 16)).astype(np.float16) for _ in range(2))
    out = kernels.zeros(256, np.float32)
    kernels.launch("matrices", 1, 32, kernels.put(a), kernels.put(b), out)
    expected = 2 * (a.astype(np.float32) @ b.astype(np.float32).T + 1)
    np.testing.assert_array_equal(kernels.get(out, 256, np.float32).reshape(16, 16), expected)


def test_the_device_heap_gives_each_lane_its_own(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("heap", 1, 64, out)
    assert kernels.get(out, 64).tolist() == list(range(64))
    assert not kernels.memory.heap


def test_printed_text_comes_in_the_order_of_blocks(kernels: Kernels) -> None:
    kernels.printed.clear()
    kernels.launch("print", 2, 32, 2)
    assert kernels.printed == [f"{t} of {b}: text\n" for b in range(2) for t in range(2)]


def test_a_launch_of_another_module_s_entry_is_refused(kernels: Kernels) -> None:
    other: Any = Kernels('extern "C" __global__ void other() {}')
    kernels.module.entries["other"] = other.module.entries["other"]
    with pytest.raises(ValueError, match="another module"):
        kernels.launch("other", 1, 1)
    del kernels.module.entries["other"]
