"""The host's cost of a call beside a C loop, bare cuda.bindings, cuda.core and CuPy, in one process.

Each figure is that of the fastest of the rounds, in microseconds per call, since other work on the machine only adds to
it; the table of all calls has the medians too. A round makes some calls of one kind and then drains the stream outside
the time, because a full queue would make the host wait for the device. All kinds take turns within a round, so that a
change of the machine's clock meets all alike. A peer that is not installed is left out.
"""

from __future__ import annotations

import argparse
import compileall
import ctypes
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cudart_py as cuda
from cudart_py.driver import seam

from .c_loops import compile_c
from .host_calls import CALLS, launches
from .host_rivals import rivals
from .host_things import BLOCK, GRID, MIB, SIZE, Call, Things
from .report import Bar, Comparison, Report, Table, conditions

# The first rounds, which only warm up.
WARM_UP = 3


class Row(NamedTuple):
    """One way to do one thing: `run(count)` returns the seconds of that many calls."""

    what: str
    how: str
    run: Callable[[int], float]


def repeat(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Callable[[int], float]:
    """Return a loop over a call, with as little of Python around it as there can be."""
    names = ", ".join([*(f"a{i}" for i in range(len(arguments))), *keywords])
    passed = ", ".join([*(f"a{i}" for i in range(len(arguments))), *(f"{key}={key}" for key in keywords)])
    space: dict[str, Any] = {"clock": time.perf_counter}
    source = (
        f"def make(f{', ' if names else ''}{names}):\n"
        "    def run(count):\n"
        "        calls = range(count)\n"
        "        start = clock()\n"
        f"        for _ in calls: f({passed})\n"
        "        return clock() - start\n"
        "    return run\n"
    )
    exec(source, space)
    run: Callable[[int], float] = space["make"](function, *arguments, **keywords)
    return run


def c_rows(t: Things) -> list[Row]:
    """The C loops."""
    c = compile_c()
    if c is None:
        return []
    s = t.stream.handle
    launch = (t.kernel.handle, 2.0, t.x.pointer, t.y.pointer, t.z.pointer, SIZE, s)
    host = t.host.ctypes.data
    return [
        Row("launch", "C", lambda count: c.launch(*launch, count)),
        Row("event record", "C", lambda count: c.record(t.event.handle, s, count)),
        Row("memset 4 KiB", "C", lambda count: c.fill(t.x.pointer, SIZE, s, count)),
        Row("upload 4 KiB", "C", lambda count: c.upload(t.x.pointer, host, 4 * SIZE, s, count)),
        Row("download 4 KiB", "C", lambda count: c.download(host, t.x.pointer, 4 * SIZE, s, count)),
        Row("copy 4 KiB on the device", "C", lambda count: c.copy(t.y.pointer, t.x.pointer, 4 * SIZE, s, count)),
        Row("allocate and free 1 MiB", "C", lambda count: c.allocate(MIB, s, count)),
        Row("graph of 10 launches", "C", lambda count: c.graph(t.executable.handle, s, count)),
    ]


def loop(call: Call) -> Callable[[int], float]:
    """Return a loop over a call; of one with its arguments in it, a loop that passes them."""
    return repeat(call.func, *call.args, **call.keywords) if isinstance(call, partial) else repeat(call)


def launch_rows(t: Things) -> list[Row]:
    """Further ways to launch by the driver's function."""
    launch, pack, f, s, where, buffer, values = (
        seam.raw.cuLaunchKernel, t.layout.pack_into, t.f, t.s, t.extra, t.packed, t.values,
    )  # fmt: skip  # one name each

    def packing() -> None:
        pack(buffer, 0, *values)
        launch(f, GRID, 1, 1, BLOCK, 1, 1, 0, s, 0, where)

    kinds = (ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
    typed = repeat(launch, f, GRID, 1, 1, BLOCK, 1, 1, 0, s, (values, kinds), 0)
    return [
        Row("launch", "bare, packed each time", repeat(packing)),
        Row("launch", "bare, tuples of values and types", typed),
    ]


def all_rows(t: Things) -> list[Row]:
    """Return the rows that the bars are about, and what they are compared with."""
    wanted = [what for what in dict.fromkeys(what for what, *_ in BARS) if what in CALLS]
    bare = {what: "bare, packed once" if what == "launch" else "bare" for what in wanted}
    rows = [*c_rows(t), *(Row(what, bare[what], loop(CALLS[what].bare(t))) for what in wanted), *launch_rows(t)]
    rows += [Row(what, how, loop(call)) for (what, how), call in rivals(t).items() if what in wanted]
    rows += [Row("launch", how, loop(call)) for how, call in launches(t).items()]
    return rows + [Row(what, "ours", loop(CALLS[what].ours(t))) for what in wanted if what != "launch"]


Times = dict[tuple[str, str], list[float]]


def import_milliseconds(statement: str) -> list[float]:
    """Return the milliseconds of an import in nine fresh processes."""
    # As an installer leaves packages; Python may be told not to write bytecode itself.
    compileall.compile_dir(Path(cuda.__file__).parent, quiet=1)
    program = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(9)
    ]
    return [1e3 * float(run.stdout) for run in runs]


def bar(what: str, most: float, how: str = "ours", base: str = "bare") -> tuple[str, str, str, float]:
    """Return a bar: a way to make a call is at most so much above another, in microseconds; imports in milliseconds."""
    return what, how, base, most


BARS = [
    bar("launch", 0.9, "checked", "bare, packed once"),
    bar("launch", 0.25, "bound", "bare, packed once"),
    bar("event record", 1.0),
    bar("memset 4 KiB", 1.0),
    bar("upload 4 KiB", 1.0),
    bar("download 4 KiB", 1.0),
    bar("copy 4 KiB on the device", 1.0),
    bar("graph of 10 launches", 1.0),
    bar("stream query", 1.0),
    bar("wait for an event", 1.0),
    bar("allocate and free 1 MiB", 1.5),  # two calls
    bar("launch", 0.0, "checked", "cuda.core, Buffers"),
    bar("launch", 0.0, "checked", "CuPy RawKernel"),
    bar("import", 60.0, base="numpy"),
]


def microseconds(device: cuda.Device, rounds: int, calls: int) -> Times:
    """Return the microseconds of each row: all take turns, and each begins on a drained stream."""
    things = Things(device)
    rows = all_rows(things)
    times: Times = {(row.what, row.how): [] for row in rows}
    for _ in range(rounds + WARM_UP):
        for row in rows:
            row.run(calls // 10)
            things.stream.synchronize()
            seconds = row.run(calls)
            device.synchronize()
            if seconds < 0:
                raise RuntimeError(f"{row.what}, {row.how}: the driver answered {-seconds:.0f}")
            times[row.what, row.how].append(1e6 * seconds / calls)
    return {key: values[WARM_UP:] for key, values in times.items()}


def compare(options: argparse.Namespace) -> Iterator[Comparison | Table]:
    """Yield what the bars are about, and a table of all calls, those of one kind together."""
    with cuda.Device(0) as device:
        times = microseconds(device, options.rounds, options.calls)
    times["import", "numpy"] = import_milliseconds("import numpy")
    times["import", "ours"] = import_milliseconds("import cudart_py")
    for what, how, base, most in BARS:
        theirs = min(times[what, base]) if (what, base) in times else None
        unit = "ms" if what == "import" else "us"
        yield Comparison(f"{what}, {how}", unit, min(times[what, how]), base, theirs, Bar.above(most))
    kinds = list(dict.fromkeys(what for what, _ in times))
    every = sorted(times.items(), key=lambda item: kinds.index(item[0][0]))
    rows = [[what, how, min(found), statistics.median(found)] for (what, how), found in every if what != "import"]
    yield Table("All calls, in microseconds", ["what", "how", "fastest", "median"], rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--calls", type=int, default=200, help="calls between two drains of the stream")


def measure(options: argparse.Namespace) -> Report:
    return Report.of("host", conditions("cuda-bindings", "cuda-core", "cupy-cuda13x"), compare(options))
