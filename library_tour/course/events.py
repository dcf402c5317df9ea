"""Measure time on the device with events, and order work across streams.

On the simulator, which checks results but does not measure time:

    $ library-tour run events
    events: Timing on the device and ordering across streams
    size 4,194,304: bytes to copy
                            check
    ──────────────────────────────
    wait in another stream  right
    done after the wait     right
    time between events     right
    event, timing=False     right
    event, not recorded     right
    result read too early   caught
    result read too early: the host reads 0.00 after the calls and 24.51 after a
    wait.
    10 kernel launches, timed by each clock
                           done  check
    ──────────────────────────────────
    host, no wait          no    right
    host, one wait         yes   right
    host, wait after each  yes   right
    An asynchronous call returns when its work is queued. A host clock that is read
    without a wait therefore shows only the time of the calls. The lectures report
    0.043 ms for 10 steps of CUB's transform, on a card that they do not identify.
    That is less than a single kernel takes.
    CUB's device-wide functions return at once, as launches do. Thrust's algorithms
    wait before they return, unless their execution policy is
    thrust::cuda::par_nosync.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, refusal
from ..counters import counted
from ..device_code import blocks_for, load
from ..limits import copy_limit, link_limit
from ..stop import Check, Limit, Result, Row, Size, Value
from ..wrong import shown_wrong

TITLE = "Timing on the device and ordering across streams"
SIZE = Size("bytes to copy", full=2**28, small=2**22, least=4)
# The number of consecutive launches, and the number of temperatures that are checked: not a multiple of the block.
STEPS, BLOCK, CHECKED = 10, 256, 2**12 + 5
AMBIENT, PART = 20.0, 0.25
# The time that the lectures' host clock showed for ten steps of CUB's transform, without a wait.
COURSE_MS = 0.043

Floats = NDArray[np.float32]


def reference(temperatures: Floats, steps: int) -> Floats:
    """Return the temperatures after `steps` steps, computed in double precision."""
    now = temperatures.astype(np.float64)
    return (AMBIENT + (now - AMBIENT) * (1 - PART) ** steps).astype(np.float32)


def run(device: cuda.Device, size: int) -> Result:
    """Show that events enforce an order, that some have no time, and what a host clock measures instead."""
    data = cuda.pinned_empty(size, np.uint8)
    data[:] = np.random.default_rng().integers(0, 256, size, np.uint8)
    on_device, back = cuda.zeros(size, np.uint8), cuda.pinned_empty(size, np.uint8)
    back.fill(0)
    device.synchronize()

    # Neither stream waits for the default stream; only the event makes the second wait for the first.
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    start = first.record()
    cuda.memcpy(on_device, data, stream=first)
    arrived = first.record()
    second.wait(arrived)
    cuda.memcpy(back, on_device, stream=second)
    second.synchronize()
    ordered = compare("the copy in the second stream has the data of the first", back, data)

    untimed, unrecorded = cuda.Event(timing=False).record(), cuda.Event()
    untimed.synchronize()
    checks = {
        "wait in another stream": ordered,
        "done after the wait": Check("the event waited for is done", arrived.done),
        "time between events": Check("time does not run backward", arrived - start >= 0),
        "event, timing=False": refusal("no time", cuda.errors.EventTimingError, lambda: arrived - untimed),
        "event, not recorded": refusal("no time", cuda.errors.EventNotRecordedError, lambda: arrived - unrecorded),
    }
    limit = link_limit(size)
    rows = [Row(name, check=check) for name, check in checks.items()]
    rows.append(shown_wrong("result read too early", read_early))
    heading = copy_limit(device).heading(f"{STEPS} kernel launches, timed by each clock")
    notes = [
        "An asynchronous call returns when its work is queued. A host clock that is read without a wait therefore "
        f"shows only the time of the calls. The lectures report {COURSE_MS} ms for {STEPS} steps of CUB's transform, "
        "on a card that they do not identify. That is less than a single kernel takes.",
        "CUB's device-wide functions return at once, as launches do. Thrust's algorithms wait before they return, "
        "unless their execution policy is thrust::cuda::par_nosync.",
    ]
    tables = {heading: waits(device, size // 4)}
    return Result(rows + clocks(on_device, data, limit), limit, notes=notes, tables=tables)


def cooling(temperatures: cuda.DeviceArray, *, wait: bool) -> Callable[[], cuda.Event]:
    """Return a function that launches all steps, waits after each or not at all, and returns the last event."""
    launch = load("events")["cool"][blocks_for(temperatures.size, BLOCK), BLOCK].bind(
        temperatures, AMBIENT, PART, temperatures.size
    )

    def run() -> cuda.Event:
        for _ in range(STEPS):
            launch()
            event = cuda.legacy_default.record()
            if wait:
                event.synchronize()
        return event

    return run


def waits(device: cuda.Device, count: int) -> list[Row]:
    """Launch the steps without a wait, with one at the end, and with one after each; time them with each clock."""
    host = np.random.default_rng().uniform(0, 100, min(count, CHECKED)).astype(np.float32)
    expected = reference(host, STEPS)
    few = cuda.empty_like(host)
    timed = cuda.full(count, AMBIENT, np.float32) if timing.available() else few
    amount, limit = 2 * STEPS * timed.nbytes, copy_limit(device)
    rows = []
    if timing.available():
        ms = timing.median_ms(cooling(timed, wait=False))
        rows.append(Row("events", timing.rates(ms, amount, limit)))
    for name, wait, at_end in (
        ("host, no wait", False, False),
        ("host, one wait", False, True),
        ("host, wait after each", True, False),
    ):
        few.copy_from(host)
        metrics = {} if timing.available() else counted(cooling(few, wait=wait))
        few.copy_from(host)
        event = cooling(few, wait=wait)()
        if at_end:
            event.synchronize()
        done = event.done
        check = compare(f"{name}: the temperatures after {STEPS} steps", few.to_host(), expected, 1e-4)
        values: dict[str, Value] = {}
        if timing.available() and check.holds:
            work = cooling(timed, wait=wait)
            done = work().done or at_end
            values = timing.rates(timing.host_ms(work, wait=at_end), amount, limit)
            if not (wait or at_end):
                values["course ms"] = COURSE_MS
        rows.append(Row(name, {**values, "done": "yes" if done else "no"}, check, metrics=metrics))
    return rows


def read_early() -> str:
    """Read a result in pinned memory before and after the wait, and return a sentence about the difference."""
    temperatures = cuda.full(CHECKED, 100.0, np.float32)
    result = cuda.pinned_empty(CHECKED, np.float32)
    result.fill(0)
    cooling(temperatures, wait=False)()
    cuda.memcpy(result, temperatures, stream=cuda.legacy_default)
    early = float(result[0])
    cuda.legacy_default.synchronize()
    late = float(result[0])
    return f"the host reads {early:.2f} after the calls and {late:.2f} after a wait." if early != late else ""


def clocks(target: cuda.DeviceArray, source: NDArray[np.uint8], limit: Limit) -> list[Row]:
    """Time one copy with events, and with the host clock without and with a wait."""
    if not timing.available():
        return []

    def copy() -> None:
        cuda.memcpy(target, source, stream=cuda.legacy_default)

    nbytes = source.nbytes
    return [
        Row("events", timing.rates(timing.median_ms(copy), nbytes, limit)),
        # No rate, because this is only the time to queue the copy.
        Row("host clock, call alone", timing.rates(timing.host_ms(copy, wait=False)), note="it only queues the copy"),
        Row("host clock, with a wait", timing.rates(timing.host_ms(copy, wait=True), nbytes, limit)),
    ]
