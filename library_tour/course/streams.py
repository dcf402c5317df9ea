"""Overlap copies and kernels with streams; see the effects of queueing order, default streams and priorities.

On the simulator, which checks results but does not measure time:

    $ library-tour run streams
    streams: Overlap of copies and kernels, default streams, priorities
    size 16,387: elements to copy in, compute and copy out
                              check
    ───────────────────────────────
    1 stream                  right
    2 streams, depth-first    right
    2 streams, breadth-first  right
    4 streams, depth-first    right
    4 streams, breadth-first  right
    A model of 8 pieces, in which each copy and each kernel takes one unit:
                              1 engine  2 engines
    ─────────────────────────────────────────────
    1 stream                        24         24
    2 streams, depth-first          24         13
    2 streams, breadth-first        16         13
    4 streams, depth-first          24         10
    4 streams, breadth-first        16         10
    Two kernels in two streams; the second reads what the first writes:
                                     check
    ───────────────────────────────────────
    stream, then legacy default      right
    legacy default, then stream      right
    per-thread default, then legacy  right
    non-blocking, with a wait        right
    non-blocking, then legacy        caught
    stream, then per-thread default  caught
    non-blocking, then legacy: the second kernel read stale values.
    kernel spin at kernels/streams.cu:29: race: it writes 4 bytes of global memory
    at 0x7f… (0 bytes into the 4096-byte allocation at 0x7f…,
    allocated at library_tour/course/streams.py:281), which kernel spin in another
    stream, block (0, 0, 0), thread (0, 0, 0) read at kernels/streams.cu:29, and
    nothing orders the two accesses, this one in stream 0x5… and the other in
    the legacy default stream: use the same stream for both (stream=s), or make one
    stream wait for the other; block (0, 0, 0), thread (0, 0, 0), instruction
    'st.global.u32 [%rd14], %r49'
        29 | out[i] = generated(in[i], a, c, steps);
    stream, then per-thread default: the second kernel read stale values.
    kernel spin at kernels/streams.cu:29: race: it writes 4 bytes of global memory
    at 0x7f… (0 bytes into the 4096-byte allocation at 0x7f…,
    allocated at library_tour/course/streams.py:281), which kernel spin in another
    stream, block (0, 0, 0), thread (0, 0, 0) read at kernels/streams.cu:29, and
    nothing orders the two accesses, this one in stream 0x5… and the other in
    the per-thread default stream: use the same stream for both (stream=s), or make
    one stream wait for the other; block (0, 0, 0), thread (0, 0, 0), instruction
    'st.global.u32 [%rd14], %r49'
        29 | out[i] = generated(in[i], a, c, steps);
    Kernels of 4 blocks, small enough to run side by side:
                          kernels  check
    ────────────────────────────────────
    8 kernels, 1 stream         8  right
    8 kernels, 8 streams        8  right
    A short kernel, queued after one that fills the device:
                      priority  check
    ─────────────────────────────────
    lowest priority          0  right
    highest priority        -5  right
    The model has either one copy engine or one per direction. An engine executes
    its work in the order in which it was queued. With one engine, depth-first order
    queues each piece's copy-out ahead of the next piece's copy-in, so the next
    copy-in must also wait for the current piece's kernel. Breadth-first order
    avoids this wait. With two engines, which data-centre GPUs have, both orders
    take the same time. Three stages need at least three streams: with two streams,
    each stage is idle for more than a third of the total time in the model. In the
    model's timeline, every operation takes the same time.
    Ordinary streams wait for work queued earlier in the legacy default stream, and
    vice versa. The same is true of the per-thread default stream and the legacy
    one. A non-blocking stream does not wait for any other stream, and the
    per-thread default stream waits only for the legacy one. With nvcc
    --default-stream=per-thread, launches that do not specify a stream go to the
    per-thread default stream.
    When running blocks finish, blocks from the stream with the higher priority
    start first. Running blocks are never interrupted.
    If the `nvtx` extra is installed, each order and each stage runs in its own NVTX
    range. Nsight Systems shows the ranges above the copies and kernels: nsys
    profile -t cuda,nvtx -o streams library-tour run streams, then nsys-ui
    streams.nsys-rep. Nsight Compute profiles the kernels in one range: ncu --nvtx
    --nvtx-include "kernel/" library-tour run streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare
from ..device_code import blocks_for, load
from ..pipeline import DEPTH, ORDERS, Operation, issued, modelled, spans
from ..stop import Check, Limit, Picture, Points, Result, Row, Size, Timeline, Value
from ..variants import Variant, measure
from ..wrong import all_shown_wrong

TITLE = "Overlap of copies and kernels, default streams, priorities"
SIZE = Size("elements to copy in, compute and copy out", full=2**28, small=2**14 + 3)
# The constants of the generator (Numerical Recipes), and the number of steps in a check.
A, C, STEPS = 1664525, 1013904223, 4
BLOCK, CHECKED, PIECES, MODEL_PIECES = 256, 2**14 + 3, 64, 8
WAYS = {
    "1 stream": (1, DEPTH),
    **{f"{streams} streams, {order}": (streams, order) for streams in (2, 4) for order in ORDERS},
}
ENGINES = {1: "1 engine", 2: "2 engines"}
SLOWEST = "the slowest of the three stages, measured alone"
TRIED_STEPS = 256  # timed on a GPU to choose the steps of its kernels
# The kernels take this many times as long as the copies in one direction, so that they can hide the copies.
LONGER = 1.5
# Kernels that run concurrently: blocks, streams, elements, and the milliseconds that each takes on a GPU.
BLOCKS, SIDE_BY_SIDE, SPIN_NUMBERS, SPIN_MS = 4, 8, 1024, 1.0
# Clock cycles of a dependent multiply-add, to choose the steps of such a kernel.
CLOCKS = 4

Numbers = NDArray[np.uint32]
Work = Callable[[], object]


def reference(numbers: Numbers, steps: int) -> Numbers:
    """Return the elements after `steps` steps of the generator, in 64-bit arithmetic modulo 2^32."""
    now = numbers.astype(np.uint64)
    for _ in range(steps):
        now = (A * now + C) % 2**32
    return now.astype(np.uint32)


class Pieces:
    """An array in pinned memory that is copied in, processed and copied out in pieces."""

    def __init__(self, host: Numbers, steps: int) -> None:
        self.kernel = load("streams")["generate"]
        self.steps = steps
        self.source, self.target = (cuda.pinned_empty(host.size, np.uint32) for _ in range(2))
        self.source[:] = host
        self.on_device = cuda.empty(host.size, np.uint32)
        self.streams = [cuda.Stream() for _ in range(4)]

    def queue(self, operation: Operation, pieces: int) -> None:
        """Queue one operation of a piece in its stream."""
        length = blocks_for(self.source.size, pieces)
        piece = slice(operation.piece * length, min((operation.piece + 1) * length, self.source.size))
        part, stream = self.on_device[piece], self.streams[operation.stream]
        if not part.size:
            return
        if operation.stage == "copy in":
            cuda.memcpy(part, self.source[piece], stream=stream)
        elif operation.stage == "kernel":
            self.kernel[blocks_for(part.size, BLOCK), BLOCK, 0, stream](part, A, C, self.steps, part.size)
        else:
            cuda.memcpy(self.target[piece], part, stream=stream)

    def run(self, order: str, streams: int, pieces: int) -> None:
        """Queue all pieces in the given order, in an NVTX range that is named after the order."""
        with cuda.nvtx_range(f"{order}, {streams} streams"):
            for operation in issued(order, streams, pieces):
                self.queue(operation, pieces)

    def stage(self, name: str, pieces: int) -> None:
        """Queue one stage of all pieces in one stream."""
        with cuda.nvtx_range(name):
            for piece in range(pieces):
                self.queue(Operation(name, piece, 0), pieces)

    def timeline(self, order: str, streams: int, pieces: int) -> dict[str, list[tuple[float, float]]]:
        """Queue all pieces between events; return the spans in which each stage was active, in milliseconds.

        An operation begins when its stream reaches it, but not before the previous one of its stage has ended.
        """
        cuda.current_device().synchronize()
        begin = cuda.legacy_default.record()
        marks = []
        for operation in issued(order, streams, pieces):
            start = self.streams[operation.stream].record()
            self.queue(operation, pieces)
            marks.append((operation, start, self.streams[operation.stream].record()))
        cuda.current_device().synchronize()
        return spans((operation, start - begin, end - begin) for operation, start, end in marks)

    def clear(self) -> None:
        """Set the elements on the device to zero."""
        cuda.memset(self.on_device, 0)


def run(device: cuda.Device, size: int) -> Result:
    """Overlap copies and kernels in several orders; then show default streams, concurrent kernels and priorities."""
    host = np.random.default_rng().integers(0, 2**32, min(size, CHECKED), np.uint32)
    few = Pieces(host, STEPS)
    many, limit = few, Limit(SLOWEST)
    if timing.available():
        many = Pieces(np.resize(host, size), STEPS)
        limit = fit_steps(many)
    rows = measure(overlapping(few, many, host), limit)
    tables = {
        f"A model of {MODEL_PIECES} pieces, in which each copy and each kernel takes one unit:": model_rows(),
        "Two kernels in two streams; the second reads what the first writes:": ordered_rows(),
        f"Kernels of {BLOCKS} blocks, small enough to run side by side:": measure(side_by_side(device, host), None),
        "A short kernel, queued after one that fills the device:": priority_rows(few, many, host),
    }
    return Result(rows, limit, pictures=pictures(many), notes=notes(), tables=tables)


def fit_steps(many: Pieces) -> Limit:
    """Set the kernels' steps so that they take longer than the copies; return the rate of the slowest stage alone."""

    def alone(stage: str) -> float:
        return timing.fresh_ms(many.clear, partial(many.stage, stage, PIECES))

    copying = max(alone("copy in"), alone("copy out"))
    many.steps = TRIED_STEPS
    many.steps = max(1, round(TRIED_STEPS * LONGER * copying / alone("kernel")))
    return Limit(SLOWEST, rate=1e-6 * many.source.nbytes / max(copying, alone("kernel")))


