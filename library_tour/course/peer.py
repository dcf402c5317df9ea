"""Use two devices: copies between them, kernels that access the peer's memory, and the order of their work.

On the simulator, which checks results and counts operations but does not measure time, with two devices:

    $ export CUDART_PY_SIMULATOR_DEVICES=2
    $ library-tour run peer
    peer: Peer access: copies and kernels across two devices
    size 131,075: 4-byte elements to move
                               loads  load efficiency  check
    ─────────────────────────────────────────────────────────
    copy, no peer access                               right
    copy, peer access                                  right
    copy, without a stream                             right
    copy, devices not named                            right
    kernel reads               4,097          100.0 %  right
    kernel reads 16 bytes      1,025          100.0 %  right
    kernel writes 16 bytes     1,025          100.0 %  right
    copies both ways at once                           right
    copy of 64 bytes                                   right
    access has one direction                           right
    address identifies device                          right
    wait for the peer's event                          right
    copy within one device                             right
    no wait for the event                              caught
    wait for wrong device                              caught
    access has one direction: argument 0 of copy_words (unsigned int const*): the
    array is on device 0, and device 1 has no access; call
    Device(1).enable_peer(Device(0)), or copy the array
    no wait for the event: 100,000 of 100,000 elements were copied before the kernel
    wrote them.
    wait for wrong device: 100,000 of 100,000 elements have not arrived from
    device 1 yet.
    A copy between two devices does not need peer access. Without it, the driver
    moves the data through host memory; with it, the data crosses the link between
    the devices. Between H200s, the link is NVLink: 18 links of 25 GB/s each, or 450
    GB/s in each direction, some of which is spent on packet headers. Peer access
    works in one direction: letting one device access the memory of another does not
    allow the reverse.
    Addresses are unified: the driver knows which device an address belongs to, and
    kernels use the same loads and stores for a peer's memory. These accesses have a
    longer latency. Streams on different devices run concurrently, and a copy in a
    stream waits only for that stream. An event lets a stream wait for a stream on
    another device. A copy without a stream waits for the default streams of both
    devices. Device.synchronize() waits for one device.
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

TITLE = "Peer access: copies and kernels across two devices"
SIZE = Size("4-byte elements to move", full=2**28 + 3, small=2**17 + 3)
CHECKED = 2**17 + 3
FEW = 16  # elements, 64 bytes in total
BLOCK = 256
# Elements per thread of each kernel.
KERNELS = {"copy_words": 1, "copy_vectors": 16}
EXPLAINED_BY = ("loads", "load efficiency")
NOTES = (
    "A copy between two devices does not need peer access. Without it, the driver moves the data through host memory; "
    "with it, the data crosses the link between the devices. Between H200s, the link is NVLink: 18 links of 25 GB/s "
    "each, or 450 GB/s in each direction, some of which is spent on packet headers. Peer access works in one "
    "direction: letting one device access the memory of another does not allow the reverse.",
    "Addresses are unified: the driver knows which device an address belongs to, and kernels use the same loads and "
    "stores for a peer's memory. These accesses have a longer latency.",
    "Streams on different devices run concurrently, and a copy in a stream waits only for that stream. An event lets "
    "a stream wait for a stream on another device. A copy without a stream waits for the default streams of both "
    "devices. Device.synchronize() waits for one device.",
)
NEEDS = "The other rows need a second device whose memory this one can access (the 'peer' capability)."

COUNTED = np.arange(1, 100_001, dtype=np.uint32)

Words = NDArray[np.uint32]
Way = Callable[[cuda.DeviceArray, cuda.DeviceArray], Callable[[], object]]


@dataclass(frozen=True)
class Pair:
    """A device and its peer, with a source and a target on each, and the first elements of both sources."""

    device: cuda.Device
    peer: cuda.Device
    source: cuda.DeviceArray
    target: cuda.DeviceArray
    peer_source: cuda.DeviceArray
    peer_target: cuda.DeviceArray
    data: Words
    peer_data: Words

    def variant(self, name: str, way: Way, *, writes: bool = False) -> Variant:
        """Return the variant that moves data from the peer, or to it with `writes`; check few elements and time all."""
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
        """Poison the targets, and wait for the peer, because its memory is filled in its own stream."""
        for target in targets:
            poison(target)
        self.peer.synchronize()

    def rates(self, way: Way) -> Points:
        """Return the rate in GB/s against the number of bytes moved from the peer."""
        points = []
        for length in [*(4**power for power in range(4, 14) if 4**power < self.source.size), self.source.size]:
            ms = timing.median_ms(way(self.target[:length], self.peer_source[:length]), quick=True)
            points.append((4 * length, 1e-6 * 4 * length / ms))
        return points


def moved(between: int, here: int | None = None) -> dict[str, float]:
    """Return the bytes that cross the link between devices, and those read or written in this device's memory."""
    return {"bytes between devices": between, "bytes in own memory": between if here is None else here}


