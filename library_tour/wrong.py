"""Run programs that are wrong on purpose on the simulator, in a separate process, and report what is wrong.

A kernel that accesses memory out of bounds or waits forever never runs on a GPU, and its error stays in its process.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue

import cudart_py as cuda

from .forks import Forks
from .processors import processors
from .stop import Check, Row

SECONDS = 60
# Modules that most of the programs import.
MODULES = (
    "cudart_py.simulator.driver",
    "cudart_py.simulator.ptx.native.engine",
    "cudart_py.compilation.compiler",
    "library_tour.device_code",
    "library_tour.limits",
    "library_tour.variants",
    "library_tour.wrong",
    "numpy.random",
)
# The servers that run no program at the moment.
_idle: SimpleQueue[Forks] = SimpleQueue()


def run(function: str, arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a function in a process of its own, as `Forks.run` does, at the same time as those that other threads run."""
    try:
        server = _idle.get_nowait()
    except Empty:
        server = Forks(MODULES)
    try:
        return server.run(function, arguments, environment, seconds=SECONDS)
    finally:
        _idle.put(server)


def shown_wrong(name: str, program: Callable[[], str], *, devices: int = 1) -> Row:
    """Return a row whose check holds if the program is found to be wrong; the report is the row's note.

    `program` is a function of a module. It runs the wrong code, and either raises the driver's error or returns a
    sentence on what is wrong with the result, "" if nothing is. The driver has `devices` devices.
    """
    environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "CUDART_PY_SANITIZER": "warn"}
    environment["CUDART_PY_SIMULATOR_DEVICES"] = str(devices)
    try:
        done = run(f"{__name__}:main", [program.__module__, program.__name__], environment)
    except subprocess.TimeoutExpired:
        return Row(name, check=Check(f"{name} ends", False, f"It was stopped after {SECONDS} seconds."))
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    report = done.stdout.strip().replace(root + os.sep, "")  # this folder is of no interest to a reader
    if done.returncode:
        return Row(name, check=Check(f"{name} runs", False, done.stderr.strip()))
    return Row(name, check=Check(f"{name} is found to be wrong", bool(report), word="caught"), note=report)


def all_shown_wrong(programs: Mapping[str, Callable[[], str]], *, devices: int = 1) -> list[Row]:
    """Return the rows of `shown_wrong` for several named programs, running as many at a time as there are CPUs."""
    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(partial(shown_wrong, devices=devices), programs, programs.values()))


def main() -> None:
    """Run the program named by the arguments; print what is wrong with it and the driver's first warning."""
    module, name = sys.argv[1:]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            report = getattr(importlib.import_module(module), name)()
        except cuda.CudaError as error:
            report = str(error)
    sys.stdout.write("\n".join(filter(None, [report, *(str(warning.message) for warning in warned[:1])])))
    sys.stdout.flush()
    # Exit without cleaning up what a fault may have left behind.
    os._exit(0)
