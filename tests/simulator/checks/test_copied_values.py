"""Copying what nobody wrote is not a mistake, in padding, unused elements and lanes; using it afterwards is.

Each kernel of `SILENT` is valid C++ that only moves uninitialised bytes about, and each of `FOUND` uses such bytes.
"""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE

TYPES = """
struct Tail { long long a, c[3]; unsigned short b; };
struct Flag { double value; bool set; };
struct Bits { unsigned a : 3, b : 7; unsigned short c : 5; };
union Word { long long wide; int narrow; };
struct Either { Word word; int kind; };
struct Members { double a; int b; };
struct Four { int v[4]; };
__device__ __noinline__ void fill(Tail* p, int n) { p->a = n; for (int i = 0; i < 3; i++) p->c[i] = i; p->b = n; }
"""

# `out` has room for 512 bytes per thread; `n` is 7, `i` the number of the thread.
SILENT = {
    "a structure": "Tail t; fill(&t, n); ((Tail*)out)[i] = t;",
    "a structure local to a loop": "for (int k = 0; k < n; k++) { Tail t; fill(&t, k); ((Tail*)out)[i + 32 * k] = t; }",
    "many bytes at once": (
        "struct Large { long long a[40]; short b; }; __shared__ Large s; "
        "if (i < 20) { s.a[i] = i; s.a[i + 20] = i; s.b = 3; } __syncthreads(); if (i == 0) *(Large*)out = s;"
    ),
    "a flag": "__shared__ Flag s[32]; s[i].value = n; s[i].set = i & 1; __syncthreads(); ((Flag*)out)[i] = s[i ^ 1];",
    "fields of bits": (
        "__shared__ Bits s[32]; s[i].a = n; s[i].b = 3; s[i].c = 1; __syncthreads(); ((Bits*)out)[i] = s[i ^ 1];"
    ),
    "a union": (
        "__shared__ Either s[32]; s[i].kind = n & 1; if (n & 1) s[i].word.narrow = n; else s[i].word.wide = n; "
        "__syncthreads(); ((Either*)out)[i] = s[i ^ 1];"
    ),
    "a part of an array": (
        "int a[16], sum = 0; for (int k = 0; k < n; k++) a[k] = k; "
        "for (int k = 0; k < 16; k++) { int v = a[k]; sum += k < n ? v : 0; } out[i] = sum;"
    ),
    "lanes of a vector": (
        "float4 v[4]; for (int k = 0; k < 4; k++) { float4& one = v[(k + n) & 3]; one.x = k; one.y = n; } "
        "float4 one = v[n & 3]; out[i] = one.x + one.y;"
    ),
    "a shuffled value": (
        "__shared__ int s[32]; if (i < n) s[i] = i; __syncthreads(); int v = __shfl_down_sync(~0u, s[i], 1); "
        "out[i] = i < n - 1 ? v : 0;"
    ),
    "what is not selected": (
        "__shared__ int s[32]; if (i < n) s[i] = i; __syncthreads(); int v = s[i] * 3; out[i] = i < n ? v : -1;"
    ),
    "carried by a loop": (
        "int last, sum = 0; bool some = false; for (int k = 0; k < n; k++) { if (some) sum += last; last = k * n; "
        "some = true; } out[i] = sum;"
    ),
    "through shared memory": (
        "__shared__ int s[32], t[32]; if (i < n) s[i] = i; __syncthreads(); t[i ^ 1] = s[i]; __syncthreads(); "
        "int v = t[i ^ 1]; if (i < n) out[i] = v;"
    ),
    "through local memory": (
        "__shared__ int s[32]; int t[8]; if (i < n) s[i] = i; __syncthreads(); "
        "for (int k = 0; k < 8; k++) t[(k + n) & 7] = s[i]; int v = t[n & 7]; if (i < n) out[i] = v;"
    ),
    "written over": (
        "__shared__ int s[32]; __shared__ volatile int t[32]; if (i < n) s[i] = i; __syncthreads(); t[i] = s[i]; "
        "t[i] = n; out[i] = t[i];"
    ),
    "written over by an atomic": (
        "__shared__ int s[32], t[32]; if (i < n) s[i] = i; __syncthreads(); *(volatile int*)&t[i] = s[i]; "
        "atomicExch(&t[i], n); out[i] = t[i];"
    ),
}

