"""Compare the simulator's machine code with C++ loops and with PoCL, on one core, in one run.

    uv pip install pyopencl; uv run --no-sync python scripts/simulator_peers.py

The kernels lie in ``peers/``: in CUDA C++, as loops for a C++ compiler (CXX, c++, g++ or clang++) with ``-O3
-march=native``, and in OpenCL C for PoCL's CPU device (Debian's pocl-opencl-icd). A peer that isn't there is left out.
The three take turns; the times are the least of many runs, in milliseconds, with nothing checked. Mathematics is fast
for `bodies` alone, in all three. All results are compared with the simulator's.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bars
import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

FOLDER = Path(__file__).with_name("peers")
ROUNDS = 15
Array = NDArray[Any]
# What runs a work, and what gives its result back.
Contender = tuple[Callable[[], None], Callable[[], Array]]


class Work(NamedTuple):
    """A kernel with its launch shape and arguments; the last argument is the array that it writes."""

    name: str
    threads: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]
    fast: bool = False


def works(scale: int) -> list[Work]:
    """Return all kernels with inputs; `scale` divides the work."""
    random = np.random.default_rng(20)
    many, bodies, side, inner = (1 << 20) // scale, 4096 // scale, 1024 // scale, 512 // scale

    def reals(*shape: int) -> Array:
        return random.random(shape, np.float32)

    return [
        # By zero, so that y stays the same however often it runs.
        Work("saxpy", (many,), (256,), (many, 0.0, reals(many), reals(many))),
        Work("collatz", (many // 4,), (256,), (many // 4, np.zeros(many // 4, np.int32))),
        Work("bodies", (bodies,), (256,), (bodies, reals(bodies, 4), np.zeros((bodies, 4), np.float32)), fast=True),
        Work("transpose", (side, side // 4), (32, 8), (side, reals(side, side), np.zeros((side, side), np.float32))),
        Work(
            "matmul",
            (inner, inner),
            (16, 16),
            (inner, reals(inner, inner), reals(inner, inner), np.zeros((inner, inner), np.float32)),
        ),
    ]


def on_simulator(work: Work) -> Contender:
    """Return the work as a launch."""
    kernel = cuda.compile(FOLDER / "kernels.cu", fast_math=work.fast)[work.name]
    arguments = [cuda.to_device(one) if isinstance(one, np.ndarray) else one for one in work.arguments]
    grid = tuple(threads // block for threads, block in zip(work.threads, work.block, strict=True))
    device = cuda.current_device()

    def run() -> None:
        kernel[grid, work.block](*arguments)
        device.synchronize()

    return run, arguments[-1].to_host


def in_cpp(folder: Path) -> Callable[[Work], Contender] | None:
    """Compile the loops; return what makes a call of them, or None and say why."""
    names = os.environ.get("CXX", "c++"), "g++", "clang++"
    compiler = next(filter(None, map(shutil.which, names)), None)
    if compiler is None:
        print("no C++ compiler was found")
        return None
    libraries = {}
    for fast, options in ((False, []), (True, ["-ffast-math"])):
        file = folder / f"loops{fast:d}.so"
        command = [compiler, "-O3", "-march=native", *options, "-shared", "-fPIC", "-o", file, FOLDER / "loops.cpp"]
        subprocess.run(command, check=True)
        libraries[fast] = ctypes.CDLL(str(file))

    def contender(work: Work) -> Contender:
        function = getattr(libraries[work.fast], work.name)
        function.restype = None
        kept = [one.copy() if isinstance(one, np.ndarray) else one for one in work.arguments]
        kinds = {int: ctypes.c_int, float: ctypes.c_float}
        given = [
            ctypes.c_void_p(one.ctypes.data) if isinstance(one, np.ndarray) else kinds[type(one)](one) for one in kept
        ]
        return lambda: function(*given), lambda: kept[-1]

    return contender


def in_opencl() -> Callable[[Work], Contender] | None:
    """Find PoCL; return what makes a launch there, or None and say why."""
    # PoCL reads it when it is loaded: as many threads as the others have.
    os.environ["POCL_MAX_PTHREAD_COUNT"] = "1"
    cl = bars.optional("pyopencl")
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
        convert = {int: np.int32, float: np.float32}
        arguments = [
            cl.Buffer(context, flags, hostbuf=one) if isinstance(one, np.ndarray) else convert[type(one)](one)
            for one in work.arguments
        ]
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


def compare(work: Work, makers: Sequence[Callable[[Work], Contender] | None]) -> list[str]:
    """Return a line of the table: the simulator's time, and each peer's with the quotient."""
    contenders = [maker and maker(work) for maker in makers]
    times: list[list[float]] = [[] for _ in contenders]
    for _ in range(ROUNDS):
        for contender, spent in zip(contenders, times, strict=True):
            if contender is not None:
                begin = time.perf_counter()
                contender[0]()
                spent.append(time.perf_counter() - begin)
    assert contenders[0] is not None
    expected = contenders[0][1]()
    line = [work.name, f"{1e3 * min(times[0]):.2f}"]
    for contender, spent in zip(contenders[1:], times[1:], strict=True):
        if contender is None:
            line += ["", ""]
            continue
        np.testing.assert_allclose(contender[1](), expected, rtol=1e-3, atol=1e-3)
        line += [f"{1e3 * min(spent):.2f}", f"{min(times[0]) / min(spent):.1f}"]
    return line


def main(scale: int = 1) -> None:
    """Measure and print."""
    os.environ |= {"CUDART_PY_DRIVER": "simulator", "CUDART_PY_SIMULATOR_ENGINE": "native"}
    with tempfile.TemporaryDirectory() as folder, cuda.checks("off"), cuda.Device(0):
        makers = on_simulator, in_cpp(Path(folder)), in_opencl()
        lines = [compare(work, makers) for work in works(scale)]
    print(bars.table(("kernel", "simulator", "C++", "quotient", "PoCL", "quotient"), lines, right=" rrrrr"))


if __name__ == "__main__":
    main()
