"""The lesson of `occupancy`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

from ..lesson import Exercise, Lesson, Step
from ..stop import Check


class Case(NamedTuple):
    """A multiprocessor, a kernel's blocks on it, its memory, and how many blocks and loads follow from these."""

    capability: tuple[int, int]
    threads: int
    registers: int
    latency: float
    bytes_a_cycle: float
    blocks: int
    loads: int


# Latency and rate are those of an H200, but for one case: 662 x 17.7 = 11,717 bytes, in loads of 4 bytes.
CASES = (
    Case((9, 0), 256, 32, 662, 17.7, blocks=8, loads=2),
    Case((9, 0), 32, 32, 662, 17.7, blocks=32, loads=3),
    Case((9, 0), 33, 32, 662, 17.7, blocks=32, loads=3),
    Case((9, 0), 256, 128, 662, 17.7, blocks=2, loads=6),
    Case((9, 0), 1024, 40, 662, 17.7, blocks=1, loads=3),
    Case((9, 0), 96, 168, 662, 17.7, blocks=4, loads=8),
    Case((8, 6), 1024, 32, 500, 12, blocks=1, loads=2),
    Case((9, 0), 256, 32, 282, 17.7, blocks=8, loads=1),
)


def check(answer: ModuleType) -> Iterator[Check]:
    """Ask about blocks that are limited by each resource in turn."""
    for case in CASES:
        found = answer.loads_in_flight(case.capability, case.threads, case.registers, case.latency, case.bytes_a_cycle)
        yield Check(
            f"{case.threads} threads a block with {case.registers} registers each, {case.latency} cycles, capability "
            f"{case.capability[0]}.{case.capability[1]}: {case.loads} in flight",
            found == case.loads,
            f"the answer is {found}; {case.blocks} blocks fit",
        )


LESSON = Lesson(
    learn=[
        "What occupancy is: the number of warps that are resident on a multiprocessor, as a fraction of the number "
        "that it can hold.",
        "Which resource limits it for a given block: warps, blocks, registers or shared memory.",
        "Why warps hide latency, and how many bytes have to be in flight for a bandwidth (Little's law).",
        "Why full occupancy is neither always needed nor always enough.",
    ],
    steps=[
        Step(
            name="how many fit",
            shows=["meet<0>", "meeting", "fits"],
            text="The calculator `kernel.occupancy` says how many blocks a multiprocessor holds. To prove it, every "
            "block of `meet` waits until all blocks have arrived. The wait ends only if all of them are resident at "
            "once. A cooperative launch promises that, and refuses a grid with one block more. `Live` values that "
            "each thread keeps make registers the limit.",
        ),
        Step(
            name="256 threads",
            shows=["copy<float>"],
            text="A copy in which each thread has one load in flight, of 4 bytes or, with `copy<float4>`, of 16. "
            "`#pragma unroll 1` keeps the compiler from starting more loads ahead. The rows launch it with blocks of "
            "many sizes, always as many as the device holds at once; a second table does so with ever more threads.",
        ),
        Step(
            name="memory",
            shows=["Node", "after", "link", "PastL1", "walk", "chase<PastL1>"],
            text="The latency that has to be hidden. A node contains the address of the next one, so that each load "
            "needs the result of the load before, and one thread can do nothing but wait. The time divided by the "
            "number of steps is the latency of one load. `link` makes the chain, in an order that looks random.",
        ),
        Step(
            name="L1 cache",
            shows=["ThroughL1", "walk", "chase<ThroughL1>"],
            text="The same chain, short enough for the first-level cache, and loaded through it: `__ldca` in place of "
            "`__ldcg`.",
        ),
        Step(
            name="shared memory",
            shows=["SHARED_NODES", "after", "chase_shared"],
            text="The same walk through shared memory, where a node is an offset in bytes.",
        ),
    ],
    look_at=[
        "The column 'limiter': blocks of 32 threads are limited by the number of blocks on compute capability 9.0, and "
        "blocks of 768 threads by warps, of which a third block would need more than are left.",
        "On an H200, blocks of 64, 128, 256 and 512 threads copied at the same rate, and blocks of 32 at 70 % of it, "
        "because only half as many warps were resident. Blocks of 100 threads fill all 64 warps, and were slower "
        "still, since the last warp of each has 4 threads.",
        "In the table of ever more threads, the rate grows with the bytes in flight. On an H200, 270,336 threads "
        "reached about 3,000 GB/s with loads of 4 bytes and 3,970 with loads of 16. Once as many threads are resident "
        "as the device can hold, more bytes are in flight only if each thread loads more of them at a time.",
        "The latencies of an H200: 23 cycles for shared memory, 32 for the L1 cache, about 280 for the L2 cache and "
        "660 to 690 for memory. Without a GPU, the table counts the loads of the chain instead.",
    ],
    exercise=Exercise(
        task="Write `loads_in_flight(capability, threads, registers, latency, bytes_a_cycle) -> int`: how many loads "
        "of 4 bytes each thread must have in flight at least, so that a multiprocessor moves `bytes_a_cycle` bytes in "
        "each cycle while a load takes `latency` cycles. Its blocks have `threads` threads, each with `registers` "
        "registers, and use no shared memory.",
        hints=[
            "By Little's law, latency times rate is what is in flight. How many threads share it: how many blocks "
            "does `cuda.occupancy(capability, threads, registers)` let a multiprocessor hold?",
        ],
        answer="The bytes in flight are divided among the threads that are resident, which the registers and the "
        "limits of the multiprocessor decide. On an H200, whose memory answers after 662 cycles and gives each "
        "multiprocessor 17.7 bytes a cycle, 2,048 threads with 32 registers need two loads each; with 128 registers "
        "only 512 threads are there, and each needs six. So low occupancy can be made up for by more "
        "loads of each thread.",
        check=check,
    ),
    course="The cycles in the column of the course are round figures of a lecture, without a card. The exercises are "
    "from lectures on GPU programming; each row names the compute capability for which they ask.",
)
