"""Time ten programs on both engines of the simulator, one after the other in one run, and compare.

    python scripts/ten_programs.py [--only FFT attention ...] [--small] [--checks warn]

Each engine runs a program once, untimed, and the result is compared with NumPy's. The times are the least of several
runs in milliseconds, from the first launch to the end of the last one. `first` is the untimed run on the native engine:
it compiles the kernels, unless their machine code is in the cache. Nothing is checked by default, and nothing counted.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

import bars
from program_cases import CASES, Case

import cudart_py as cuda

ENGINES = ("numpy", "native")
# How long one program is timed on one engine, and how often at most.
SECONDS, MOST_RUNS = 2.0, 20


class Times(NamedTuple):
    """The seconds of one program's first run and of its fastest one."""

    first: float
    least: float


def run(case: Case, device: cuda.Device) -> float:
    """Run a program once and return its seconds."""
    begin = time.perf_counter()
    case.run()
    device.synchronize()
    return time.perf_counter() - begin


def measure(case: Case, device: cuda.Device, engine: str) -> Times:
    """Run a program on an engine, check its results, and time it."""
    os.environ["CUDART_PY_SIMULATOR_ENGINE"] = engine
    first = run(case, device)
    case.check()
    end = time.perf_counter() + SECONDS
    times = [run(case, device)]
    while len(times) < MOST_RUNS and time.perf_counter() < end:
        times.append(run(case, device))
    return Times(first, min(times))


def compare(name: str, full: bool) -> list[str]:
    """Return a program's line of the table."""
    with cuda.Device(0) as device:
        case = CASES[name](full)
        numpy, native = (measure(case, device, engine) for engine in ENGINES)
    milliseconds = [f"{1e3 * seconds:.1f}" for seconds in (numpy.least, native.least, native.first)]
    return [name, case.size, *milliseconds, f"{numpy.least / native.least:.1f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="these alone")
    parser.add_argument("--small", action="store_true", help="the sizes that the tests run")
    parser.add_argument("--checks", choices=("off", "warn", "error"), default="off", help="what is checked meanwhile")
    options = parser.parse_args(arguments)
    os.environ["CUDART_PY_DRIVER"] = "simulator"
    with cuda.checks(options.checks):
        lines = [compare(name, not options.small) for name in options.only]
    print(bars.table(("program", "size", "numpy", "native", "first", "ratio"), lines, right="  rrrr"))


if __name__ == "__main__":
    main()
