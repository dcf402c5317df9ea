"""Measure the PTX machine against NumPy's own speed.

The yardstick is thread-instructions a second divided by the elements a second of ``np.add(a, b, out=c)`` on 32,768
float32 elements in the same process: it holds from machine to machine. The figures are printed and kept in the
benchmark's extra information; only results are asserted.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void transpose(float* out, const float* in, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int n) {
    __shared__ float a[16][16], b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n / 16; t++) {
        a[threadIdx.y][threadIdx.x] = A[row * n + t * 16 + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(t * 16 + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();
    }
    C[row * n + column] = sum;
}
extern "C" __global__ void collatz(int n, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long v = i + 1;
    int steps = 0;
    while (v != 1) {
        if (v & 1) v = 3 * v + 1; else v >>= 1;
        steps++;
    }
    out[i] = steps;
}
extern "C" __global__ void nbody(int n, const float4* bodies, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < n; j++) {
        float4 other = bodies[j];
        float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f), s = other.w * r * r * r;
        x += dx * s; y += dy * s; z += dz * s;
    }
    out[i] = make_float4(x, y, z, 0);
}
extern "C" __global__ void one_thread(int n, const int* in, int* out) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum = sum * 3 + in[i];
    *out = sum;
}
"""


class Count:
    """Count thread-instructions as an observer."""

    def __init__(self) -> None:
        self.total = 0

    def block(self, group: Any, block: Any) -> None:
        self.total += group.n * (len(block.instructions) + (block.terminator.instruction is not None))

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


# The engine that runs a launch, and what makes its observer.
Watching = tuple[str, Callable[[], Any]]


def size(benchmark: Any, timed: int, tested: int) -> int:
    """Choose between the size to be timed and the one that runs as a test."""
    return timed if benchmark.enabled else tested


def elements_per_second() -> float:
    """Measure the yardstick's denominator."""
    a, b, c = (np.ones(32768, np.float32) for _ in range(3))
    return 32768 * 1000 / min(timeit.repeat(lambda: np.add(a, b, out=c), number=1000, repeat=5))


def measure(
    benchmark: Any,
    kernels: Kernels,
    name: str,
    grid: Any,
    block: Any,
    *arguments: Any,
    watching: Watching,
) -> None:
    kernels.engine, observer = watching
    benchmark(lambda: kernels.launch(name, grid, block, *arguments, steps=None, observer=observer()))
    if benchmark.stats is not None:
        counted = Count()
        kernels.engine = "numpy"
        kernels.launch(name, grid, block, *arguments, steps=None, observer=counted)
        figure = counted.total / benchmark.stats.stats.min / elements_per_second()
        benchmark.extra_info["yardstick"] = figure
        print(f"\n{benchmark.name}: {figure:.3f} thread-instructions for each element of np.add")


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


@pytest.fixture(scope="module")
def fast() -> Kernels:
    return Kernels(SOURCE, "--use_fast_math")


WAYS: dict[str, Watching] = {
    "plain": ("numpy", lambda: None),
    "counters": ("numpy", LaunchCounters),
    "checks": ("numpy", LaunchChecks),
    "native": ("native", lambda: None),
    "native-counters": ("native", LaunchCounters),
    "native-checks": ("native", LaunchChecks),
}
watched = pytest.mark.parametrize("watching", WAYS.values(), ids=WAYS)


