"""The stops of the course that have speed bars, compared with CUB, CuPy and PyTorch.

The comparison needs a GPU and nvcc. CuPy and PyTorch are measured if they are installed. Everything runs in one
process: the stops run as in the tour, with their checks, and the others do the same work on the same number of
elements, timed in the same way.
"""

import argparse
import ctypes
import importlib
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda
from library_tour import timing
from library_tour.course import cooling, graphs, matmul, reduction
from library_tour.runner import Outcome, run_stop

from .c_loops import compile_c, compile_library
from .library_calls import tensor
from .report import Bar, Comparison, Report, Table, attempt, conditions, tried

COPY, CUB, CUBLAS, LIMIT = "copy, device to device", "CUB", "cuBLAS", "the stop's limit"
C_GRAPH = "C, one graph"
COOLED = 2**26
COUNTS = {
    **dict.fromkeys(("transpose", "heat"), 16384**2),
    **dict.fromkeys(("reduction", "dot_product", "cooling"), 2**29),
    **dict.fromkeys(("nan_check", "logical_and"), 2**30),
    "histogram": 2**28,
}
CALLS = 2**28 * 256  # calls of the function in the stop map
CELL_STEPS = 64 * 256 * 10_000  # cell updates in the stop crank_nicolson
Work = Callable[[], object]
WITHOUT_BARS = ("events",)  # their rivals' figures are of interest by themselves


class Rival(NamedTuple):
    """The figures of other code that does the work of a stop's case; `trouble` says why there is no rate."""

    stop: str
    case: str
    name: str
    rate: float | None = None
    ms: float | None = None
    trouble: str = ""


class RowBar(NamedTuple):
    """The least that the best of a stop's rows must reach in a column, relative to another rate or a given one.

    The other rate is that of a rival, of the stop's limit, or of one of the stop's own rows. The bar is judged only if
    the machine has at least `devices` devices.
    """

    stop: str
    column: str
    least: float
    of: str | float
    counts: Callable[[str], bool] = lambda row: True
    devices: int = 1

    @property
    def unit(self) -> str:
        """The unit of the column: its last word, or GB/s for the columns of the histogram, which do not name a unit."""
        return self.column.split()[-1] if self.column.endswith("/s") else "GB/s"


