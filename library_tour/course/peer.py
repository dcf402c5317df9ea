"""Two devices: copies between them, kernels that read and write the other one's memory, and what orders their work.

On the simulator, which checks, counts and does not time, with two devices:

    $ export CUDART_PY_SIMULATOR_DEVICES=2
    $ library-tour run peer
    peer: Peer access: copies and kernels between two devices
    size 131,075: numbers of 4 bytes to move
                                  loads  load efficiency  check
    ──────────────────────────────────────────────────────────
    copy, no peer access                                right
    copy, peer access                                   right
    copy, without a stream                              right
    copy, devices not named                             right
    kernel reads                  4,097        100.0 %  right
    kernel reads 16 bytes         1,025        100.0 %  right
    kernel writes 16 bytes        1,025        100.0 %  right
    copies both ways at once                            right
    copy of 64 bytes                                    right
    permission has one direction                        right
    addresses tell the device                           right
    wait for the peer's event                           right
    copy within one device                              right
    event not waited for                                caught
    wrong device waited for                             caught
    permission has one direction: argument 0 of copy_words (unsigned int const*):
    the array is on device 0, and device 1 has no access; call
    Device(1).enable_peer(Device(0)), or copy the array
    event not waited for: 100,000 of 100,000 numbers were copied before the kernel
    wrote them.
    wrong device waited for: 100,000 of 100,000 numbers have not come from device 1
    yet.
    A copy between two devices needs no peer access: without it the driver takes the
    data through the host's memory, with it they cross the link between the devices.
    Between H200s that is NVLink: 18 links of 25 GB/s each, 450 GB/s in each
    direction, a part of which is spent on the packets' headers. Permission has one
    direction: a device that may access another one's memory does not open its own
    to that one.
    Addresses are unified: the driver knows the device of each address, and kernels
    execute the same loads and stores for another device's memory. The latency is
    longer there, so that more bytes have to be in flight, as by four loads of 16
    bytes.
    The streams of two devices run side by side, and a copy in a stream waits for
    that stream only. An event makes a stream wait for another device's, as a copy
    without a stream does for the default streams of both. Device.synchronize()
    waits for one device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, on_host, poison, refusal
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import copy_limit
from ..stop import Check, Curve, Limit, Points, Result, Row, Size
from ..variants import Variant, measure
from ..wrong import all_shown_wrong

TITLE = "Peer access: copies and kernels between two devices"
SIZE = Size("numbers of 4 bytes to move", full=2**28 + 3, small=2**17 + 3)
CHECKED = 2**17 + 3
LITTLE = 16  # 64 bytes
BLOCK = 256
# Numbers that a thread of each kernel moves.
KERNELS = {"copy_words": 1, "copy_vectors": 16}
EXPLAINED_BY = ("loads", "load efficiency")
NOTES = (
    "A copy between two devices needs no peer access: without it the driver takes the data through the host's memory, "
    "with it they cross the link between the devices. Between H200s that is NVLink: 18 links of 25 GB/s each, 450 GB/s "
    "in each direction, a part of which is spent on the packets' headers. Permission has one direction: a device that "
    "may access another one's memory does not open its own to that one.",
    "Addresses are unified: the driver knows the device of each address, and kernels execute the same loads and stores "
    "for another device's memory. The latency is longer there, so that more bytes have to be in flight, as by four "
    "loads of 16 bytes.",
    "The streams of two devices run side by side, and a copy in a stream waits for that stream only. An event makes a "
    "stream wait for another device's, as a copy without a stream does for the default streams of both. "
    "Device.synchronize() waits for one device.",
)
NEEDS = "The other rows need a second device whose memory this one can access (the capability 'peer')."

COUNTED = np.arange(1, 100_001, dtype=np.uint32)

Numbers = NDArray[np.uint32]
Way = Callable[[cuda.DeviceArray, cuda.DeviceArray], Callable[[], object]]


@dataclass(frozen=True)
class Pair:
    """A device and its peer: a source and a target on each, and what the two sources begin with."""

    device: cuda.Device
    peer: cuda.Device
    source: cuda.DeviceArray
    target: cuda.DeviceArray
    peer_source: cuda.DeviceArray
    peer_target: cuda.DeviceArray
    data: Numbers
    peer_data: Numbers

    def variant(self, name: str, way: Way, *, writes: bool = False) -> Variant:
        """Return a way to move the peer's numbers here, or the device's there; a few are checked, all are timed."""
        source, target = (self.source, self.peer_target) if writes else (self.peer_source, self.target)
        few = (self.data if writes else self.peer_data)[:CHECKED]
        move = way(target[: few.size], source[: few.size])

        def launch() -> None:
            move()
            self.device.synchronize()

        return Variant(
            name=name, prepare=partial(self.poison, target[: few.size]), launch=launch, output=target[: few.size],
            expected=few, amount=source.nbytes, timed=way(target, source), work=moved(few.nbytes),
        )  # fmt: skip  # grouped by meaning

    def poison(self, *targets: cuda.DeviceArray) -> None:
        """Make the targets wrong, and wait: what fills the peer's memory is in a stream of the peer."""
        for target in targets:
            poison(target)
        self.peer.synchronize()

    def rates(self, way: Way) -> Points:
        """Return GB/s against bytes when more and more of the peer's numbers are moved here."""
        points = []
        for length in [*(4**power for power in range(4, 14) if 4**power < self.source.size), self.source.size]:
            ms = timing.median_ms(way(self.target[:length], self.peer_source[:length]), quick=True)
            points.append((4 * length, 1e-6 * 4 * length / ms))
        return points


