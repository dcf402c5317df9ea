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
    empty = load("launch_shapes")["empty_kernel"]
    side = answer.largest_tile(has)
    empty[1, 32, FLOAT_BYTES * side**2]()
    larger = FLOAT_BYTES * (side + 1) ** 2
    yield refusal(f"a tile of {side + 1} x {side + 1} does not fit", ValueError, lambda: empty[1, 32, larger]())
    for capability, kibibytes, expected in OTHERS:
        other = dataclasses.replace(has, compute_capability=capability, shared_memory_per_block_optin=kibibytes * 2**10)
        found = answer.largest_tile(other)
        fact = f"with {kibibytes} KiB, as on compute capability {capability[0]}.{capability[1]}, the tile is {expected}"
        yield Check(f"{fact} x {expected}", found == expected, f"The answer is {found}.")


LESSON = Lesson(
    why="A GPU that you rent tomorrow may be several generations newer than the one on which you wrote your program. "
    "Some limits will be the same, and some will not: one block may use 64 KiB of shared memory on compute capability "
    "7.5, and 227 KiB on an H200. A program that queries the device runs well on both. A program with hard-coded "
    "limits is slow on one of them, or its launches are refused.\n\n"
    "Two figures are worth knowing before you write a kernel. An H200 can move data at 4,814 GB/s and compute at 66.9 "
    "TFLOP/s in single precision. Divide the second figure by the first: a kernel that performs fewer than 14 "
    "operations per byte waits for memory.",
    learn=[
        "query the properties of a device that matter when you launch a kernel.",
        "say which limits differ between GPU generations, and which have stayed the same for years.",
        "compute peak bandwidth and peak arithmetic from clock rates, the bus width and the number of multiprocessors.",
        "predict from a kernel's operations per byte (its arithmetic intensity) whether memory or arithmetic will "
        "limit it.",
    ],
    idea="A CUDA program has a host side and a device side. The **host** is the CPU with its memory. The **device** is "
    "the GPU with its own memory. A **kernel** is a function that the host launches on the device, where many "
    "**threads** run it at the same time.\n\n"
    "Threads are organised in a hierarchy, and every level has limits. A **warp** is a group of 32 threads that "
    "execute instructions together; each of the 32 is a **lane** of the warp. Up to 32 warps, or 1,024 threads, form a "
    "**block**. All blocks of a launch form the **grid**.\n\n"
    "A GPU has many **multiprocessors** (SMs); an H200 has 132. Each block runs on one of them and uses its "
    "**registers** and its **shared memory**. All multiprocessors share an **L2 cache** and the **device memory**, "
    "which is larger and slower.\n\n"
    "A device's **compute capability**, such as 9.0, identifies its generation and determines most of its limits.\n\n"
    "The rule of thumb: query the device that you run on, and use a table only for devices that you do not have.",
    steps=[
        Step(
            name="peak fp32 arithmetic",
            shows=["FP32_LANES", "peak"],
            text="No call reports how many single-precision lanes a multiprocessor has, so the program needs a table. "
            "In each clock cycle, every lane can complete one fused multiply-add, which counts as two operations. The "
            "peak is therefore 2 x lanes x multiprocessors x clock rate.",
        ),
        Step(
            name="limits per multiprocessor",
            shows=["of_multiprocessor", "limits"],
            text="A multiprocessor can hold only so many threads and blocks, and it has only so many registers and "
            "bytes of shared memory. `cuda.MULTIPROCESSORS` lists these limits for every compute capability, even "
            "without a device. Consecutive compute capabilities with the same limits share a row. The `occupancy` stop "
            "uses these limits.",
        ),
        Step(
            name="limits per block, thread and grid",
            shows=["GRIDS", "of_launch"],
            text="A launch that exceeds one of these limits is refused.",
        ),
        Step(
            name="agreement with the driver",
            shows=["agreement"],
            text="A table inside a program may be wrong or out of date, so the stop compares it with the limits that "
            "the driver reports for this device.",
        ),
    ],
    look_at=[
        "`shared memory per block` is 48 KiB, which every kernel may use. `shared memory per block, opt-in` is the "
        "limit for a kernel that asks for more: 227 KiB on compute capability 9.0. In CUDA C++, a program opts in by "
        "setting a function attribute. cudart-py sets it when a launch needs it.",
        "Read down the tables of limits. The limits of 1,024 threads per block, 255 registers per thread and 65,535 "
        "blocks in y and z have not changed for many generations. Shared memory has changed the most.",
        "In the table of peaks, the ratio of single to double precision is 2 for GPUs built for scientific computing, "
        "and 32 for a T1000. Double precision is cheap only on the former.",
        "The rows that begin with 'now' show the live figures that `nvidia-smi` prints. They need NVML, which comes "
        "with NVIDIA's driver.",
    ],
    exercise=Exercise(
        task="Write `largest_tile(has: cuda.DeviceProperties) -> int`. It returns the side of the largest square tile "
        "of floats that fits in one block's shared memory if the launch opts in to as much as the device allows. The "
        "result must be correct for devices of any generation.",
        hints=[
            "The names of three properties begin with `shared_memory_per_`. Two of these properties are limits per "
            "block.",
            "`has.shared_memory_per_block_optin` is the limit in bytes after opting in. How many floats is that?",
            "A square tile of side *s* has *s* x *s* elements of 4 bytes. `math.isqrt` returns the square root, "
            "rounded down.",
        ],
        answer="`shared_memory_per_block_optin`, divided by the 4 bytes of a float, is the number of elements. Its "
        "square root, rounded down, is the side. A constant that is right on one device wastes shared memory on "
        "another, or causes launches to be refused there.",
        check=check,
    ),
    course="The peaks of the T1000, V100, A100, H100 and AMD 7995WX come from lectures on GPU programming. All other "
    "peaks and properties are those of the device that you are using.",
)