BARS = [
    RowBar("transpose", "GB/s", 0.95, COPY, lambda row: "copy" not in row),
    RowBar("reduction", "GB/s", 1.0, CUB, lambda row: row not in reduction.OPERATIONS),
    *(RowBar("histogram", case, 1.0, CUB) for case in ("10", "10 equal", "256", "256 equal")),
    RowBar("heat", "GB/s", 0.90, COPY),
    RowBar("heat", "films/s", 1 / 1.05, "the longer of steps and writing"),
    RowBar("cooling", "GB/s", 0.95, LIMIT),
    RowBar("cooling", "GB/s", 0.95, CUB, lambda row: row == cooling.ZIPPED),  # CUB has the same iterators
    RowBar("streams", "GB/s", 0.95, LIMIT, lambda row: row == "4 streams, breadth-first"),
    # The breadth-first order is not slower; two runs of the same order differ by 1 %.
    RowBar("streams", "GB/s", 0.99, "4 streams, depth-first", lambda row: row == "4 streams, breadth-first"),
    RowBar("graphs", graphs.RATE, 1 / 1.05, C_GRAPH, lambda row: row == graphs.GRAPH),
    RowBar("monte_carlo", "Gsteps/s", 1.0, 1030.0, lambda row: row.startswith("Euler")),
    RowBar("map", "Gcalls/s", 1.0, CALLS / 0.412 / 1e9, lambda row: "fast math" not in row),
    RowBar("map", "Gcalls/s", 1.0, CALLS / 0.119 / 1e9, lambda row: "fast math" in row),
    RowBar("nested_monte_carlo", "Gsteps/s", 1.0, 1030.0),
    RowBar("crank_nicolson", "Gcells/s", 1.0, CELL_STEPS / 5e-3 / 1e9, lambda row: row != "one warp, factored"),
    RowBar("crank_nicolson", "Gcells/s", 1.0, CELL_STEPS / 3e-3 / 1e9, lambda row: row == "one warp, factored"),
    RowBar("nan_check", "GB/s", 0.95, LIMIT),
    RowBar("logical_and", "GB/s", 0.95, LIMIT, lambda row: row != "early exit"),
    RowBar("dot_product", "GB/s", 0.97, LIMIT),
    RowBar("copies", "GB/s", 0.98, 55.4, lambda row: row == "pinned to device"),
    RowBar("pinned_and_mapped", "GB/s", 0.98, LIMIT, lambda row: row == "pinned, copy alone"),
    # On an H200, kernels of 8 to 1,056 blocks with loads of 4 or 16 bytes, and bulk copies into shared memory
    # (cp.async.bulk), all read 51.2 GB/s over a link whose copies reach 55.4.
    RowBar("pinned_and_mapped", "GB/s", 0.92, LIMIT, lambda row: row.startswith("mapped")),
    RowBar("peer", "GB/s", 0.98, 396.0, lambda row: row.startswith("copy, "), devices=2),
    RowBar("peer", "GB/s", 0.98, 372.0, lambda row: row.startswith("kernel reads"), devices=2),
    *(RowBar("matmul", column, 0.90, CUBLAS, matmul.WAYS.__contains__) for column in ("TFLOP/s", "8192 TFLOP/s")),
    RowBar("matmul", "TFLOP/s", 0.80, "cuBLAS, half precision", lambda row: row == "tensor cores, tensor maps"),
]


def in_cub(name: str, *arguments: Any) -> Work:
    """Return a call of a function of CUB or Thrust on our arrays, with its temporary storage allocated."""
    library = compile_library("cub.cu", ("nvcc",), "-O3", "-std=c++17", "-arch=native")
    function, nbytes = library[name], ctypes.c_size_t()
    given = [
        ctypes.c_void_p(argument.pointer) if isinstance(argument, cuda.DeviceArray) else ctypes.c_int(argument)
        for argument in arguments
    ]

    def run(storage: Any) -> None:
        if status := function(storage, ctypes.byref(nbytes), *given):
            raise RuntimeError(f"cudaError {status}")

    run(None)
    kept = cuda.empty(max(1, nbytes.value), np.uint8)

    def call() -> None:
        run(ctypes.c_void_p(kept.pointer))

    return call


def theirs(name: str, array: cuda.DeviceArray, work: Callable[[Any, Any], Work]) -> Work:
    module = importlib.import_module({"CuPy": "cupy", "PyTorch": "torch"}[name])
    return work(tensor(module, array), module)


def in_both(array: cuda.DeviceArray, work: Callable[[Any, Any], Work]) -> dict[str, Callable[[], Work]]:
    return {name: partial(theirs, name, array, work) for name in ("CuPy", "PyTorch")}


def random_floats(count: int) -> cuda.DeviceArray:
    """Return random floats in [0, 1): a block of 2^24 floats, repeated."""
    array = cuda.empty(count, np.float32)
    block = np.random.default_rng().random(min(2**24, count), np.float32)
    array[: block.size].copy_from(block)
    for start in range(block.size, count, block.size):
        length = min(block.size, count - start)
        cuda.memcpy(array[start : start + length], array[:length])
    return array


