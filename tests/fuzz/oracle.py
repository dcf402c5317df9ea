"""Run random kernels in C++ of the host and on the driver in use, and compare every word that they leave."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .kernels import WORDS, Kernel, source

__all__ = [
    "ENGINES", "MODES", "OPTIONS", "Difference", "Runs", "before", "compare", "differences", "host_compiler",
    "host_results", "inputs",
]  # fmt: skip  # a list of words

Words = NDArray[np.uint64]

ENGINES = ("numpy", "native")
MODES = ("plain", "checked", "counted")
OPTIONS = ("--fmad=false", "--std=c++17")
# Sums wrap, and nothing is fused, reordered or assumed about types and roundings.
_HOST_OPTIONS = (
    "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
    "-frounding-math",
)  # fmt: skip  # words of a command line
_SPECIAL = (
    0, 1, 2, 3, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00800000, 0x00000001,
    0x3F800000, 0xBF800000, 0x4B800000, 0x40490FDB, 0x43700000, 0xC3700000, 0x7FF00000, 0x3FF00000,
)  # fmt: skip  # a list of numbers


@dataclass(frozen=True)
class Difference:
    """The results, findings or counters of a kernel, if they aren't what they should be."""

    number: int
    engine: str
    mode: str
    text: str
    # Whether a fault has ended the context.
    lost: bool = False

    def __str__(self) -> str:
        return f"kernel {self.number}, {self.engine or 'default engine'}, {self.mode}: {self.text}"


@functools.cache
def host_compiler() -> str | None:
    """Return the path of a C++ compiler, or None."""
    return next((path for name in ("g++", "clang++", "c++") if (path := shutil.which(name))), None)


def inputs(seed: int, number: int, threads: int) -> NDArray[np.uint32]:
    """Return the words that the threads of a kernel read: special ones, small ones, and any bits."""
    rng = np.random.default_rng((seed, number))
    count = threads * WORDS
    words = rng.integers(0, 1 << 32, count, np.uint32)
    chosen = rng.random(count)
    words[chosen < 0.3] = rng.choice(np.array(_SPECIAL, np.uint32), count)[chosen < 0.3]
    words[chosen > 0.7] = rng.integers(0, 100, count, np.uint32)[chosen > 0.7]
    return words


def before(kernel: Kernel) -> Words:
    """Return what the words that a kernel adds to are before it runs."""
    return np.arange(kernel.results, dtype=np.uint64)


def host_results(kernels: Sequence[Kernel], seed: int, folder: Path) -> dict[int, Words]:
    """Compile kernels by the host's compiler and return the words that each leaves, by their numbers."""
    compiler = host_compiler()
    assert compiler is not None
    path = folder / f"kernels_{kernels[0].number}_{time.monotonic_ns()}.cpp"
    path.write_text(source(kernels))
    library = path.with_suffix(".so")
    try:
        done = subprocess.run([compiler, *_HOST_OPTIONS, "-o", library, path], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"{compiler} refuses the source:\n{done.stderr[:3000]}")
        loaded = ctypes.CDLL(str(library))
        results = {}
        for kernel in kernels:
            words = inputs(seed, kernel.number, kernel.threads * kernel.blocks)
            out = before(kernel)
            loaded[kernel.name](ctypes.c_void_p(words.ctypes.data), ctypes.c_void_p(out.ctypes.data))
            results[kernel.number] = out
        return results
    finally:
        for file in (path, library):
            file.unlink(missing_ok=True)


class Runs:
    """Kernels compiled for the driver in use, and launched by the engines in their modes."""

    def __init__(self, kernels: Sequence[Kernel], seed: int) -> None:
        self._module = cuda.compile(source(kernels), options=OPTIONS)
        self._seed = seed

    def run(self, kernel: Kernel, mode: str) -> tuple[Words, Any]:
        """Launch a kernel and return the words that it leaves, and its counters where it is counted.

        Checks raise what they find.
        """
        words = cuda.to_device(inputs(self._seed, kernel.number, kernel.threads * kernel.blocks))
        out = cuda.to_device(before(kernel))
        launch = functools.partial(self._module[kernel.name][kernel.blocks, kernel.threads], words, out)
        with cuda.checks("error" if mode == "checked" else "off"):
            if mode != "counted":
                launch()
                return out.to_host(), None
            with cuda.profile() as profile:
                launch()
            return out.to_host(), profile.launches


def differences(
    kernel: Kernel, expected: Words, runs: Runs, engines: Sequence[str] = ENGINES, modes: Sequence[str] = MODES
) -> Iterator[Difference]:
    """Run a kernel by each of the engines in each of the modes; yield what differs from C++, or between the engines."""
    counters = {}
    for engine in engines:
        for mode in modes:
            with _engine(engine):
                try:
                    got, counters[engine, mode] = runs.run(kernel, mode)
                except (cuda.CudaError, cuda.SimulatorWarning) as error:
                    lost = isinstance(error, cuda.CudaError)
                    yield Difference(kernel.number, engine, mode, f"{type(error).__name__}: {error}", lost)
                    if lost:
                        return
                    continue
            if difference := _first(kernel, expected, got):
                yield Difference(kernel.number, engine, mode, difference)
    counted = {engine: counters.get((engine, "counted")) for engine in engines}
    first, *others = counted
    for other in others:
        if None not in (counted[first], counted[other]) and counted[first] != counted[other]:
            yield Difference(kernel.number, other, "counted", _counters(counted[first], counted[other]))


@contextmanager
def _engine(name: str) -> Iterator[None]:
    """Let an engine run the launches inside; an empty name is the driver's own choice."""
    variable = "CUDART_PY_SIMULATOR_ENGINE"
    before = os.environ.get(variable)
    if name:
        os.environ[variable] = name
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = before


def _first(kernel: Kernel, expected: Words, got: Words) -> str:
    """Say where the results of a kernel first differ, if they do."""
    where = np.flatnonzero(expected != got)
    if not where.size:
        return ""
    field, thread = divmod(int(where[0]), kernel.threads * kernel.blocks)
    return (
        f"{where.size} of {got.size} words differ, first {kernel.fields[field].type} {kernel.fields[field].text} of "
        f"thread {thread}: {expected[where[0]]:#x} in C++, {got[where[0]]:#x} here"
    )


def _counters(expected: Any, got: Any) -> str:
    """Say which metrics of a launch differ between two engines."""
    metrics = [(one.metrics, other.metrics) for one, other in zip(expected, got, strict=True)]
    texts = [
        f"{name} is {one.get(name)} and {other.get(name)}"
        for one, other in metrics
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]
    return "; ".join(texts) or "the metrics of single lines differ"


def compare(
    kernels: Sequence[Kernel], seed: int, folder: Path, engines: Sequence[str] = ENGINES, modes: Sequence[str] = MODES
) -> list[Difference]:
    """Return what differs when kernels are compiled together, and each runs by each engine in each mode."""
    expected = host_results(kernels, seed, folder)
    runs = Runs(kernels, seed)
    found = []
    for kernel in kernels:
        of_kernel = list(differences(kernel, expected[kernel.number], runs, engines, modes))
        found += of_kernel
        if any(one.lost for one in of_kernel):
            cuda.reset()
            runs = Runs(kernels, seed)
    return found