FOUND = {
    "a structure that nobody wrote": "__shared__ Tail s[32]; ((Tail*)out)[i] = s[i ^ 1];",
    "a member that nobody wrote": "__shared__ Members s[32]; s[i].a = n; ((Members*)out)[i] = s[i];",
    "an element of four": (
        "__shared__ Four s[32]; s[i].v[0] = s[i].v[2] = s[i].v[3] = n; __syncwarp(); ((Four*)out)[i] = s[i];"
    ),
    "elements copied by one line": (
        "__shared__ int s[128]; s[4 * i] = s[4 * i + 1] = s[4 * i + 3] = n; __syncwarp(); "
        "for (int k = 0; k < 4; k++) out[4 * i + k] = s[4 * i + k];"
    ),
    "through shared memory": (
        "__shared__ int s[32], t[32]; if (i < n) s[i] = i; __syncthreads(); t[i ^ 1] = s[i]; __syncthreads(); "
        "out[i] = t[i ^ 1];"
    ),
    "through local memory": (
        "__shared__ int s[32]; int t[8]; if (i < n) s[i] = i; __syncthreads(); "
        "for (int k = 0; k < 8; k++) t[(k + n) & 7] = s[i]; out[i] = t[n & 7];"
    ),
    "a byte of what was moved": (
        "__shared__ unsigned char s[128]; __shared__ volatile unsigned t[32]; "
        "s[4 * i] = s[4 * i + 1] = s[4 * i + 2] = n; "
        "for (int k = 0; k < 4; k++) ((volatile unsigned char*)t)[4 * i + k] = s[4 * i + k]; "
        "((unsigned char*)out)[i] = t[i] >> 24;"
    ),
    "computed before it was moved": (
        "__shared__ int s[32]; __shared__ volatile int t[32]; if (i < n) s[i] = i; __syncthreads(); "
        "t[i] = s[i] * 2 + 1; out[i] = t[i];"
    ),
    "an address": (
        "__shared__ int s[32]; __shared__ volatile int t[32]; if (i < n) s[i] = i; __syncthreads(); t[i] = s[i]; "
        "atomicAdd(&out[t[i] & 31], 1);"
    ),
    "a branch": (
        "__shared__ int s[32]; __shared__ volatile int t[32]; if (i < n) s[i] = i; __syncthreads(); t[i] = s[i]; "
        "if (t[i] > 3) atomicAdd(out, 1);"
    ),
    "generic addresses": (
        "__shared__ int s[32]; __shared__ volatile int t[32]; if (i < n) s[i] = i; __syncthreads(); "
        "volatile int* to = i & 1 ? out + i : t + i; *to = i & 1 ? 3 : s[i]; out[i] = *to;"
    ),
}


