"""Device functions are called with a stack for each lane."""

from __future__ import annotations

import pytest

from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
#define NOINLINE __device__ __noinline__
NOINLINE int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
NOINLINE bool odd(unsigned n);
NOINLINE bool even(unsigned n) { return n == 0 ? true : odd(n - 1); }
NOINLINE bool odd(unsigned n) { return n == 0 ? false : even(n - 1); }
struct Base { __device__ virtual int f(int) = 0; };
struct Sum : Base { int k; __device__ int f(int x) override { return x + k; } };
struct Twice : Base { __device__ int f(int x) override { return x * 2; } };
struct Item { double x; int y; char z; };
NOINLINE Item changed(int i, Item q) { q.x += i; q.y -= i; q.z = i; return q; }
extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 13); }
extern "C" __global__ void mutual(int* out) { out[threadIdx.x] = even(threadIdx.x % 11); }
extern "C" __global__ void pointers(int* out) {
    int t = threadIdx.x;
    Sum a;
    a.k = t;
    Twice b;
    Base* p = t & 1 ? (Base*)&a : (Base*)&b;
    out[t] = p->f(t + 1);
}
extern "C" __global__ void structures(double* out) {
    int t = threadIdx.x;
    Item r = changed(t, Item{1.5, t, 3});
    r = changed(2, r);
    out[t] = r.x + r.y * 100 + r.z * 1000;
}
extern "C" __global__ void divergent(int* out) {
    int t = threadIdx.x, r = 0;
    for (int i = 0; i < t % 5; i++) if ((t + i) & 1) r += fibonacci(i + 3); else r -= i;
    out[t] = r;
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def test_recursion_of_different_depths(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("recursion", 1, 64, out)
    assert kernels.get(out, 64).tolist() == [fibonacci(t % 13) for t in range(64)]


def test_functions_that_call_each_other(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("mutual", 1, 64, out)
    assert kernels.get(out, 64).tolist() == [t % 11 % 2 == 0 for t in range(64)]


def test_virtual_functions_part_the_lanes(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("pointers", 1, 64, out)
    assert kernels.get(out, 64).tolist() == [t + 1 + t if t & 1 else (t + 1) * 2 for t in range(64)]


def test_structures_pass_by_value_both_ways(kernels: Kernels) -> None:
    out = kernels.zeros(64, float)
    kernels.launch("structures", 1, 64, out)
    assert kernels.get(out, 64, float).tolist() == [1.5 + t + 2 - 200 + 2000 for t in range(64)]


def test_calls_inside_divergent_loops(kernels: Kernels) -> None:
    out = kernels.zeros(64)
    kernels.launch("divergent", 1, 64, out)
    expected = [sum(fibonacci(i + 3) if (t + i) & 1 else -i for i in range(t % 5)) for t in range(64)]
    assert kernels.get(out, 64).tolist() == expected
