"""Measure the speed of the PTX machine relative to NumPy.

The figure is the number of thread-instructions per second, divided by the number of elements per second that
``np.add(a, b, out=c)`` processes in the same process, with 32,768 float32 elements. This ratio is comparable between
machines. The figures are printed and kept in the benchmark's extra information; only results are asserted.
"""

import functools
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx.running.observer import Observer
from tests.benchmarks.peers.simulator import FOLDER, Work, make_work
from tests.simulator.ptx.machine import Kernels

ONE_THREAD = r"""
extern "C" __global__ void one_thread(int n, const int* in, int* out) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum = sum * 3 + in[i];
    *out = sum;
}
"""
SOURCE = (FOLDER / "kernels.cu").read_text() + ONE_THREAD
# By kernel name: the size for timing, and the size for running as a test.
SIZES = {
    "saxpy": (1 << 20, 1 << 12),
    "collatz": (1 << 16, 256),
    "bodies": (2048, 256),
    "transpose": (1024, 64),
    "matmul": (256, 32),
    "one_thread": (20_000, 200),
}


class Count(Observer):
    """An observer that counts thread-instructions."""

    def __init__(self) -> None:
        self.total = 0

    def block(self, group: Any, block: Any) -> None:
        self.total += group.n * (len(block.instructions) + (block.terminator.instruction is not None))


# The engine that runs a launch, and a function that creates its observer.
Watching = tuple[str, Callable[[], Any]]


def size(benchmark: Any, timed: int, tested: int) -> int:
    return timed if benchmark.enabled else tested


def elements_per_second() -> float:
    """Return the elements per second of np.add, the denominator of the figures."""
    a, b, c = (np.ones(32768, np.float32) for _ in range(3))
    return 32768 * 1000 / min(timeit.repeat(lambda: np.add(a, b, out=c), number=1000, repeat=5))


@functools.cache
def kernels(*options: str) -> Kernels:
    return Kernels(SOURCE, *options)


WAYS: dict[str, Watching] = {
    "plain": ("numpy", lambda: None),
    "counters": ("numpy", LaunchCounters),
    "checks": ("numpy", LaunchChecks),
    "native": ("native", lambda: None),
    "native-counters": ("native", LaunchCounters),
    "native-checks": ("native", LaunchChecks),
}


def check(work: Work, found: Any) -> None:
    n, first, *others = work.arguments
    match work.name:
        case "saxpy":
            np.testing.assert_array_equal(found, others[-1])
        case "collatz":
            assert found[26] == 111
        case "bodies":
            distance = first[:, :3] - first[:1, :3]
            weight = first[:, 3] / ((distance**2).sum(axis=1) + 1e-3) ** 1.5
            np.testing.assert_allclose(found[0, :3], weight @ distance, rtol=1e-3)
        case "transpose":
            np.testing.assert_array_equal(found, first.T)
        case "matmul":
            np.testing.assert_allclose(found, first @ others[0], rtol=1e-4)
        case "one_thread":
            assert found.view(np.uint32)[0] == (pow(3, n, 1 << 33) - 1) // 2 % (1 << 32)


def prepared(name: str, n: int) -> tuple[Kernels, Work, Callable[..., None], Callable[[], Any]]:
    """Return a kernel's module, its work, a function that launches it, and one that returns its result."""
    if name == "one_thread":
        work = Work(name, (1,), (1,), (n, np.ones(n, np.int32), np.zeros(1, np.int32)))
    else:
        work = make_work(name, n)
    module = kernels("--use_fast_math") if work.fast else kernels()
    arguments = [module.put(one) if isinstance(one, np.ndarray) else one for one in work.arguments]
    grid, block = ((*shape, 1, 1)[:3] for shape in (work.grid, work.block))
    out = work.arguments[-1]
    return (
        module,
        work,
        lambda observer=None: module.launch(name, grid, block, *arguments, steps=None, observer=observer),
        lambda: module.get(arguments[-1], out.size, out.dtype).reshape(out.shape),
    )


@pytest.mark.parametrize("watching", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", SIZES)
def test_kernel(benchmark: Any, name: str, watching: Watching) -> None:
    module, work, launch, result = prepared(name, size(benchmark, *SIZES[name]))
    module.engine, observer = watching
    benchmark(lambda: launch(observer()))
    counted = Count()
    module.engine = "numpy"
    launch(counted)
    # The fastest kernel executes more than one instruction for each element of its result.
    assert counted.total > work.arguments[-1].size
    if benchmark.stats is not None:
        figure = counted.total / benchmark.stats.stats.min / elements_per_second()
        benchmark.extra_info["yardstick"] = figure
        print(f"\n{benchmark.name}: {figure:.3f} thread-instructions for each element of np.add")
    check(work, result())


@pytest.mark.parametrize(("name", "sizes"), [("collatz", (2**20, 2**10)), ("bodies", (2**13, 2**9))])
def test_two_threads(benchmark: Any, name: str, sizes: tuple[int, int]) -> None:
    """In machine code, two threads are compared with one: `speedup` is the ratio of the times."""
    module, _, launch, result = prepared(name, size(benchmark, *sizes))
    module.engine = "native"
    launch()
    expected = result()
    if benchmark.enabled:
        one = min(timeit.repeat(launch, number=1, repeat=10))
    module.threads = 2
    try:
        benchmark(launch)
    finally:
        module.threads = 1
    np.testing.assert_array_equal(result(), expected)
    if benchmark.stats is not None:
        benchmark.extra_info["speedup"] = figure = one / benchmark.stats.stats.min
        print(f"\n{benchmark.name}: {figure:.2f} times as fast as one thread")


def test_parse_and_first_launch(benchmark: Any) -> None:
    """Time a kernel of about 100 instructions from its source to the first result."""
    n = 16

    def first() -> None:
        fresh = Kernels(SOURCE)
        out = fresh.zeros(n * n, np.float32)
        a = fresh.put(np.eye(n, dtype=np.float32))
        fresh.launch("matmul", 1, (16, 16, 1), n, a, a, out)
        np.testing.assert_array_equal(fresh.get(out, n * n, np.float32).reshape(n, n), np.eye(n))

    benchmark(first)
