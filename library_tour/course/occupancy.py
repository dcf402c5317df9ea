"""Fill the multiprocessors with warps, which hide latency: how many fit, how many it takes, and what they have to hide.

On the simulator, which checks, counts and does not time:

    $ library-tour run occupancy
    occupancy: Occupancy: warps on a multiprocessor, and latency
    size 65,536: numbers to copy
                  blocks  warps  limiter  active lanes  loads  check
    ────────────────────────────────────────────────────────────────
    32 threads        32     32  blocks           32.0    313  right
    64 threads        32     64  warps            32.0    313  right
    96 threads        21     63  warps            32.0    313  right
    100 threads       16     64  warps            25.0    401  right
    128 threads       16     64  warps            32.0    313  right
    256 threads        8     64  warps            32.0    313  right
    512 threads        4     64  warps            32.0    313  right
    768 threads        2     48  warps            32.0    313  right
    1024 threads       2     64  warps            32.0    313  right
    Exercises: blocks on a multiprocessor of each capability, and on one here:
                        capability  blocks  warps  limiter    blocks here  check
    ────────────────────────────────────────────────────────────────────────────
    8 x 8 threads       1.3              8     16  blocks              32  right
    16 x 16 threads     1.3              4     32  warps                8  right
    32 x 32 threads     1.3              0      0  threads              2  right
    256 threads         1.0              3     24  warps                8  right
    100 x 48 registers  2.0              5     20  registers           10  right
    to hide 200 cycles                         13                          right
    205 shapes                                                             right
    205 shapes: cuda.occupancy counts as many blocks as the driver does.
    Copying with ever more threads; KiB in flight, where each has a load of 4 bytes:
                         KiB  check
    ───────────────────────────────
    256 threads         1.00  right
    1,024 threads       4.00  right
    4,096 threads       16.0  right
    10,240 threads      40.0  right
    33,792 threads       132  right
    67,584 threads       264  right
    135,168 threads      528  right
    270,336 threads    1,056  right
    1,081,344 threads  1,056  right
    Latency, by a chain of loads, each of which needs the one before:
                           loads  instructions  course cycles  check
    ────────────────────────────────────────────────────────────────
    registers                  0           164                 right
    shared memory              0           652                 right
    L1 cache                  80           141                 right
    L2 cache                  80           141  about 100      right
    memory                    80           141  200 to 500     right
    L2 cache, all threads                                      right
    A multiprocessor takes blocks until its warps (or threads), blocks, registers or
    shared memory run out, which the column 'limiter' names. Its occupancy is the
    number of warps that are resident on it, as a fraction of the number that it can
    hold. Blocks of 32 threads fill half of it, since the number of blocks is
    limited too, and blocks of 768 threads leave no room for a third one. The last
    of the 4 warps of a block of 100 threads has 4 threads, so that 28 of its 32
    lanes (87.5 %) are idle.
    Exercises: multiprocessors of capability 1.3 hold 1,024 threads and 8 blocks,
    and a block has at most 512 threads. 16 blocks of 8 x 8 would fill one, so 8
    leave it half empty; a block of 32 x 32 is too large. Capability 1.0 holds 768
    threads: 3 blocks of 256, or 24 warps.
    '100 x 48 registers': the course counts 48 x 100 = 4,800 registers for a block
    of 100 threads. The hardware gives registers to whole warps, 4 x 1,536 a block,
    so that 5 blocks fit and not 6. 60 such blocks on 16 multiprocessors are 4 on
    each of 12 and 3 on each of the others; 495 blocks on the 132 of this device: 99
    hold 4, 33 hold 3.
    If every warp waits 200 cycles after each 4 instructions of 4 cycles, each other
    warp fills 16 of the 200 cycles: 13 others hide the wait.
    Few threads copy slowly because few loads are in flight: to reach a bandwidth,
    the bytes in flight have to be the bandwidth times the latency (Little's law).
    The course's advice is 128 to 256 threads a block, some hundred blocks and
    10,000 threads at least. The memory of today's large GPUs asks for more: for all
    threads that fit, and for more than 4 bytes from each. The course's cycles are
    of a card that is not known here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

import cudart_py as cuda

from .. import counters, timing
from ..checks import poisoned, refusal
from ..device_code import blocks_for, load
from ..host_latency import host_latencies
from ..inputs import INPUT_BLOCK, repeated
from ..limits import SHARED_BYTES, copy_limit, read_limit
from ..stop import Check, Curve, Limit, Result, Row, Size, Value
from ..variants import Variant, measure, points, side_by_side

TITLE = "Occupancy: warps on a multiprocessor, and latency"
SIZE = Size("numbers to copy", full=2**28, small=2**16, least=4)
CHECKED = 10_007
BLOCK, BLOCKS = 256, (32, 64, 96, 100, 128, 256, 512, 768, 1024)
EACH = 1024  # numbers of a thread, where there are few threads
EXPLAINED_BY = ("active lanes", "loads")
# Values that a thread of `meet` keeps; with LIVE_48 of them it has 48 registers.
LIVE, LIVE_48 = (0, 16, 34, 60, 120), 34
SHARED = (0, 1000, 16 << 10, 48 << 10, 100 << 10)
# A chain's steps i -> i * A + C, which passes through 2^k nodes before it comes back.
A, C = 1664525, 1013904223
NODE_BYTES, SHARED_NODES = 128, 1024
# Steps of a walk before the clock starts, and with it; those of a driver without times.
BEFORE, STEPS, FEW_STEPS = 2**15, 2**11, (16, 64)
L1_BYTES, L2_BYTES = 16 << 10, 4 << 20
PASSES, FEW_PASSES = 64, 3  # over what is in the L2 cache
ISSUED = 4  # instructions that a multiprocessor's four schedulers issue in a clock
COURSE_CYCLES = {"L2 cache": "about 100", "memory": "200 to 500"}
KERNELS = [f"meet<{live}>" for live in LIVE] + ["copy<float>", "copy<float4>", "chase<ThroughL1>", "chase<PastL1>"]


class Exercise(NamedTuple):
    """A shape of blocks on one of the course's multiprocessors, and how many of them it holds."""

    capability: tuple[int, int]
    block: tuple[int, int]
    live: int
    registers: int
    blocks: int


