"""Start a hundred launches with one call, as a graph. This saves work on the host but not on the device.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run graphs
    graphs: Graphs: many launches with one call
    size 1,003: temperatures to cool
                                 calls  check
    ─────────────────────────────────────────
    launches, arguments checked    100  right
    launches, arguments bound      100  right
    one graph                        1  right
    one launch, loop inside          1  right
    Over 1,003 temperatures
                                 loads  stores  check
    ─────────────────────────────────────────────────
    launches, arguments checked  3,200   3,200  right
    launches, arguments bound    3,200   3,200  right
    one graph                    3,200   3,200  right
    one launch, loop inside         32      32  right
    Recorded work, and refused captures and updates
                                nodes  check
    ──────────────────────────────────────────
    capture                       100  right
    launched twice                     right
    updated                            right
    two streams                   200  right
    update, other topology             refused
    wait in a capture                  refused
    pageable copy in a capture         refused
    Every variant takes 100 steps, and each step is a pass over all temperatures.
    'us queued' is the time on the host clock, in microseconds, until the calls have
    returned, and 'us done' is the time until the steps are done.
    A graph is recorded once and launched with one call, so the host no longer
    spends time on 100 launches. That helps where a kernel takes less time than its
    launch, as it does with only 1,003 temperatures. A graph performs the same loads
    and stores as the launches, so over a large array it takes as long as they do.
    The loop inside the kernel reads and writes each element once instead of 100
    times. It works here because no element depends on another. Where a step needs
    the results of neighbouring elements, the end of a launch acts as the barrier.
    Over a large array, the loop is limited by the arithmetic of 100 steps, not by
    memory.
    In the lectures, 256 launches took 4.61 s on a T1000, and one launch with the
    loop inside took 1.4 s. The lectures attribute the difference, 12.5 ms per
    launch, to launch overhead. But each launch reads two arrays of 1 GiB and writes
    one, which takes 18 ms at 179 GB/s, and the launch with the loop inside does so
    only once. A launch itself takes the host a few microseconds, as the first table
    shows when the stop runs on a GPU.
    The address of an array and the value of a scalar are part of the graph, and an
    update can replace them. The contents of the array are read at each launch.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, refusal
from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..stop import Check, Curve, Picture, Result, Row, Size, Value
from ..variants import Variant, measure

TITLE = "Graphs: many launches with one call"
# STEPS steps are one unit of work. A kernel over FEW temperatures takes less time than its launch.
STEPS, FEW, BLOCK = 100, 1003, 256
SIZE = Size("temperatures to cool", full=2**28 + 3, small=FEW)
AMBIENT, PART = 20.0, 1 / 64
GRAPH, LOOP, RATE = "one graph", "one launch, loop inside", "Msteps/s"
OTHER_PART = 1 / 32  # of a graph that is updated
TOLERANCE = 1e-3  # degrees: each step rounds by up to 4e-6
# A unit of work is timed up to ROUNDS times within SECONDS; a point of a curve gets less time.
ROUNDS, SECONDS, CURVE_SECONDS = 300, 0.2, 0.03
CURVE_SIZES = tuple(2**power for power in range(10, 29, 2))
# The lectures' times in seconds: 256 launches of a function, then one launch with the loop inside, on a T1000.
COURSE_LAUNCHES, COURSE_SECONDS, COURSE_LOOP_SECONDS = 256, 4.61, 1.4

Floats = NDArray[np.float32]
Work = Callable[[], object]


def reference(temperatures: Floats, part: float = PART) -> Floats:
    """Return the temperatures after all steps, computed in double precision."""
    return (AMBIENT + (temperatures.astype(np.float64) - AMBIENT) * (1 - part) ** STEPS).astype(np.float32)


class Cooling:
    """An array of temperatures, and the ways to launch all steps over it in one stream."""

    def __init__(self, count: int, part: float = PART) -> None:
        module = load("graphs")
        self.stream = cuda.Stream()
        self.temperatures = cuda.full(count, AMBIENT, np.float32)
        grid = blocks_for(count, BLOCK)
        self.arguments = (self.temperatures, AMBIENT, part, count)
        self.launch = module["cool"][grid, BLOCK, 0, self.stream]
        self.bound = self.launch.bind(*self.arguments)
        self.loop = module["cool_often"][grid, BLOCK, 0, self.stream].bind(*self.arguments, STEPS)
        with self.stream.capture() as self.captured:
            self.one_by_one()
        self.graph = self.captured.instantiate()
        self.graph.upload(self.stream)

    def one_by_one(self) -> None:
        """Launch each step."""
        for _ in range(STEPS):
            self.bound()

    def checked(self) -> None:
        """Launch each step with its arguments, which are checked again each time."""
        for _ in range(STEPS):
            self.launch(*self.arguments)

    def as_graph(self) -> None:
        """Launch the graph of all steps."""
        self.graph.launch(self.stream)

    def ways(self) -> dict[str, Work]:
        """Return the ways to take all steps, by name."""
        return {
            "launches, arguments checked": self.checked,
            "launches, arguments bound": self.one_by_one,
            GRAPH: self.as_graph,
            LOOP: self.loop,
        }


def run(device: cuda.Device, size: int) -> Result:
    """Time all ways over many temperatures and over few; then show what a graph records and what it refuses."""
    limit = copy_limit(device)
    few = Cooling(min(size, FEW))
    many = Cooling(size) if timing.available() else few
    tables = {
        limit.heading(f"Over {many.temperatures.size:,} temperatures"): measure(
            variants(few, many), limit, ("loads", "stores")
        ),
        "Recorded work, and refused captures and updates": facts(),
    }
    return Result(few_rows(few), pictures=curves(size), notes=notes(), tables=tables)


def variants(few: Cooling, many: Cooling) -> list[Variant]:
    """Return one variant per way, checked on a few random temperatures and timed on many."""
    host = random_temperatures(few)
    made = []
    for (name, work), timed in zip(few.ways().items(), many.ways().values(), strict=True):
        passes = 1 if name == LOOP else STEPS
        made.append(
            Variant(
                name=name,
                prepare=lambda: few.temperatures.copy_from(host),
                launch=work,
                output=few.temperatures,
                expected=reference(host),
                tolerance=TOLERANCE,
                timed=timed,
                amount=passes * 2 * many.temperatures.nbytes,
            )
        )
    return made


def random_temperatures(cooling: Cooling) -> Floats:
    """Return random temperatures from 0 to 100, one per element that is cooled."""
    return np.random.default_rng().uniform(0, 100, cooling.temperatures.size).astype(np.float32)


def clocked(work: Work, stream: cuda.Stream, seconds: float = SECONDS) -> tuple[float, float]:
    """Return the median microseconds on the host clock until `work` is queued in a stream, and until it is done."""
    queued: list[float] = []
    done: list[float] = []
    begin = time.perf_counter()
    while len(done) < ROUNDS and time.perf_counter() - begin < seconds:
        stream.synchronize()
        start = time.perf_counter()
        work()
        queued.append(time.perf_counter() - start)
        stream.synchronize()
        done.append(time.perf_counter() - start)
    return 1e6 * statistics.median(queued), 1e6 * statistics.median(done)


def few_rows(few: Cooling) -> list[Row]:
    """Time steps with the host clock; each takes less time on the device than its launch takes on the host."""
    rows = []
    for name, work in few.ways().items():
        host = random_temperatures(few)
        few.temperatures.copy_from(host)
        work()
        few.stream.synchronize()
        check = compare(f"{name}: the steps are taken", few.temperatures.to_host(), reference(host), TOLERANCE)
        values: dict[str, Value] = {"calls": STEPS if "launches" in name else 1}
        if timing.available():
            queued, done = clocked(work, few.stream)
            rate = timing.per_second(STEPS, 1e-3 * done, RATE)
            values = {**values, "us queued": queued, "us done": done, RATE: rate}
        rows.append(Row(name, values, check))
    return rows


def facts() -> list[Row]:
    """Capture, launch and update small graphs, and try operations that a capture or an update refuses."""
    cooling, other = Cooling(FEW), Cooling(FEW, OTHER_PART)
    host = random_temperatures(cooling)
    temperatures = cooling.temperatures

    def after(*launches: Work) -> Floats:
        temperatures.copy_from(host)
        for launch in launches:
            launch()
        cooling.stream.synchronize()
        return temperatures.to_host()

    def capture_steps() -> None:
        with cooling.stream.capture():
            cooling.one_by_one()

    checks = {
        "capture": compare("a capture runs nothing", after(capture_steps), host),
        "launched twice": compare(
            "a graph starts from the contents of the array",
            after(cooling.as_graph, cooling.as_graph),
            reference(reference(host)),
            TOLERANCE,
        ),
    }
    # The other graph has the same topology and a different array. The update takes over its array too.
    other.temperatures.copy_from(host)
    cooling.graph.update(other.captured)
    cooling.as_graph()
    cooling.stream.synchronize()
    checks["updated"] = compare(
        "an update changes the arguments", other.temperatures.to_host(), reference(host, OTHER_PART), TOLERANCE
    )
    checks["two streams"] = branches(host)
    checks["update, other topology"] = refusal(
        "an update keeps the topology", cuda.CudaError, lambda: cooling.graph.update(branched(cooling, other))
    )
    checks["wait in a capture"] = refusal("no wait", cuda.errors.CaptureError, lambda: waited_for(cooling))
    checks["pageable copy in a capture"] = refusal(
        "pinned only", cuda.errors.CaptureError, lambda: copied_to(cooling, host)
    )
    for name in ("update, other topology", "wait in a capture", "pageable copy in a capture"):
        checks[name] = replace(checks[name], word="refused")
    nodes = {"capture": cooling.captured.node_count, "two streams": branched(cooling, other).node_count}
    return [Row(name, {"nodes": nodes[name]} if name in nodes else {}, check) for name, check in checks.items()]


def branched(first: Cooling, second: Cooling) -> cuda.graphs.Graph:
    """Return a graph with two branches.

    The second stream joins the capture by waiting for the first, which waits for it in turn before the capture ends.
    """
    with first.stream.capture() as graph:
        second.stream.wait(first.stream)
        first.one_by_one()
        second.one_by_one()
        first.stream.wait(second.stream)
    return graph


def branches(host: Floats) -> Check:
    """Launch a graph of two branches in one stream, and check both arrays."""
    pair = Cooling(FEW), Cooling(FEW, OTHER_PART)
    for cooling in pair:
        cooling.temperatures.copy_from(host)
    branched(*pair).instantiate().launch(pair[0].stream)
    pair[0].stream.synchronize()
    got = np.array([cooling.temperatures.to_host() for cooling in pair])
    expected = np.array([reference(host, part) for part in (PART, OTHER_PART)])
    return compare("both branches of a graph run", got, expected, TOLERANCE)


def waited_for(cooling: Cooling) -> None:
    """Wait for the stream that is being captured."""
    with cooling.stream.capture():
        cooling.bound()
        cooling.stream.synchronize()


def copied_to(cooling: Cooling, host: Floats) -> None:
    """Copy from pageable memory in the stream that is being captured."""
    with cooling.stream.capture():
        cooling.temperatures.copy_from(host, stream=cooling.stream)


def curves(size: int) -> list[Picture]:
    """Measure the time of a step against the number of temperatures, up to `size`; no picture if nothing is timed."""
    sizes = [count for count in CURVE_SIZES if count <= size]
    if not timing.available() or not sizes:
        return []
    lines: dict[str, list[tuple[float, float]]] = {}
    for count in sizes:
        cooling = Cooling(count)
        for name, work in cooling.ways().items():
            _, done = clocked(work, cooling.stream, CURVE_SECONDS)
            lines.setdefault(name, []).append((count, done / STEPS))
    return [Curve("steps", "temperatures", "µs per step", lines, logarithmic="xy")]


def notes() -> list[str]:
    """Return the notes on the tables."""
    saved = 1e3 * (COURSE_SECONDS - COURSE_LOOP_SECONDS) / COURSE_LAUNCHES
    return [
        f"Every variant takes {STEPS} steps, and each step is a pass over all temperatures. 'us queued' is the time on "
        "the host clock, in microseconds, until the calls have returned, and 'us done' is the time until the steps are "
        "done.",
        f"A graph is recorded once and launched with one call, so the host no longer spends time on {STEPS} launches. "
        f"That helps where a kernel takes less time than its launch, as it does with only {FEW:,} temperatures. A "
        "graph performs the same loads and stores as the launches, so over a large array it takes as long as they do.",
        f"The loop inside the kernel reads and writes each element once instead of {STEPS} times. It works here "
        "because no element depends on another. Where a step needs the results of neighbouring elements, the end of a "
        f"launch acts as the barrier. Over a large array, the loop is limited by the arithmetic of {STEPS} steps, not "
        "by memory.",
        f"In the lectures, {COURSE_LAUNCHES} launches took {COURSE_SECONDS} s on a T1000, and one launch with the loop "
        f"inside took {COURSE_LOOP_SECONDS} s. The lectures attribute the difference, {saved:.1f} ms per launch, to "
        "launch overhead. But each launch reads two arrays of 1 GiB and writes one, which takes 18 ms at 179 GB/s, and "
        "the launch with the loop inside does so only once. A launch itself takes the host a few microseconds, as the "
        "first table shows when the stop runs on a GPU.",
        "The address of an array and the value of a scalar are part of the graph, and an update can replace them. The "
        "contents of the array are read at each launch.",
    ]
