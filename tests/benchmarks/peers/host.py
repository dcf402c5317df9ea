"""Measure what a call costs the host, beside a C loop, bare cuda.bindings, cuda.core and CuPy, in one process.

    python scripts/host_cost.py [--rounds 61] [--calls 200] [--json FILE] [--markdown docs/host-cost.md]
    python scripts/host_cost.py --recorded FILE --markdown docs/host-cost.md

Each number is that of the fastest of the rounds, in microseconds a call, since what else runs on a machine only adds to
it; the median stands beside it. A round makes some calls of one kind and then drains the stream outside the time,
because a full queue would make the host wait for the device. All kinds take turns within a round, so that a change of
the machine's clock meets all alike. The C loop is compiled with the C compiler that there is (CC, cc, gcc or nvcc);
what is missing is said and left out. The exit status is 1 when a bar is missed, 2 when none is but one could not be
judged.
"""

from __future__ import annotations

import compileall
import ctypes
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import bars
from bars import Verdict
from c_loops import compile_c
from host_calls import CALLS, launches
from host_rivals import rivals
from host_things import BLOCK, GRID, MIB, SIZE, Call, Things

import cudart_py as cuda
from cudart_py.driver import seam

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
    wanted = [what for what in dict.fromkeys(bar.row[0] for bar in BARS) if what in CALLS]
    bare = {what: "bare, packed once" if what == "launch" else "bare" for what in wanted}
    rows = [*c_rows(t), *(Row(what, bare[what], loop(CALLS[what].bare(t))) for what in wanted), *launch_rows(t)]
    rows += [Row(what, how, loop(call)) for (what, how), call in rivals(t).items() if what in wanted]
    rows += [Row("launch", how, loop(call)) for how, call in launches(t).items()]
    return rows + [Row(what, "ours", loop(CALLS[what].ours(t))) for what in wanted if what != "launch"]


class Cost(NamedTuple):
    """What a call costs, in microseconds (an import in milliseconds): the fastest round, and the median of all."""

    fastest: float
    median: float

    @classmethod
    def of(cls, rounds: list[float]) -> Cost:
        """Summarise the rounds."""
        return cls(min(rounds), statistics.median(rounds))


Costs = dict[tuple[str, str], Cost]


def import_milliseconds(statement: str) -> Cost:
    """Return the milliseconds of an import in nine fresh processes."""
    # As an installer leaves packages; Python may be told not to write bytecode itself.
    compileall.compile_dir(Path(cuda.__file__).parent, quiet=1)
    program = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(9)
    ]
    return Cost.of([1e3 * float(run.stdout) for run in runs])


class Bar(NamedTuple):
    """How far a row may be above another one: in microseconds, for the import in milliseconds."""

    row: tuple[str, str]
    base: tuple[str, str]
    most: float


BARS = [
    Bar(("launch", "checked"), ("launch", "bare, packed once"), 0.9),
    Bar(("launch", "bound"), ("launch", "bare, packed once"), 0.25),
    Bar(("event record", "ours"), ("event record", "bare"), 1.0),
    Bar(("memset 4 KiB", "ours"), ("memset 4 KiB", "bare"), 1.0),
    Bar(("upload 4 KiB", "ours"), ("upload 4 KiB", "bare"), 1.0),
    Bar(("download 4 KiB", "ours"), ("download 4 KiB", "bare"), 1.0),
    Bar(("copy 4 KiB on the device", "ours"), ("copy 4 KiB on the device", "bare"), 1.0),
    Bar(("graph of 10 launches", "ours"), ("graph of 10 launches", "bare"), 1.0),
    Bar(("stream query", "ours"), ("stream query", "bare"), 1.0),
    Bar(("wait for an event", "ours"), ("wait for an event", "bare"), 1.0),
    # Two calls.
    Bar(("allocate and free 1 MiB", "ours"), ("allocate and free 1 MiB", "bare"), 1.5),
    Bar(("launch", "checked"), ("launch", "cuda.core, Buffers"), 0.0),
    Bar(("launch", "checked"), ("launch", "CuPy RawKernel"), 0.0),
    Bar(("import", "ours"), ("import", "numpy"), 60.0),
]


def measure(device: cuda.Device, rounds: int, calls: int) -> Costs:
    """Return the microseconds of each row: all take turns, and each begins on a drained stream."""
    things = Things(device)
    rows = all_rows(things)
    times: dict[tuple[str, str], list[float]] = {(row.what, row.how): [] for row in rows}
    for _ in range(rounds + WARM_UP):
        for row in rows:
            row.run(calls // 10)
            things.stream.synchronize()
            seconds = row.run(calls)
            device.synchronize()
            if seconds < 0:
                raise RuntimeError(f"{row.what}, {row.how}: the driver answered {-seconds:.0f}")
            times[row.what, row.how].append(1e6 * seconds / calls)
    return {key: Cost.of(values[WARM_UP:]) for key, values in times.items()}


def judge(bar: Bar, costs: Costs) -> tuple[Verdict, str]:
    """Return what became of a bar, and by how much."""
    (what, how), (_, base), most = bar
    if bar.base not in costs:
        return Verdict.NOT_JUDGED, f"{what}, {how}: {base} was not measured"
    above = costs[bar.row].fastest - costs[bar.base].fastest
    unit = "ms" if what == "import" else "us"
    return Verdict.of(above <= most), f"{what}, {how}: {above:+.3f} {unit} of {most:.2f} above {base}"


def table(costs: Costs) -> str:
    """Return all times as a table in Markdown, those of one kind of call together."""
    kinds = list(dict.fromkeys(what for what, _ in costs))
    rows = []
    for (what, how), cost in sorted(costs.items(), key=lambda item: kinds.index(item[0][0])):
        unit = " ms" if what == "import" else ""
        rows.append((what, how, f"{cost.fastest:.2f}{unit}", f"{cost.median:.2f}{unit}"))
    return bars.table(("what", "how", "us a call", "median"), rows, right="  rr")


def main() -> int:
    """Print the table and what became of the bars, and return the exit status."""
    parser = bars.parser(__doc__, page=True)
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--calls", type=int, default=200, help="calls between two drains of the stream")
    options = parser.parse_args()
    if options.recorded:
        record = bars.recall(options.recorded)
        where = record["where"]
        costs = {(row["what"], row["how"]): Cost(row["fastest"], row["median"]) for row in record["rows"]}
    else:
        with cuda.Device(0) as device:
            where = bars.conditions(device, "cuda-bindings", "cuda-core", "cupy-cuda13x")
            costs = measure(device, options.rounds, options.calls)
        costs["import", "numpy"] = import_milliseconds("import numpy")
        costs["import", "ours"] = import_milliseconds("import cudart_py")
    judged = [judge(bar, costs) for bar in BARS]
    print(f"{where}\n\n{table(costs)}\n")
    for verdict, text in judged:
        print(f"{verdict}: {text}")
    rows = [{"what": what, "how": how, **cost._asdict()} for (what, how), cost in costs.items()]
    bars.keep(options.json, {"where": where, "rows": rows})
    listed = "\n".join(f"- {verdict}: {text}" for verdict, text in judged)
    bars.write_page(options.markdown, f"On one {where}.\n\n{listed}\n\n{table(costs)}")
    return bars.exit_status(verdict for verdict, _ in judged)


if __name__ == "__main__":
    sys.exit(main())
