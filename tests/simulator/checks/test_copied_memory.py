"""Copies to the host of memory that nothing has written: what is reported, and which gaps count as padding."""

import re

import numpy as np
import pytest

import cudart_py as cuda
from tests.planted.cases import unwritten
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = [*WRONG_ON_PURPOSE, pytest.mark.usefixtures("engine")]

KERNELS = """
template <class T> __global__ void fill(T* out, int first, int step, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        out[first + i * step] = T(7);
}
struct DoubleInt { double a; int b; };
struct CharShort { char a; short b; };
struct CharInt { int a; char b; };
struct CharDouble { char a; double b; };
struct alignas(16) Three { float a, b; int c; };
struct Nested { char a; DoubleInt b; char c; };
template <class S> __global__ void pairs(S* out) { out[threadIdx.x].a = 1; out[threadIdx.x].b = 2; }
__global__ void threes(Three* out) { Three* one = out + threadIdx.x; one->a = one->b = 1; one->c = 2; }
__global__ void nested(Nested* out)
{
    Nested* one = out + threadIdx.x;
    one->a = 1, one->b.a = 2, one->b.b = 3, one->c = 4;
}
struct IntDoubles { int a; double b[16]; };
struct DoublesInt { double a[9]; int b; };
struct CharDoublesShort { char a; double b[9]; short c; };
__device__ void set(IntDoubles& one) { one.a = 1; for (double& x : one.b) x = 2; }
__device__ void set(DoublesInt& one) { one.b = 1; for (double& x : one.a) x = 2; }
__device__ __noinline__ void set(CharDoublesShort& one) { one.a = 1; for (double& x : one.b) x = 2; one.c = 3; }
template <class S> __global__ void members(S* out) { set(out[threadIdx.x]); }
template <class S> __global__ void whole(S* out)
{
    S one;
    set(one);
    out[threadIdx.x] = one;
}
__global__ void rows(float* out, IntDoubles* other)
{
    set(other[threadIdx.x]);
    for (int k = 0; k < 31; k++) out[32 * threadIdx.x + k] = k;
}
"""
PADDED = {
    "pairs<DoubleInt>": 16,
    "pairs<CharShort>": 4,
    "pairs<CharInt>": 8,
    "pairs<CharDouble>": 16,
    "threes": 16,
    "nested": 32,
    "members<IntDoubles>": 136,
    "members<DoublesInt>": 80,
    "members<CharDoublesShort>": 88,
    "whole<IntDoubles>": 136,
    "whole<DoublesInt>": 80,
}
FILLS = {np.uint8: "unsigned char", np.int16: "short", np.int32: "int", np.float64: "double"}
COMPILE_OPTIONS = {"names": ["rows", *PADDED, *(f"fill<{one}>" for one in FILLS.values())]}


@pytest.mark.parametrize("count", [1, 33])
@pytest.mark.parametrize("name", PADDED)
def test_the_padding_of_structures_is_not_reported_and_a_missing_structure_is(kernels, name, count):
    structures = cuda.empty(count * PADDED[name], np.uint8)
    kernels[name][1, count](structures)
    assert found(structures.to_host) == []
    structures = cuda.empty((count + 1) * PADDED[name], np.uint8)
    kernels[name][1, count](structures)
    assert len(found(structures.to_host)) == 1


def test_a_copy_between_arrays_copies_what_is_padding(kernels):
    structures, copies = cuda.empty(33 * 136, np.uint8), cuda.empty(33 * 136, np.uint8)
    kernels["members<IntDoubles>"][1, 33](structures)
    cuda.memcpy(copies, structures)
    assert found(copies.to_host) == []


def test_missing_elements_are_reported_if_the_kernel_also_stores_structures_with_such_padding(kernels):
    out, structures = cuda.empty((20, 32), np.float32), cuda.empty(20 * 136, np.uint8)
    kernels["rows"][1, 20](out, structures)
    (text,) = found(out.to_host)
    assert "reads 80 bytes where nothing has been written, the first at byte 124 of the copy" in text
    assert found(structures.to_host) == []


@pytest.mark.parametrize("dtype", FILLS)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_the_report_says_how_many_bytes_are_missing_and_where_they_begin(kernels, dtype, step):
    """Elements are missing at the end of an array of odd length, or after each element that is written."""
    count, size = 101, np.dtype(dtype).itemsize
    out = cuda.empty(count * step, dtype)
    kernels[f"fill<{FILLS[dtype]}>"][2, 32](out, 0, step, count - 1)
    (text,) = found(out.to_host)
    gaps = np.ones(count * step, bool)
    gaps[: (count - 1) * step : step] = False
    assert re.search(rf"a copy of {out.nbytes:,} bytes reads {gaps.sum() * size:,} bytes? where", text)
    first = int(np.flatnonzero(gaps)[0]) * size
    assert re.search(rf"first at byte {first} of the copy, {int(out.pointer) + first:#x} \({first} bytes? into", text)
    assert re.search(
        r"the last launch that wrote there is that of kernel fill<.*>, grid \(2, 1, 1\), block \(32, 1", text
    )


def test_rows_and_parts_of_an_array_are_judged_by_what_the_copy_reads(kernels):
    out = cuda.empty((20, 30), np.int32)
    kernels["fill<int>"][1, 64](out, 0, 1, 450)
    assert found(out[:15].to_host) == []
    assert found(out[3:15, 5:7].to_host) == []
    (text,) = found(out[3:16, 5:7].to_host)
    assert "a copy of 104 bytes reads 8 bytes where nothing has been written, the first at byte 96 of the copy" in text
    rows = cuda.empty_pitched((5, 33), np.float32)
    cuda.memset(rows, 1)
    assert found(rows.to_host) == []


def test_a_copy_between_arrays_leaves_unwritten_what_was_unwritten(kernels):
    out, copy = unwritten(1000), unwritten(1000)
    kernels["fill<int>"][1, 64](out, 0, 1, 997)
    assert found(cuda.memcpy, copy, out) == []
    assert found(copy[:997].to_host) == []
    (text,) = found(copy.to_host)
    assert "reads 12 bytes" in text
    square = cuda.empty((3, 3), np.int32)
    cuda.memcpy(square, out.reshape((10, 100))[7:, 97:])
    assert "reads 12 bytes" in found(square.to_host)[0]
    cuda.memset(copy, 1)
    assert found(copy.to_host) == []


def test_the_same_copy_in_a_loop_is_one_report_and_error_raises_it():
    out, host, stream = unwritten(64), cuda.pinned_empty(64, np.int32), cuda.Stream()

    def copies():
        for _ in range(3):
            out.to_host(host, stream=stream)
        stream.synchronize()

    (text,) = found(copies)
    assert text.endswith("the same in 2 more copies")
    with pytest.raises(cuda.errors.SimulatorWarning, match="reaches the host"), cuda.sanitizer("error"):
        out.to_host()


def test_memory_that_launches_without_checks_may_have_written_counts_as_written(kernels, device):
    out = unwritten(64)
    with cuda.sanitizer("off"):
        assert found(out.to_host) == []
        kernels["fill<int>"][1, 64](out, 0, 1, 64)
        device.synchronize()
    assert found(out.to_host) == []