def overlapping(few: Pieces, many: Pieces, host: Numbers) -> list[Variant]:
    """Return one variant per order, with one, two and four streams."""

    def launch(order: str, streams: int) -> Work:
        def copy_compute_copy() -> None:
            few.run(order, streams, MODEL_PIECES)
            cuda.current_device().synchronize()  # the elements are in host memory

        return copy_compute_copy

    return [
        Variant(
            name=name,
            launch=launch(order, streams),
            output=few.target,
            expected=reference(host, STEPS),
            before=many.clear,
            timed=partial(many.run, order, streams, PIECES),
            amount=many.source.nbytes,
        )
        for name, (streams, order) in WAYS.items()
    ]


def model_rows() -> list[Row]:
    """Return one row per order with the time that it takes in the model, with one copy engine and with two."""
    return [
        Row(name, {ENGINES[engines]: whole(order, streams, engines) for engines in ENGINES})
        for name, (streams, order) in WAYS.items()
    ]


def whole(order: str, streams: int, engines: int) -> int:
    """Return the time at which the model finishes copying out the last piece; one operation takes one unit."""
    return round(modelled(issued(order, streams, MODEL_PIECES), engines)["copy out"][-1][1])


def pictures(many: Pieces) -> list[Picture]:
    """Draw both orders in the model with one engine, where each operation takes one unit, and as a GPU ran them."""

    def lanes(work: Callable[[str], Mapping[str, Points]]) -> dict[str, Points]:
        return {f"{order}: {stage}": points for order in ORDERS for stage, points in work(order).items()}

    model = lanes(lambda order: modelled(issued(order, 4, MODEL_PIECES), 1))
    drawn: list[Picture] = [Timeline("model-one-engine", model, "operations")]
    if timing.available():
        for streams in (2, 4):
            taken = lanes(partial(many.timeline, streams=streams, pieces=MODEL_PIECES))
            drawn.append(Timeline(f"{streams}-streams", taken))
    return drawn


