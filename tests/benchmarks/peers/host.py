"""Host overhead per call, compared with a C loop, bare cuda.bindings, cuda.core and CuPy.

A round times some calls of one kind and then drains the stream, which is not timed: a full queue would make the host
wait for the device. The kinds alternate within a round, so that a change of the clock rate affects all of them. A
process keeps the time of its fastest round, in microseconds per call, because other work on the machine only adds to
it. The placement of memory differs between processes, so several run one after another, and each figure is the median
of theirs. A peer that is not installed is left out.
"""

import argparse
import compileall
import ctypes
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cudart_py as cuda
from cudart_py.driver import calls

from .host_calls import CALLS, launches
from .host_rivals import c_loops, rivals
from .host_things import BLOCK, GRID, Call, Things
from .report import Bar, Comparison, Report, Table, conditions

# The number of rounds at the start that only warm up.
WARM_UP = 3
# By kind of call and way of making it: a function that makes `count` calls and returns their time in seconds.
Loops = dict[tuple[str, str], Callable[[int], float]]
ALIKE = ("event record", "memset 4 KiB", "upload 4 KiB", "download 4 KiB", "copy 4 KiB on the device")
# The most by which a way of making a call may exceed another, in microseconds per call, or milliseconds for imports.
BARS = [
    ("launch", "checked", "bare, packed once", 0.9),
    ("launch", "bound", "bare, packed once", 0.25),
    *((what, "ours", "bare", 1.0) for what in (*ALIKE, "graph of 10 launches", "stream query", "wait for an event")),
    ("allocate and free 1 MiB", "ours", "bare", 1.5),  # two calls
    ("launch", "checked", "cuda.core, Buffers", 0.0),
    ("launch", "checked", "CuPy RawKernel", 0.0),
    ("import", "ours", "numpy", 60.0),
]


def loop(call: Call) -> Callable[[int], float]:
    """Return a loop over a call with the least possible Python overhead; it passes a partial's arguments itself."""
    whole = call if isinstance(call, partial) else partial(call)
    names = [*(f"a{i}" for i in range(len(whole.args))), *whole.keywords]
    passed = ", ".join([*names[: len(whole.args)], *(f"{name}={name}" for name in whole.keywords)])
    space: dict[str, Any] = {"clock": time.perf_counter}
    source = (
        f"def make({', '.join(['f', *names])}):\n"
        "    def run(count):\n"
        "        calls = range(count)\n"
        "        start = clock()\n"
        f"        for _ in calls: f({passed})\n"
        "        return clock() - start\n"
        "    return run\n"
    )
    exec(source, space)
    run: Callable[[int], float] = space["make"](whole.func, *whole.args, **whole.keywords)
    return run


def bare_launches(t: Things) -> Iterator[tuple[str, Call]]:
    launch, pack, f, s, where, buffer, values = (
        calls.raw.cuLaunchKernel, t.layout.pack_into, t.f, t.s, t.extra, t.packed, t.values,
    )  # fmt: skip  # one name each

    def packing() -> None:
        pack(buffer, 0, *values)
        launch(f, GRID, 1, 1, BLOCK, 1, 1, 0, s, 0, where)

    kinds = (ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
    yield "bare, packed each time", packing
    typed = partial(launch, f, GRID, 1, 1, BLOCK, 1, 1, 0, s, (values, kinds), 0)
    yield "bare, tuples of values and types", typed


def all_loops(t: Things) -> Loops:
    """Return loops over the calls that have bars, and over the calls that they are compared with."""
    loops: Loops = {(what, "C"): run for what, run in c_loops(t).items()}
    asked = [what for what in dict.fromkeys(what for what, *_ in BARS) if what in CALLS]
    calls: dict[tuple[str, str], Call] = {}
    for what in asked:
        calls[what, "bare, packed once" if what == "launch" else "bare"], calls[what, "ours"] = CALLS[what](t)
    del calls["launch", "ours"]  # `launches` contains it
    calls |= {("launch", how): call for how, call in bare_launches(t)}
    calls |= {key: call for key, call in rivals(t).items() if key[0] in asked}
    calls |= {("launch", how): call for how, call in launches(t).items()}
    return loops | {key: loop(call) for key, call in calls.items()}


def import_milliseconds(statement: str) -> float:
    """Return the time of an import in a new process, in milliseconds."""
    program = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return 1e3 * float(subprocess.check_output([sys.executable, "-c", program]))


def microseconds(rounds: int, calls: int) -> dict[tuple[str, str], list[float]]:
    """Return the microseconds per call for each loop and round; the loops alternate, each with a drained stream."""
    with cuda.Device(0) as device:
        things = Things(device)
        loops = all_loops(things)
        times: dict[tuple[str, str], list[float]] = {key: [] for key in loops}
        for _ in range(rounds + WARM_UP):
            for key, run in loops.items():
                run(calls // 10)
                things.stream.synchronize()
                seconds = run(calls)
                device.synchronize()
                if seconds < 0:
                    raise RuntimeError(f"{', '.join(key)}: the driver answered {-seconds:.0f}")
                times[key].append(1e6 * seconds / calls)
    return {key: values[WARM_UP:] for key, values in times.items()}


def compare(options: argparse.Namespace) -> Iterator[Comparison | Table]:
    # Compile to bytecode as an installer does, because Python may be told not to write bytecode itself.
    compileall.compile_dir(Path(cuda.__file__).parent, quiet=1)
    processes = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for _ in range(options.processes):
            times = pool.apply(microseconds, (options.rounds, options.calls))
            for how, module in (("numpy", "numpy"), ("ours", "cudart_py")):
                times["import", how] = [import_milliseconds(f"import {module}") for _ in range(5)]
            processes.append(times)
    fastest = {key: [min(times[key]) for times in processes] for key in processes[0]}
    middle = {key: statistics.median(found) for key, found in fastest.items()}
    for what, how, base, most in BARS:
        unit = "ms" if what == "import" else "us"
        yield Comparison(f"{what}, {how}", unit, middle[what, how], base, middle.get((what, base)), Bar.above(most))
    kinds = list(dict.fromkeys(what for what, _ in middle))
    rows = [
        [what, how, middle[what, how], min(fastest[what, how]), max(fastest[what, how])]
        for what, how in sorted(middle, key=lambda key: kinds.index(key[0]))
        if what != "import"
    ]
    yield Table("All calls, in microseconds", ["call", "made with", "median", "least", "greatest"], rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--calls", type=int, default=200, help="calls between two drains of the stream")
    parser.add_argument("--processes", type=int, default=7, help="processes that measure, one after another")


def measure(options: argparse.Namespace) -> Report:
    return Report.of("host", conditions("cuda-bindings", "cuda-core", "cupy-cuda13x"), compare(options))
