"""Events are marks in a stream: they measure time on the device and order work across streams.

On the software driver, which checks and does not time:

    $ library-tour run events
    events: Timing on the device and ordering across streams
    size 4,194,304: bytes to copy
    limit: the link to the host
                            check
    ─────────────────────────────
    wait in another stream  right
    done after the wait     right
    time between events     right
    time of timing=False    right
    time before record()    right
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, refusal
from ..limits import link_limit
from ..stop import Check, Limit, Result, Row, Size

TITLE = "Timing on the device and ordering across streams"
SIZE = Size("bytes to copy", full=2**28, small=2**22)


def run(device: cuda.Device, size: int) -> Result:
    """Show the order that events make, the times they refuse to give, and what the host's clock measures instead."""
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
    ordered = compare("the second stream's copy has the first one's data", back, data)

    untimed, unrecorded = cuda.Event(timing=False).record(), cuda.Event()
    untimed.synchronize()
    checks = {
        "wait in another stream": ordered,
        "done after the wait": Check("the event waited for is done", arrived.done),
        "time between events": Check("time does not run backward", arrived - start >= 0),
        "time of timing=False": refusal("no time", cuda.EventTimingError, lambda: arrived - untimed),
        "time before record()": refusal("no time", cuda.EventNotRecordedError, lambda: arrived - unrecorded),
    }
    limit = link_limit(size)
    rows = [Row(name, check=check) for name, check in checks.items()]
    return Result(rows + clocks(on_device, data, limit), limit)


def clocks(target: cuda.DeviceArray, source: NDArray[np.uint8], limit: Limit) -> list[Row]:
    """Time one copy in a stream by events, and by the host's clock without and with a wait."""
    if not timing.available():
        return []

    def copy() -> None:
        cuda.memcpy(target, source, stream=cuda.legacy_default)

    nbytes = source.nbytes
    return [
        Row("events", timing.rates(timing.median_ms(copy), nbytes, limit)),
        # No rate is shown, since this is the time of queueing the copy.
        Row("host's clock, call alone", timing.rates(timing.host_ms(copy, wait=False)), note="it only queues the copy"),
        Row("host's clock, with wait", timing.rates(timing.host_ms(copy, wait=True), nbytes, limit)),
    ]
