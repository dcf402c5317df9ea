"""Apply one function to every element 256 times: in 256 launches, or in one launch with a loop.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run map
    map: One function applied 256 times: 256 launches or one loop
    size 4,096: elements
    counters: measured over 4,096 elements and 32 passes
                             course ms   loads  stores  instructions  check
    ────────────────────────────────────────────────────────────────────────
    256 launches                         8,192   4,096     1,047,043  right
    loop in registers                      256     128       961,283  right
    c * c for pow(c, 2)                    256     128       560,640  right
    256 launches, fast math  4610, 1090  8,192   4,096       106,496  right
    in memory, fast math     1400, 300   4,224   4,096        47,360  right
    in registers, fast math                256     128        35,712  right
    pow, fast math                                                    caught
    pow, fast math: 8.2 % of the elements are NaN after 256 passes. Fast math
    computes pow(c, 2) as exp2(2 * log2(c)), and c = cos(x * x + y * y) is negative
    where x * x + y * y exceeds pi / 2.
    Whole programs, in ms
                                 allocate  copy in   work  copy out  total  check
    ─────────────────────────────────────────────────────────────────────────────
    course: T1000, 256 launches        80      360  4,610       170  5,220
    course: V100, 256 launches        190      460  1,090       230  1,970
    course: V100, loop                180      460    300       230  1,170
    course: two V100, loop            280      450    150       220  1,110
    in phases                                                               right
    in pieces                                                               right
    With fast math, the special-function units are the limit. The fast-math variants
    compute c * c instead of pow(c, 2). The precise variants hardly use these units:
    they compute sin, cos and pow with many ordinary instructions.
    The loop in memory, a[i] = f(a[i], b[i]), comes from lectures on GPU
    programming. It stores a[i] and loads b[i] in every pass, because a and b might
    be the same array.
    The program that works in pieces copies one piece to the device, processes
    another and copies a third back, all at the same time: the two directions of the
    link and the multiprocessors work independently.
    The 'course ms' column shows the lectures' times, on a T1000 and on a V100.
    With two GPUs, each would process half of the elements. This machine has one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, poison
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeat
from ..limits import special_limit
from ..processors import in_threads, processors
from ..stop import Limit, Result, Row, Size, Timeline, Value
from ..timing import Phases
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "One function applied 256 times: 256 launches or one loop"
SIZE = Size("elements", full=2**28, small=2**12)
PASSES, CHECKED_PASSES = 256, 32
BLOCK = 128  # as in the lectures
CHECKED = 2**12 + 5
PIECES = 16  # of each device's part of the arrays
# NumPy computes only this many elements and passes, and its time is scaled up: all of them would take minutes.
ON_HOST, HOST_PASSES = 2**22, 4
# Times from the lectures: on a T1000 and a V100, with fast math and pow; then on CPUs with 6 and 20 cores.
COURSE_MS = {"256 launches, fast math": "4610, 1090", "in memory, fast math": "1400, 300"}
COURSE_HOST_MS = "63300, 25500"
PHASES = ("allocate", "copy in", "work", "copy out")
COURSE_PHASES = {
    "course: T1000, 256 launches": (80, 360, 4610, 170, 5220),
    "course: V100, 256 launches": (190, 460, 1090, 230, 1970),
    "course: V100, loop": (180, 460, 300, 230, 1170),
    "course: two V100, loop": (280, 450, 150, 220, 1110),
}
WAYS = ["map_once<Pow>", "map_once<Product>", "map_memory<Product>", "map_loop<Pow>", "map_loop<Product>"]
UNIT = "Gcalls/s"
EXPLAINED_BY = ("loads", "stores", "instructions")

Array = NDArray[Any]


def reference(a: Array, b: Array, passes: int) -> Array:
    """Return a after `passes` applications of f."""
    for _ in range(passes):
        a = np.sin(np.cos(np.sin(np.sqrt(np.power(np.cos(a**2 + b**2), 2)))))
    return a


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on a few elements and time it on all; then run whole programs, on one device and on two."""
    random = np.random.default_rng()
    host_a, host_b, out = (cuda.pinned_empty(size, np.float32) for _ in range(3))
    for array in (host_a, host_b):
        repeat(random.random(min(size, INPUT_BLOCK), np.float32), array)
    limit = special_limit(device, 5, UNIT)
    rows = measure(make_variants(host_a, host_b), limit, EXPLAINED_BY)
    rows.append(shown_wrong("pow, fast math", power_of_negative))
    rows += on_host(host_a, host_b, limit)
    programs, pictures = whole_programs(cuda.devices()[:2], host_a, host_b, out)
    notes = [
        "With fast math, the special-function units are the limit. The fast-math variants compute c * c instead of "
        "pow(c, 2). The precise variants hardly use these units: they compute sin, cos and pow with many ordinary "
        "instructions.",
        "The loop in memory, a[i] = f(a[i], b[i]), comes from lectures on GPU programming. It stores a[i] and loads "
        "b[i] in every pass, because a and b might be the same array.",
        "The program that works in pieces copies one piece to the device, processes another and copies a third back, "
        "all at the same time: the two directions of the link and the multiprocessors work independently.",
        "The 'course ms' column shows the lectures' times, on a T1000 and on a V100.",
    ]
    if len(cuda.devices()) < 2:
        notes.append("With two GPUs, each would process half of the elements. This machine has one.")
    if timing.available():
        notes.append(
            f"NumPy ran {HOST_PASSES} passes over {min(size, ON_HOST):,} elements in {processors()} threads, and its "
            "time is scaled up. The lectures' times for NumPy were measured on CPUs with 6 and 20 cores."
        )
    return Result(
        rows,
        limit,
        pictures=pictures,
        notes=notes,
        tables={"Whole programs, in ms": programs},
        counted=f"{min(size, CHECKED):,} elements and {CHECKED_PASSES} passes",
    )


