"""Ten programs from `tests/programs`, on both engines of the simulator.

The result of the first run on each engine is compared with NumPy's. A figure is the least time of several later runs,
from the first launch until the last one has finished. A further table shows the times of the first runs on the native
engine, which compile the kernels unless their machine code is in the cache. The sanitizer and the counters are off.
"""

import argparse
import os
import time
from collections.abc import Iterator, Sequence

import cudart_py as cuda
from tests.programs.cases import CASES, Case

from .report import Comparison, Report, Table, conditions

# The time for the later runs of a program on an engine, in seconds, and the greatest number of these runs.
SECONDS, MOST_RUNS = 2.0, 20


def run(case: Case, device: cuda.Device) -> float:
    begin = time.perf_counter()
    case.run()
    device.synchronize()
    return 1e3 * (time.perf_counter() - begin)


def times(case: Case, device: cuda.Device, engine: str, seconds: float) -> tuple[float, float]:
    """Run a program on an engine, check its results, and return the times of its first and its fastest later run."""
    os.environ["CUDART_PY_SIMULATOR_ENGINE"] = engine
    first = run(case, device)
    case.check()
    end = time.perf_counter() + seconds
    later = [run(case, device)]
    while len(later) < MOST_RUNS and time.perf_counter() < end:
        later.append(run(case, device))
    return first, min(later)


def compare(names: Sequence[str], full: bool, seconds: float) -> Iterator[Comparison | Table]:
    firsts: list[list[str | float]] = []
    for name in names:
        with cuda.Device(0) as device:
            case = CASES[name](full)
            _, numpy = times(case, device, "numpy", seconds)
            first, native = times(case, device, "native", seconds)
        firsts.append([name, first])
        yield Comparison(name, "ms", native, "engine numpy", numpy, note=case.size)
    yield Table("First runs on the native engine", ["program", "ms"], firsts)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="PROGRAM", help="these alone")
    parser.add_argument("--small", action="store_true", help="run the sizes of the tests")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each program on each engine")


def measure(options: argparse.Namespace) -> Report:
    os.environ["CUDART_PY_DRIVER"] = "simulator"
    with cuda.sanitizer("off"):
        found = compare(options.only, not options.small, options.seconds)
        return Report.of("programs", conditions("numpy", "llvmlite"), found)
