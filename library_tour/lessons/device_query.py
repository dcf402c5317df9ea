"""The lesson of `device_query`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import ModuleType

import cudart_py as cuda

from ..checks import refusal
from ..device_code import load
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

FLOAT_BYTES = 4
# Compute capability, KiB of shared memory per block after opting in, and the side of the largest tile.
OTHERS = (((7, 5), 64, 128), ((8, 6), 99, 159), ((8, 0), 163, 204))


def check(answer: ModuleType) -> Iterator[Check]:
    """Launch a kernel with the answer's tile, try a larger one, and ask about other devices."""
    has = cuda.current_device().properties
    nothing = load("launch_shapes")["nothing"]
    side = answer.largest_tile(has)
    nothing[1, 32, FLOAT_BYTES * side**2]()
    larger = FLOAT_BYTES * (side + 1) ** 2
    yield refusal(f"a tile of {side + 1} x {side + 1} does not fit", ValueError, lambda: nothing[1, 32, larger]())
    for capability, kibibytes, expected in OTHERS:
        other = dataclasses.replace(has, compute_capability=capability, shared_memory_per_block_optin=kibibytes * 2**10)
        found = answer.largest_tile(other)
        fact = f"with {kibibytes} KiB, as on compute capability {capability[0]}.{capability[1]}, the tile is {expected}"
        yield Check(f"{fact} x {expected}", found == expected, f"the answer is {found}")


LESSON = Lesson(
    why="A GPU that you rent tomorrow may be several generations newer than the one you wrote your program on. Some "
    "limits will be the same, and some will not: one block may use 64 KiB of shared memory on compute capability 7.5, "
    "and 227 KiB on an H200. A program that asks the device runs well on both. A program that makes assumptions is "
    "slow on one of them, or its launch is refused.\n\n"
    "Two figures are worth knowing before you write a kernel. An H200 can move 4,814 GB/s and compute 66.9 TFLOP/s in "
    "single precision. Divide one by the other: a kernel that does fewer than 14 operations per byte waits for memory.",
    learn=[
        "ask a device for the properties that decide how a kernel is launched.",
        "say which limits differ between generations of GPUs, and which have been the same for years.",
        "compute the peaks of bandwidth and arithmetic from clocks, widths and the number of multiprocessors.",
        "predict whether memory or arithmetic will limit a kernel, from its operations per byte.",
    ],
    idea="A program has two sides. The **host** is the CPU with its memory. The **device** is the GPU with its own. A "
    "**kernel** is a function that the host launches on the device, where many **threads** run it at once.\n\n"
    "Threads are organised in levels, and every level has limits. 32 threads form a **warp**, which executes its "
    "instructions together; each thread's place in it is a **lane**. Up to 32 warps, which is 1,024 threads, form a "
    "**block**. All blocks of a launch form the **grid**.\n\n"
    "A GPU consists of **multiprocessors** (SMs); an H200 has 132. Each block runs on one of them, and uses that "
    "multiprocessor's **registers** and **shared memory** while it runs. The whole device shares an **L2 cache** and "
    "the large, slower **device memory**.\n\n"
    "A device's **compute capability**, such as 9.0, names its generation and fixes most of its limits. Rule of "
    "thumb: ask the device that you run on, and use a table for devices that you do not have.",
    steps=[
        Step(
            name="peak fp32 arithmetic",
            shows=["FP32_LANES", "peak"],
            text="No call reports how many single-precision lanes a multiprocessor has, so the program needs a table. "
            "In each clock cycle every lane can complete one fused multiply-add, which counts as two operations. The "
            "peak is therefore 2 x lanes x multiprocessors x clock rate.",
        ),
        Step(
            name="limits per multiprocessor",
            shows=["of_multiprocessor", "limits"],
            text="A multiprocessor can hold only so many threads, blocks, registers and bytes of shared memory at "
            "once. `cuda.MULTIPROCESSORS` lists these limits for every compute capability, and needs no device. "
            "Consecutive capabilities with the same limits share a row. The stop `occupancy` uses them.",
        ),
        Step(
            name="limits per block, thread and grid",
            shows=["GRIDS", "of_launch"],
            text="A launch that exceeds one of these limits is refused.",
        ),
        Step(
            name="agreement with the driver",
            shows=["agreement"],
            text="A table inside a program may be wrong or out of date, so the stop compares it with the driver's own "
            "figures for this device.",
        ),
    ],
    look_at=[
        "`shared memory per block` is 48 KiB, which every kernel gets. `shared memory per block, opt-in` is the limit "
        "for a kernel that asks for more: 227 KiB on compute capability 9.0. In CUDA C++ a program sets a function "
        "attribute to ask; cudart-py does that itself when a launch needs it.",
        "Look down the tables of limits. 1,024 threads per block, 255 registers per thread and 65,535 blocks in y and "
        "z have not changed for many generations. Shared memory changes most.",
        "In the table of peaks, the ratio of single to double precision is 2 for GPUs built for science, and 32 for a "
        "T1000. Double precision is cheap on the former only.",
        "The rows that begin with 'now' are the live figures that `nvidia-smi` prints. They need NVML, which comes "
        "with NVIDIA's driver.",
    ],
    exercise=Exercise(
        task="Write `largest_tile(has: cuda.DeviceProperties) -> int`. It returns the side of the largest square tile "
        "of floats that fits into one block's shared memory, if the launch opts in to as much as the device allows. It "
        "must be right for devices of any generation.",
        hints=[
            "The names of three properties begin with `shared_memory_per_`. Two of them are limits of a block.",
            "`has.shared_memory_per_block_optin` is the limit in bytes after opting in. How many floats are that?",
            "A square tile of side *s* has *s* x *s* elements of 4 bytes. `math.isqrt` returns a square root, rounded "
            "down.",
        ],
        answer="`shared_memory_per_block_optin`, divided by the 4 bytes of a float, is the number of elements. Its "
        "square root, rounded down, is the side. A constant that is right on one device wastes shared memory on "
        "another, or asks for a launch that is refused there.",
        check=check,
    ),
    course="The peaks of a T1000, a V100, an A100, an H100 and an AMD 7995WX are figures from lectures on GPU "
    "programming. All other figures are this device's own.",
)