def make_variants(host_a: Array, host_b: Array) -> list[Variant]:
    """Return the variants for one device, checked with few elements and passes."""
    modules = {fast: load("map", names=WAYS, fast_math=fast) for fast in (False, True)}
    a, b = cuda.to_device(host_a), cuda.to_device(host_b)
    size, checked = a.size, min(a.size, CHECKED)
    few_a, few_b = host_a[:checked], host_b[:checked]
    expected = reference(few_a.astype(float), few_b.astype(float), CHECKED_PASSES).astype(np.float32)

    def launches(way: str, fast: bool, count: int, passes: int) -> Callable[[], object]:
        once = modules[fast][f"map_once<{way}>"][blocks_for(count, BLOCK), BLOCK].bind(a, b, count)

        def launch() -> None:
            for _ in range(passes):
                once()

        return launch

    def inside(kernel: str) -> Callable[[str, bool, int, int], Callable[[], object]]:
        return lambda way, fast, count, passes: modules[fast][f"{kernel}<{way}>"][blocks_for(count, BLOCK), BLOCK].bind(
            a, b, count, passes
        )

    memory, registers = inside("map_memory"), inside("map_loop")
    ways: dict[str, tuple[Callable[[str, bool, int, int], Callable[[], object]], str, bool]] = {
        "256 launches": (launches, "Pow", False),
        "loop in registers": (registers, "Pow", False),
        "c * c for pow(c, 2)": (registers, "Product", False),
        "256 launches, fast math": (launches, "Product", True),
        "in memory, fast math": (memory, "Product", True),
        "in registers, fast math": (registers, "Product", True),
    }
    return [
        Variant(
            name=name,
            prepare=lambda: a[:checked].copy_from(few_a),
            launch=make(way, fast, checked, CHECKED_PASSES),
            output=a[:checked],
            expected=expected,
            tolerance=1e-5 if fast else 1e-6,
            timed=make(way, fast, size, PASSES),
            amount=size * PASSES,
            columns={"course ms": COURSE_MS.get(name, "")},
        )
        for name, (make, way, fast) in ways.items()
    ]


def power_of_negative() -> str:
    """Apply f with fast math's pow, which takes the logarithm of a cosine that may be negative."""
    random = np.random.default_rng(0)
    a, b = (cuda.to_device(random.random(4096, np.float32)) for _ in range(2))
    load("map", names=WAYS, fast_math=True)["map_loop<Pow>"][blocks_for(a.size, BLOCK), BLOCK](a, b, a.size, PASSES)
    share = np.isnan(a.to_host()).mean()
    return share and (
        f"{100 * share:.1f} % of the elements are NaN after {PASSES} passes. Fast math computes pow(c, 2) as "
        "exp2(2 * log2(c)), and c = cos(x * x + y * y) is negative where x * x + y * y exceeds pi / 2."
    )


