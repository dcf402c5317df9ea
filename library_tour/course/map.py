"""Apply one function to every number 256 times: in 256 launches, or in one launch with a loop.

On the software driver, which checks, counts and does not time:

    $ library-tour run map
    map: One function applied 256 times: 256 launches or one loop
    size 4,096: numbers
    limit: special functions, 5 each, 16 a clock and SM
                         course ms    loads  instructions  check
    ─────────────────────────────────────────────────────────────
    256 launches         4610, 1090  65,536     8,374,358  right
    loop inside          1400, 300      256     7,657,814  right
    c * c for pow(c, 2)                 256     4,459,018  right
    c * c, fast math                    256       257,920  right
    pow, fast math                                         caught
    pow, fast math: f(0.8, 1) is nan: fast math computes pow(c, 2) as exp2(2 *
    log2(c)), and c = cos(1.64) is negative.
    With fast math the special-function units limit the kernel. The precise variants
    hardly use those units: they compute sin, cos and pow by many ordinary
    instructions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..device_code import blocks_for, load
from ..limits import special_limit
from ..stop import Limit, Result, Row, Size
from ..timing import Phases
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "One function applied 256 times: 256 launches or one loop"
SIZE = Size("numbers", full=2**28, small=2**12)
PASSES = 256
BLOCK = 256
CHECKED = 2**12 + 5
# NumPy computes this part of the numbers and passes, and its time is scaled: all of them would take minutes.
ON_HOST, HOST_PASSES = 2**22, 4
# For the course's T1000 and V100.
COURSE_MS = {"256 launches": "4610, 1090", "loop inside": "1400, 300"}
WAYS = ("map_loop<Pow>", "map_loop<Product>")
UNIT = "Gcalls/s"
EXPLAINED_BY = ("loads", "instructions")

Array = NDArray[Any]


def reference(a: Array, b: Array, passes: int) -> Array:
    """Return a after so many applications of f."""
    for _ in range(passes):
        a = np.sin(np.cos(np.sin(np.sqrt(np.power(np.cos(a**2 + b**2), 2)))))
    return a


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on a few numbers and time it on all; then time the copies, and NumPy on the host."""
    modules = {fast: load("map", names=WAYS, fast_math=fast) for fast in (False, True)}
    random = np.random.default_rng()
    host_a, host_b = (random.random(size, np.float32) for _ in range(2))
    checked = min(size, CHECKED)
    few_a, few_b = host_a[:checked], host_b[:checked]
    expected = reference(few_a.astype(float), few_b.astype(float), PASSES).astype(np.float32)
    phases = Phases()
    with phases("allocate"):
        a, b = cuda.empty(size, np.float32), cuda.empty(size, np.float32)
    with phases("copy in"):
        a.copy_from(host_a)
        b.copy_from(host_b)

    def launches(count: int) -> Callable[[], object]:
        once = modules[False]["map_once"][blocks_for(count, BLOCK), BLOCK].bind(a, b, count)

        def launch() -> None:
            for _ in range(PASSES):
                once()

        return launch

    def loop(way: str, fast: bool, count: int) -> Callable[[], object]:
        kernel = modules[fast][f"map_loop<{way}>"]
        return kernel[blocks_for(count, BLOCK), BLOCK].bind(a, b, count, PASSES)

    def variant(name: str, make: Callable[[int], Callable[[], object]], tolerance: float) -> Variant:
        return Variant(
            name=name,
            prepare=lambda: a[:checked].copy_from(few_a),
            launch=make(checked),
            output=a[:checked],
            expected=expected,
            tolerance=tolerance,
            timed=make(size),
            amount=size * PASSES,
            columns={"course ms": COURSE_MS.get(name, "")},
        )

    limit = special_limit(device, 5, UNIT)
    rows = measure(
        [
            variant("256 launches", launches, 1e-6),
            variant("loop inside", lambda count: loop("Pow", False, count), 1e-6),
            variant("c * c for pow(c, 2)", lambda count: loop("Product", False, count), 1e-6),
            variant("c * c, fast math", lambda count: loop("Product", True, count), 1e-5),
        ],
        limit,
        EXPLAINED_BY,
    )
    with phases("copy out"):
        a.to_host(out=host_a)
    rows.append(shown_wrong("pow, fast math", power_of_negative))
    rows += two_devices(host_a, host_b, limit) + on_host(host_a, host_b, limit)
    rows += [Row(name, phases.rates(name)) for name in ("allocate", "copy in", "copy out") if timing.available()]
    notes = [
        "With fast math the special-function units limit the kernel. The precise variants hardly use those units: they "
        "compute sin, cos and pow by many ordinary instructions."
    ]
    if timing.available():
        notes.append(
            f"NumPy: {threads()} threads, {HOST_PASSES} passes over {min(size, ON_HOST):,} numbers, scaled to all of "
            "them. Course: T1000, V100; its processors took 63.3 s (6 cores) and 25.5 s (20 cores)."
        )
    return Result(rows, limit, notes=notes)


def power_of_negative() -> str:
    """Apply f where its cosine is negative, with fast math's pow, which takes the logarithm of the cosine."""
    a, b = cuda.full(1, 0.8, np.float32), cuda.full(1, 1.0, np.float32)
    load("map", names=WAYS, fast_math=True)["map_loop<Pow>"][1, 1](a, b, 1, 1)
    result = a.to_host()[0]
    return f"f(0.8, 1) is {result}: fast math computes pow(c, 2) as exp2(2 * log2(c)), and c = cos(1.64) is negative."


def two_devices(host_a: Array, host_b: Array, limit: Limit) -> list[Row]:
    """Time the loop inside on halves of the numbers on two devices, where there are two."""
    devices = cuda.devices()[:2]
    if len(devices) < 2 or not timing.available():
        return []
    bound = []
    for device, half_a, half_b in zip(devices, np.array_split(host_a, 2), np.array_split(host_b, 2), strict=True):
        with device:
            a, b = cuda.to_device(half_a), cuda.to_device(half_b)
            kernel = load("map", names=WAYS)["map_loop<Pow>"]
            bound.append(kernel[blocks_for(a.size, BLOCK), BLOCK].bind(a, b, a.size, PASSES))
            bound[-1]()
            device.synchronize()
    start = time.perf_counter()
    for launch, device in zip(bound, devices, strict=True):
        with device:
            launch()
    for device in devices:
        device.synchronize()
    ms = 1e3 * (time.perf_counter() - start)
    return [Row("loop inside, two GPUs", timing.rates(ms, host_a.size * PASSES, limit))]


def on_host(host_a: Array, host_b: Array, limit: Limit) -> list[Row]:
    """Time NumPy with a thread for each processor, on a part of the numbers."""
    if not timing.available():
        return []
    parts = [np.array_split(host[:ON_HOST], 4 * threads()) for host in (host_a, host_b)]
    with ThreadPoolExecutor(threads()) as pool:
        start = time.perf_counter()
        list(pool.map(lambda a, b: reference(a, b, HOST_PASSES), *parts))
        ms = 1e3 * (time.perf_counter() - start)
    scale = PASSES / HOST_PASSES * host_a.size / min(host_a.size, ON_HOST)
    return [Row("NumPy, scaled", timing.rates(scale * ms, host_a.size * PASSES, limit))]


def threads() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
