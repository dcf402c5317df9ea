"""Recursive functions and calls through pointers in machine code give the NumPy engine's results and faults."""

import re

import numpy as np
import pytest

from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import Fault
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = r"""
#define NOINLINE __device__ __noinline__
#define KERNEL(name) extern "C" __global__ void name
#define I (blockIdx.x * blockDim.x + threadIdx.x)
typedef unsigned u;
struct Mixed { char a; short b; long long c; double d; };
NOINLINE u ackermann(u m, u k) {
    return m == 0 ? k + 1 : k == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, k - 1));
}
NOINLINE Mixed mixed(Mixed x, int depth, bool odd) {
    if (depth == 0) return x;
    Mixed y = mixed({(char)(x.a + 1), (short)(x.b * 3), x.c ^ depth, x.d * 0.5 + depth}, depth - 1, !odd);
    y.b += odd ? x.b : -x.b;
    y.c = y.c * 5 + x.c;
    return y;
}
NOINLINE u hanoi(int* pegs, int n, int from, int to) {
    if (n == 0) return 0;
    int other = 3 - from - to;
    u moves = hanoi(pegs, n - 1, from, other);
    pegs[to] = pegs[to] * 3 + n;
    pegs[from] ^= n;
    return moves + 1 + hanoi(pegs, n - 1, other, to);
}
NOINLINE u sum_of_digits(u x);
NOINLINE u rest_of(u x) { return sum_of_digits(x / 10); }
NOINLINE u sum_of_digits(u x) { return x < 10 ? x : x % 10 + rest_of(x); }
NOINLINE int quick(int* values, int low, int high) {
    if (low >= high) return 1;
    int pivot = values[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (values[i] < pivot) i++;
        while (values[j] > pivot) j--;
        if (i <= j) { int t = values[i]; values[i] = values[j]; values[j] = t; i++; j--; }
    }
    return 1 + quick(values, low, j) + quick(values, i, high);
}
KERNEL(recursion)(const u* in, u* out) {
    u x = in[I];
    Mixed y = mixed({(char)x, (short)(x >> 8), (long long)x * x, x * 0.25}, x % 7, x & 1);
    int pegs[3] = {(int)x, 1, 2}, values[8];
    for (int i = 0; i < 8; i++) values[i] = x * (i * i + 3) % 101;
    u total = ackermann(x % 3, x / 3 % 4) * 7 + hanoi(pegs, x % 5, 0, 2) + pegs[0] * 31 + pegs[2] + sum_of_digits(x);
    total = total * 3 + quick(values, 0, 7) + values[x & 7] * 11;
    out[I] = total + (u)y.a + (u)y.b * 5 + (u)y.c + (u)(long long)y.d;
}

typedef u (*Function)(u, u);
NOINLINE u added(u x, u y) { return x + y; }
NOINLINE u times(u x, u y);
NOINLINE u deeper(u x, u y);
__device__ Function table[3] = {added, times, deeper};
NOINLINE u times(u x, u y) { return y == 0 ? x : table[x % 3](x * y + 1, y / 2) * 3; }
NOINLINE u deeper(u x, u y) {
    u local[4] = {x, y, x ^ y, 7};
    for (u i = 0; i < y % 3; i++) local[i] = table[(x + i) % 2](local[i + 1], y / 4);
    return local[x & 3] + local[1];
}
struct Shape {
    u size;
    __device__ virtual u area(u x) const { return x; }
};
struct Square : Shape { __device__ u area(u x) const override { return size * size + x; } };
struct Group : Shape {
    const Shape* parts[2];
    __device__ u area(u x) const override { return parts[0]->area(x + 1) * 3 + parts[1]->area(size); }
};
KERNEL(pointers)(const u* in, u* out) {
    u x = in[I], total = 0;
    for (u i = 0; i < x % 4; i++) total = total * 5 + table[(x >> i) % 3](x, i + 9);
    Square square; Group inner, outer; Shape plain;
    square.size = x & 15; inner.size = x >> 3; outer.size = 5; plain.size = 0;
    inner.parts[0] = &square; inner.parts[1] = &plain; outer.parts[0] = x & 4 ? (Shape*)&inner : &square;
    outer.parts[1] = &inner;
    const Shape* shapes[4] = {&square, &inner, &outer, &plain};
    out[I] = total + shapes[x / 7 % 4]->area(x);
}
KERNEL(together)(const u* in, u* out) {
    __shared__ u sums[4];
    u x = in[I];
    u own = sum_of_digits(x);
    for (int i = 16; i > 0; i /= 2) own += __shfl_xor_sync(0xffffffffu, own, i);
    if (x & 1) own += ackermann(1, x % 5);
    __syncwarp();
    own += __popc(__ballot_sync(0xffffffffu, own & 1));
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = own;
    __syncthreads();
    out[I] = own + sums[3 - threadIdx.x / 32];
}
NOINLINE u endless(u x, u* at) {
    u y[4] = {x, 1, 2, 3};
    y[x & 3] += endless(x + y[x & 1], at);
    return y[at[x & 1] & 3];
}
KERNEL(overflows)(u* in) { if (threadIdx.x > 40) in[I] = endless(in[I], in); }
NOINLINE u stores(u x, u* at) { return x == 3 ? at[1 << 20] : stores(x + 1, at) + 1; }
KERNEL(faults)(u* in) { if (threadIdx.x > 40) in[I] = stores(in[I] & 0, in); }
KERNEL(wild)(u* in, Function function) { in[I] = (threadIdx.x > 40 ? function : table[1])(1, 2); }
KERNEL(races)(u* in) {
    __shared__ u cell;
    if (sum_of_digits(in[I]) < 1000) cell = threadIdx.x;
    in[I] = cell;
}
"""


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", ["recursion", "pointers", "together"])
def test_results_agree(kernels, name, checked):
    given = np.random.default_rng(len(name)).integers(0, 1 << 20, 512).astype(np.uint32)
    observe = LaunchChecks if checked else None
    _, out = kernels.agree(name, 4, 128, given, np.zeros(512, np.uint32), observe=observe, steps=None)
    assert len(set(out.tolist())) > 40
    assert kernels.ran_natively(name), kernels.program(name).unsupported_reason
    assert not findings.pending


FAULTS = [
    ("overflows", (), r"stack overflow: \d+ nested calls exceed the stack"),
    ("faults", (), r"out of bounds"),
    ("wild", (0x123,), "call through 0x123, which is not a function"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), FAULTS)
def test_faults_agree(kernels, name, arguments, message):
    assert re.search(message, kernels.fault(name, 1, 64, kernels.zeros(64), *arguments))


def test_a_launch_with_findings_is_reported_alike_and_counted_by_numpy(kernels):
    texts, counts = [], []
    for kernels.engine in ("numpy", "native"):
        counters, checks = LaunchCounters(), LaunchChecks()
        for observer in (checks, Observers(counters, LaunchChecks())):
            kernels.launch("races", 1, 64, kernels.put(np.arange(64, dtype=np.uint32)), observer=observer)
        texts.append(sorted(map(str, findings.pending)))
        findings.pending.clear()
        counts.append(counters.lines)
    assert texts[0] == texts[1]
    assert any("race" in text for text in texts[0])
    assert counts[0] == counts[1]


def test_a_call_through_a_pointer_in_a_module_without_functions_is_a_fault():
    kernels = Kernels('extern "C" __global__ void k(void (*function)()) { function(); }', engine="native")
    with pytest.raises(Fault, match="call through 0x1000, which is not a function"):
        kernels.launch("k", 1, 1, 0x1000)
    assert kernels.ran_natively("k")