class Part:
    """One device's part of the arrays, with memory for it, and the kernel that computes it."""

    def __init__(self, device: cuda.Device, a: Array, b: Array, out: Array) -> None:
        self.device, self.host = device, (a, b, out)
        with device:
            self.kernel = load("map", names=WAYS, fast_math=True)["map_loop<Product>"]
            self.a, self.b = cuda.empty_like(a), cuda.empty_like(b)
            # One stream per unit that works on its own: the two directions of the link, and the multiprocessors.
            self.streams = {lane: cuda.Stream(non_blocking=True) for lane in ("in", "work", "out")}
            device.synchronize()
        self.spans: dict[str, list[tuple[cuda.Event, cuda.Event]]] = {lane: [] for lane in self.streams}

    def start(self) -> None:
        """Mark time zero of the picture."""
        with self.device:
            self.begin = self.streams["in"].record()

    def queue(self, number: int) -> None:
        """Queue a piece's copies in, its kernel and its copy out, each in its own stream and after the one before."""
        a, b, out = self.host
        first, last = (a.size * edge // PIECES for edge in (number, number + 1))
        if first == last:
            return
        piece = slice(first, last)
        with self.device:
            begin = self.streams["in"].record()
            cuda.memcpy(self.a[piece], a[piece], stream=self.streams["in"])
            cuda.memcpy(self.b[piece], b[piece], stream=self.streams["in"])
            copied = self._spanned("in", begin)
            begin = self._after(copied, "work")
            count = last - first
            launch = self.kernel[blocks_for(count, BLOCK), BLOCK, 0, self.streams["work"]]
            launch(self.a[piece], self.b[piece], count, PASSES)
            computed = self._spanned("work", begin)
            begin = self._after(computed, "out")
            cuda.memcpy(out[piece], self.a[piece], stream=self.streams["out"])
            self._spanned("out", begin)

    def _after(self, event: cuda.Event, lane: str) -> cuda.Event:
        self.streams[lane].wait(event)
        return self.streams[lane].record()

    def _spanned(self, lane: str, begin: cuda.Event) -> cuda.Event:
        end = self.streams[lane].record()
        self.spans[lane].append((begin, end))
        return end


def in_pieces(devices: Sequence[cuda.Device], a: Array, b: Array, out: Array) -> tuple[float, list[Part]]:
    """Compute each device's share in pieces; return the host's milliseconds, and the parts."""
    shares = [np.array_split(array, len(devices)) for array in (a, b, out)]
    parts = [Part(device, *share) for device, *share in zip(devices, *shares, strict=True)]
    begin = time.perf_counter()
    for part in parts:
        part.start()
    for number in range(PIECES):
        for part in parts:
            part.queue(number)
    for device in devices:
        device.synchronize()
    return 1e3 * (time.perf_counter() - begin), parts


def whole_programs(devices: Sequence[cuda.Device], a: Array, b: Array, out: Array) -> tuple[list[Row], list[Timeline]]:
    """Return rows of the whole program: in phases, in pieces, and in pieces on two devices if there are two."""
    rows = [Row(name, dict(zip((*PHASES, "total"), ms, strict=True))) for name, ms in COURSE_PHASES.items()]
    rows.append(in_phases(a, b, out))
    expected, pictures = out.copy(), []
    for count in range(1, len(devices) + 1):
        name = "in pieces" if count == 1 else "in pieces, two GPUs"
        poison(out)
        ms, parts = in_pieces(devices[:count], a, b, out)
        values: dict[str, Value] = {}
        if timing.available():
            ms, parts = in_pieces(devices[:count], a, b, out)  # the first run also loaded the kernel
            values = {"total": ms}
            pictures.append(Timeline("pieces" if count == 1 else "two_gpus", lanes(parts)))
        rows.append(Row(name, values, compare(f"{name}: the same result as in phases", out, expected)))
    return rows, pictures


def in_phases(a: Array, b: Array, out: Array) -> Row:
    """Compute one phase after another, and return a row of their times."""
    kernel = load("map", names=WAYS, fast_math=True)["map_loop<Product>"]
    phases = Phases()
    poison(out)
    with phases("allocate"):
        on_device = cuda.empty_like(a), cuda.empty_like(b)
    with phases("copy in"):
        for array, host in zip(on_device, (a, b), strict=True):
            array.copy_from(host)
    with phases("work"):
        kernel[blocks_for(a.size, BLOCK), BLOCK](*on_device, a.size, PASSES)
    with phases("copy out"):
        on_device[0].to_host(out=out)
    few = slice(0, CHECKED)
    expected = reference(a[few].astype(float), b[few].astype(float), PASSES).astype(np.float32)
    ms = {name: float(phases.rates(name)["ms"]) for name in PHASES} if timing.available() else {}
    values = {**ms, "total": sum(ms.values())} if ms else {}
    return Row("in phases", values, compare("in phases: equals NumPy's result", out[few], expected, 1e-5))


def lanes(parts: list[Part]) -> dict[str, list[tuple[float, float]]]:
    """Return the times at which each device copied in, computed and copied out, in milliseconds."""
    return {
        f"GPU {part.device.ordinal}: {lane}": [(start - part.begin, end - part.begin) for start, end in spans]
        for part in parts
        for lane, spans in part.spans.items()
    }


def on_host(host_a: Array, host_b: Array, limit: Limit) -> list[Row]:
    """Time NumPy with one thread per processor, on some of the elements."""
    if not timing.available():
        return []
    start = time.perf_counter()
    in_threads(lambda a, b: reference(a, b, HOST_PASSES), host_a[:ON_HOST], host_b[:ON_HOST])
    ms = 1e3 * (time.perf_counter() - start)
    scale = PASSES / HOST_PASSES * host_a.size / min(host_a.size, ON_HOST)
    rates = timing.rates(scale * ms, host_a.size * PASSES, limit)
    return [Row("NumPy, scaled", {**rates, "course ms": COURSE_HOST_MS})]
