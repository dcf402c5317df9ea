"""Barriers for the threads of a warp, of a block and of the whole grid, and votes among them.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run synchronization
    synchronization: Barriers for a warp, a block and the grid, and votes
    size 16,389: elements to smooth
    counters: measured over 4,101 elements and 10 steps; in the second table, 2,304
    elements
                               loads  stores  instructions  check
    ───────────────────────────────────────────────────────────────
    one launch per step        2,580   1,290        45,850  right
    cooperative launch         2,580   1,290        55,846  right
    more blocks than fit                                    refused
    no __syncthreads()                                      caught
    no __syncwarp()                                         caught
    block barrier for a grid                                caught
    grid.sync(), plain launch                               caught
    more blocks than fit: smooth_steps<Grid>: a cooperative grid of (1048576, 1, 1)
    has 1048576 blocks, but only 1056 blocks of 256 threads and 0 bytes of dynamic
    shared memory can be resident at once (8 on each of 132 multiprocessors)
    no __syncthreads(): kernel reverse_hasty at kernels/synchronization.cu:42:
    race: it reads 4 bytes of shared memory at 0x7fc (1020 bytes into
    reverse_hasty::elements), which block (0, 0, 0), thread (255, 0, 0) wrote at
    kernels/synchronization.cu:41, and nothing orders the two accesses: put a
    barrier such as __syncthreads() between them; block (0, 0, 0), thread (0, 0,
    0), instruction 'ld.shared.u32 %r13, [%r12]'
        42 | out[first + threadIdx.x] = elements[BLOCK - 1 - threadIdx.x];
    no __syncwarp(): kernel reverse_warp_hasty at kernels/synchronization.cu:73:
    race: it reads 4 bytes of shared memory at 0x47c (124 bytes into
    reverse_warp_hasty::elements), which block (0, 0, 0), thread (31, 0, 0)
    wrote at kernels/synchronization.cu:72, and nothing orders the two accesses:
    put a barrier such as __syncthreads() between them; block (0, 0, 0), thread
    (0, 0, 0), instruction 'ld.shared.u32 %r11, [%r10]'
        73 | out[i] = elements[threadIdx.x ^ 31];
    block barrier for a grid: kernel smooth_steps<Block> at
    kernels/synchronization.cu:109: race: it reads 4 bytes of global memory at
    0x7f… (1024 bytes into the 2048-byte allocation at 0x7f…, allocated at
    library_tour/course/synchronization.py:341), which block (1, 0, 0), thread
    (0, 0, 0) wrote at kernels/synchronization.cu:109, and nothing orders the
    two accesses, which are in different blocks: use atomics, grid.sync() or
    separate launches; block (0, 0, 0), thread (255, 0, 0), instruction
    'ld.global.f32 %f1, [%rd10]'
        109 | out[i] = 0.5f * (in[i == 0 ? n - 1 : i - 1] + in[i == n - 1 ? 0 : i +
    1]);
        also at 1 more instruction of this line, for example because a loop was
    unrolled
    grid.sync(), plain launch: cuMemcpyDtoHAsync: unspecified launch failure
    (CUDA_ERROR_LAUNCH_FAILED)
    kernel smooth_steps<Grid> at kernels/synchronization.cu:131 (inlined from
    …/cooperative_groups.h:180): trap executed; block (0, 0, 0), thread (0, 0, 0),
    instruction 'trap'
        131 | Scope::sync();
        grid.sync() needs a cooperative launch: kernel.launch(grid, block, ...,
    cooperative=True)
    Within a warp and within a block
                                  loads  stores  instructions  check
    ────────────────────────────────────────────────────────────────
    __syncthreads()                  72      72         1,728  right
    __syncthreads(), in a branch     72      72         1,912  right
    _count(), _and(), _or()          72      27         1,809  right
    __syncwarp()                     72      72         1,584  right
    ballot, all, any                 72     216         2,304  right
    __syncthreads() waits for all threads of the block and makes the writes of each
    visible to the others. It may be inside a branch if all threads of the block
    take that branch. __syncthreads_count(), __syncthreads_and() and
    __syncthreads_or() also tell every thread how many threads meet a condition,
    whether all of them do, and whether any of them does.
    __syncwarp() does the same for the lanes of a warp, which otherwise need not run
    in lockstep. The votes __all_sync(), __any_sync() and __ballot_sync() evaluate a
    condition in all lanes, but they are not memory barriers: other lanes may read
    what one lane has stored only after __syncwarp().
    The blocks of an ordinary launch may run one after another, so no block may wait
    for another. Steps that need all results of the previous step are split into
    several launches, each of which starts when the previous one has finished. A
    cooperative launch has no more blocks than fit on the device at once, so its
    blocks can wait for one another.
    On an H200, a barrier takes about 2 cycles for a warp, 78 cycles for a block of
    1,024 threads, and about 1,900 cycles, or a microsecond, for the grid. A launch
    takes the host longer than that, so a single cooperative launch is faster if
    each step does little work. Its kernel also keeps its registers and shared
    memory between steps. The kernels that wait within a warp or a block do so
    little work that each takes as long as a launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import on_host, refusal
from ..device_code import blocks_for, load
from ..inputs import repeated
from ..limits import copy_limit
from ..stop import Curve, Result, Row, Size, Value
from ..variants import Variant, measure, points
from ..wrong import all_shown_wrong

TITLE = "Barriers for a warp, a block and the grid, and votes"
SIZE = Size("elements to smooth", full=2**26 + 5, small=2**14 + 5)
BLOCK, WARP = 256, 32
BLOCKS = 9  # for the kernels that do not wait for the grid
CHECKED = 2**12 + 5  # elements that are smoothed and compared
STEPS = 10
STEPWISE, AT_ONCE = "one launch per step", "cooperative launch"
STEPS_NAMES = ("smooth_steps<Grid>", "smooth_steps<Block>")
WAITS = {"__syncwarp()": "wait<Warp>", "__syncthreads()": "wait<Block>", "grid.sync()": "wait<Grid>"}
ROUNDS = 32  # of the kernel that does nothing but wait
CURVE = tuple(2**power for power in range(10, 26, 2))
EXPLAINED_BY = ("loads", "stores", "instructions")
LOCAL_TABLE = "Within a warp and within a block"
CYCLES_TABLE = "Cycles per barrier, by the number of threads per block"
NOTES = (
    "__syncthreads() waits for all threads of the block and makes the writes of each visible to the others. It may be "
    "inside a branch if all threads of the block take that branch. __syncthreads_count(), __syncthreads_and() and "
    "__syncthreads_or() also tell every thread how many threads meet a condition, whether all of them do, and whether "
    "any of them does.",
    "__syncwarp() does the same for the lanes of a warp, which otherwise need not run in lockstep. The votes "
    "__all_sync(), __any_sync() and __ballot_sync() evaluate a condition in all lanes, but they are not memory "
    "barriers: other lanes may read what one lane has stored only after __syncwarp().",
    "The blocks of an ordinary launch may run one after another, so no block may wait for another. Steps that need "
    "all results of the previous step are split into several launches, each of which starts when the previous one has "
    "finished. A cooperative launch has no more blocks than fit on the device at once, so its blocks can wait for one "
    "another.",
    "On an H200, a barrier takes about 2 cycles for a warp, 78 cycles for a block of 1,024 threads, and about 1,900 "
    "cycles, or a microsecond, for the grid. A launch takes the host longer than that, so a single cooperative launch "
    "is faster if each step does little work. Its kernel also keeps its registers and shared memory between steps. "
    "The kernels that wait within a warp or a block do so little work that each takes as long as a launch.",
)

Integers = NDArray[np.int32]
Floats = NDArray[np.float32]


def reversed_in(x: Integers, length: int) -> Integers:
    """Return x with each group of `length` elements reversed."""
    return x.reshape(-1, length)[:, ::-1].ravel()


def every_second_reversed(x: Integers) -> Integers:
    """Return x with the elements of every second block reversed."""
    blocks = x.reshape(-1, BLOCK).copy()
    blocks[::2] = blocks[::2, ::-1]
    return blocks.ravel()


def votes_of_blocks(x: Integers) -> Integers:
    """Return for each block how many of its elements are positive, whether all are, and whether any is."""
    positive = x.reshape(-1, BLOCK) > 0
    return np.stack([positive.sum(1), positive.all(1), positive.any(1)], axis=1).astype(np.int32).ravel()


def votes_of_warps(x: Integers) -> Integers:
    """Return for each warp the bits of the lanes with positive elements, whether all are, and whether any is."""
    positive = x.reshape(-1, WARP) > 0
    bits = np.packbits(positive, axis=1, bitorder="little").view(np.int32)[:, 0]
    return np.stack([bits, positive.all(1), positive.any(1)], axis=1).astype(np.int32).ravel()


def smoothed(x: Floats, steps: int) -> Floats:
    """Return the elements of a ring after `steps` steps, computed in double precision.

    In a step each element becomes the mean of its neighbours.
    """
    y = x.astype(np.float64)
    for _ in range(steps):
        y = (np.roll(y, 1) + np.roll(y, -1)) / 2
    return y.astype(np.float32)


def run(device: cuda.Device, size: int) -> Result:
    """Check every barrier and vote; time the steps of a grid as launches and in one kernel; leave out barriers."""
    random = np.random.default_rng()
    module, limit = load_all(), copy_limit(device)
    rows = measure(smoothing(device, module, random, size), limit, EXPLAINED_BY)
    local = measure(local_variants(module, random), None, EXPLAINED_BY)
    wrong = all_shown_wrong(
        {
            "no __syncthreads()": no_block_barrier,
            "no __syncwarp()": no_warp_barrier,
            "block barrier for a grid": block_for_grid,
            "grid.sync(), plain launch": plain_launch,
        }
    )
    tables = {LOCAL_TABLE: local}
    pictures = []
    if timing.available():
        tables[CYCLES_TABLE] = cycles(device, module)
        pictures = [curve(device, module, random, size)]
    return Result(
        [*rows, too_many(module), *wrong],
        limit,
        notes=NOTES,
        tables=tables,
        pictures=pictures,
        counted=f"{min(size, CHECKED):,} elements and {STEPS} steps; in the second table, {BLOCKS * BLOCK:,} elements",
    )


def load_all() -> cuda.Module:
    """Compile all kernels of this stop."""
    return load("synchronization", names=[*STEPS_NAMES, *WAITS.values()])


def smoothing(device: cuda.Device, module: cuda.Module, random: np.random.Generator, size: int) -> list[Variant]:
    """Return the two variants whose steps need the whole previous step, checked on few elements and timed on all."""
    few = min(size, CHECKED)
    host = random.random(few, np.float32)
    a = repeated(host, size)
    b = cuda.empty_like(a)
    start = cuda.to_device(host)

    def steps(name: str, n: int) -> Callable[[], object]:
        if name == AT_ONCE:
            kernel = module[STEPS_NAMES[0]]
            most = device.sm_count * kernel.occupancy(BLOCK).blocks
            launch = kernel.configure(min(most, blocks_for(n, BLOCK)), BLOCK, cooperative=True)
            return launch.bind(a, b, n, STEPS)
        kernel, grid = module["smooth_step"], blocks_for(n, BLOCK)
        there, back = kernel[grid, BLOCK].bind(a, b, n), kernel[grid, BLOCK].bind(b, a, n)

        def launches() -> None:
            for _ in range(STEPS // 2):
                there()
                back()

        return launches

    return [
        Variant(
            name=name,
            prepare=lambda: cuda.memcpy(a[:few], start),
            launch=steps(name, few),
            output=a[:few],
            expected=smoothed(host, STEPS),
            tolerance=1e-6,
            timed=steps(name, size),
            amount=2 * a.nbytes * STEPS,
        )
        for name in (STEPWISE, AT_ONCE)
    ]


def too_many(module: cuda.Module) -> Row:
    """Ask for a cooperative launch of more blocks than the device holds at once, which is refused."""
    kernel = module[STEPS_NAMES[0]]
    check = refusal(
        "too many cooperative blocks", cuda.errors.LaunchError, lambda: kernel.configure(2**20, BLOCK, cooperative=True)
    )
    return Row("more blocks than fit", check=replace(check, word="refused"), note=check.detail)


def local_variants(module: cuda.Module, random: np.random.Generator) -> list[Variant]:
    """Return the kernels whose threads wait for their block or their warp."""
    host = random.integers(-1, 100, BLOCKS * BLOCK).astype(np.int32)
    # The condition holds for all, for none and for some elements of a block. In a ballot, lane 31 is the sign bit.
    host[:BLOCK], host[BLOCK : 2 * BLOCK] = 1, -1
    x = cuda.to_device(host)
    cases = {
        "__syncthreads()": ("reverse_block", reversed_in(host, BLOCK)),
        "__syncthreads(), in a branch": ("reverse_in_branch", every_second_reversed(host)),
        "_count(), _and(), _or()": ("block_votes", votes_of_blocks(host)),
        "__syncwarp()": ("reverse_warp", reversed_in(host, WARP)),
        "ballot, all, any": ("warp_votes", votes_of_warps(host)),
    }
    outputs = {name: cuda.empty(expected.size, np.int32) for name, (_, expected) in cases.items()}
    return [
        Variant(
            name=name,
            launch=module[kernel][BLOCKS, BLOCK].bind(x, outputs[name]),
            output=outputs[name],
            expected=expected,
        )
        for name, (kernel, expected) in cases.items()
    ]


def cycles(device: cuda.Device, module: cuda.Module) -> list[Row]:
    """Return the cycles that each barrier takes, by the number of threads per block."""
    counter = cuda.empty(1, np.int64)
    rows = []
    for name, kernel in WAITS.items():
        values: dict[str, Value] = {}
        for block in (32, 256, 1024):
            blocks = device.sm_count if kernel == WAITS["grid.sync()"] else 1
            module[kernel].configure(blocks, block, cooperative=True)(counter)
            values[f"{block:,}"] = float(on_host(counter)[0]) / ROUNDS
        rows.append(Row(name, values))
    return rows


def curve(device: cuda.Device, module: cuda.Module, random: np.random.Generator, most: int) -> Curve:
    """Return the time per step against the size, up to `most` elements, as launches and in one kernel."""
    sizes = [*(size for size in CURVE if size < most), most]
    measured = [measure(smoothing(device, module, random, size), None, quick=True) for size in sizes]
    lines = {
        name: [(size, 1e3 * ms / STEPS) for size, ms in points(sizes, rows, "ms")]
        for name, rows in zip((STEPWISE, AT_ONCE), zip(*measured, strict=True), strict=True)
    }
    return Curve("steps", "elements", "µs per step", lines, logarithmic="xy")


def no_block_barrier() -> str:
    """Reverse the elements of a block without its barrier."""
    return hasty("reverse_hasty", BLOCK)


def no_warp_barrier() -> str:
    """Reverse the elements of each warp without its barrier."""
    return hasty("reverse_warp_hasty", WARP)


def hasty(kernel: str, length: int) -> str:
    """Run a kernel without its barrier; return a sentence if its result is also wrong, else an empty string."""
    x, out = np.arange(BLOCK, dtype=np.int32), cuda.zeros(BLOCK, np.int32)
    load_all()[kernel][1, BLOCK](cuda.to_device(x), out)
    wrong = np.count_nonzero(on_host(out) != reversed_in(x, length))
    return f"{wrong} of {x.size} elements are wrong." if wrong else ""


def block_for_grid() -> str:
    """Wait for the threads of one block, although a step needs the results of all blocks."""
    return all_steps(STEPS_NAMES[1], cooperative=True)


def plain_launch() -> str:
    """Wait for the grid in an ordinary launch."""
    return all_steps(STEPS_NAMES[0], cooperative=False)


def all_steps(kernel: str, *, cooperative: bool) -> str:
    """Perform all steps in one kernel; return a sentence if the result is wrong, else an empty string."""
    host = np.random.default_rng(0).random(2 * BLOCK, np.float32)
    a = cuda.to_device(host)
    b = cuda.zeros_like(a)
    load_all()[kernel].configure(2, BLOCK, cooperative=cooperative)(a, b, host.size, STEPS)
    wrong = np.count_nonzero(np.abs(on_host(a) - smoothed(host, STEPS)) > 1e-6)
    return f"{wrong} of {host.size} elements are wrong." if wrong else ""
