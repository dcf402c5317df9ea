"""A user's tests and programs that use the tour, for type checkers; like `user_script.py`, they are never run."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

import numpy as np

import cudart_py as cuda
from cudart_py.benchmark import Measurement, measure
from cudart_py.benchmark.pytest_plugin import GpuBenchmark, HostBenchmark
from library_tour.checks import compare


def nothing() -> None:
    """Do nothing, in place of a function that queues work."""


def test_fixtures(gpu_benchmark: GpuBenchmark, host_benchmark: HostBenchmark) -> tuple[Measurement, Measurement]:
    """Use the fixtures with all kinds of arguments."""
    gpu_benchmark([nothing, nothing], bytes=12, flops=3.5, flush_l2=False, graph=False)
    gpu_benchmark(lambda stream: stream.synchronize(), streams=48)
    return gpu_benchmark(nothing, ceiling="copy", beside={"CuPy": nothing, "not installed": None}), host_benchmark(
        nothing, batch=3, stream=cuda.Stream()
    )


def shapes() -> cuda.DeviceArray:
    """Pass shapes as ints, tuples and lists of Python's and NumPy's integers."""
    cuda.zeros(3, np.float32)
    cuda.empty((3, np.int64(4)), np.float32)
    cuda.full([3, 4], 0, np.float32)
    cuda.pinned_empty(np.int32(3))
    cuda.managed_empty(())
    return cuda.empty_pitched((3, 4), np.float32).reshape(2, -1).reshape((4, 3))


def choices() -> None:
    """Use arguments that select a choice by its name."""
    with cuda.sanitizer("error"), cuda.Stream().access_policy(cuda.zeros(3), hit="normal", miss="streaming"):
        measure(nothing, ceiling="fp32")
        measure(nothing, ceiling=4.3e12)
    cuda.advise(cuda.managed_empty(3), "set_read_mostly")


def tour() -> bool:
    """Use a function of the tour, which has types too."""
    check = compare("the same", np.ones(3), np.ones(3))
    return check.holds


def wrong(gpu_benchmark: GpuBenchmark, host_benchmark: HostBenchmark) -> None:
    """Pass arguments of wrong types, which a type checker must report."""
    cuda.zeros(2.5)  # type: ignore[arg-type]  # a size that is not an integer
    cuda.zeros((3, 2.5))  # type: ignore[arg-type]  # the same in a tuple
    cuda.empty("34")  # type: ignore[arg-type]  # a shape in a string
    cuda.zeros(3).reshape("3")  # type: ignore[arg-type]  # the same
    cuda.sanitizer("loud")  # type: ignore[arg-type]  # not a mode
    cuda.Stream().capture("local")  # type: ignore[arg-type]  # the same
    cuda.Stream().access_policy(cuda.zeros(3), hit="always")  # type: ignore[arg-type]  # the same
    cuda.advise(cuda.managed_empty(3), "set_read")  # type: ignore[arg-type]  # not an advice
    measure(nothing, ceiling="memory")  # type: ignore[arg-type]  # not a ceiling
    gpu_benchmark(nothing, byte=12)  # type: ignore[call-arg]  # a misspelled argument
    gpu_benchmark(3)  # type: ignore[arg-type]  # not a function
    host_benchmark(nothing, ceiling="copy")  # type: ignore[call-arg]  # an argument of the other fixture only
    test_fixtures(host_benchmark, host_benchmark)  # type: ignore[arg-type]  # the wrong fixture
    compare(1, np.ones(3), np.ones(3))  # type: ignore[arg-type]  # a name that is not a str
