"""The simulator's machine code, compared with C++ loops and PoCL on one core.

    uv pip install pyopencl; uv run --no-sync python -m tests.benchmarks.peers simulator

The kernels are in ``sources/``: in CUDA C++, as loops for a C++ compiler (CXX, c++, g++ or clang++) with ``-O3
-march=native``, and in OpenCL C for PoCL's CPU device (Debian's package pocl-opencl-icd). A peer that is not installed
is left out. The three alternate. A figure is the least time of many runs, with the sanitizer off. Only `bodies` uses
fast math, in all three. All results are compared with the simulator's.
"""

import argparse
import ctypes
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .c_loops import SOURCES as FOLDER
from .c_loops import compile_library
from .report import Comparison, Report, attempt, conditions, optional

ROUNDS = 15
Array = NDArray[Any]
# A function that runs the work, and one that returns its result.
Contender = tuple[Callable[[], None], Callable[[], Array]]


class Work(NamedTuple):
    """A kernel with its launch shape and arguments; the last argument is the array that it writes."""

    name: str
    threads: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]

    @property
    def grid(self) -> tuple[int, ...]:
        return tuple(threads // block for threads, block in zip(self.threads, self.block, strict=True))

    @property
    def fast(self) -> bool:
        return self.name == "bodies"


# The number of elements, bodies, or rows and columns of each kernel.
SIZES = {"saxpy": 1 << 20, "collatz": 1 << 18, "bodies": 4096, "transpose": 1024, "matmul": 512}


def make_work(name: str, n: int) -> Work:
    random = np.random.default_rng(20)

    def reals(*shape: int) -> Array:
        return random.random(shape, np.float32)

    match name:
        case "saxpy":  # the factor is zero, so that y stays the same however often the kernel runs
            return Work(name, (n,), (256,), (n, np.float32(0), reals(n), reals(n)))
        case "collatz":
            return Work(name, (n,), (256,), (n, np.zeros(n, np.int32)))
        case "bodies":
            return Work(name, (n,), (256,), (n, reals(n, 4), np.zeros((n, 4), np.float32)))
        case "transpose":
            return Work(name, (n, n // 4), (32, 8), (n, reals(n, n), np.zeros((n, n), np.float32)))
        case _:
            return Work(name, (n, n), (16, 16), (n, reals(n, n), reals(n, n), np.zeros((n, n), np.float32)))


def on_simulator(work: Work) -> Contender:
    kernel = cuda.compile(FOLDER / "kernels.cu", fast_math=work.fast)[work.name]
    arguments = [cuda.to_device(one) if isinstance(one, np.ndarray) else one for one in work.arguments]
    device = cuda.current_device()

    def run() -> None:
        kernel[work.grid, work.block](*arguments)
        device.synchronize()

    return run, arguments[-1].to_host


def in_cpp() -> Callable[[Work], Contender] | None:
    """Compile the loops and return a function that makes a contender of a work, or print the reason and return None."""
    compilers, options = (os.environ.get("CXX", "c++"), "g++", "clang++"), ("-O3", "-march=native")
    usual = attempt("C++", compile_library, "loops.cpp", compilers, *options)
    if usual is None:
        return None
    libraries = {False: usual, True: compile_library("loops.cpp", compilers, *options, "-ffast-math")}

    def contender(work: Work) -> Contender:
        function = getattr(libraries[work.fast], work.name)
        function.restype = None
        kinds = {
            int: ctypes.c_int,
            np.float32: ctypes.c_float,
            np.ndarray: lambda one: one.ctypes.data_as(ctypes.c_void_p),
        }
        kept = [one.copy() if isinstance(one, np.ndarray) else one for one in work.arguments]
        given = [kinds[type(one)](one) for one in kept]
        return lambda: function(*given), lambda: kept[-1]

    return contender


def in_opencl() -> Callable[[Work], Contender] | None:
    """Find PoCL and return a function that makes a contender of a work, or print the reason and return None."""
    # PoCL reads this variable when it is loaded. It gets one thread, as the others do.
    os.environ["POCL_MAX_PTHREAD_COUNT"] = "1"
    cl = optional("pyopencl")
    platforms = [] if cl is None else [one for one in cl.get_platforms() if "Portable Computing" in one.name]
    if not platforms:
        print("pyopencl or PoCL is not there")
        return None
    context = cl.Context(platforms[0].get_devices()[:1])
    queue = cl.CommandQueue(context)

    def contender(work: Work) -> Contender:
        options = ["-cl-fast-relaxed-math"] if work.fast else []
        kernel = getattr(cl.Program(context, (FOLDER / "kernels.cl").read_text()).build(options), work.name)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        kinds = {int: np.int32, np.float32: np.float32, np.ndarray: lambda one: cl.Buffer(context, flags, hostbuf=one)}
        arguments = [kinds[type(one)](one) for one in work.arguments]
        kernel.set_args(*arguments)
        result = np.empty_like(work.arguments[-1])

        def run() -> None:
            cl.enqueue_nd_range_kernel(queue, kernel, work.threads, work.block)
            queue.finish()

        def read() -> Array:
            cl.enqueue_copy(queue, result, arguments[-1])
            return result

        return run, read

    return contender


def compare(work: Work, makers: Mapping[str, Callable[[Work], Contender] | None]) -> Iterator[Comparison]:
    contenders = {name: maker(work) for name, maker in makers.items() if maker is not None}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, (run, _) in contenders.items():
            begin = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - begin))
    _, expected = contenders.pop("simulator")
    ours = min(times.pop("simulator"))
    if not contenders:
        yield Comparison(work.name, "ms", ours, note="no peer is here")
    for name, (_, result) in contenders.items():
        np.testing.assert_allclose(result(), expected(), rtol=1e-3, atol=1e-3)
        yield Comparison(work.name, "ms", ours, name, min(times[name]))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=int, default=1, help="divides the work")


def measure(options: argparse.Namespace) -> Report:
    os.environ |= {"CUDART_PY_DRIVER": "simulator", "CUDART_PY_SIMULATOR_ENGINE": "native"}
    with cuda.sanitizer("off"), cuda.Device(0):
        makers = {"simulator": on_simulator, "C++": in_cpp(), "PoCL": in_opencl()}
        works = (make_work(name, n // options.scale) for name, n in SIZES.items())
        found = (one for work in works for one in compare(work, makers))
        return Report.of("simulator", conditions("numpy", "llvmlite"), found)
