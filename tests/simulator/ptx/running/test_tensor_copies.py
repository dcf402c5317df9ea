"""Tensor copies in both engines, and the reports of wrong ones; tests/launch tests their results with every driver."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, UnsupportedError
from cudart_py.simulator.ptx.operations.tensor_maps import TensorMap
from cudart_py.simulator.ptx.running import launch

SOURCE = """
struct alignas(64) Map { unsigned long long words[16]; };
__device__ unsigned in_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
// Each of two threads loads a box of 4 x 8 floats through a map in global memory, and adds it to another array.
extern "C" __global__ void add(const Map *maps, const int *rows, int bytes, int lanes, int misplaced)
{
    __shared__ alignas(128) float boxes[2][32];
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
                     ::"r"(in_shared(&bar)), "r"(bytes) : "memory");
    __syncthreads();
    if (threadIdx.x < lanes)
        asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];"
                     ::"r"(in_shared(boxes[threadIdx.x]) + misplaced), "l"(maps), "r"(4), "r"(rows[threadIdx.x]),
                     "r"(in_shared(&bar)) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(in_shared(&bar)));
    int passed = 0;
    while (!passed)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(passed) : "r"(in_shared(&bar)) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(maps + 1) : "memory");
    if (threadIdx.x < lanes)
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%1, {%2, %3}], [%0];"
                     ::"r"(in_shared(boxes[threadIdx.x])), "l"(maps + 1), "r"(0), "r"(rows[threadIdx.x]) : "memory");
}
// Change a map, and load a box by it.
extern "C" __global__ void change(Map *map, int width)
{
    __shared__ alignas(128) float box[32];
    __shared__ unsigned long long bar;
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(in_shared(&bar)) : "memory");
    if (width >= 0)
        asm volatile("tensormap.replace.tile.box_dim.global.b1024.b32 [%0], 0, %1;" ::"l"(map), "r"(width) : "memory");
    else
        asm volatile("tensormap.replace.tile.interleave_layout.global.b1024.b32 [%0], 1;" ::"l"(map) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
                 ::"r"(in_shared(box)), "l"(map), "r"(0), "r"(in_shared(&bar)) : "memory");
}
"""
ROW = 12


def maps(kernels, *addresses, rows=6, element=7):
    packed = [TensorMap(element, address, (ROW, rows), (4 * ROW,), (8, 4), (1, 1)).pack() for address in addresses]
    return kernels.put(np.frombuffer(b"".join(packed), np.uint64))


def test_both_engines_copy_the_boxes_of_several_lanes(on_each, rng):
    values, before = (rng.integers(0, 100, (6, ROW)).astype(np.float32) for _ in range(2))
    source, to = on_each.put(values), on_each.put(before)
    rows = on_each.put(np.array([0, 4], np.int32))
    on_each.launch("add", 1, 32, maps(on_each, source, to), rows, 256, 2, 0)
    before[:4, :8] += values[:4, 4:]
    before[4:, :8] += values[4:, 4:]
    np.testing.assert_array_equal(on_each.get(to, 6 * ROW, np.float32).reshape(6, ROW), before)
    assert on_each.engine == "numpy" or on_each.ran_natively("add")


@pytest.mark.parametrize(
    ("numbers", "options", "status", "text"),
    [
        ((256, 2, 16), {}, "MISALIGNED_ADDRESS", "in shared memory, which is not a multiple of 128 bytes"),
        ((256, 2, 0), {"rows": 1000}, "ILLEGAL_ADDRESS", "global read of 16 bytes at .* out of bounds"),
        ((256, 2, 0), {"element": 1}, "ILLEGAL_INSTRUCTION", "whose first coordinate is 4, for elements of 2 bytes"),
        ((272, 2, 0), {}, "LAUNCH_TIMEOUT", "deadlock: .* still expects 16 bytes of copies"),
        ((240, 2, 0), {}, "LAUNCH_TIMEOUT", "deadlock: .* has received 16 more bytes of copies than it expects"),
    ],
)
def test_a_wrong_copy_is_a_fault_that_says_why(on_each, monkeypatch, numbers, options, status, text):
    monkeypatch.setattr(launch, "_STEPS_OF_WAITING", 200)
    rows = on_each.put(np.array([100, 2], np.int32))
    source, to = (on_each.zeros(6 * ROW, np.float32) for _ in range(2))
    with pytest.raises(Fault, match=text) as caught:
        on_each.launch("add", 1, 32, maps(on_each, source, to, **options), rows, *numbers)
    assert caught.value.status_name == f"CUDA_ERROR_{status}"


def test_bytes_that_are_not_a_tensor_map_are_named(on_each):
    nothing, rows = on_each.zeros(32, np.uint64), on_each.zeros(2)
    with pytest.raises(Fault, match="by 128 bytes that are not a tensor map"):
        on_each.launch("add", 1, 32, nothing, rows, 256, 2, 0)
    with pytest.raises(Fault, match="needs an address aligned to 64 bytes"):
        on_each.launch("add", 1, 32, nothing + 16, rows, 256, 2, 0)


@pytest.mark.parametrize(
    ("width", "error", "text"),
    [
        (0, Fault, "by 128 bytes that are not a tensor map"),
        (257, Fault, "by 128 bytes that are not a tensor map"),
        (-1, UnsupportedError, "a value of interleave_layout that is not simulated"),
    ],
)
def test_a_kernel_cannot_copy_by_a_map_that_it_has_made_unusable(on_each, width, error, text):
    changed = maps(on_each, on_each.zeros(6 * ROW, np.float32))
    with pytest.raises(error, match=text):
        on_each.launch("change", 1, 1, changed, width)


def test_a_map_does_not_depend_on_the_bit_that_libraries_clear():
    """CUTLASS and Triton clear bit 21 of the second word of a small array's map, for drivers up to CUDA 13.1."""
    found = TensorMap(7, (1 << 47) - 16, (1 << 32, 1 << 32), ((1 << 40) - 16,), (256, 256), (8, 8), 3, nan=True)
    words = np.frombuffer(found.pack(), np.uint64).copy()
    words[1] &= np.uint64(~(1 << 21) & (1 << 64) - 1)
    assert TensorMap.unpack(words.tobytes()) == found