def others(stop: str, count: int) -> Iterator[tuple[str, dict[str, Callable[[], Work]], int]]:
    """Yield each case of a stop with other libraries' work on `count` elements, and the bytes that the work moves."""
    if stop not in COUNTS:
        return
    x = cuda.full(count, 1, np.int32) if stop == "logical_and" else random_floats(count)
    total = cuda.empty(1, np.float32)
    works: dict[str, Callable[[], Work]]
    match stop:
        case "transpose" | "heat":
            side, y = isqrt(count), cuda.empty_like(x)
            works = {COPY: lambda: lambda: cuda.memcpy(y, x)}
            if stop == "transpose":
                turned = {
                    "CuPy": lambda x, m: lambda: m.ascontiguousarray(x.reshape(side, side).T),
                    "PyTorch": lambda x, m: lambda: x.reshape(side, side).t().contiguous(),
                }
                works |= {name: partial(theirs, name, x, work) for name, work in turned.items()}
            yield "GB/s", works, 2 * x.nbytes
        case "reduction":
            works = {CUB: partial(in_cub, "cub_sum", x, total, x.size)}
            yield "GB/s", works | in_both(x, lambda x, m: x.sum), x.nbytes
        case "nan_check":
            yield "GB/s", in_both(x, lambda x, m: lambda: m.isnan(x).any()), x.nbytes
        case "logical_and":
            yield "GB/s", in_both(x, lambda x, m: x.all), x.nbytes
        case "dot_product":
            y = random_floats(count)
            yield "GB/s", in_both(x, lambda x, m: partial(m.dot, x, tensor(m, y))), 2 * x.nbytes
        case "cooling":
            y = random_floats(count)
            yield "GB/s", {CUB: partial(in_cub, "cub_difference", x, y, total, x.size)}, 2 * x.nbytes
        case "histogram":
            for kind, values in {"": x, " equal": cuda.full(count, 0.5, np.float32)}.items():
                for bins in (10, 256):
                    yield f"{bins}{kind}", histograms(values, bins), values.nbytes


def histograms(values: cuda.DeviceArray, bins: int) -> dict[str, Callable[[], Work]]:
    return {
        CUB: partial(in_cub, "cub_histogram", values, cuda.empty(bins, np.uint32), bins, values.size),
        "CuPy": partial(theirs, "CuPy", values, lambda x, m: lambda: m.histogram(x, bins, (0, 1))),
        "PyTorch": partial(theirs, "PyTorch", values, lambda x, m: lambda: m.histc(x, bins, 0, 1)),
    }


def peers(stop: str, count: int) -> dict[str, Work]:
    """Return the work of the other libraries that are installed, without CUB, for the first case of a stop."""
    found = {}
    for name, make in next(others(stop, count), ("", {}, 0))[1].items():
        call = None if name == CUB else attempt(f"{stop}: {name}", make)
        if call and attempt(f"{stop}: {name}", tried, call):
            found[name] = call
    return found


def rivals(stop: str) -> Iterator[Rival]:
    """Measure the rivals of a stop; an error becomes the `trouble` of its rival."""
    if stop == "graphs":
        yield from steps_in_c()
    elif stop == "events":
        x = cuda.full(COOLED, 20.0, np.float32)
        # Ten steps, as in the stop, timed with events, and with the host's clock without waiting.
        clocks = {"events": timing.median_ms, "no wait": partial(timing.host_ms, wait=False)}
        for name in ("cub_transform", "thrust_transform", "thrust_transform_nosync"):
            for clock, milliseconds in clocks.items():
                yield measured(
                    Rival(stop, clock, name), partial(in_cub, name, x, x.size), 2 * x.nbytes, milliseconds, 10
                )
    else:
        for case, works, nbytes in others(stop, COUNTS.get(stop, 0)):
            for name, make in works.items():
                yield measured(Rival(stop, case, name), make, nbytes)


def measured(
    rival: Rival,
    make: Callable[[], Work],
    nbytes: int,
    milliseconds: Callable[[Work], float] = timing.median_ms,
    times: int = 1,
) -> Rival:
    """Measure work, repeated `times` times in each measurement."""
    try:
        work = make()
        ms = milliseconds(work if times == 1 else lambda: [work() for _ in range(times)])
        return rival._replace(rate=1e-6 * times * nbytes / ms, ms=ms)
    except Exception as error:  # the other rivals are still measured
        return rival._replace(trouble=f"{type(error).__name__}: {error}"[:200])


