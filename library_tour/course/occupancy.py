"""Hide latency with resident warps: how many fit on a multiprocessor, how many are needed, and the latencies to hide.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run occupancy
    occupancy: Occupancy: resident warps, and the latency they hide
    size 65,536: elements to copy
    counters: measured over 10,007 elements
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
    Exercises: blocks per multiprocessor, on the lectures' devices and on this one
                        capability  blocks  warps  limiter    blocks here  check
    ────────────────────────────────────────────────────────────────────────────
    8 x 8 threads       1.3              8     16  blocks              32  right
    16 x 16 threads     1.3              4     32  warps                8  right
    32 x 32 threads     1.3              0      0  threads              2  right
    256 threads         1.0              3     24  warps                8  right
    100 x 48 registers  2.0              5     20  registers           10  right
    to hide 200 cycles                         13                          right
    205 shapes                                                             right
    205 shapes: The calculator and the driver agree on the number of blocks for all
    of these launch configurations.
    Copying with more and more threads
                       KiB in flight  check
    ───────────────────────────────────────
    256 threads                 1.00  right
    1,024 threads               4.00  right
    4,096 threads               16.0  right
    10,240 threads              40.0  right
    33,792 threads               132  right
    67,584 threads               264  right
    135,168 threads              528  right
    270,336 threads            1,056  right
    1,081,344 threads          1,056  right
    Latency, from a chain of dependent loads
                           loads  instructions  course cycles  check
    ────────────────────────────────────────────────────────────────
    registers                  0           164                 right
    shared memory              0           652                 right
    L1 cache                  80           141                 right
    L2 cache                  80           141  about 100      right
    memory                    80           141  200 to 500     right
    L2 cache, all threads                                      right
    A multiprocessor accepts blocks until it has no slots left for warps (or
    threads) or for blocks, or until it runs out of registers or shared memory. The
    'limiter' column shows which of these ran out. Blocks of 32 threads fill only
    half of the multiprocessor, because the number of blocks is also limited. Two
    blocks of 768 threads leave no room for a third. In a block of 100 threads, the
    last of the 4 warps has only 4 threads; its other 28 lanes (87.5 %) are idle.
    Exercises: a multiprocessor of compute capability 1.3 holds at most 1,024
    threads and 8 blocks, and a block has at most 512 threads. 16 blocks of 8 x 8
    threads would fill it, so 8 leave it half empty. A block of 32 x 32 threads is
    too large. At compute capability 1.0, a multiprocessor holds 768 threads: 3
    blocks of 256, or 24 warps.
    '100 x 48 registers': the lectures count 48 x 100 = 4,800 registers for a block
    of 100 threads. The hardware allocates registers to whole warps, 4 x 1,536 per
    block, so 5 blocks fit, not 6. With 60 such blocks on 16 multiprocessors, 12
    hold 4 blocks each, and the others hold 3. With 495 blocks on this device's 132
    multiprocessors, 99 hold 4 and 33 hold 3.
    If every warp waits for 200 cycles after 4 instructions of 4 cycles each, each
    of the other warps fills 16 of these 200 cycles. So 13 other warps hide the
    wait.
    A copy with few threads is slow because few loads are in flight. Reaching a
    given bandwidth requires bandwidth x latency bytes in flight (Little's law). The
    'KiB in flight' column assumes one 4-byte load per resident thread. The lectures
    advise 128 to 256 threads per block, a few hundred blocks and at least 10,000
    threads. Today's large GPUs need more: as many threads as fit, and more than 4
    bytes in flight per thread. The 'course cycles' column shows the lectures'
    figures, for an unnamed card.
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

TITLE = "Occupancy: resident warps, and the latency they hide"
SIZE = Size("elements to copy", full=2**28, small=2**16, least=4)
CHECKED = 10_007
BLOCK, BLOCKS = 256, (32, 64, 96, 100, 128, 256, 512, 768, 1024)
EACH = 1024  # elements per thread, if there are few threads
EXPLAINED_BY = ("active lanes", "loads")
# Values that each thread of `meet` keeps in registers; with LIVE_48 values it needs 48 registers.
LIVE, LIVE_48 = (0, 16, 34, 60, 120), 34
SHARED = (0, 1000, 16 << 10, 48 << 10, 100 << 10)
# A chain steps from i to i * A + C, and visits 2^k nodes before it returns to the first.
A, C = 1664525, 1013904223
NODE_BYTES, SHARED_NODES = 128, 1024
# Steps of a walk before and after the clock starts; FEW_STEPS replaces both numbers if nothing is timed.
BEFORE, STEPS, FEW_STEPS = 2**15, 2**11, (16, 64)
L1_BYTES, L2_BYTES = 16 << 10, 4 << 20
PASSES, FEW_PASSES = 64, 3  # over data in the L2 cache
ISSUED = 4  # instructions per clock cycle: a multiprocessor has four schedulers
COURSE_CYCLES = {"L2 cache": "about 100", "memory": "200 to 500"}
KERNELS = [f"meet<{live}>" for live in LIVE] + ["copy<float>", "copy<float4>", "chase<ThroughL1>", "chase<PastL1>"]


class Exercise(NamedTuple):
    """A block shape, one of the lectures' multiprocessors, and the number of such blocks that it holds."""

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
ALL_BLOCKS, ALL_MULTIPROCESSORS = 60, 16  # in the last exercise


