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
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import bars
import numpy as np
from bars import Verdict
from c_loops import compile_c
from cuda.bindings import driver

import cudart_py as cuda
from cudart_py.driver import seam

SOURCE = 'extern "C" __global__ void five(float a, const float *x, const float *y, float *z, unsigned int n) {}'
GRID, BLOCK, SIZE = 4, 256, 1024
MIB = 1 << 20
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


class Things:
    """What all rows work on: a kernel, three arrays, pinned memory, an event, a graph, a stream."""

    def __init__(self, device: cuda.Device) -> None:
        self.device = device
        self.stream = cuda.Stream(non_blocking=True)
        self.module = cuda.compile(SOURCE)
        self.kernel = self.module["five"]
        self.x, self.y, self.z = (cuda.zeros(SIZE, np.float32, stream=self.stream) for _ in range(3))
        self.host = cuda.pinned_empty(SIZE, np.float32)
        self.event = cuda.Event()
        self.kept: list[object] = []
        self.stream.synchronize()
        with self.stream.capture() as graph:
            for _ in range(10):
                self.kernel[GRID, BLOCK, 0, self.stream](2.0, self.x, self.y, self.z, SIZE)
        self.graph = graph.instantiate()
        self.graph.upload(self.stream)


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
        Row("graph of 10 launches", "C", lambda count: c.graph(t.graph.handle, s, count)),
    ]