def steps_in_c() -> Iterator[Rival]:
    """Time the steps of the stop `graphs` from C, until they have finished, as the stop does."""
    library = compile_c()
    if library is None:
        yield Rival("graphs", graphs.RATE, C_GRAPH, trouble="there is no C loop")
        return
    few = graphs.Cooling(graphs.FEW)
    stream, launch = few.stream.handle, few.launch
    given = (few.temperatures.pointer, *few.arguments[1:], graphs.STEPS, stream)
    shape = (graphs.blocks_for(graphs.FEW, graphs.BLOCK), graphs.BLOCK)
    works: dict[str, Callable[[], float]] = {
        C_GRAPH: lambda: library.graph_done(few.graph.handle, stream, 1),
        "C, launches": lambda: library.launches_done(launch.kernel.handle, *shape, *given, 1),
    }
    for name, work in works.items():
        seconds = statistics.median(work() for _ in range(graphs.ROUNDS))
        if seconds > 0:
            rate = timing.per_second(graphs.STEPS, 1e3 * seconds, graphs.RATE)
            yield Rival("graphs", graphs.RATE, name, rate, 1e3 * seconds)
        else:
            yield Rival("graphs", graphs.RATE, name, trouble=f"the driver answered {-seconds:.0f}")


def films(outcome: Outcome) -> tuple[str, float, float]:
    ms = {row.name: float(row.values["ms"]) for row in outcome.result.rows if row.name.startswith("film: ")}
    return "film: overlapped", 1e3 / ms["film: overlapped"], 1e3 / max(ms["film: steps"], ms["film: writing"])


def bars_of(stop: str) -> list[RowBar]:
    """Return the bars of a stop that can be judged on this machine."""
    return [bar for bar in BARS if bar.stop == stop and bar.devices <= len(cuda.devices())]


def judge(bar: RowBar, outcome: Outcome, others: list[Rival]) -> Comparison:
    rival = bar.of if isinstance(bar.of, str) else "the bar"
    least = Bar.at_least(bar.least)
    if outcome.state != "passed":
        text = f"the stop {outcome.state}"
        return Comparison(f"{bar.stop}, {bar.column}", bar.unit, rival=rival, bar=least, note=text, failed=True)
    whole: float | None
    if bar.column == "films/s":
        best, rate, whole = films(outcome)
    else:
        rows = {row.name: row.values for row in outcome.result.all_rows}
        rates = {name: float(values[bar.column]) for name, values in rows.items() if bar.column in values}
        best = max(filter(bar.counts, rates), key=lambda name: rates[name])
        rate = rates[best]
        found = [other.rate for other in others if other.name == bar.of and other.case in (bar.column, bar.unit)]
        whole = bar.of if isinstance(bar.of, float) else (found or [None])[0]
        if bar.of == LIMIT and outcome.result.limit is not None:
            whole = outcome.result.limit.rate
        elif bar.of in rates:
            whole = rates[str(bar.of)]
    return Comparison(f"{bar.stop}, {bar.column}: {best}", bar.unit, rate, rival, whole, least)


STOPS = list(dict.fromkeys([*(bar.stop for bar in BARS), *WITHOUT_BARS]))


def compare(stops: list[str]) -> Iterator[Comparison | Table]:
    device = cuda.Device(0)
    every: list[list[Any]] = []
    for name in stops:
        outcome = run_stop(name, device)
        with device:
            found = list(rivals(name))
        every += map(list, found)
        for bar in bars_of(name):
            yield judge(bar, outcome, found)
    yield Table("Others", ["stop", "case", "name", "rate, GB/s where the case says no other", "ms", "note"], every)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=STOPS, default=STOPS, metavar="STOP", help="these alone")


def measure(options: argparse.Namespace) -> Report:
    return Report.of("course", conditions("numpy", "torch", "cupy-cuda13x"), compare(options.only))
