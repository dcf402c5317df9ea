"""Divide the heated plate into one strip per device, and send the edges while the interior is computed.

On the simulator, which checks results and counts operations but does not measure time, with one device:

    $ library-tour run halo
    halo: Heat diffusion on several devices: overlapped halo exchange
    size 256: rows and columns of the plate
    counters: measured over 255 x 260 cells
                         strips   loads  instructions  bytes sent  check
    ─────────────────────────────────────────────────────────────────────
    one strip                 1  11,144       212,632              right
    sequential                4  11,168       212,764      24,960  right
    overlapped                4  11,264       233,528      24,960  right
    no wait for the halo                                           caught
    no wait for the halo: 448 of 10000 cells were computed from a stale halo.
    kernel heat_strip at kernels/halo.cu:24 (inlined from kernels/heated.cuh:39):
    race: it writes 16 bytes of global memory at 0x7f… (19600 bytes into
    the 20400-byte allocation at 0x7f…, allocated at
    library_tour/course/halo.py:94), which a copy in another stream read (queued at
    library_tour/course/halo.py:175), and nothing orders the two accesses, this one
    in stream 0x5… and the other in stream 0x5…: use the same stream for both
    (stream=s), or make one stream wait for the other; block (0, 6, 0), thread
    (0, 0, 0), instruction 'st.global.cs.v4.f32 [%rd22], {%f104,%f103,%f102,%f101}'
        24 | heat_between(in, out, rows, columns, rate, 1, rows - 1);
        the same in 1 more launch
    Each strip keeps a copy of its neighbours' nearest rows, called its halo. In the
    sequential version, a device computes its strip, sends its edges, and waits for
    the next halo. In the overlapped version, it computes the edges first. Another
    stream sends them while the device computes the interior, which needs no halo.
    Events synchronise the streams, and the result is identical to that of one
    strip, bit for bit.
    'hidden' is the fraction of the exchange time that does not lengthen a step.
    'efficiency' is the time with one strip, divided by N times the time on N
    devices: 1 if N devices are N times as fast. In the 'larger plate' row, each
    strip has as many rows as the single strip.
    All 4 strips are on one device. This process has one device. For several
    devices, use a machine with several GPUs, `CUDART_PY_SIMULATOR_DEVICES=4` on the
    simulator, or several processes: `mpiexec -n 4 library-tour run halo`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, ranks, timing
from ..checks import compare
from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..ranks import Ranks
from ..several import mean_ms, on_one_device, peer_access, places_from, right_everywhere, wait_for
from ..stop import Limit, Picture, Result, Row, Size, Timeline, Value
from ..wrong import all_shown_wrong
from .heat import RATE, make_plate, reference

TITLE = "Heat diffusion on several devices: overlapped halo exchange"
SIZE = Size("rows and columns of the plate", full=16384, small=256, least=16)
CHECKED = 1000
STEPS = 4  # in a check; even, so that the result is in the first copy
DRAWN_STEPS = 6
BLOCK, HEIGHT = (64, 4), 2
# The kernels of a step. The first writes the rows that the neighbours wait for.
SEQUENTIAL, OVERLAPPED = ("heat_strip",), ("heat_edges", "heat_inside")
# The rows for several strips, and the row for one strip, with which they are compared.
WAYS, ONE = {"sequential": SEQUENTIAL, "overlapped": OVERLAPPED}, "one strip"
EXPLAINED_BY = ("loads", "instructions")
NOTES = (
    "Each strip keeps a copy of its neighbours' nearest rows, called its halo. In the sequential version, a device "
    "computes its strip, sends its edges, and waits for the next halo. In the overlapped version, it computes the "
    "edges first. Another stream sends them while the device computes the interior, which needs no halo. Events "
    "synchronise the streams, and the result is identical to that of one strip, bit for bit.",
    "'hidden' is the fraction of the exchange time that does not lengthen a step. 'efficiency' is the time with one "
    "strip, divided by N times the time on N devices: 1 if N devices are N times as fast. In the 'larger plate' row, "
    "each strip has as many rows as the single strip.",
)

Floats = NDArray[np.float32]
Dim = int | tuple[int, int]


class Strip:
    """Several rows of the plate on one device, with a halo of one row above and below, in two copies."""

    def __init__(self, device: cuda.Device, rows: int, columns: int) -> None:
        self.device, self.rows = device, rows
        with device:
            self.compute, self.copies = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
            self.plates = [cuda.zeros((rows + 2, columns), np.float32) for _ in range(2)]
            self.written, self.sent = cuda.Event(), cuda.Event()
            device.synchronize()
            across, down = blocks_for(columns, 4 * BLOCK[0]), blocks_for(rows, HEIGHT * BLOCK[1])
            edges = (blocks_for(columns, 4 * BLOCK[0] * BLOCK[1]), min(rows, 2)), BLOCK[0] * BLOCK[1]
            shapes: dict[str, tuple[Dim, Dim]] = {
                "heat_strip": ((across, down), BLOCK),
                "heat_edges": edges,
                "heat_inside": ((across, down), BLOCK),
            }
            self.launches = {
                name: [self._bind(name, *shape, *plates) for plates in (self.plates, self.plates[::-1])]
                for name, shape in shapes.items()
            }
        self.waits_for: list[cuda.Event] = []

    def _bind(
        self, name: str, grid: Dim, block: Dim, now: cuda.DeviceArray, then: cuda.DeviceArray
    ) -> Callable[[], object]:
        return load("halo")[name][grid, block, 0, self.compute].bind(now, then, *now.shape, RATE)

    def fill(self, rows: Floats) -> None:
        """Write the strip and its halo to both copies."""
        with self.device:
            for plate in self.plates:
                plate.copy_from(rows)
            self.device.synchronize()
        self.waits_for = []

    def step(self, copy: int, kernels: Sequence[str]) -> None:
        """Queue a step from one copy to the other, after the halo has arrived; the first kernel writes the edges."""
        with self.device:
            for event in self.waits_for:
                self.compute.wait(event)
            self.launches[kernels[0]][copy]()
            self.written.record(self.compute)
            for name in kernels[1:]:
                self.launches[name][copy]()

    def edges(self, copy: int) -> dict[int, cuda.DeviceArray]:
        """Return the rows that the neighbours above (-1) and below (1) need."""
        return {-1: self.plates[copy][1], 1: self.plates[copy][self.rows]}

    def halo(self, copy: int) -> dict[int, cuda.DeviceArray]:
        """Return the rows that come from the neighbours above (-1) and below (1)."""
        return {-1: self.plates[copy][0], 1: self.plates[copy][self.rows + 1]}

    def inner(self) -> Floats:
        """Wait for all work, and return the strip without its halo."""
        with self.device:
            self.device.synchronize()
            return self.plates[0].to_host()[1:-1]


class Strips:
    """Strips of one process, whose edges are copied from device to device."""

    ranks: Ranks | None = None

    def __init__(self, devices: Sequence[cuda.Device], rows: int, columns: int) -> None:
        self.devices, self.count, self.columns = list(dict.fromkeys(devices)), len(devices), columns
        self.workers = len(self.devices)
        self.ends = cuts(rows, self.count)
        self.strips = [
            Strip(device, end - begin, columns)
            for device, begin, end in zip(devices, self.ends, self.ends[1:], strict=False)
        ]

    def fill(self, plate: Floats) -> None:
        """Cut a plate into the strips."""
        for strip, begin, end in zip(self.strips, self.ends, self.ends[1:], strict=False):
            strip.fill(plate[begin - 1 : end + 1])

    def exchange(self, copy: int) -> None:
        """Queue the transfers of all edges in one copy of the plate. Each waits until its edge has been written."""
        for strip in self.strips:
            strip.waits_for = []
        for number, strip in enumerate(self.strips):
            strip.copies.wait(strip.written)
            near = {side: number + side for side in (-1, 1) if 0 <= number + side < self.count}
            for side, other in near.items():
                cuda.memcpy_peer(self.strips[other].halo(copy)[-side], strip.edges(copy)[side], stream=strip.copies)
            strip.sent.record(strip.copies)
            for other in near.values():
                self.strips[other].waits_for.append(strip.sent)

    def collect(self, plate: Floats) -> Floats:
        """Return the plate after the steps. Its outermost rows and columns stay as they were."""
        return np.concatenate([plate[:1], *(strip.inner() for strip in self.strips), plate[-1:]])


class RankStrip:
    """The strip of this rank, whose edges are sent to the neighbouring ranks with MPI."""

    def __init__(self, ranks: Ranks, device: cuda.Device, rows: int, columns: int) -> None:
        self.ranks, self.devices, self.count, self.columns = ranks, [device], ranks.count, columns
        self.workers = ranks.count
        self.begin, self.end = cuts(rows, ranks.count)[ranks.rank : ranks.rank + 2]
        self.strips = [Strip(device, self.end - self.begin, columns)]
        self.near = {side: ranks.rank + side for side in (-1, 1) if 0 <= ranks.rank + side < ranks.count}
        self.outgoing, self.incoming = (
            {side: cuda.pinned_empty(columns, np.float32) for side in (-1, 1)} for _ in range(2)
        )

    def fill(self, plate: Floats) -> None:
        """Copy the rows of this rank from a plate."""
        self.strips[0].fill(plate[self.begin - 1 : self.end + 1])

    def exchange(self, copy: int) -> None:
        """Send the edges of one copy and receive the halo while the host waits and the device computes the interior."""
        [strip] = self.strips
        strip.waits_for = [strip.sent]
        strip.copies.wait(strip.written)
        if self.ranks.takes_device_memory():
            strip.written.synchronize()
            self._send(strip.edges(copy), strip.halo(copy))
        else:
            for side in self.near:
                cuda.memcpy(self.outgoing[side], strip.edges(copy)[side], stream=strip.copies)
            # MPI reads and writes host memory: these copies, and those of the last halo, must have finished.
            strip.copies.synchronize()
            self._send(self.outgoing, self.incoming)
            for side in self.near:
                cuda.memcpy(strip.halo(copy)[side], self.incoming[side], stream=strip.copies)
        strip.sent.record(strip.copies)

    def _send(self, outgoing: Mapping[int, object], incoming: Mapping[int, object]) -> None:
        comm = self.ranks.comm
        requests = [comm.Irecv(incoming[side], rank) for side, rank in self.near.items()]
        requests += [comm.Isend(outgoing[side], rank) for side, rank in self.near.items()]
        for request in requests:
            request.Wait()

    def collect(self, plate: Floats) -> Floats | None:
        """Return the plate after the steps on rank 0, and None on the others."""
        parts = self.ranks.comm.gather(self.strips[0].inner())
        return np.concatenate([plate[:1], *parts, plate[-1:]]) if parts else None


Cut = Strips | RankStrip
Maker = Callable[[int, int], Cut]


def cuts(rows: int, count: int) -> list[int]:
    """Return the first row of each strip, and the row after the last. No strip includes the plate's outermost rows."""
    return [1 + (rows - 2) * number // count for number in range(count + 1)]


def take_steps(cut: Cut, steps: int, kernels: Sequence[str], *, exchange: bool = True, waits: bool = True) -> None:
    """Queue steps from the first copy to the second and back."""
    for number in range(steps):
        for strip in cut.strips:
            strip.waits_for = strip.waits_for if waits else []
            strip.step(number % 2, kernels)
        if exchange:
            cut.exchange(1 - number % 2)


def run(device: cuda.Device, size: int) -> Result:
    """Check several strips against one, bit for bit; then time one strip and several, sequentially and overlapped."""
    together = ranks.world()
    places = places_from(device, together)
    limit = copy_limit(device)
    make: Maker
    if together:
        make = partial(RankStrip, together, device)
        count = together.count
    else:
        make = partial(Strips, places)
        count = len(places)
    few = max(min(size, CHECKED), count + 3)
    plate = make_plate(few - 1, few // 4 * 4 + 4)
    with peer_access(list(dict.fromkeys(places))):
        first, one = one_strip(device, plate)
        rows = [first]
        for name, kernels in WAYS.items():
            rows.append(checked(name, make(*plate.shape), kernels, plate, one))
        pictures: list[Picture] = []
        if timing.available():
            rows, pictures = timed(rows, right_everywhere(rows, together), device, make, size, limit)
    notes = list(NOTES)
    if together:
        notes.append("The counters are from rank 0.")
    else:
        rows += all_shown_wrong({"no wait for the halo": without_waits}, devices=2)
    notes += on_one_device(places, together, "halo", "strips")
    return Result(rows, limit, pictures=pictures, notes=notes, counted=f"{few - 1} x {few // 4 * 4 + 4} cells")


def one_strip(device: cuda.Device, plate: Floats) -> tuple[Row, Floats]:
    """Return the row of a plate in one strip, and the plate after the steps."""
    cut = Strips([device], *plate.shape)
    counted = stepped(cut, SEQUENTIAL, plate)
    after = cut.collect(plate)
    check = compare("one strip equals the plate computed by NumPy", after, reference(plate, STEPS), 1e-6)
    return Row(ONE, {"strips": 1, **counted} if not timing.available() else {}, check), after


def checked(name: str, cut: Cut, kernels: Sequence[str], plate: Floats, one: Floats) -> Row:
    """Return the row of several strips, with a check if this process has the whole plate."""
    counted = stepped(cut, kernels, plate)
    after = cut.collect(plate)
    sent = 2 * (cut.count - 1) * 4 * cut.columns
    values: dict[str, Value] = {}
    if not timing.available():
        values = {"strips": cut.count, **counted, "bytes sent": sent * STEPS}
    return Row(name, values, None if after is None else compare(f"{name}: equal to one strip, bit for bit", after, one))


def stepped(cut: Cut, kernels: Sequence[str], plate: Floats) -> dict[str, Value]:
    """Take the steps, and return the counters of the kernels of this process."""
    cut.fill(plate)

    def work() -> None:
        take_steps(cut, STEPS, kernels)
        wait_for(cut.devices)

    return counters.count(work, EXPLAINED_BY)


def timed(
    rows: Sequence[Row], right: Set[str], device: cuda.Device, make: Maker, size: int, limit: Limit
) -> tuple[list[Row], list[Picture]]:
    """Add the times of large plates to the rows that are right.

    If the overlapped strips are right, also add the time of their exchange and a row for a plate with more rows, and
    draw a few of their steps.
    """
    columns = size // 4 * 4
    nbytes = 2 * 4 * size * columns
    found = {row.name: row for row in rows}
    pictures: list[Picture] = []

    def per_step(cut: Cut, kernels: Sequence[str], *, exchange: bool = True) -> float:
        work = partial(take_steps, cut, 2, kernels, exchange=exchange)
        return mean_ms(work, cut.devices, cut.ranks) / 2

    def values(ms: float, workers: int, share: int = 1) -> dict[str, Value]:
        rates = timing.rates(ms, share * nbytes, replace(limit, rate=limit.rate and workers * limit.rate))
        return {**rates, "efficiency": share * alone / workers / ms} if alone else rates

    def add(name: str, more: Mapping[str, Value]) -> None:
        row = found.get(name, Row(name))
        found[name] = replace(row, values={**row.values, **more})

    alone = per_step(Strips([device], size, columns), SEQUENTIAL) if ONE in right else None
    if alone:
        add(ONE, values(alone, 1))
    cut = make(size, columns)
    count, workers = cut.count, cut.workers
    ms = {name: per_step(cut, kernels) for name, kernels in WAYS.items() if name in right}
    for name, of_step in ms.items():
        add(name, values(of_step, workers))
    if "overlapped" in ms:
        without = per_step(cut, OVERLAPPED, exchange=False)
        exchange = mean_ms(partial(cut.exchange, 0), cut.devices, cut.ranks)
        add("overlapped", {"hidden": min(1.0, 1 - (ms["overlapped"] - without) / exchange)})
        add("exchange alone", {"ms": exchange})
        pictures.append(drawn(cut))
        del cut  # the memory is needed
        longer = make((size - 2) * count + 2, columns)
        add("larger plate", values(per_step(longer, OVERLAPPED), workers, count))
    return list(found.values()), pictures


def without_waits() -> str:
    """Step the strips of two devices without waiting for their halos."""
    plate = make_plate(100, 100)
    cut = Strips(cuda.devices(), *plate.shape)
    cut.fill(plate)
    take_steps(cut, STEPS, SEQUENTIAL, waits=False)
    wait_for(cut.devices)
    wrong = int(np.count_nonzero(np.abs(cut.collect(plate) - reference(plate, STEPS)) > 1e-6))
    return f"{wrong} of {plate.size} cells were computed from a stale halo." if wrong else ""


def drawn(cut: Cut) -> Timeline:
    """Return the spans in which the first strip computed and sent in a few overlapped steps."""
    strip = cut.strips[0]
    spans: dict[str, list[tuple[cuda.Event, cuda.Event]]] = {"compute": [], "copies": []}
    wait_for(cut.devices)
    with strip.device:
        begin = strip.compute.record()
        for number in range(DRAWN_STEPS):
            strip.written, strip.sent = cuda.Event(), cuda.Event()
            start = strip.compute.record()
            for each in cut.strips:
                each.step(number % 2, OVERLAPPED)
            spans["compute"].append((start, strip.compute.record()))
            cut.exchange(1 - number % 2)
            spans["copies"].append((strip.written, strip.sent))
        wait_for(cut.devices)
        lanes = {lane: [(start - begin, end - begin) for start, end in pairs] for lane, pairs in spans.items()}
    return Timeline("overlap", lanes)