class Chain:
    """A long kernel that writes an array in one stream, and a short one that reads it in another."""

    def __init__(self) -> None:
        self.host = np.random.default_rng().integers(0, 2**32, SPIN_NUMBERS, np.uint32)
        self.kernel = load("streams")["spin"]
        self.steps = spin_steps(cuda.current_device())
        self.first = cuda.to_device(self.host)
        self.middle, self.last = cuda.zeros(SPIN_NUMBERS, np.uint32), cuda.zeros(SPIN_NUMBERS, np.uint32)
        cuda.current_device().synchronize()

    def queue(self, writer: cuda.Stream, reader: cuda.Stream, *, wait: bool = False) -> None:
        """Queue both kernels; with `wait`, the second stream waits for the first one."""
        grid = (BLOCKS, BLOCK, 0)
        self.kernel[*grid, writer](self.first, self.middle, A, C, self.steps, SPIN_NUMBERS)
        if wait:
            reader.wait(writer)
        self.kernel[*grid, reader](self.middle, self.last, A, C, 1, SPIN_NUMBERS)

    def result(self) -> Numbers:
        """Wait for all work, and return what the second kernel wrote."""
        cuda.current_device().synchronize()
        return self.last.to_host()


def spin_steps(device: cuda.Device) -> int:
    """Return the number of steps that take about a millisecond, or a few if nothing is timed."""
    if not timing.available():
        return STEPS
    return round(1e-3 * SPIN_MS * 1e3 * device.properties.clock_rate / CLOCKS)