def moved(between: int, here: int | None = None) -> dict[str, float]:
    """Return how many bytes go from device to device, and how many are read and written in this one's memory."""
    return {"bytes between devices": between, "bytes in own memory": between if here is None else here}


def run(device: cuda.Device, size: int) -> Result:
    """Check what one device can show; between two, check and time each way to move numbers, and the order of work."""
    data, peer_data = np.random.default_rng().integers(0, 2**32, (2, min(size, INPUT_BLOCK)), np.uint32)
    source, target = repeated(data, size), cuda.empty(size, np.uint32)
    few = data[:CHECKED]
    within = Variant(
        name="copy within one device", launch=by_copy(target[: few.size], source[: few.size]),
        output=target[: few.size], expected=few, amount=2 * source.nbytes, timed=by_copy(target, source),
        work=moved(0, 2 * few.nbytes),
    )  # fmt: skip  # grouped by meaning
    wrong = all_shown_wrong({"event not waited for": no_wait, "wrong device waited for": wrong_device}, devices=2)
    peer = next((other for other in cuda.devices() if other is not device and device.can_access_peer(other)), None)
    if peer is None:
        limit = copy_limit(device)
        return Result([*measure([within], limit), *wrong], limit, notes=[*NOTES, NEEDS])
    with peer:
        peer_source, peer_target = repeated(peer_data, size), cuda.empty(size, np.uint32)
        peer.synchronize()
    found = between(Pair(device, peer, source, target, peer_source, peer_target, data, peer_data))
    rows = [*found.rows, *measure([within], None), *wrong]
    return replace(found, rows=rows, notes=NOTES)


def between(pair: Pair) -> Result:
    """Check and time what takes two devices: first without peer access, then with it."""
    staged = pair.variant("copy, no peer access", by_copy)
    with access(pair):
        limit = link_limit(pair)
    rows = measure([staged], limit)
    with access(pair):
        ways = [
            pair.variant("copy, peer access", by_copy),
            pair.variant("copy, without a stream", by_copy_in_order),
            pair.variant("copy, devices not named", by_address),
            pair.variant("kernel reads", by_kernel("copy_words")),
            pair.variant("kernel reads 16 bytes", by_kernel("copy_vectors")),
            pair.variant("kernel writes 16 bytes", by_kernel("copy_vectors"), writes=True),
        ]
        rows += measure(ways, limit, EXPLAINED_BY)
        both, arrived = both_ways(pair)
        # Two directions of the link take part.
        rows += measure([both], None)
        checks = [compare("the numbers that go there arrive too", on_host(arrived), pair.data[: arrived.size])]
        rows += [little(pair), one_direction(pair), addresses(pair), waited_for(pair)]
        pictures = [bandwidths(pair, limit)] if timing.available() else []
    return Result(rows, limit, checks, pictures)


def bandwidths(pair: Pair, limit: Limit) -> Curve:
    """Measure the copy and the kernel against the bytes that they move."""
    ways = {"copy, peer access": by_copy, "kernel reads 16 bytes": by_kernel("copy_vectors")}
    lines = {name: pair.rates(way) for name, way in ways.items()}
    return Curve("bandwidth", "bytes", limit.unit, lines, logarithmic="x", line=limit)


@contextmanager
def access(pair: Pair) -> Iterator[None]:
    """Let the device access its peer's memory in the block, if it may not already."""
    if pair.device.peer_enabled(pair.peer):
        yield
        return
    pair.device.enable_peer(pair.peer)
    try:
        yield
    finally:
        pair.device.synchronize()
        pair.device.disable_peer(pair.peer)


def by_copy(target: cuda.DeviceArray, source: cuda.DeviceArray) -> Callable[[], object]:
    """Return the copy in a stream of the current device, whose order is all that it keeps (cudaMemcpyPeerAsync)."""
    return partial(cuda.memcpy_peer, target, source, stream=cuda.legacy_default)


def by_copy_in_order(target: cuda.DeviceArray, source: cuda.DeviceArray) -> Callable[[], object]:
    """Return the copy that comes after all work of both devices' default streams (cudaMemcpyPeer)."""
    return partial(cuda.memcpy_peer, target, source)


def by_address(target: cuda.DeviceArray, source: cuda.DeviceArray) -> Callable[[], object]:
    """Return an ordinary copy, which is given two addresses alone (cudaMemcpyAsync)."""
    return partial(cuda.memcpy, target, source, stream=cuda.legacy_default)