EXERCISES = {
    "8 x 8 threads": Exercise((1, 3), (8, 8), 0, 0, 8),
    "16 x 16 threads": Exercise((1, 3), (16, 16), 0, 0, 4),
    "32 x 32 threads": Exercise((1, 3), (32, 32), 0, 0, 0),
    "256 threads": Exercise((1, 0), (256, 1), 0, 0, 3),
    "100 x 48 registers": Exercise((2, 0), (100, 1), LIVE_48, 48, 5),
}
ALL_BLOCKS, ALL_MULTIPROCESSORS = 60, 16  # of the last exercise


def run(device: cuda.Device, size: int) -> Result:
    """Count what fits, copy with blocks and grids of many sizes, and measure the latency of each kind of memory."""
    module = load("occupancy", names=KERNELS)
    limit = copy_limit(device)
    copies = Copies(module, size)
    rows = measure([copies.by_block(device, threads) for threads in BLOCKS], limit, EXPLAINED_BY)
    in_all, pictures = by_threads(device, copies, limit)
    tables = {
        "Exercises: blocks on a multiprocessor of each capability, and on one here:": exercises(device, module),
        "Copying with ever more threads; KiB in flight, where each has a load of 4 bytes:": in_all,
        "Latency, by a chain of loads, each of which needs the one before:": latencies(device, module, 4 * size),
    }
    if timing.available():
        pictures.append(latency_curve(device, module, 4 * size))
    pictures += occupancy_curves(device)
    return Result(rows, limit, pictures=pictures, notes=notes(device, module), tables=tables)


# How many fit