def ahead(host: Numbers, steps: int) -> Numbers:
    """Return the elements after any number of steps, computed as one step with different constants."""
    factor, term = 1, 0
    for _ in range(steps):
        factor, term = factor * A % 2**32, (term * A + C) % 2**32
    return ((factor * host.astype(np.uint64) + term) % 2**32).astype(np.uint32)


def ordered_rows() -> list[Row]:
    """Check the pairs of streams that CUDA orders, and let the simulator report those that CUDA does not order."""
    legacy, per_thread = cuda.legacy_default, cuda.per_thread_default
    pairs = {
        "stream, then legacy default": (cuda.Stream(), legacy, False),
        "legacy default, then stream": (legacy, cuda.Stream(), False),
        "per-thread default, then legacy": (per_thread, legacy, False),
        "non-blocking, with a wait": (cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True), True),
    }
    rows = []
    for name, (writer, reader, wait) in pairs.items():
        chain = Chain()
        chain.queue(writer, reader, wait=wait)
        rows.append(Row(name, check=compare(f"{name}: in order", chain.result(), ahead(chain.host, chain.steps + 1))))
    wrong = {"non-blocking, then legacy": non_blocking, "stream, then per-thread default": per_thread_default}
    return rows + all_shown_wrong(wrong)


def non_blocking() -> str:
    """Write in a non-blocking stream, and read in the legacy default stream."""
    return unordered(cuda.Stream(non_blocking=True), cuda.legacy_default)


def per_thread_default() -> str:
    """Write in an ordinary stream, and read in the per-thread default stream."""
    return unordered(cuda.Stream(), cuda.per_thread_default)


def unordered(writer: cuda.Stream, reader: cuda.Stream) -> str:
    """Queue both kernels without a wait; the driver warns of the race even if the result happens to be right."""
    chain = Chain()
    chain.queue(writer, reader)
    right = np.array_equal(chain.result(), ahead(chain.host, chain.steps + 1))
    return "" if right else "the second kernel read stale values."


