"""The lesson of `occupancy`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

from ..lesson import Exercise, Lesson, Step, number_of
from ..stop import Check


class Case(NamedTuple):
    """A multiprocessor, a kernel's blocks, a memory, and the resulting numbers of blocks and loads."""

    capability: tuple[int, int]
    threads: int
    registers: int
    latency: float
    bytes_per_cycle: float
    blocks: int
    loads: int


# Most latencies and rates are those of an H200. From its memory, 652 x 17.7 = 11,540 bytes must be in flight.
CASES = (
    Case((9, 0), 256, 32, 652, 17.7, blocks=8, loads=2),
    Case((9, 0), 32, 32, 652, 17.7, blocks=32, loads=3),
    Case((9, 0), 33, 32, 652, 17.7, blocks=32, loads=3),
    Case((9, 0), 256, 128, 652, 17.7, blocks=2, loads=6),
    Case((9, 0), 1024, 40, 652, 17.7, blocks=1, loads=3),
    Case((9, 0), 96, 168, 652, 17.7, blocks=4, loads=8),
    Case((8, 6), 1024, 32, 500, 12, blocks=1, loads=2),
    Case((9, 0), 256, 32, 280, 17.7, blocks=8, loads=1),
)


def check(answer: ModuleType) -> Iterator[Check]:
    """Ask about blocks whose limits are warps, blocks and registers."""
    for case in CASES:
        found = answer.loads_in_flight(
            case.capability, case.threads, case.registers, case.latency, case.bytes_per_cycle
        )
        yield Check(
            f"{case.threads} threads per block, {case.registers} registers each, {case.latency} cycles, compute "
            f"capability {case.capability[0]}.{case.capability[1]}: {number_of(case.loads, 'load')} in flight",
            found == case.loads,
            f"The answer is {found}; {case.blocks} blocks fit.",
        )


