"""Simulate heat diffusion on a plate, and write frames to a file while the next steps run.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run heat
    heat: Heat diffusion, overlapped with writing frames
    size 256: rows and columns of the plate
    counters: measured over 255 x 260 cells and 4 steps
                            cells   loads  load efficiency  instructions  check
    ────────────────────────────────────────────────────────────────────────────
    one thread                176   2,720           12.5 %        30,092  right
    one block               4,284   2,616           81.8 %        25,328  right
    many blocks            66,300  41,184           82.9 %     2,691,584  right
    one thread per cell    66,300  45,612           83.7 %       486,180  right
    shared-memory tile     66,300  12,436           65.1 %     1,060,572  right
    four cells, down rows  66,300  11,168           60.3 %       218,172  right
    asymmetry check                                                       right
    no bounds test                                                        caught
    check, no bounds test                                                 caught
    no bounds test: cuMemcpyDtoHAsync: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)
    kernel heat_unbounded at kernels/heat.cu:28: a global read of 4 bytes at
    0x7f… is out of bounds: 0 bytes after the end of the 40000-byte
    allocation at 0x7f…, allocated at library_tour/course/heat.py:225;
    block (0, 12, 0), thread (0, 4, 0), instruction 'ld.global.f32 %f13, [%rd3]'
        28 | if (row == 0 || row == rows - 1 || column == 0 || column == columns -
    1)
    check, no bounds test: cuStreamSynchronize: an illegal memory access was encountered
    (CUDA_ERROR_ILLEGAL_ADDRESS)
    kernel asymmetry_unbounded at kernels/heat.cu:97: a global read of 4 bytes at
    0x7f… is out of bounds: 0 bytes after the end of the 40000-byte
    allocation at 0x7f…, allocated at library_tour/course/heat.py:212;
    block (0, 0, 0), thread (100, 0, 0), instruction 'ld.global.f32 %f2, [%rd7]'
        97 | float difference = fabsf(plate[column] - plate[size_t(rows - 1) *
    columns + column]);
    The asymmetry check prints the columns in which the first and the last row
    differ by more than 0.1. A plate that equals its mirror image has none. Without
    its bounds check, the kernel reads memory beyond the plate.
    The launches of one thread and of one block process smaller plates, as the
    'cells' column shows. Compare their rates, and their counters per cell, with
    those in the other rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, on_host
from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..printing import printed
from ..stop import Check, Film, Picture, Result, Row, Size, Timeline
from ..variants import Variant, measure
from ..wrong import all_shown_wrong

TITLE = "Heat diffusion, overlapped with writing frames"
SIZE = Size("rows and columns of the plate", full=16384, small=256, least=16)
RATE = 0.2
STEPS = 4  # in a check; even, so that the result is in the first copy
CHECKED = 1000
ROWS = "heat_rows<2>"
ENDS_BLOCK = 256
EXPLAINED_BY = ("loads", "load efficiency", "instructions")
# If nothing is timed, there are FRAME_STEPS steps between two frames.
FRAMES, FRAME_STEPS, FILM_CELLS = 24, 8, 256
CARPETS = 4  # sizes of hot squares, each a third of the previous one

Floats = NDArray[np.float32]


class Way(NamedTuple):
    """A kernel, the threads and cells of a block in x and y, its grid if it is fixed, and its largest plates."""

    kernel: str
    block: tuple[int, int]
    cells: tuple[int, int] = (0, 0)
    blocks: int = 0
    checked: int = CHECKED
    timed: int = SIZE.full


WAYS = {
    "one thread": Way("heat_strided", (1, 1), blocks=1, checked=12, timed=256),
    "one block": Way("heat_strided", (256, 1), blocks=1, checked=64, timed=2048),
    "many blocks": Way("heat_strided", (256, 1), blocks=4096),
    "one thread per cell": Way("heat_cells", (32, 8), (32, 8)),
    "shared-memory tile": Way("heat_tiled", (32, 8), (32, 8)),
    "four cells, down rows": Way(ROWS, (64, 4), (256, 8)),
}


def make_plate(rows: int, columns: int) -> Floats:
    """Return a cold plate with hot squares of several sizes, a Sierpinski carpet, equal to its mirror images."""
    # The distances from the middle, 1 at the edge; then from the middles of ever smaller thirds.
    across, along = (np.abs(2 * np.arange(cells) + 1 - cells) / cells for cells in (rows, columns))
    hot = np.zeros((rows, columns), bool)
    for _ in range(CARPETS):
        hot |= np.outer(across < 1 / 3, along < 1 / 3)
        across, along = (np.where(place < 1 / 3, 3 * place, np.abs(3 * place - 2)) for place in (across, along))
    return hot.astype(np.float32)


def reference(plate: Floats, steps: int) -> Floats:
    """Return the plate after `steps` steps, computed in double precision."""
    now = plate.astype(np.float64)
    for _ in range(steps):
        inside = now[1:-1, 1:-1]
        around = now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1]
        now[1:-1, 1:-1] = inside + RATE * (around - 4 * inside)
    return now.astype(np.float32)


def stepper(
    module: cuda.Module, way: Way, plates: list[cuda.DeviceArray], stream: cuda.Stream
) -> Callable[[int], None]:
    """Return a function that queues steps from the first plate to the second and back."""
    rows, columns = plates[0].shape
    grid = (blocks_for(columns, way.cells[0]), blocks_for(rows, way.cells[1])) if way.cells[0] else way.blocks
    kernel = module[way.kernel][grid, way.block, 0, stream]
    forward_and_back = [kernel.bind(*plates, rows, columns, RATE), kernel.bind(*plates[::-1], rows, columns, RATE)]

    def step(count: int) -> None:
        for number in range(count):
            forward_and_back[number % 2]()

    return step


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on a small plate and time one step of a large one; then write a film of a plate."""
    module = load("heat", names=[ROWS])
    limit = copy_limit(device)
    large = [cuda.zeros(size**2, np.float32) for _ in range(2)]
    variants = [make_variant(module, name, way, size, large) for name, way in WAYS.items()]
    rows = measure(variants, limit, EXPLAINED_BY)
    rows.append(asymmetry_row(module, on_host(variants[-1].output)))
    rows += all_shown_wrong({"no bounds test": without_bounds, "check, no bounds test": check_without_bounds})
    mirrored = [asymmetry(variant) for variant in variants]
    more, checks, pictures = film(device, module, max(16, size // 4))
    notes = [
        "The asymmetry check prints the columns in which the first and the last row differ by more than 0.1. A plate "
        "that equals its mirror image has none. Without its bounds check, the kernel reads memory beyond the plate.",
        "The launches of one thread and of one block process smaller plates, as the 'cells' column shows. Compare "
        "their rates, and their counters per cell, with those in the other rows.",
    ]
    few_rows, few_columns = variants[-1].output.shape
    return Result(
        [*rows, *more],
        limit,
        [*mirrored, *checks],
        pictures,
        notes,
        counted=f"{few_rows} x {few_columns} cells and {STEPS} steps",
    )


def make_variant(module: cuda.Module, name: str, way: Way, size: int, large: list[cuda.DeviceArray]) -> Variant:
    """Return a variant that is checked on small plates, not made of whole blocks, and timed on large ones."""
    few, many = min(size, way.checked), min(size, way.timed) // 4 * 4
    plate = make_plate(few - 1, few // 4 * 4 + 4)
    plates = [cuda.to_device(plate), cuda.to_device(plate)]
    step = stepper(module, way, plates, cuda.legacy_default)
    large_step = stepper(module, way, [both[: many**2].reshape(many, many) for both in large], cuda.legacy_default)

    def prepare() -> None:
        for array in plates:
            array.copy_from(plate)

    return Variant(
        name=name,
        prepare=prepare,
        launch=lambda: step(STEPS),
        output=plates[0],
        expected=reference(plate, STEPS),
        tolerance=1e-6,
        timed=lambda: large_step(1),
        amount=2 * 4 * many**2,
        columns={"cells": many**2 if timing.available() else plate.size},
    )


def asymmetry(variant: Variant) -> Check:
    """Check that the plate from the variant equals its mirror image, bit for bit."""
    cooled = on_host(variant.output)
    return compare(f"{variant.name}: the plate equals its mirror image", cooled, cooled[::-1, ::-1])


def asymmetry_row(module: cuda.Module, plate: Floats) -> Row:
    """Check that the kernel finds no difference in a symmetric plate, and finds three cells that are made hot."""
    spoiled = plate.copy()
    columns = sorted({0, plate.shape[1] // 3, plate.shape[1] - 1})
    spoiled[0, columns] += 1
    lines = [printed(partial(check_asymmetry, module["asymmetry"], each)) for each in (plate, spoiled)]
    found = np.array([int(line.split()[1].rstrip(":")) for line in lines[1]])
    check = compare("the kernel prints the columns that differ, and no others", np.sort(found), np.array(columns))
    quiet = Check("the kernel finds no difference where there is none", not lines[0], "; ".join(lines[0][:3]))
    return Row("asymmetry check", check=check if quiet.holds else quiet)


def check_asymmetry(kernel: cuda.Kernel, plate: Floats) -> None:
    """Let a kernel print the columns in which the first and the last row of a plate differ."""
    array = cuda.to_device(plate)
    kernel[blocks_for(array.shape[1], ENDS_BLOCK), ENDS_BLOCK](array, *array.shape)


def check_without_bounds() -> str:
    """Check a plate that is not made of whole blocks with the kernel without a bounds test."""
    check_asymmetry(load("heat", names=[ROWS])["asymmetry_unbounded"], make_plate(100, 100))
    cuda.legacy_default.synchronize()
    return ""


def without_bounds() -> str:
    """Step a plate that is not made of whole blocks with the kernel without a bounds test."""
    plates = [cuda.to_device(make_plate(100, 100)) for _ in range(2)]
    stepper(load("heat", names=[ROWS]), Way("heat_unbounded", (32, 8), (32, 8)), plates, cuda.legacy_default)(1)
    after = plates[1].to_host()
    return "" if np.array_equal(after, after[::-1, ::-1]) else "the plate no longer equals its mirror image."


@dataclass
class Camera:
    """A plate that takes steps in one stream while its last frame is copied out in another and written.

    A frame goes to a staging copy on the device first, so that the next steps can run, and then to pinned memory.
    """

    module: cuda.Module
    plate: Floats
    steps: int
    film: list[Floats] = field(default_factory=list)
    spans: dict[str, list[tuple[cuda.Event, cuda.Event]]] = field(default_factory=dict)
    written: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.compute, self.copies = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
        self.plates = [cuda.to_device(self.plate), cuda.to_device(self.plate)]
        self.staging, self.pinned = cuda.to_device(self.plate), cuda.pinned_empty(self.plate.shape, np.float32)
        # The steps are one graph, because a stream can queue fewer launches than there are steps between frames.
        step = stepper(self.module, WAYS["four cells, down rows"], self.plates, self.compute)
        with self.compute.capture() as graph:
            step(self.steps)
        self.advance = graph.instantiate()
        cuda.current_device().synchronize()

    def take_steps(self, after: cuda.Event | None = None) -> cuda.Event:
        """Queue the steps to the next frame and, after an event, its copy to the staging plate."""
        start = self.compute.record()
        self.advance.launch(self.compute)
        if after is not None:
            self.compute.wait(after)
        cuda.memcpy(self.staging, self.plates[0], stream=self.compute)
        return self._spanned("compute", start, self.compute)

    def copy_out(self, after: cuda.Event | None = None) -> cuda.Event:
        """Queue the copy of the frame from the staging plate to pinned memory, after an event."""
        if after is not None:
            self.copies.wait(after)
        start = self.copies.record()
        cuda.memcpy(self.pinned, self.staging, stream=self.copies)
        return self._spanned("copy", start, self.copies)

    def _spanned(self, lane: str, start: cuda.Event, stream: cuda.Stream) -> cuda.Event:
        end = stream.record()
        self.spans.setdefault(lane, []).append((start, end))
        return end

    def write(self, file: IO[bytes], copied: cuda.Event) -> None:
        """Wait until the frame is in pinned memory and write it; keep a smaller copy for the film."""
        copied.synchronize()
        start = time.perf_counter()
        self.pinned.tofile(file)
        self.written.append((start, time.perf_counter()))
        coarse = max(1, max(self.plate.shape) // FILM_CELLS)
        self.film.append(self.pinned[::coarse, ::coarse].copy())

    def write_again(self, file: IO[bytes], frames: int) -> None:
        """Write the same frame several times, with no steps in between."""
        for _ in range(frames):
            self.write(file, self.copy_out())

    def one_after_the_other(self, file: IO[bytes], frames: int) -> None:
        """Write frames without overlap: compute, copy and write one after another."""
        for _ in range(frames):
            self.write(file, self.copy_out(self.take_steps()))

    def overlapped(self, file: IO[bytes], frames: int) -> None:
        """Write frames while the next ones are computed."""
        copied: cuda.Event | None = None
        for _ in range(frames):
            staged = self.take_steps(copied)
            if copied is not None:
                self.write(file, copied)
            copied = self.copy_out(staged)
        if copied is not None:
            self.write(file, copied)

    def timeline(self, begin: cuda.Event, begin_seconds: float) -> Timeline:
        """Return the spans of time, in milliseconds from the beginning, in which each stream and the host worked."""
        lanes = {lane: [(start - begin, end - begin) for start, end in spans] for lane, spans in self.spans.items()}
        lanes["write"] = [(1e3 * (start - begin_seconds), 1e3 * (end - begin_seconds)) for start, end in self.written]
        return Timeline("overlap", lanes)


def film(device: cuda.Device, module: cuda.Module, size: int) -> tuple[list[Row], list[Check], list[Picture]]:
    """Write a film of a plate, one stage after another and overlapped; return rows, checks and pictures."""
    plate = make_plate(size // 4 * 4, size // 4 * 4)
    steps = FRAME_STEPS
    with tempfile.TemporaryFile() as file:
        if timing.available():
            steps = steps_to_fill(Camera(module, plate, FRAME_STEPS), file)

        def host_ms(work: Callable[[], object]) -> float:
            device.synchronize()
            file.seek(0)
            start = time.perf_counter()
            work()
            device.synchronize()
            return 1e3 * (time.perf_counter() - start)

        # The first run extends the file to its full length, so that no later run pays for it.
        waiting, busy, overlapping = (Camera(module, plate, steps) for _ in range(3))
        host_ms(lambda: busy.one_after_the_other(file, FRAMES))
        ms = {
            "steps": host_ms(lambda: [busy.take_steps() for _ in range(FRAMES)]),
            "writing": host_ms(lambda: busy.write_again(file, FRAMES)),
            "one after another": host_ms(lambda: waiting.one_after_the_other(file, FRAMES)),
        }
        begin, begin_seconds = overlapping.compute.record(), time.perf_counter()
        ms["overlapped"] = host_ms(lambda: overlapping.overlapped(file, FRAMES))
        file.seek(0)
        shape = (FRAMES, *plate.shape)
        last = np.fromfile(file, np.float32, offset=4 * (FRAMES - 1) * plate.size).reshape(shape[1:])
    captions = [f"after {steps * (frame + 1):,} steps" for frame in range(FRAMES)]
    pictures: list[Picture] = [Film("frames", overlapping.film, captions, "temperature; the hot squares start at 1")]
    checks = [
        compare(
            "overlapped frames equal those written one after another",
            np.array(overlapping.film),
            np.array(waiting.film),
        ),
        compare("the file ends with the last frame", last, overlapping.pinned),
    ]
    if not timing.available():
        return [], checks, pictures
    longer = max(ms["steps"], ms["writing"])
    rows = [Row(f"film: {name}", {"ms": value}) for name, value in ms.items()]
    note = f"takes {ms['overlapped'] / longer:.3f} times as long as the steps or the writing alone, whichever is longer"
    rows[-1] = Row(
        rows[-1].name,
        rows[-1].values,
        note=f"{note} ({FRAMES} frames of {plate.shape[0]} x {plate.shape[1]} cells, {steps} steps each)",
    )
    return rows, checks, [*pictures, overlapping.timeline(begin, begin_seconds)]


def steps_to_fill(camera: Camera, file: IO[bytes]) -> int:
    """Return an even number of steps that takes 1.5 times as long as copying and writing a frame."""
    for _ in range(2):
        start = time.perf_counter()
        camera.write(file, camera.copy_out())
        writing = time.perf_counter() - start
    step = 1e-3 * timing.median_ms(lambda: camera.advance.launch(camera.compute), camera.compute) / camera.steps
    return max(2, round(1.5 * writing / step / 2) * 2)