def side_by_side(device: cuda.Device, host: Numbers) -> list[Variant]:
    """Return two variants that run several small kernels: all in one stream, and each in its own stream."""
    kernel, steps = load("streams")["spin"], spin_steps(device)
    numbers = np.resize(host, SPIN_NUMBERS)
    given, out = cuda.to_device(numbers), cuda.empty((SIDE_BY_SIDE, SPIN_NUMBERS), np.uint32)

    def launch(streams: list[cuda.Stream]) -> Work:
        def all_kernels() -> None:
            for number in range(SIDE_BY_SIDE):
                stream = streams[number % len(streams)]
                kernel[BLOCKS, BLOCK, 0, stream](given, out[number], A, C, steps, SPIN_NUMBERS)

        return all_kernels

    return [
        Variant(
            name=f"{SIDE_BY_SIDE} kernels, {count} stream{'s' if count > 1 else ''}",
            launch=launch([cuda.Stream() for _ in range(count)]),
            output=out,
            expected=np.tile(ahead(numbers, steps), (SIDE_BY_SIDE, 1)),
            columns={"kernels": SIDE_BY_SIDE},
        )
        for count in (1, SIDE_BY_SIDE)
    ]


def priority_rows(few: Pieces, many: Pieces, host: Numbers) -> list[Row]:
    """Queue a short kernel after a long one that fills the device, once at each of two priorities."""
    least, greatest = cuda.check(cuda.raw.cuCtxGetStreamPriorityRange())
    rows = []
    for name, priority in {"lowest priority": least, "highest priority": greatest}.items():
        low, other = cuda.Stream(priority=least), cuda.Stream(priority=priority)
        numbers = np.resize(host, SPIN_NUMBERS)
        given, out = cuda.to_device(numbers), cuda.zeros(SPIN_NUMBERS, np.uint32)
        cuda.current_device().synchronize()
        start = low.record()
        count = many.on_device.size
        few.kernel[blocks_for(count, BLOCK), BLOCK, 0, low](many.on_device, A, C, many.steps, count)
        few.kernel.module["spin"][BLOCKS, BLOCK, 0, other](given, out, A, C, STEPS, SPIN_NUMBERS)
        short, long = other.record(), low.record()
        cuda.current_device().synchronize()
        check = compare(f"{name}: the result of the short kernel", out.to_host(), reference(numbers, STEPS))
        if check.holds:
            check = Check("the stream has the priority that it was created with", other.priority == priority)
        values: dict[str, Value] = {"priority": other.priority}
        if timing.available() and check.holds:
            values = {**values, "ms": short - start, "ms, long kernel": long - start}
        rows.append(Row(name, values, check))
    return rows


def notes() -> list[str]:
    """Return what the tables show."""
    return [
        "The model has either one copy engine or one per direction. An engine executes its work in the order in which "
        "it was queued. With one engine, depth-first order queues each piece's copy-out ahead of the next piece's "
        "copy-in, so the next copy-in must also wait for the current piece's kernel. Breadth-first order avoids this "
        "wait. With two engines, which data-centre GPUs have, both orders take the same time. Three stages need at "
        "least three streams: with two streams, each stage is idle for more than a third of the total time in the "
        "model. In the model's timeline, every operation takes the same time.",
        "Ordinary streams wait for work queued earlier in the legacy default stream, and vice versa. The same is true "
        "of the per-thread default stream and the legacy one. A non-blocking stream does not wait for any other "
        "stream, and the per-thread default stream waits only for the legacy one. With nvcc "
        "--default-stream=per-thread, launches that do not specify a stream go to the per-thread default stream.",
        "When running blocks finish, blocks from the stream with the higher priority start first. Running blocks are "
        "never interrupted.",
        "If the `nvtx` extra is installed, each order and each stage runs in its own NVTX range. Nsight Systems shows "
        "the ranges above the copies and kernels: nsys profile -t cuda,nvtx -o streams library-tour run streams, then "
        "nsys-ui streams.nsys-rep. Nsight Compute profiles the kernels in one range: ncu --nvtx --nvtx-include "
        '"kernel/" library-tour run streams.',
    ]