def exercises(device: cuda.Device, module: cuda.Module) -> list[Row]:
    """Solve the course's exercises with the calculator, and let the same blocks meet on this device."""
    rows = []
    for name, exercise in EXERCISES.items():
        there = cuda.occupancy(exercise.capability, math.prod(exercise.block), exercise.registers)
        here, check = fits(device, module[f"meet<{exercise.live}>"], exercise.block)
        values: dict[str, Value] = {
            "capability": "{}.{}".format(*exercise.capability),
            "blocks": there.blocks,
            "warps": there.warps,
            "limiter": there.limiter,
            "blocks here": here.blocks,
        }
        if there.blocks != exercise.blocks:
            check = Check(f"{name}: {exercise.blocks} blocks fit", False, f"the calculator says {there.blocks}")
        rows.append(Row(name, values, check))
    warps = warps_to_hide(200, 4 * 4)
    rows.append(Row("to hide 200 cycles", {"warps": warps}, Check("13 warps hide 200 cycles", warps == 13, str(warps))))
    return [*rows, every_shape(device, module)]


def fits(device: cuda.Device, kernel: cuda.Kernel, block: tuple[int, int]) -> tuple[cuda.Occupancy, Check]:
    """Return what the calculator says of a block on this device, and whether so many meet there, and no more."""
    found = kernel.occupancy(block)
    most = found.blocks * device.sm_count
    held = Counter(meeting(kernel, most, block))
    refused = refusal("refused", cuda.errors.LaunchError, lambda: kernel.configure(most + 1, block, cooperative=True))
    holds = held == {found.blocks: device.sm_count} and refused.holds
    detail = f"calculated: {found.blocks}; multiprocessors by the blocks that met: {dict(held)}; {refused.detail}"
    return found, Check(f"{kernel.name} in blocks of {block}: as many meet as calculated, and no more", holds, detail)


def meeting(kernel: cuda.Kernel, blocks: int, block: tuple[int, int]) -> list[int]:
    """Let so many blocks wait for one another, which needs all of them at once; return how many each SM holds."""
    arrived, places, data = cuda.zeros(1, np.uint32), poisoned(blocks, np.uint32), cuda.zeros(max(LIVE), np.float32)
    kernel.configure(blocks, block, cooperative=True)(arrived, places, data)
    _, counts = np.unique(places.to_host(), return_counts=True)  # a device's numbers may have gaps
    return [int(count) for count in counts]


def every_shape(device: cuda.Device, module: cuda.Module) -> Row:
    """Compare the calculator with the driver's own count in many shapes of blocks."""
    shapes, differing = 0, []
    most = device.properties.shared_memory_per_block_optin
    for live in LIVE:
        kernel = module[f"meet<{live}>"]
        for threads in [block for block in BLOCKS if block <= (kernel.attributes.max_threads_per_block or 0)]:
            for shared in [nbytes for nbytes in SHARED if nbytes <= most]:
                kernel.configure(1, threads, shared)  # not called: this opts in to so much shared memory
                told = cuda.check(cuda.raw.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.handle, threads, shared))
                found = kernel.occupancy(threads, shared).blocks
                shapes += 1
                if found != told:
                    differing.append(f"{kernel.name} with {threads} threads and {shared} bytes: {found}, not {told}")
    check = Check("the calculator equals the driver's count", not differing, "; ".join(differing))
    return Row(f"{shapes} shapes", check=check, note="cuda.occupancy counts as many blocks as the driver does.")