@watched
def test_saxpy(benchmark: Any, kernels: Kernels, watching: Watching) -> None:
    n = size(benchmark, 1 << 20, 1 << 12)
    x, y = np.linspace(0, 1, n, dtype=np.float32), np.zeros(n, np.float32)
    on_y = kernels.put(y)
    measure(benchmark, kernels, "saxpy", n // 256, 256, n, np.float32(0), kernels.put(x), on_y, watching=watching)
    assert not kernels.get(on_y, n, np.float32).any()


@watched
def test_transpose(benchmark: Any, kernels: Kernels, watching: Watching) -> None:
    n = size(benchmark, 1024, 64)
    x = np.arange(n * n, dtype=np.float32)
    out = kernels.zeros(n * n, np.float32)
    arguments = out, kernels.put(x), n, n
    measure(benchmark, kernels, "transpose", (n // 32, n // 32, 1), (32, 8, 1), *arguments, watching=watching)
    np.testing.assert_array_equal(kernels.get(out, n * n, np.float32).reshape(n, n), x.reshape(n, n).T)


@watched
def test_matmul(benchmark: Any, kernels: Kernels, watching: Watching) -> None:
    n = size(benchmark, 256, 32)
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, (n, n)).astype(np.float32) for _ in range(2))
    out = kernels.zeros(n * n, np.float32)
    grid = (n // 16, n // 16, 1)
    arguments = kernels.put(a), kernels.put(b), out, n
    measure(benchmark, kernels, "matmul", grid, (16, 16, 1), *arguments, watching=watching)
    np.testing.assert_array_equal(kernels.get(out, n * n, np.float32).reshape(n, n), a @ b)


@watched
def test_collatz(benchmark: Any, kernels: Kernels, watching: Watching) -> None:
    n = size(benchmark, 1 << 16, 256)
    out = kernels.zeros(n)
    measure(benchmark, kernels, "collatz", n // 256, 256, n, out, watching=watching)
    assert kernels.get(out, 27)[-1] == 111


@watched
def test_nbody(benchmark: Any, fast: Kernels, watching: Watching) -> None:
    """With fast mathematics."""
    n = size(benchmark, 2048, 256)
    bodies = np.random.default_rng(0).random((n, 4), np.float32)
    out = fast.zeros(4 * n, np.float32)
    measure(benchmark, fast, "nbody", n // 256, 256, n, fast.put(bodies), out, watching=watching)
    distance = bodies[:, :3] - bodies[:1, :3]
    weight = bodies[:, 3] / ((distance**2).sum(axis=1) + 1e-3) ** 1.5
    np.testing.assert_allclose(fast.get(out, 3, np.float32), weight @ distance, rtol=1e-3)


@watched
def test_one_thread(benchmark: Any, kernels: Kernels, watching: Watching) -> None:
    n = size(benchmark, 20_000, 200)
    out = kernels.zeros(1)
    data = kernels.put(np.ones(n, np.int32))
    measure(benchmark, kernels, "one_thread", 1, 1, n, data, out, watching=watching)
    assert kernels.get(out, 1, np.uint32)[0] == (pow(3, n, 1 << 33) - 1) // 2 % (1 << 32)


@pytest.mark.parametrize("name", ["collatz", "nbody"])
def test_two_threads(benchmark: Any, name: str) -> None:
    """In machine code, beside one thread: `speedup` is by how many times two are faster."""
    kernels = Kernels(SOURCE, "--use_fast_math")
    kernels.engine = "native"
    if name == "collatz":
        n = size(benchmark, 2**20, 2**10)
        arguments: tuple[Any, ...] = (n, kernels.zeros(n))
    else:
        n = size(benchmark, 2**13, 2**9)
        arguments = n, kernels.put(np.random.default_rng(0).random((n, 4), np.float32)), kernels.zeros(4 * n)

    def launch() -> None:
        kernels.launch(name, n // 256, 256, *arguments, steps=None)

    def result() -> Any:
        return kernels.get(arguments[-1], n)

    launch()
    expected = result()
    if benchmark.enabled:
        one = min(timeit.repeat(launch, number=1, repeat=10))
    kernels.threads = 2
    benchmark(launch)
    np.testing.assert_array_equal(result(), expected)
    if benchmark.stats is not None:
        benchmark.extra_info["speedup"] = figure = one / benchmark.stats.stats.min
        print(f"\n{benchmark.name}: {figure:.2f} times as fast as one thread")


def test_parse_and_first_launch(benchmark: Any) -> None:
    """A kernel of about 100 instructions, from text to its first result."""
    n = 16

    def first() -> None:
        fresh = Kernels(SOURCE)
        out = fresh.zeros(n * n, np.float32)
        a = fresh.put(np.eye(n, dtype=np.float32))
        fresh.launch("matmul", 1, (16, 16, 1), a, a, out, n)
        np.testing.assert_array_equal(fresh.get(out, n * n, np.float32).reshape(n, n), np.eye(n))

    benchmark(first)