LESSON = Lesson(
    why="On an H200, a load from memory takes about 650 clock cycles. A thread that adds two elements must wait that "
    "long for them. The GPU is fast anyway, because while one warp waits, others run: up to 64 warps fit on each "
    "multiprocessor.\n\n"
    "The number of resident warps determines the speed. The same copy reaches 2,144 GB/s with blocks of 32 threads, "
    "and 3,044 GB/s with blocks of 64. The small blocks fill only half of each multiprocessor. This stop explains why, "
    "and shows how to compute how many warps fit.",
    learn=[
        "compute the **occupancy** of a kernel: its resident warps as a fraction of those that a multiprocessor can "
        "hold.",
        "say which resource limits it: warps, blocks, registers or shared memory.",
        "compute how many bytes must be in flight to reach a given bandwidth, with Little's law.",
        "explain why full occupancy is neither always necessary nor always enough.",
    ],
    idea="A block is **resident** from its start until its last thread has exited. During that time, it occupies warp "
    "slots, registers and shared memory on its multiprocessor. The multiprocessor accepts blocks until it runs out of "
    "one of these resources or reaches its maximum number of blocks:\n\n"
    "```\n"
    "on an H200                   warps      blocks     limiter\n"
    "blocks of 32 threads         32 of 64   32 of 32   blocks\n"
    "blocks of 256 threads        64 of 64    8 of 32   warps\n"
    "256 threads, 128 registers   16 of 64    2 of 32   registers (65,536)\n"
    "```\n\n"
    "In every cycle, the multiprocessor's schedulers pick warps that are ready to run. Latency is hidden as long as "
    "there is always such a warp.\n\n"
    "**Little's law** says how many bytes are enough: bytes in flight = latency x bandwidth. An H200 reads at 4,618 "
    "GB/s, which is 17.7 bytes per cycle for each of its 132 multiprocessors at 1.98 GHz. 652 cycles x 17.7 bytes per "
    "cycle is about 11,500 bytes per multiprocessor. A multiprocessor's 2,048 threads, with one 4-byte load each, have "
    "8,192 bytes in flight, so even full occupancy is not enough here. With 16-byte loads it is.\n\n"
    "The rule of thumb: use 128 to 256 threads per block, check the limiter, and then give each thread more loads in "
    "flight.",
    steps=[
        Step(
            name="resident blocks",
            shows=["meet<0>", "meeting", "fits"],
            text="`kernel.occupancy` computes how many blocks a multiprocessor can hold. `cuda.occupancy` computes the "
            "same number from a compute capability, a block size and the registers per thread. This step verifies the "
            "result: every block of `meet` waits until all blocks have arrived, so the kernel finishes only if all of "
            "them are resident at the same time. A **cooperative launch** guarantees that they are, and is refused if "
            "the grid has even one more block. In each block, one thread increments a counter with `atomicAdd`, which "
            "no other thread can interrupt. It then adds zero, which only reads the counter, until all blocks have "
            "arrived. The other threads wait for it at `__syncthreads()`, the barrier for the block. The `asm` "
            "statement reads the index of the multiprocessor. In other versions of the kernel, each thread keeps "
            "`Live` values in registers, so that registers become the limit. `#pragma unroll` makes every index of "
            "`kept` a constant. Otherwise, the array could not be kept in registers.",
        ),
        Step(
            name="256 threads",
            shows=["copy<float>"],
            text="A copy in which each thread has one load in flight: 4 bytes here, and 16 in `copy<float4>`. `#pragma "
            "unroll 1` keeps the compiler from starting further loads early. `__restrict__` promises that the two "
            "arrays do not overlap (see the lesson `aliasing`). The rows cover many block sizes, each with as many "
            "blocks as the device can hold at once. A separate table shows copies with more and more threads.",
        ),
        Step(
            name="memory",
            shows=["Node", "after", "link", "PastL1", "walk", "chase<PastL1>"],
            text="This step measures the latency that must be hidden, by **pointer chasing**. Each node holds the "
            "address of the next, so every load needs the result of the previous one, and a single thread can only "
            "wait. The time divided by the number of steps is the latency of a load. `link` builds the chain in an "
            "order that looks random.",
        ),
        Step(
            name="L1 cache",
            shows=["ThroughL1", "walk", "chase<ThroughL1>"],
            text="The same walk along a chain that is short enough to fit into a multiprocessor's L1 cache. `__ldca` "
            "loads through that cache, and `__ldcg` bypasses it.",
        ),
        Step(
            name="shared memory",
            shows=["SHARED_NODES", "after", "chase_shared"],
            text="The same walk through shared memory, where each node holds the offset of the next in bytes.",
        ),
    ],
    look_at=[
        "Look at the 'limiter' column. On compute capability 9.0, blocks of 32 threads are limited by the number of "
        "blocks. Blocks of 768 threads are limited by the number of warps: a third block would need 24 more, and only "
        "16 are left.",
        "On an H200, blocks of 64, 128, 256, 512 and 1,024 threads copy at the same rate, and blocks of 32 at 70 % of "
        "it. Blocks of 100 threads fill all 64 warps and are slower still. The last warp of each block has only 4 "
        "threads. In addition, a block's 400 bytes often begin within a sector, so that the warps touch 16 % more "
        "sectors.",
        "In the 'Copying with more and more threads' table, the rate grows with the number of bytes in flight. On an "
        "H200, 270,336 threads reach 3,044 GB/s with 4-byte loads, and 3,980 GB/s with 16-byte loads. That many "
        "threads fill the device, so only more bytes per thread can help.",
        "On an H200, a load takes 23 cycles from shared memory, 32 from the L1 cache, 280 from the L2 cache and 652 "
        "from memory. Without a GPU, the table shows the number of loads instead. No step shows the "
        "kernel of the 'registers' row: it computes the same chain of indices without loading anything.",
        "The 'L2 cache, all threads' row does not measure a chain: all threads read from the L2 cache at the same "
        "time, as fast as it can supply data. On a GPU, the 'host' rows show chains of the given sizes in the host's "
        "memory.",
    ],
    exercise=Exercise(
        task="Write `loads_in_flight(capability, threads, registers, latency, bytes_per_cycle) -> int`. It returns the "
        "smallest number of 4-byte loads that each thread must have in flight for a multiprocessor to move "
        "`bytes_per_cycle` bytes per cycle if a load takes `latency` cycles. Each block has `threads` threads, each "
        "thread uses `registers` registers, and no shared memory is used.",
        hints=[
            "By Little's law, latency times rate is the number of bytes in flight. Which threads share them?",
            "`cuda.occupancy(capability, threads, registers).blocks` is the number of blocks that a multiprocessor "
            "holds.",
            "Divide the bytes by 4 and by the number of resident threads, and round up.",
        ],
        answer="The resident threads share the bytes in flight. The number of resident threads depends on the "
        "registers per thread and on the multiprocessor's limits. On an H200, a load from memory takes 652 cycles, and "
        "each multiprocessor receives 17.7 bytes per cycle. 2,048 threads with 32 registers then need two loads each. "
        "With 128 registers, only 512 threads are resident, and each needs six. More loads per thread can make up for "
        "low occupancy.",
        check=check,
    ),
    course="The 'course cycles' column shows round figures from a lecture that does not name a card. The exercises are "
    "from lectures on GPU programming; each row gives the compute capability that its exercise asks about.",
)
