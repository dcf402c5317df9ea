"""Run random kernels as host C++ and on the driver in use, and compare every word of their output."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cudart_py as cuda

from .kernels import WORDS, Kernel, source

Words = NDArray[np.uint64]

ENGINES = ("numpy", "native")
MODES = ("plain", "checked", "counted")
OPTIONS = ("--fmad=false", "--std=c++17")
# Signed sums wrap, nothing is fused or reordered, and nothing is assumed about aliasing or rounding modes.
_HOST_OPTIONS = (
    "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
    "-frounding-math",
)  # fmt: skip  # words of a command line
_SPECIAL = (
    0, 1, 2, 3, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00800000, 0x00000001,
    0x3F800000, 0xBF800000, 0x4B800000, 0x40490FDB, 0x43700000, 0xC3700000, 0x7FF00000, 0x3FF00000,
)  # fmt: skip  # a list of numbers


@functools.cache
def host_compiler() -> str | None:
    """Return the path of a C++ compiler, or None if there is none."""
    return next((path for name in ("g++", "clang++", "c++") if (path := shutil.which(name))), None)


def inputs(seed: int, kernel: Kernel) -> NDArray[np.uint32]:
    """Return the words that the threads of a kernel read: 30 % special values, 30 % below 100, the rest random bits."""
    rng = np.random.default_rng((seed, kernel.number))
    count = kernel.threads * kernel.blocks * WORDS
    words = rng.integers(0, 1 << 32, count, np.uint32)
    chosen = rng.random(count)
    words[chosen < 0.3] = rng.choice(np.array(_SPECIAL, np.uint32), count)[chosen < 0.3]
    words[chosen > 0.7] = rng.integers(0, 100, count, np.uint32)[chosen > 0.7]
    return words


def before(kernel: Kernel) -> Words:
    """Return the initial contents of the words that a kernel adds to."""
    return np.arange(kernel.results, dtype=np.uint64)


def host_results(kernels: Sequence[Kernel], seed: int) -> dict[int, Words]:
    """Compile kernels with the host compiler, run them, and return the output of each by its number."""
    compiler = host_compiler()
    assert compiler is not None
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        path.write_text(source(kernels))
        done = subprocess.run([compiler, *_HOST_OPTIONS, "-o", library, path], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"{compiler} refuses the source:\n{done.stderr[:3000]}")
        loaded = ctypes.CDLL(str(library))
    results = {}
    for kernel in kernels:
        words = inputs(seed, kernel)
        results[kernel.number] = out = before(kernel)
        loaded[kernel.name](ctypes.c_void_p(words.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    return results


class Runs:
    """Kernels compiled with both compilers, and launched on each engine in each mode."""

    def __init__(self, kernels: Sequence[Kernel], seed: int, *options: str, arch: str | None = None) -> None:
        self._expected = host_results(kernels, seed)
        self._module = cuda.compile(source(kernels), arch=arch, options=(*OPTIONS, *options))
        self._seed = seed
        # Functions recurse up to three levels deep with arrays in each frame, so a stack of 1024 bytes is too small.
        cuda.current_device().limits.stack_size = 16384

    def _run(self, kernel: Kernel, mode: str) -> tuple[Words, Any]:
        """Launch a kernel and return its output, and its counters in the mode "counted".

        In the mode "checked", a finding of the sanitizer raises.
        """
        words, out = cuda.to_device(inputs(self._seed, kernel)), cuda.to_device(before(kernel))
        launch = functools.partial(self._module[kernel.name][kernel.blocks, kernel.threads], words, out)
        with cuda.sanitizer("error" if mode == "checked" else "off"):
            if mode != "counted":
                launch()
                return out.to_host(), None
            with cuda.profile() as profile:
                launch()
            return out.to_host(), profile.launches

    def differences(
        self, kernel: Kernel, engines: Sequence[str] = ENGINES, modes: Sequence[str] = MODES
    ) -> Iterator[str]:
        """Run a kernel on each engine in each mode; yield differences from C++ and between the engines' counters.

        An empty name lets the driver choose an engine. A fault ends the context and therefore all further runs.
        """
        expected, counters = self._expected[kernel.number], {}
        for engine in engines:
            for mode in modes:
                place = f"{engine or 'default engine'}, {mode}"
                try:
                    with pytest.MonkeyPatch.context() as patch:
                        if engine:
                            patch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
                        got, counters[engine, mode] = self._run(kernel, mode)
                except cuda.errors.SimulatorWarning as finding:
                    yield f"{place}: {finding}"
                except cuda.CudaError as error:
                    yield f"{place}: {type(error).__name__}: {error}"
                    return
                else:
                    yield from (f"{place}: {text}" for text in _first(kernel, expected, got))
        counted = [launches for engine in engines if (launches := counters.get((engine, "counted"))) is not None]
        yield from (f"counters are {one} and {counted[0]}" for one in counted[1:] if one != counted[0])


def _first(kernel: Kernel, expected: Words, got: Words) -> Iterator[str]:
    """Yield a description of the first difference between the results of a kernel, if they differ."""
    where = np.flatnonzero(expected != got)
    if where.size:
        field, thread = divmod(int(where[0]), kernel.threads * kernel.blocks)
        yield (
            f"{where.size} of {got.size} words differ, first {kernel.fields[field].type} {kernel.fields[field].text} "
            f"of thread {thread}: {expected[where[0]]:#x} in C++, {got[where[0]]:#x} here"
        )