def run(device: cuda.Device, size: int) -> Result:
    """Check the rows for one device; with two, check and time each way to move data, and the order of work."""
    data, peer_data = np.random.default_rng().integers(0, 2**32, (2, min(size, INPUT_BLOCK)), np.uint32)
    source, target = repeated(data, size), cuda.empty(size, np.uint32)
    few = data[:CHECKED]
    within = Variant(
        name="copy within one device", launch=by_copy(target[: few.size], source[: few.size]),
        output=target[: few.size], expected=few, amount=2 * source.nbytes, timed=by_copy(target, source),
        work=moved(0, 2 * few.nbytes),
    )  # fmt: skip  # grouped by meaning
    wrong = all_shown_wrong({"no wait for the event": no_wait, "wait for wrong device": wrong_device}, devices=2)
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
    """Check and time the rows for two devices: first without peer access, then with it."""
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
        # No limit: both directions of the link are used.
        rows += measure([both], None)
        checks = [
            compare(
                "copies both ways at once: the copy to the peer arrives", on_host(arrived), pair.data[: arrived.size]
            )
        ]
        rows += [short_copy(pair), one_direction(pair), addresses(pair), waited_for(pair)]
        pictures = [bandwidths(pair, limit)] if timing.available() else []
    return Result(rows, limit, checks, pictures)


def bandwidths(pair: Pair, limit: Limit) -> Curve:
    """Return curves of the rate of the copy and of the kernel against the bytes moved."""
    ways = {"copy, peer access": by_copy, "kernel reads 16 bytes": by_kernel("copy_vectors")}
    lines = {name: pair.rates(way) for name, way in ways.items()}
    return Curve("bandwidth", "bytes", limit.unit, lines, logarithmic="x", line=limit)


@contextmanager
def access(pair: Pair) -> Iterator[None]:
    """Let the device access its peer's memory within the `with` block, unless it already can."""
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
    """Return the copy in a stream of the current device, ordered by that stream alone (cudaMemcpyPeerAsync)."""
    return partial(cuda.memcpy_peer, target, source, stream=cuda.legacy_default)


def by_copy_in_order(target: cuda.DeviceArray, source: cuda.DeviceArray) -> Callable[[], object]:
    """Return the copy that runs after all work in both devices' default streams (cudaMemcpyPeer)."""
    return partial(cuda.memcpy_peer, target, source)


def by_address(target: cuda.DeviceArray, source: cuda.DeviceArray) -> Callable[[], object]:
    """Return an ordinary copy, which gets only two addresses (cudaMemcpyAsync)."""
    return partial(cuda.memcpy, target, source, stream=cuda.legacy_default)


def by_kernel(name: str) -> Way:
    """Return a function that binds a copying kernel of the current device to a target and a source."""
    kernel, elements = load("peer")[name], KERNELS[name]

    def make(target: cuda.DeviceArray, source: cuda.DeviceArray) -> Callable[[], object]:
        return kernel[blocks_for(source.size, elements * BLOCK), BLOCK].bind(source, target, source.size)

    return make


def link_limit(pair: Pair) -> Limit:
    """Return the bandwidth of a copy of all data from the peer, which uses one direction of the link."""
    name = "the link between the devices, one way"
    if not timing.available():
        return Limit(name)
    ms = timing.median_ms(by_copy(pair.target, pair.peer_source))
    return Limit(name, rate=1e-6 * pair.source.nbytes / ms)


def both_ways(pair: Pair) -> tuple[Variant, cuda.DeviceArray]:
    """Return copies in both directions at once, and the target on the peer; the variant checks the other one."""
    # Ordinary streams: they and the default stream wait for one another.
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


def short_copy(pair: Pair) -> Row:
    """Return the row of a copy of a few bytes, whose time does not depend on bandwidth."""
    target, source, expected = pair.target[:FEW], pair.peer_source[:FEW], pair.peer_data[:FEW]
    copy = by_copy(target, source)
    variant = Variant(
        name="copy of 64 bytes", launch=copy, output=target, expected=expected, work=moved(expected.nbytes)
    )
    [row] = measure([variant], None)
    return replace(row, values={"us": 1e3 * float(row.values["ms"])} if "ms" in row.values else {})


def one_direction(pair: Pair) -> Row:
    """Return a row that passes if the peer cannot access the device's memory."""
    with pair.peer:
        launch = load("peer")["copy_words"][1, BLOCK]
        check = refusal("the peer's access is refused", ValueError, lambda: launch(pair.source, pair.peer_target, 1))
    return Row("access has one direction", check=check, note=check.detail)


def addresses(pair: Pair) -> Row:
    """Return a row that passes if the driver knows the device of each array."""
    arrays = {pair.source: pair.device, pair.peer_source: pair.peer}
    known = all(cuda.pointer_attributes(array).device is device for array, device in arrays.items())
    return Row("address identifies device", check=Check("the driver knows each array's device", known))


def waited_for(pair: Pair) -> Row:
    """Return a row that passes if a stream of one device waits for an event of the other."""
    check = compare(
        "the copy has the elements that the kernel wrote", exchange(pair.device, pair.peer, wait=True), COUNTED
    )
    return Row("wait for the peer's event", check=check)


def exchange(device: cuda.Device, peer: cuda.Device, *, wait: bool) -> Words:
    """Return the elements that a stream of `device` copies from the peer. A kernel in another stream writes them."""
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
    return f"{missing:,} of {COUNTED.size:,} elements were copied before the kernel wrote them." if missing else ""


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
    return (
        f"{missing:,} of {COUNTED.size:,} elements have not arrived from device {second.ordinal} yet."
        if missing
        else ""
    )