def by_kernel(name: str) -> Way:
    """Return what makes the launch of a kernel on the current device that copies."""
    kernel, numbers = load("peer")[name], KERNELS[name]

    def make(target: cuda.DeviceArray, source: cuda.DeviceArray) -> Callable[[], object]:
        return kernel[blocks_for(source.size, numbers * BLOCK), BLOCK].bind(source, target, source.size)

    return make


def link_limit(pair: Pair) -> Limit:
    """Return the bandwidth of a copy of all the peer's numbers, which takes what the link has in one direction."""
    name = "the link between the devices, one way"
    if not timing.available():
        return Limit(name)
    ms = timing.median_ms(by_copy(pair.target, pair.peer_source))
    return Limit(name, rate=1e-6 * pair.source.nbytes / ms)


def both_ways(pair: Pair) -> tuple[Variant, cuda.DeviceArray]:
    """Return copies in both directions at once, the checked one comes here, and what the other one writes."""
    # The default stream's work waits for theirs, and theirs for that.
    here, there = cuda.Stream(), cuda.Stream()

    def copies(size: int) -> None:
        cuda.memcpy_peer(pair.target[:size], pair.peer_source[:size], stream=here)
        cuda.memcpy_peer(pair.peer_target[:size], pair.source[:size], stream=there)

    few = pair.peer_data[:CHECKED]
    target, arrived = pair.target[: few.size], pair.peer_target[: few.size]

    def launch() -> None:
        copies(few.size)
        pair.device.synchronize()

    variant = Variant(
        name="copies both ways at once", prepare=partial(pair.poison, target, arrived), launch=launch, output=target,
        expected=few, amount=2 * pair.source.nbytes, timed=partial(copies, pair.source.size),
        work=moved(2 * few.nbytes),
    )  # fmt: skip  # grouped by meaning
    return variant, arrived


def little(pair: Pair) -> Row:
    """Return the row of a copy of a few bytes, whose time is no question of bandwidth."""
    target, source, expected = pair.target[:LITTLE], pair.peer_source[:LITTLE], pair.peer_data[:LITTLE]
    copy = by_copy(target, source)
    variant = Variant(
        name="copy of 64 bytes", launch=copy, output=target, expected=expected, work=moved(expected.nbytes)
    )
    [row] = measure([variant], None)
    return replace(row, values={"us": 1e3 * float(row.values["ms"])} if "ms" in row.values else {})


def one_direction(pair: Pair) -> Row:
    """Return a row that holds if the peer may not access the device's memory."""
    with pair.peer:
        launch = load("peer")["copy_words"][1, BLOCK]
        check = refusal("the peer has no access", ValueError, lambda: launch(pair.source, pair.peer_target, 1))
    return Row("permission has one direction", check=check, note=check.detail)


def addresses(pair: Pair) -> Row:
    """Return a row that holds if the driver knows where each array is."""
    arrays = {pair.source: pair.device, pair.peer_source: pair.peer}
    known = all(cuda.pointer_attributes(array).device is device for array, device in arrays.items())
    return Row("addresses tell the device", check=Check("the driver knows each array's device", known))


def waited_for(pair: Pair) -> Row:
    """Return a row that holds if one device's stream waits for the other's event."""
    check = compare("the copy has what the kernel wrote", exchange(pair.device, pair.peer, wait=True), COUNTED)
    return Row("wait for the peer's event", check=check)


def exchange(device: cuda.Device, peer: cuda.Device, *, wait: bool) -> Numbers:
    """Return what a stream of `device` copies from the peer, where a kernel writes numbers in a stream of its own."""
    with peer:
        source, written = cuda.to_device(COUNTED), cuda.zeros(COUNTED.size, np.uint32)
        writing = cuda.Stream(non_blocking=True)
        peer.synchronize()
        launch = load("peer")["copy_words"][blocks_for(source.size, BLOCK), BLOCK, 0, writing]
        launch(source, written, source.size)
        done = writing.record()
    with device:
        target, reading = cuda.zeros(COUNTED.size, np.uint32), cuda.Stream(non_blocking=True)
        device.synchronize()
        if wait:
            reading.wait(done)
        cuda.memcpy_peer(target, written, stream=reading)
        reading.synchronize()
        return target.to_host()


def no_wait() -> str:
    """Copy from the peer without waiting for the kernel there."""
    missing = int(np.count_nonzero(exchange(*cuda.devices(), wait=False) == 0))
    return f"{missing:,} of {COUNTED.size:,} numbers were copied before the kernel wrote them." if missing else ""


def wrong_device() -> str:
    """Queue work on the second device, wait for the first one, and look at the result."""
    first, second = cuda.devices()
    result = cuda.pinned_empty(COUNTED.shape, COUNTED.dtype)
    result[:] = 0
    with second:
        cuda.memcpy(result, cuda.to_device(COUNTED), stream=cuda.legacy_default)
    first.synchronize()
    missing = int(np.count_nonzero(result == 0))
    second.synchronize()
    return f"{missing:,} of {COUNTED.size:,} numbers have not come from device {second.ordinal} yet." if missing else ""