def run(device: cuda.Device, size: int) -> Result:
    """Count resident blocks, copy with blocks and grids of many sizes, and measure the latency of each memory."""
    module = load("occupancy", names=KERNELS)
    limit = copy_limit(device)
    copies = Copies(module, size)
    rows = measure([copies.by_block(device, threads) for threads in BLOCKS], limit, EXPLAINED_BY)
    in_all, pictures = by_threads(device, copies, limit)
    tables = {
        "Exercises: blocks per multiprocessor, on the lectures' devices and on this one": exercises(device, module),
        "Copying with more and more threads": in_all,
        "Latency, from a chain of dependent loads": latencies(device, module, 4 * size),
    }
    if timing.available():
        pictures.append(latency_curve(device, module, 4 * size))
    pictures += occupancy_curves(device)
    return Result(
        rows,
        limit,
        pictures=pictures,
        notes=notes(device, module),
        tables=tables,
        counted=f"{min(size, CHECKED):,} elements",
    )


# Resident blocks


def exercises(device: cuda.Device, module: cuda.Module) -> list[Row]:
    """Solve the lectures' exercises with the calculator, and let blocks of the same shapes meet on this device."""
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
    """Return the calculated occupancy, and check that exactly that many blocks meet on a multiprocessor."""
    found = kernel.occupancy(block)
    most = found.blocks * device.sm_count
    held = Counter(meeting(kernel, most, block))
    refused = refusal("refused", cuda.errors.LaunchError, lambda: kernel.configure(most + 1, block, cooperative=True))
    holds = held == {found.blocks: device.sm_count} and refused.holds
    detail = f"calculated: {found.blocks}; multiprocessors by number of blocks that met: {dict(held)}; {refused.detail}"
    return found, Check(f"{kernel.name} in blocks of {block}: as many meet as calculated, and no more", holds, detail)


def meeting(kernel: cuda.Kernel, blocks: int, block: tuple[int, int]) -> list[int]:
    """Let blocks wait for one another, so that all must be resident at once; return how many each SM holds."""
    arrived, places, data = cuda.zeros(1, np.uint32), poisoned(blocks, np.uint32), cuda.zeros(max(LIVE), np.float32)
    kernel.configure(blocks, block, cooperative=True)(arrived, places, data)
    _, counts = np.unique(places.to_host(), return_counts=True)  # the SM indices may have gaps
    return [int(count) for count in counts]


def every_shape(device: cuda.Device, module: cuda.Module) -> Row:
    """Compare the calculator with the driver's own count for many block shapes."""
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
    return Row(
        f"{shapes} shapes",
        check=check,
        note="The calculator and the driver agree on the number of blocks for all of these launch configurations.",
    )


