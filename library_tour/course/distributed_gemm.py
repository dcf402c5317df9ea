"""Multiply matrices that no single device holds: blocks on a grid of devices, panels sent along rows and columns.

On the simulator, which checks results and counts operations but does not measure time, with one device:

    $ library-tour run distributed_gemm
    distributed_gemm: A matrix product on several devices: SUMMA, cuBLASMp
    size 200: rows and columns of the matrices
                   workers  grid   panels  bytes sent  check
    ────────────────────────────────────────────────────────
    one device                                         right
    SUMMA                4  2 x 2       8     320,000  right
    redistributed                                      right
    cuBLASMp
    cuBLASMp: Skipped: cuBLASMp needs ranks with one GPU each (mpiexec), and pip
    install 'nvmath-python[cu13-distributed]' mpi4py cupy-cuda13x
    The matrices are divided into blocks on a grid of workers. A panel is a few
    columns of A and the same number of rows of B. The workers that own a panel send
    it along their rows and columns of the grid, and every worker adds the product
    of its two parts to its block of C. Meanwhile, the next panel is in flight.
    Data often arrives in strips of whole rows. In the 'redistributed' row, the
    strips are turned into the blocks of the grid and back.
    cuBLASMp multiplies matrices in blocks on the same grid. It can also multiply
    matrices in strips, but each rank must then gather all the strips of A.
    'efficiency' is the time on one device, divided by N times the time on N
    devices.
    All 4 workers are on one device. This process has one device. For several
    devices, use a machine with several GPUs, `CUDART_PY_SIMULATOR_DEVICES=4` on the
    simulator, or several processes: `mpiexec -n 4 library-tour run
    distributed_gemm`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries

from .. import ranks, timing
from ..block_cyclic import BlockCyclic, Blocks, Layouts, joined, near_square, pieces, strips
from ..checks import compare
from ..cublasmp import CublasMp, CublasMpRefusalError, in_strips, missing
from ..inputs import INPUT_BLOCK, repeated
from ..limits import arithmetic_limit
from ..ranks import Ranks
from ..several import mean_ms, on_one_device, places_from, right_everywhere
from ..stop import Check, Curve, Limit, Result, Row, Size, Value

TITLE = "A matrix product on several devices: SUMMA, cuBLASMp"
SIZE = Size("rows and columns of the matrices", full=16384, small=200, least=1)
CHECKED = 200
# Sizes in the plot, up to the size of the run.
CURVE_SIZES = (2048, 4096, 8192, 16384)
# Panels per worker, and buffers for panels: while one panel is multiplied, the next one is sent.
PANELS, SLOTS = 4, 2
ALONE = "one device"  # the row that the others are compared with
NOTES = (
    "The matrices are divided into blocks on a grid of workers. A panel is a few columns of A and the same number of "
    "rows of B. The workers that own a panel send it along their rows and columns of the grid, and every worker adds "
    "the product of its two parts to its block of C. Meanwhile, the next panel is in flight.",
    "Data often arrives in strips of whole rows. In the 'redistributed' row, the strips are turned into the blocks of "
    "the grid and back.",
    "cuBLASMp multiplies matrices in blocks on the same grid. It can also multiply matrices in strips, but each rank "
    "must then gather all the strips of A.",
    "'efficiency' is the time on one device, divided by N times the time on N devices.",
)

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Plan:
    """Layout of square matrices on the grid: one block of C per worker, and the owners of the panels of A and B."""

    size: int
    grid: tuple[int, int]

    @property
    def width(self) -> int:
        """The width of a panel; the last panel may be narrower."""
        return max(1, -(-self.size // (PANELS * math.lcm(*self.grid))))

    @property
    def panels(self) -> list[slice]:
        """The indices of each panel's columns of A, and of its rows of B."""
        return [slice(begin, min(begin + self.width, self.size)) for begin in range(0, self.size, self.width)]

    @property
    def layouts(self) -> Layouts:
        """The layouts of A, B and C."""
        rows, columns = (-(-self.size // workers) for workers in self.grid)
        shape = (self.size, self.size)
        return (
            BlockCyclic(shape, (rows, self.width), self.grid),
            BlockCyclic(shape, (self.width, columns), self.grid),
            BlockCyclic(shape, (rows, columns), self.grid),
        )

    @property
    def bytes_sent(self) -> int:
        """The bytes sent for all panels: A goes to the other columns of the grid, and B to the other rows."""
        return 4 * self.size**2 * (sum(self.grid) - 2)


class Worker(Blocks):
    """The blocks of one worker in the grid, and buffers for two panels of A and two of B."""

    def __init__(self, device: cuda.Device, number: int, plan: Plan) -> None:
        super().__init__(device, number, plan.layouts)
        self.plan = plan
        self.place = plan.layouts[2].place(number)
        with device:
            self.copies = cuda.Stream(non_blocking=True)
            self.room = [[cuda.empty(plan.width * length, np.float32) for _ in range(SLOTS)] for length in self.c.shape]
            # One event per slot, reached when its panel has been multiplied and another one may arrive.
            self.free = [self.compute.record() for _ in range(SLOTS)]
            device.synchronize()
        self.waits_for: list[cuda.Event] = []

    def own(self, operand: int, number: int) -> cuda.DeviceArray:
        """Return the A part (0) or the B part (1) of a panel, from the blocks of this worker."""
        begin = number // self.plan.grid[1 - operand] * self.plan.width
        panel = self.plan.panels[number]
        chosen = slice(begin, begin + panel.stop - panel.start)
        return self.b[chosen] if operand else self.a[:, chosen]

    def arriving(self, operand: int, number: int) -> cuda.DeviceArray:
        """Return the buffer for the A part (0) or the B part (1) of a panel."""
        panel = self.plan.panels[number]
        width, (rows, columns) = panel.stop - panel.start, self.c.shape
        shape = (width, columns) if operand else (rows, width)
        return self.room[operand][number % SLOTS][: math.prod(shape)].reshape(shape)

    def add_product(self, number: int) -> None:
        """Queue work that waits for both parts of a panel, multiplies them and adds the product to C."""
        with self.device:
            for event in self.waits_for:
                self.compute.wait(event)
            self.waits_for = []
            a, b = (self.arriving(operand, number) for operand in (0, 1))
            libraries.gemm(a, b, self.c, beta=float(number > 0), stream=self.compute)
            self.free[number % SLOTS].record(self.compute)


class Grid:
    """All workers of one process, which copy panels from device to device."""

    ranks: Ranks | None = None

    def __init__(self, places: Sequence[cuda.Device], size: int) -> None:
        self.plan = Plan(size, near_square(len(places)))
        self.devices = list(dict.fromkeys(places))
        self.workers = len(self.devices)
        self.blocks = [Worker(device, number, self.plan) for number, device in enumerate(places)]

    def multiply(self) -> None:
        """Queue the product: for each panel, first its copies, and then the products of all workers."""
        for number in range(len(self.plan.panels)):
            for operand in (0, 1):
                self._send(operand, number)
            for worker in self.blocks:
                worker.add_product(number)

    def _send(self, operand: int, number: int) -> None:
        """Queue the copies of the A part of a panel along the rows of the grid, or of its B part along the columns."""
        lines: dict[int, list[Worker]] = {}
        for worker in self.blocks:
            lines.setdefault(worker.place[operand], []).append(worker)
        for line in lines.values():
            owner = line[number % len(line)]
            with owner.device:
                for worker in line:
                    owner.copies.wait(worker.free[number % SLOTS])
                packed = owner.arriving(operand, number)
                cuda.memcpy(packed, owner.own(operand, number), stream=owner.copies)
                for worker in line:
                    if worker is not owner:
                        cuda.memcpy_peer(worker.arriving(operand, number), packed, stream=owner.copies)
                sent = owner.copies.record()
            for worker in line:
                worker.waits_for.append(sent)

    def redistributed(self, matrix: Floats) -> Floats:
        """Redistribute a matrix from strips to the layout of A, and back; return the matrix."""
        there, here = strips(matrix.shape, len(self.blocks)), self.plan.layouts[0]
        parts = [there.part(matrix, worker.number) for worker in self.blocks]
        for source, target in ((there, here), (here, there)):
            sent = [pieces(part, number, source, target) for number, part in enumerate(parts)]
            received = zip(*sent, strict=True)
            parts = [joined(each, number, source, target) for number, each in enumerate(received)]
        return np.concatenate(parts)

    def close(self) -> None:
        """Do nothing: unlike a `RankGrid`, this grid has no communicators to free."""


class RankGrid:
    """The worker of this rank, which receives panels through the host, with MPI."""

    def __init__(self, together: Ranks, device: cuda.Device, size: int) -> None:
        self.ranks, self.workers, self.devices = together, together.count, [device]
        self.plan = Plan(size, near_square(together.count))
        self.worker = Worker(device, together.rank, self.plan)
        self.blocks = [self.worker]
        # The communicators of this rank's row of the grid, for parts of A, and of its column, for parts of B.
        self.lines = [together.comm.Split(place, together.rank) for place in self.worker.place]
        self.staged = [[cuda.pinned_empty(room.shape, np.float32) for room in rooms] for rooms in self.worker.room]

    def multiply(self) -> None:
        """Process one panel after another: MPI sends the next one while the device multiplies."""
        with self.worker.device:
            for number in range(len(self.plan.panels)):
                for operand in (0, 1):
                    self._send(operand, number)
                self.worker.waits_for.append(self.worker.copies.record())
                self.worker.add_product(number)

    def _send(self, operand: int, number: int) -> None:
        """Broadcast the A or B part of a panel along this rank's row or column, and queue the copy to the device.

        MPI reads and writes host memory, so copies to and from that memory must finish before the broadcast.
        """
        worker, line = self.worker, self.lines[operand]
        room, owner = worker.arriving(operand, number), number % line.size
        own = line.rank == owner
        staged = self.staged[operand][number % SLOTS][: room.size].reshape(room.shape)
        if line.size > 1:
            worker.copies.synchronize()
            if own:
                cuda.memcpy(staged, worker.own(operand, number), stream=worker.copies)
                worker.copies.synchronize()
            line.Bcast(staged, owner)
        worker.copies.wait(worker.free[number % SLOTS])
        cuda.memcpy(room, worker.own(operand, number) if own else staged, stream=worker.copies)

    def redistributed(self, matrix: Floats) -> Floats:
        """Redistribute a matrix from strips to the layout of A, and back; return the strip of this rank."""
        there, here, rank = strips(matrix.shape, self.workers), self.plan.layouts[0], self.ranks.rank
        part = there.part(matrix, rank)
        for source, target in ((there, here), (here, there)):
            part = joined(self.ranks.comm.alltoall(pieces(part, rank, source, target)), rank, source, target)
        return part

    def close(self) -> None:
        """Free the communicators of the row and the column. All ranks must call this."""
        for line in self.lines:
            line.Free()


Team = Grid | RankGrid | CublasMp
Maker = Callable[[int], Team]


def reference(a: Floats, b: Floats) -> Floats:
    """Return the exact product of two matrices of small whole numbers."""
    return a @ b


def run(device: cuda.Device, size: int) -> Result:
    """Check a product of whole numbers, exactly; then time large ones, on one device and on all."""
    together = ranks.world()
    places = places_from(device, together)
    count = together.count if together else len(places)
    grid: Callable[[int], Grid | RankGrid] = partial(RankGrid, together, device) if together else partial(Grid, places)
    makers: dict[str, Maker] = {"SUMMA": grid}
    lacks = missing(together, device)
    if together and not lacks:
        makers |= {
            "cuBLASMp, grid": lambda size: CublasMp(together, device, Plan(size, near_square(count)).layouts),
            "cuBLASMp, strips": lambda size: CublasMp(together, device, in_strips(size, count)),
        }
    # Large enough for every worker to have a block.
    few = max(min(size, CHECKED), count**2)
    limit, pictures = arithmetic_limit(device), []
    rows = checked_rows(device, grid, makers, few)
    if timing.available():
        right = right_everywhere(rows, together)
        rows, curve = timed_rows(rows, right, device, makers, max(size, few), limit)
        pictures.append(curve)
    if lacks:
        rows.append(Row("cuBLASMp", note=lacks))
    notes = [*NOTES, *on_one_device(places, together, "distributed_gemm", "workers")]
    return Result(rows, limit, pictures=pictures, notes=notes)


def checked_rows(
    device: cuda.Device, grid: Callable[[int], Grid | RankGrid], makers: Mapping[str, Maker], size: int
) -> list[Row]:
    """Return table rows for a product on one device and on all, and for a redistribution to blocks and back."""
    random = np.random.default_rng(1)
    a, b = (random.integers(-8, 9, (size, size)).astype(np.float32) for _ in "ab")
    expected = reference(a, b)
    with device:
        alone = libraries.gemm(cuda.to_device(a), cuda.to_device(b)).to_host()
    check = compare("one device: the product equals NumPy's", alone, expected)
    rows = [Row(ALONE, check=check, work=work_of(size, 1, 0, 0))]
    for name, make in makers.items():
        fact = f"{name}: the product equals that of one device"
        try:
            rows.append(product_row(name, fact, make(size), a, b, expected))
        except CublasMpRefusalError as error:
            rows.append(Row(name, check=Check(fact, False, str(error))))
    with closing(grid(size)) as blocks:
        kept = blocks.redistributed(a)
        mine = strips(a.shape, blocks.workers).part(a, blocks.ranks.rank) if blocks.ranks else a
    rows.append(Row("redistributed", check=compare("strips become blocks, and strips again", kept, mine)))
    return rows


def product_row(name: str, fact: str, team: Team, a: Floats, b: Floats, expected: Floats) -> Row:
    """Return the row of a product, checked in the blocks of this process."""
    with closing(team):
        for worker in team.blocks:
            worker.take(a, b)
        team.multiply()
        got = np.concatenate([worker.result().ravel() for worker in team.blocks])
    layout = team.blocks[0].layouts[2]
    exact = np.concatenate([layout.part(expected, worker.number).ravel() for worker in team.blocks])
    values: dict[str, Value] = {"workers": math.prod(layout.grid)}
    work: dict[str, float] = {}
    if isinstance(team, Grid | RankGrid) and not timing.available():
        plan = team.plan
        values |= {"grid": "{} x {}".format(*plan.grid), "panels": len(plan.panels), "bytes sent": plan.bytes_sent}
        work = work_of(plan.size, math.prod(plan.grid), len(plan.panels), plan.bytes_sent)
    return Row(name, values, compare(fact, got, exact), work=work)


def work_of(size: int, workers: int, panels: int, sent: int) -> dict[str, float]:
    """Return the work of each worker, and the bytes that all workers send. A multiply-add counts as two operations."""
    if timing.available():
        return {}
    return {
        "operations per worker": 2 * size**3 // workers,
        "products per worker": max(panels, 1),
        "bytes sent": sent,
    }


def timed_rows(
    rows: Sequence[Row], right: Set[str], device: cuda.Device, makers: Mapping[str, Maker], size: int, limit: Limit
) -> tuple[list[Row], Curve]:
    """Add the times of large products to the rows that are right, and draw the rates against the size."""
    numbers = np.random.default_rng().random(INPUT_BLOCK, np.float32)
    lines: dict[str, list[tuple[float, float]]] = {}
    values: dict[str, dict[str, Value]] = {}
    for some in [*(other for other in CURVE_SIZES if other < size), size]:
        operations = 2 * some**3
        alone = alone_ms(device, some, numbers) if ALONE in right else None
        if alone:
            values[ALONE] = timing.rates(alone, operations, limit)
        for name, make in makers.items():
            if name not in right:
                continue
            with closing(make(some)) as team:
                for worker in team.blocks:
                    worker.fill(numbers)
                ms = mean_ms(team.multiply, team.devices, team.ranks)
                of_all = replace(limit, rate=limit.rate and team.workers * limit.rate)
                efficiency = {"efficiency": alone / team.workers / ms} if alone else {}
                values[name] = {**timing.rates(ms, operations, of_all), **efficiency}
        for name, found in values.items():
            lines.setdefault(name, []).append((some, 1e-9 * operations / float(found["ms"])))
    curve = Curve("rates", "rows and columns", "TFLOP/s", lines, logarithmic="x", line=limit)
    return [replace(row, values={**values.get(row.name, {}), **row.values}) for row in rows], curve


def alone_ms(device: cuda.Device, size: int, numbers: Floats) -> float:
    """Return the time of the product on one device."""
    with device:
        a, b = (repeated(numbers, size * size).reshape(size, size) for _ in "ab")
        return mean_ms(partial(libraries.gemm, a, b, cuda.empty_like(a)), [device])