def bare_rows(t: Things) -> list[Row]:
    """The driver's functions of cuda.bindings, given handle objects, which it takes fastest."""
    f, s, event = driver.CUfunction(t.kernel.handle), driver.CUstream(t.stream.handle), driver.CUevent(t.event.handle)
    executable = driver.CUgraphExec(t.graph.handle)
    # The parameters, and the list that says where they are: CU_LAUNCH_PARAM_BUFFER_POINTER 1, _SIZE 2, _END 0.
    layout = struct.Struct("<f4xQQQI")
    buffer, size = ctypes.create_string_buffer(layout.size), ctypes.c_size_t(layout.size)
    extra = (ctypes.c_uint64 * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
    layout.pack_into(buffer, 0, 2.0, t.x.pointer, t.y.pointer, t.z.pointer, SIZE)
    where = ctypes.addressof(extra)
    raw = seam.raw
    launch, make, drop = raw.cuLaunchKernel, raw.cuMemAllocAsync, raw.cuMemFreeAsync
    pack, x, y, z = layout.pack_into, t.x.pointer, t.y.pointer, t.z.pointer

    def packing() -> None:
        pack(buffer, 0, 2.0, x, y, z, SIZE)
        launch(f, GRID, 1, 1, BLOCK, 1, 1, 0, s, 0, where)

    def allocating() -> None:
        drop(make(MIB, s)[1], s)

    values = (2.0, x, y, z, SIZE)
    kinds = (ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
    address, other = driver.CUdeviceptr(t.x.pointer), driver.CUdeviceptr(t.y.pointer)
    host = t.host.ctypes.data
    # The rows know these by their addresses only.
    t.kept += [buffer, size, extra]
    cuda.check(launch(f, GRID, 1, 1, BLOCK, 1, 1, 0, s, 0, where))
    return [
        Row("launch", "bare, packed once", repeat(launch, f, GRID, 1, 1, BLOCK, 1, 1, 0, s, 0, where)),
        Row("launch", "bare, packed each time", repeat(packing)),
        Row(
            "launch",
            "bare, tuples of values and types",
            repeat(launch, f, GRID, 1, 1, BLOCK, 1, 1, 0, s, (values, kinds), 0),
        ),
        Row("event record", "bare", repeat(raw.cuEventRecord, event, s)),
        Row("memset 4 KiB", "bare", repeat(raw.cuMemsetD32Async, address, 0, SIZE, s)),
        Row("upload 4 KiB", "bare", repeat(raw.cuMemcpyHtoDAsync, address, host, 4 * SIZE, s)),
        Row("download 4 KiB", "bare", repeat(raw.cuMemcpyDtoHAsync, host, address, 4 * SIZE, s)),
        Row("copy 4 KiB on the device", "bare", repeat(raw.cuMemcpyDtoDAsync, other, address, 4 * SIZE, s)),
        Row("allocate and free 1 MiB", "bare", repeat(allocating)),
        Row("graph of 10 launches", "bare", repeat(raw.cuGraphLaunch, executable, s)),
        Row("stream query", "bare", repeat(raw.cuStreamQuery, s)),
        Row("wait for an event", "bare", repeat(raw.cuStreamWaitEvent, s, event, 0)),
    ]


def our_rows(t: Things) -> list[Row]:
    """What cudart_py costs."""
    kernel, stream, x = t.kernel, t.stream, t.x
    launch = kernel[GRID, BLOCK, 0, stream]
    arguments = (2.0, t.x, t.y, t.z, SIZE)

    def whole(a: float, x: Any, y: Any, z: Any, n: int) -> None:
        kernel[GRID, BLOCK, 0, stream](a, x, y, z, n)

    # As beside the bare calls, the names are looked up outside the loop.
    empty, uint8 = cuda.empty, np.uint8

    def allocating() -> None:
        empty(MIB, uint8, stream=stream).close()

    t.event.record(stream)
    return [
        Row("launch", "checked", repeat(launch, *arguments)),
        Row("launch", "checked, with kernel[...] each time", repeat(whole, *arguments)),
        Row("launch", "bound", repeat(launch.bind(*arguments))),
        Row("event record", "ours", repeat(t.event.record, stream)),
        Row("memset 4 KiB", "ours", repeat(cuda.memset, x, 0, stream=stream)),
        Row("upload 4 KiB", "ours", repeat(cuda.memcpy, x, t.host, stream=stream)),
        Row("download 4 KiB", "ours", repeat(cuda.memcpy, t.host, x, stream=stream)),
        Row("copy 4 KiB on the device", "ours", repeat(cuda.memcpy, t.y, x, stream=stream)),
        Row("allocate and free 1 MiB", "ours", repeat(allocating)),
        Row("graph of 10 launches", "ours", repeat(t.graph.launch, stream)),
        Row("stream query", "ours", repeat(type(stream).done.fget, stream)),
        Row("wait for an event", "ours", repeat(stream.wait, t.event)),
    ]


def core_rows(t: Things) -> list[Row]:
    """cuda.core."""
    try:
        from cuda import core

        device = core.Device(t.device.ordinal)
        device.set_current()
        stream = core.Stream.from_handle(t.stream.handle)
        program = cuda.Program(SOURCE, options=[f"--gpu-architecture={t.device.arch}"])
        program.compile()
        kernel = core.ObjectCode.from_cubin(program.cubin).get_kernel("five")
        config = core.LaunchConfig(grid=GRID, block=BLOCK)
        addresses = (np.float32(2), t.x.pointer, t.y.pointer, t.z.pointer, np.uint32(SIZE))
        event = device.create_event()
        memory = device.memory_resource
        x, y, z = (memory.allocate(4 * SIZE, stream=stream) for _ in range(3))
        launch, float32, uint32, allocate = core.launch, np.float32, np.uint32, memory.allocate

        def with_arrays() -> None:
            # It takes the scalars' types from NumPy's, so that a caller makes them for the call.
            launch(stream, config, kernel, float32(2.0), x, y, z, uint32(SIZE))

        def allocating() -> None:
            allocate(MIB, stream=stream).close(stream)

        rows = [
            Row("launch", "cuda.core, Buffers", repeat(with_arrays)),
            Row(
                "launch",
                "cuda.core, addresses and NumPy scalars made beforehand",
                repeat(launch, stream, config, kernel, *addresses),
            ),
            Row("event record", "cuda.core, without timing by default", repeat(stream.record, event)),
            Row("allocate and free 1 MiB", "cuda.core", repeat(allocating)),
        ]
        return [row for row in rows if works(row)]
    except Exception as error:
        print(f"cuda.core is left out: {type(error).__name__}: {error}")
        return []


def cupy_rows(t: Things) -> list[Row]:
    """CuPy."""
    try:
        import cupy

        cupy.cuda.Device(t.device.ordinal).use()
        stream = cupy.cuda.Stream.from_external(t.stream)
        stream.use()
        kernel = cupy.RawKernel(SOURCE, "five")
        x, y, z = (cupy.zeros(SIZE, cupy.float32) for _ in range(3))
        event = cupy.cuda.Event()
        arguments = (np.float32(2), x, y, z, np.uint32(SIZE))
        rows = [
            Row("launch", "CuPy RawKernel", repeat(kernel, (GRID,), (BLOCK,), arguments)),
            Row("event record", "CuPy", repeat(event.record, stream)),
            Row("memset 4 KiB", "CuPy", repeat(lambda: x.data.memset_async(0, 4 * SIZE, stream))),
            Row(
                "upload 4 KiB",
                "CuPy",
                repeat(lambda: x.data.copy_from_host_async(ctypes.c_void_p(t.host.ctypes.data), 4 * SIZE, stream)),
            ),
            Row("allocate and free 1 MiB", "CuPy (its own pool)", repeat(lambda: cupy.cuda.alloc(MIB))),
        ]
        return [row for row in rows if works(row)]
    except Exception as error:
        print(f"CuPy is left out: {type(error).__name__}: {error}")
        return []


def works(row: Row) -> bool:
    """Try a row once, or say why it is left out."""
    try:
        row.run(1)
    except Exception as error:
        print(f"{row.how}, {row.what}: left out: {type(error).__name__}: {error}")
        return False
    return True


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
    rows = [*c_rows(things), *bare_rows(things), *core_rows(things), *cupy_rows(things), *our_rows(things)]
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