def warps_to_hide(latency: int, every: int) -> int:
    """Return how many warps hide the waits if each warp waits `latency` cycles after every `every` cycles of work."""
    return -(-latency // every)


def occupancy_curves(device: cuda.Device) -> list[Curve]:
    """Return occupancy against registers per thread and shared memory per block, for a known compute capability."""
    capability = device.compute_capability
    if capability not in cuda.MULTIPROCESSORS:
        return []
    most = cuda.MULTIPROCESSORS[capability].shared_bytes_per_block

    def curve(name: str, x: str, places: Sequence[tuple[float, int, int]]) -> Curve:
        lines = {
            f"{threads} threads per block": [
                (place, 100 * cuda.occupancy(capability, threads, registers, shared).fraction)
                for place, registers, shared in places
            ]
            for threads in (64, 256, 1024)
        }
        return Curve(name, x, "occupancy in %", lines)

    return [
        curve("registers", "registers per thread", [(count, count, 0) for count in range(16, 256)]),
        curve("shared", "KiB of shared memory per block", [(b / 2**10, 0, b) for b in range(0, most + 1, 1 << 10)]),
    ]


# Threads needed for a bandwidth


class Copies:
    """Copies of an array with any number of threads, which load 4 or 16 bytes at a time."""

    def __init__(self, module: cuda.Module, size: int) -> None:
        self.module, self.size = module, size
        self.block = np.random.default_rng().random(min(size, INPUT_BLOCK), np.float32)
        self.source = repeated(self.block, size)
        self.target = cuda.empty_like(self.source)

    def variant(
        self, name: str, kernel: str, grid: int, threads: int, timed: int, columns: dict[str, Value] | None = None
    ) -> Variant:
        """Return the copy by a grid, checked with few elements and timed with `timed` elements."""
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
        """Return the copy by as many blocks of `threads` threads as the device holds at once."""
        holds = self.module["copy<float>"].occupancy(threads)
        columns: dict[str, Value] = {"blocks": holds.blocks, "warps": holds.warps, "limiter": holds.limiter}
        grid = holds.blocks * device.sm_count
        return self.variant(f"{threads} threads", "copy<float>", grid, threads, self.size, columns)


def by_threads(device: cuda.Device, copies: Copies, limit: Limit) -> tuple[list[Row], list[Curve]]:
    """Copy with one block, with some, with as many as the device holds, and with more; return rows and any curve."""
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
    rows = [
        Row(row.name, {"KiB in flight": min(grid, full) * BLOCK / 256, **row.values}, row.check) for grid, row in merged
    ]
    if not timing.available():
        return rows, []
    lines = {
        f"{case.partition(', ')[2]} per load": points([grid * BLOCK for grid in grids], found, limit.unit)
        for case, found in cases.items()
    }
    return rows, [Curve("threads", "threads in the grid", limit.unit, lines, logarithmic="xy", line=limit)]


# Latencies


def walked(nodes: int, steps: int) -> int:
    """Return the node of the chain after `steps` steps from node 0."""
    node = 0
    for _ in range(steps):
        node = (node * A + C) % nodes
    return node


class Chain:
    """Nodes in memory, each in its own cache line and with the address of the next."""

    def __init__(self, module: cuda.Module, nbytes: int) -> None:
        # A power of two: only then does the chain visit every node.
        self.nodes = 1 << max(2, (nbytes // NODE_BYTES).bit_length() - 1)
        self.module = module
        self.memory = cuda.empty(self.nodes * NODE_BYTES, np.uint8)
        module["link"][min(1024, blocks_for(self.nodes, BLOCK)), BLOCK](self.memory, self.nodes, A, C)

    def walk(self, way: str) -> Walk:
        """Walk from the first node: some untimed steps, which fill the caches, and then timed ones."""
        before, steps = (min(self.nodes, BEFORE), STEPS) if timing.available() else FEW_STEPS
        last, cycles = poisoned(1, np.uint64), cuda.zeros(1, np.int64)
        kernel = self.module[f"chase<{way}>"][1, 1]
        work = kernel.bind(self.memory, before, steps, last, cycles)
        counted = counters.count(work, ("loads", "instructions"))
        end = (int(last.to_host()[0]) - self.memory.pointer) // NODE_BYTES
        return Walk(end, walked(self.nodes, before + steps), int(cycles.to_host()[0]) / steps, counted)


class Walk(NamedTuple):
    """The node where a walk ended, the expected one, the cycles per step, and the counters."""

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
    """Return one row per kind of memory, on the device and, if times are measured, on the host."""
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
    """Return the variant in which all resident threads read data that fits into the L2 cache."""
    elements = np.arange(nbytes // 16 * 4, dtype=np.uint32)
    fours = elements.reshape(-1, 4).sum(axis=1, dtype=np.uint32)
    threads = device.properties.max_threads_per_sm // BLOCK * BLOCK * device.sm_count
    sums, kernel = cuda.empty(threads, np.uint32), module["read_again"][threads // BLOCK, BLOCK]
    places = np.arange(threads)[:, None] + BLOCK * np.arange(FEW_PASSES)
    on_device = cuda.to_device(elements)
    return Variant(
        name="L2 cache, all threads",
        launch=kernel.bind(on_device, fours.size, FEW_PASSES, sums),
        output=sums,
        expected=fours[places % fours.size].sum(axis=1, dtype=np.uint32),
        timed=kernel.bind(on_device, fours.size, PASSES, sums),
        amount=16 * threads * PASSES,
    )


def asked(device: cuda.Device, name: str, cycles: float, rates: Mapping[str, float]) -> dict[str, Value]:
    """Return a latency, and the warps per multiprocessor that hide it with one 4-byte load per lane in flight.

    Little's law: the bytes in flight are the latency times the rate. `rates` are the device's, in GB/s.
    """
    clock = 1e3 * device.properties.clock_rate
    bytes_per_clock: dict[str, float] = {"shared memory": SHARED_BYTES, "L1 cache": SHARED_BYTES}
    bytes_per_clock |= {place: 1e9 * rate / clock / device.sm_count for place, rate in rates.items()}
    loads_per_clock = ISSUED if name == "registers" else bytes_per_clock[name] / (4 * 32)
    return {"cycles": cycles, "ns": 1e9 * cycles / clock, "warps": math.ceil(cycles * loads_per_clock)}


def latency_curve(device: cuda.Device, module: cuda.Module, nbytes: int) -> Curve:
    """Return a curve of the latency against the size of the chain; it rises at the size of each cache."""
    lines: dict[str, list[tuple[float, float]]] = {"through the L1 cache": [], "past the L1 cache": []}
    bits = range(12, max(13, nbytes.bit_length()))
    for chain in (Chain(module, 1 << bit) for bit in bits):
        for way, line in zip(("ThroughL1", "PastL1"), lines.values(), strict=True):
            line.append((chain.memory.nbytes / 2**10, chain.walk(way).cycles))
    return Curve("latency", "KiB in the chain", "cycles per load", lines, logarithmic="x")


def notes(device: cuda.Device, module: cuda.Module) -> list[str]:
    """Return the conclusions of the tables."""
    share = blocks_for(ALL_BLOCKS * device.sm_count, ALL_MULTIPROCESSORS)
    held = Counter(meeting(module[f"meet<{LIVE_48}>"], share, (100, 1)))
    spread = " and ".join(f"{count} hold {blocks}" for blocks, count in sorted(held.items(), reverse=True))
    timed = (
        "Next to each latency, the 'warps' column shows how many warps per multiprocessor hide it. For 'registers', "
        "it assumes that each of four schedulers issues one instruction per cycle. For the caches and the memories, "
        "it assumes that each lane of a warp has one 4-byte load in flight, and that the cache or memory delivers its "
        "full rate. For the L2 cache, that is the rate of 'L2 cache, all threads'. If a multiprocessor cannot hold "
        "that many warps, each warp needs more loads, or wider ones. The chains on the host are traversed in Python. "
        "The time per step of a 16 KiB chain, which fits in the L1 cache, is subtracted."
    )
    return [
        "A multiprocessor accepts blocks until it has no slots left for warps (or threads) or for blocks, or until it "
        "runs out of registers or shared memory. The 'limiter' column shows which of these ran out. Blocks of 32 "
        "threads fill only half of the multiprocessor, because the number of blocks is also limited. Two blocks of 768 "
        "threads leave no room for a third. In a block of 100 threads, the last of the 4 warps has only 4 threads; its "
        "other 28 lanes (87.5 %) are idle.",
        "Exercises: a multiprocessor of compute capability 1.3 holds at most 1,024 threads and 8 blocks, and a block "
        "has at most 512 threads. 16 blocks of 8 x 8 threads would fill it, so 8 leave it half empty. A block of 32 x "
        "32 threads is too large. At compute capability 1.0, a multiprocessor holds 768 threads: 3 blocks of 256, or "
        "24 warps.",
        "'100 x 48 registers': the lectures count 48 x 100 = 4,800 registers for a block of 100 threads. The hardware "
        f"allocates registers to whole warps, 4 x 1,536 per block, so 5 blocks fit, not 6. With {ALL_BLOCKS} such "
        f"blocks on {ALL_MULTIPROCESSORS} multiprocessors, 12 hold 4 blocks each, and the others hold 3. With {share} "
        f"blocks on this device's {device.sm_count} multiprocessors, {spread}.",
        "If every warp waits for 200 cycles after 4 instructions of 4 cycles each, each of the other warps fills 16 "
        "of these 200 cycles. So 13 other warps hide the wait.",
        "A copy with few threads is slow because few loads are in flight. Reaching a given bandwidth requires "
        "bandwidth x latency bytes in flight (Little's law). The 'KiB in flight' column assumes one 4-byte load per "
        "resident thread. The lectures advise 128 to 256 threads per block, a few hundred blocks and at least 10,000 "
        "threads. Today's large GPUs need more: as many threads as fit, and more than 4 bytes in flight per thread. "
        "The 'course cycles' column shows the lectures' figures, for an unnamed card.",
        *([timed] if timing.available() else []),
    ]