# The partial tile of CUB's DeviceRadixSortSingleTileKernel: nobody loads the values of its padding.
TILE = """
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
extern "C" __global__ void sort(const unsigned* keys_in, unsigned* keys_out, const unsigned* values_in,
                                unsigned* values_out, int n) {
    typedef cub::BlockRadixSort<unsigned, 64, 4, unsigned, 6> Sort;
    typedef cub::BlockLoad<unsigned, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE> Load;
    __shared__ union { typename Sort::TempStorage sort; typename Load::TempStorage load; } storage;
    unsigned keys[4], values[4];
    Load(storage.load).Load(keys_in, keys, n, 0xffffffffu);
    __syncthreads();
    Load(storage.load).Load(values_in, values, n);
    __syncthreads();
    Sort(storage.sort).SortBlockedToStriped(keys, values, 0, 8);
    for (int k = 0; k < 4; k++) {
        int place = k * 64 + threadIdx.x;
        if (place < n) { keys_out[place] = keys[k]; values_out[place] = values[k]; }
    }
}
extern "C" __global__ void scan(unsigned* out, const unsigned* in, int n) {
    typedef cub::BlockLoad<unsigned, 64, 4, cub::BLOCK_LOAD_TRANSPOSE> Load;
    typedef cub::BlockStore<unsigned, 64, 4, cub::BLOCK_STORE_TRANSPOSE> Store;
    typedef cub::BlockScan<unsigned, 64> Scan;
    __shared__ union { Load::TempStorage load; Store::TempStorage store; Scan::TempStorage scan; } storage;
    unsigned values[4];
    Load(storage.load).Load(in, values, n);
    __syncthreads();
    Scan(storage.scan).ExclusiveSum(values, values);
    __syncthreads();
    Store(storage.store).Store(out, values, n);
}
extern "C" __global__ void total(unsigned* out, const unsigned* in, int n) {
    __shared__ cub::WarpReduce<unsigned>::TempStorage storage;
    unsigned value;
    if (threadIdx.x < n) value = in[threadIdx.x];
    unsigned sum = cub::WarpReduce<unsigned>(storage).Sum(value, n);
    if (threadIdx.x == 0) *out = sum;
}
"""


def kernel(which, name):
    """Return the name of the kernel of a body."""
    return f"{which}_{name.replace(' ', '_')}"


@pytest.fixture(scope="module")
def module():
    sources = [
        f'extern "C" __global__ void {kernel(which, name)}(int* out, int* in, int n) {{ int i = threadIdx.x; {body} }}'
        for which, bodies in (("silent", SILENT), ("found", FOUND))
        for name, body in bodies.items()
    ]
    with cuda.Device(0):
        return cuda.compile("\n".join([TYPES, *sources]))


def reported(module, which, name):
    launch = module[kernel(which, name)][1, 32]
    return found(launch, cuda.zeros(4096, np.int32), cuda.empty(4096, np.int32), 7)


@pytest.mark.parametrize("name", SILENT)
def test_bytes_that_are_only_copied_are_not_reported(module, name):
    assert reported(module, "silent", name) == []


@pytest.mark.parametrize("name", FOUND)
def test_bytes_that_are_used_are_reported(module, name):
    texts = reported(module, "found", name)
    assert texts
    assert all("uninitialised value reaches" in text for text in texts), texts


def test_the_first_load_is_named_of_a_value_that_was_moved():
    kernel = cuda.compile(
        """extern "C" __global__ void moved(int* out) {
    __shared__ int s[32];
    __shared__ volatile int t[32];
    if (threadIdx.x < 7) s[threadIdx.x] = 1;
    __syncwarp();
    t[threadIdx.x] = s[threadIdx.x];
    out[threadIdx.x] = t[threadIdx.x];
}"""
    )["moved"]
    (text,) = found(kernel[1, 32], cuda.zeros(32, np.int32))
    assert "kernel.cu:7: uninitialised value reaches a store: it was read at kernel.cu:6 from shared memory" in text


def test_cub_works_on_partial_tiles():
    tile = cuda.compile(TILE)
    keys, values = np.array([51, 14, 95, 3, 82, 3, 47], np.uint32), np.arange(7, dtype=np.uint32)
    sorted_keys, sorted_values, sums, total = (cuda.empty(7, np.uint32) for _ in range(4))
    ones = cuda.to_device(values + 1)
    assert found(tile["sort"][1, 64], cuda.to_device(keys), sorted_keys, cuda.to_device(values), sorted_values, 7) == []
    assert found(tile["scan"][1, 64], sums, ones, 7) == []
    assert found(tile["total"][1, 32], total, ones, 7) == []
    order = np.argsort(keys, kind="stable")
    assert sorted_keys.to_host().tolist() == keys[order].tolist()
    assert sorted_values.to_host().tolist() == order.tolist()
    assert sums.to_host().tolist() == [0, 1, 3, 6, 10, 15, 21]
    assert total[:1].to_host().tolist() == [28]