def warps_to_hide(latency: int, every: int) -> int:
    """Return how many warps are always busy if each waits `latency` cycles after every `every` cycles of work."""
    return -(-latency // every)


def occupancy_curves(device: cuda.Device) -> list[Curve]:
    """Return the occupancy against a thread's registers and a block's shared memory, where the device is known."""
    capability = device.compute_capability
    if capability not in cuda.MULTIPROCESSORS:
        return []
    most = cuda.MULTIPROCESSORS[capability].shared_bytes_per_block

    def curve(name: str, x: str, places: Sequence[tuple[float, int, int]]) -> Curve:
        lines = {
            f"{threads} threads a block": [
                (place, 100 * cuda.occupancy(capability, threads, registers, shared).fraction)
                for place, registers, shared in places
            ]
            for threads in (64, 256, 1024)
        }
        return Curve(name, x, "% of the warps that a multiprocessor can hold", lines)

    return [
        curve("registers", "registers of a thread", [(count, count, 0) for count in range(16, 256)]),
        curve("shared", "KiB of shared memory of a block", [(b / 2**10, 0, b) for b in range(0, most + 1, 1 << 10)]),
    ]


# How many it takes


class Copies:
    """Numbers to copy, and their copy, by any number of threads that load 4 or 16 bytes at a time."""

    def __init__(self, module: cuda.Module, size: int) -> None:
        self.module, self.size = module, size
        self.block = np.random.default_rng().random(min(size, INPUT_BLOCK), np.float32)
        self.source = repeated(self.block, size)
        self.target = cuda.empty_like(self.source)

    def variant(
        self, name: str, kernel: str, grid: int, threads: int, timed: int, columns: dict[str, Value] | None = None
    ) -> Variant:
        """Return the copy by a grid, checked with few numbers and timed with `timed` of them."""
        wide = 4 if kernel.endswith("float4>") else 1
        few, many = min(self.size, CHECKED) // wide, min(self.size, timed) // wide
        launch = self.module[kernel][grid, threads]
        return Variant(
            name=name,
            launch=launch.bind(self.source, self.target, few),
            output=self.target[: few * wide],
            expected=self.block[: few * wide],
            timed=launch.bind(self.source, self.target, many),
            amount=2 * 4 * wide * many,
            columns=columns or {},
        )

    def by_block(self, device: cuda.Device, threads: int) -> Variant:
        """Return the copy by as many blocks of so many threads as the device holds at once."""
        holds = self.module["copy<float>"].occupancy(threads)
        columns: dict[str, Value] = {"blocks": holds.blocks, "warps": holds.warps, "limiter": holds.limiter}
        grid = holds.blocks * device.sm_count
        return self.variant(f"{threads} threads", "copy<float>", grid, threads, self.size, columns)


def by_threads(device: cuda.Device, copies: Copies, limit: Limit) -> tuple[list[Row], list[Curve]]:
    """Copy with one block, some blocks, as many as the device holds, and more; return rows, and the curve if timed."""
    full = device.properties.max_threads_per_sm // BLOCK * device.sm_count
    grids = sorted({1, 4, 16, 40, device.sm_count, *(max(1, full // part) for part in (4, 2, 1)), 4 * full})
    cases = {}
    for case, kernel in {"4 bytes": "copy<float>", "16 bytes": "copy<float4>"}.items():
        wide = 4 if case.startswith("16") else 1
        variants = [
            copies.variant(f"{grid * BLOCK:,} threads", kernel, grid, BLOCK, grid * BLOCK * EACH * wide)
            for grid in grids
        ]
        cases[f"{limit.unit}, {case}"] = measure(variants, limit, quick=True)
    merged = zip(grids, side_by_side(cases, limit.unit), strict=True)
    rows = [Row(row.name, {"KiB": min(grid, full) * BLOCK / 256, **row.values}, row.check) for grid, row in merged]
    if not timing.available():
        return rows, []
    lines = {
        f"{case.partition(', ')[2]} a load": points([grid * BLOCK for grid in grids], found, limit.unit)
        for case, found in cases.items()
    }
    return rows, [Curve("threads", "threads in all", limit.unit, lines, logarithmic="xy", line=limit)]


# What there is to hide


def walked(nodes: int, steps: int) -> int:
    """Return the node of the chain after so many steps from node 0."""
    node = 0
    for _ in range(steps):
        node = (node * A + C) % nodes
    return node


class Chain:
    """Nodes in memory, each with the address of the next; a node has a cache line for itself."""

    def __init__(self, module: cuda.Module, nbytes: int) -> None:
        # A power of two, as the order of the nodes wants it.
        self.nodes = 1 << max(2, (nbytes // NODE_BYTES).bit_length() - 1)
        self.module = module
        self.memory = cuda.empty(self.nodes * NODE_BYTES, np.uint8)
        module["link"][min(1024, blocks_for(self.nodes, BLOCK)), BLOCK](self.memory, self.nodes, A, C)

    def walk(self, way: str) -> Walk:
        """Walk from the first node: some steps without the clock, which fill the caches, and then some with it."""
        before, steps = (min(self.nodes, BEFORE), STEPS) if timing.available() else FEW_STEPS
        last, cycles = poisoned(1, np.uint64), cuda.zeros(1, np.int64)
        kernel = self.module[f"chase<{way}>"][1, 1]
        work = kernel.bind(self.memory, before, steps, last, cycles)
        counted = counters.count(work, ("loads", "instructions"))
        end = (int(last.to_host()[0]) - self.memory.pointer) // NODE_BYTES
        return Walk(end, walked(self.nodes, before + steps), int(cycles.to_host()[0]) / steps, counted)


class Walk(NamedTuple):
    """Where a walk ended and should have ended, its cycles a step, and what was counted."""

    end: int
    expected: int
    cycles: float
    counted: dict[str, Value]


def without_chain(module: cuda.Module, kernel: str, steps: int) -> Walk:
    """Walk through shared memory or registers."""
    last, cycles = poisoned(1, np.uint32), cuda.zeros(1, np.int64)
    work = module[kernel][1, BLOCK if kernel == "chase_shared" else 1].bind(A, C, steps, last, cycles)
    counted = counters.count(work, ("loads", "instructions"))
    return Walk(int(last.to_host()[0]), walked(SHARED_NODES, steps), int(cycles.to_host()[0]) / steps, counted)


def latencies(device: cuda.Device, module: cuda.Module, nbytes: int) -> list[Row]:
    """Return a row for each place that a value can be in, on the device and, where there are times, on the host."""
    steps = STEPS if timing.available() else sum(FEW_STEPS)
    walks = {
        "registers": without_chain(module, "chase_registers", steps),
        "shared memory": without_chain(module, "chase_shared", steps),
        "L1 cache": Chain(module, min(L1_BYTES, nbytes)).walk("ThroughL1"),
        "L2 cache": Chain(module, min(L2_BYTES, nbytes)).walk("PastL1"),
        "memory": Chain(module, nbytes).walk("PastL1"),
    }
    [cached] = measure([read_again(device, module, min(L2_BYTES, nbytes))], None)
    cached_rate = float(cached.values.get("GB/s", 0))
    rows = []
    for name, walk in walks.items():
        fact = f"{name}: the walk ends where it should"
        check = Check(fact, walk.end == walk.expected, f"at node {walk.end}, not {walk.expected}")
        values = {**walk.counted, "course cycles": COURSE_CYCLES.get(name, "")}
        if timing.available():
            rates = {"L2 cache": cached_rate, "memory": read_limit(device).rate or 0}
            values = {**asked(device, name, walk.cycles, rates), **values}
        rows.append(Row(name, values, check))
    rate = {"GB/s": cached_rate} if cached_rate else {}
    return [*rows, Row("L2 cache, all threads", rate, cached.check), *host_latencies()]


def read_again(device: cuda.Device, module: cuda.Module, nbytes: int) -> Variant:
    """Return the reading of so many bytes, which the L2 cache holds, by all threads that the device holds."""
    numbers = np.arange(nbytes // 16 * 4, dtype=np.uint32)
    fours = numbers.reshape(-1, 4).sum(axis=1, dtype=np.uint32)
    threads = device.properties.max_threads_per_sm // BLOCK * BLOCK * device.sm_count
    sums, kernel = cuda.empty(threads, np.uint32), module["read_again"][threads // BLOCK, BLOCK]
    places = np.arange(threads)[:, None] + BLOCK * np.arange(FEW_PASSES)
    on_device = cuda.to_device(numbers)
    return Variant(
        name="L2 cache, all threads",
        launch=kernel.bind(on_device, fours.size, FEW_PASSES, sums),
        output=sums,
        expected=fours[places % fours.size].sum(axis=1, dtype=np.uint32),
        timed=kernel.bind(on_device, fours.size, PASSES, sums),
        amount=16 * threads * PASSES,
    )


def asked(device: cuda.Device, name: str, cycles: float, rates: Mapping[str, float]) -> dict[str, Value]:
    """Return a latency, and how many warps a multiprocessor needs for it, if each has one load of 4 bytes a lane.

    Little's law: what is in flight is the latency times the rate. `rates` has those of all multiprocessors in GB/s.
    """
    clock = 1e3 * device.properties.clock_rate
    bytes_a_clock: dict[str, float] = {"shared memory": SHARED_BYTES, "L1 cache": SHARED_BYTES}
    bytes_a_clock |= {place: 1e9 * rate / clock / device.sm_count for place, rate in rates.items()}
    loads_a_clock = ISSUED if name == "registers" else bytes_a_clock[name] / (4 * 32)
    return {"cycles": cycles, "ns": 1e9 * cycles / clock, "warps": math.ceil(cycles * loads_a_clock)}


def latency_curve(device: cuda.Device, module: cuda.Module, nbytes: int) -> Curve:
    """Return the latency against the bytes that the chain passes through: a step at the size of each cache."""
    lines: dict[str, list[tuple[float, float]]] = {"through the L1 cache": [], "past it": []}
    bits = range(12, max(13, nbytes.bit_length()))
    for chain in (Chain(module, 1 << bit) for bit in bits):
        for way, line in zip(("ThroughL1", "PastL1"), lines.values(), strict=True):
            line.append((chain.memory.nbytes / 2**10, chain.walk(way).cycles))
    return Curve("latency", "KiB in the chain", "cycles of a load", lines, logarithmic="x")


def notes(device: cuda.Device, module: cuda.Module) -> list[str]:
    """Return what the tables say, in sentences."""
    share = blocks_for(ALL_BLOCKS * device.sm_count, ALL_MULTIPROCESSORS)
    held = Counter(meeting(module[f"meet<{LIVE_48}>"], share, (100, 1)))
    spread = ", ".join(f"{count} hold {blocks}" for blocks, count in sorted(held.items(), reverse=True))
    timed = (
        "The warps beside a latency are those that a multiprocessor needs to hide it. In the row 'registers' four "
        "schedulers issue an instruction each in every cycle; elsewhere each warp has one load of 4 bytes a lane in "
        "flight, at the rate of the memory, which is that of 'L2 cache, all threads' for the L2 cache. Where a "
        "multiprocessor does not hold so many warps, each needs more loads or longer ones. The host walks in Python: "
        "the time of a step within 16 KiB, which the first-level cache holds, is taken off."
    )
    return [
        "A multiprocessor takes blocks until its warps (or threads), blocks, registers or shared memory run out, "
        "which the column 'limiter' names. Its occupancy is the number of warps that are resident on it, as a "
        "fraction of the number that it can hold. Blocks of 32 threads fill half of it, since the number of blocks "
        "is limited too, and blocks of 768 threads leave no room for a third one. The last of the 4 warps of a block "
        "of 100 threads has 4 threads, so that 28 of its 32 lanes (87.5 %) are idle.",
        "Exercises: multiprocessors of capability 1.3 hold 1,024 threads and 8 blocks, and a block has at most 512 "
        "threads. 16 blocks of 8 x 8 would fill one, so 8 leave it half empty; a block of 32 x 32 is too large. "
        "Capability 1.0 holds 768 threads: 3 blocks of 256, or 24 warps.",
        "'100 x 48 registers': the course counts 48 x 100 = 4,800 registers for a block of 100 threads. The hardware "
        f"gives registers to whole warps, 4 x 1,536 a block, so that 5 blocks fit and not 6. {ALL_BLOCKS} such blocks "
        f"on {ALL_MULTIPROCESSORS} multiprocessors are 4 on each of 12 and 3 on each of the others; {share} blocks on "
        f"the {device.sm_count} of this device: {spread}.",
        "If every warp waits 200 cycles after each 4 instructions of 4 cycles, each other warp fills 16 of the 200 "
        "cycles: 13 others hide the wait.",
        "Few threads copy slowly because few loads are in flight: to reach a bandwidth, the bytes in flight have to be "
        "the bandwidth times the latency (Little's law). The course's advice is 128 to 256 threads a block, some "
        "hundred blocks and 10,000 threads at least. The memory of today's large GPUs asks for more: for all threads "
        "that fit, and for more than 4 bytes from each. The course's cycles are of a card that is not known here.",
        *([timed] if timing.available() else []),
    ]
