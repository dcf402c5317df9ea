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
# Compute capability, KiB of shared memory that a block may have there, and the side of the tile that fills them.
OTHERS = (((7, 5), 64, 128), ((8, 6), 99, 159), ((8, 0), 163, 204))


def check(answer: ModuleType) -> Iterator[Check]:
    """Launch a kernel with the tile that the answer names, ask for a larger one, and ask about other devices."""
    has = cuda.current_device().properties
    nothing = load("launch_shapes")["nothing"]
    side = answer.largest_tile(has)
    nothing[1, 32, FLOAT_BYTES * side**2]()
    larger = FLOAT_BYTES * (side + 1) ** 2
    yield refusal(
        f"a tile of {side + 1} x {side + 1} does not fit any more", ValueError, lambda: nothing[1, 32, larger]()
    )
    for capability, kibibytes, expected in OTHERS:
        other = dataclasses.replace(has, compute_capability=capability, shared_memory_per_block_optin=kibibytes * 2**10)
        found = answer.largest_tile(other)
        fact = f"with {kibibytes} KiB, as on compute capability {capability[0]}.{capability[1]}, the tile is {expected}"
        yield Check(f"{fact} x {expected}", found == expected, f"the answer is {found}")


LESSON = Lesson(
    learn=[
        "Which properties of a device decide how a kernel is launched, and how a program asks for them.",
        "Which limits differ between generations of GPUs, and which have been the same for years.",
        "How peaks of bandwidth and of arithmetic follow from clocks, widths and the number of multiprocessors.",
        "How many operations a byte a kernel needs before arithmetic, and not memory, limits it.",
    ],
    steps=[
        Step(
            name="peak fp32 arithmetic",
            shows=["FP32_LANES", "peak"],
            text="No call tells how many lanes for single precision a multiprocessor has, so a table by compute "
            "capability does. The peak is two operations, a multiplication and an addition, for each lane in each "
            "clock. The last table of the stop has the peaks of the course's devices, too.",
        ),
        Step(
            name="what a multiprocessor holds",
            shows=["of_multiprocessor", "limits"],
            text="What is resident at once on a multiprocessor of any generation, which decides occupancy. The limits "
            "are in the package, as `cuda.MULTIPROCESSORS`, and need no device. Neighbouring capabilities with the "
            "same limits become one row.",
        ),
        Step(
            name="what a launch may ask for",
            shows=["GRIDS", "of_launch"],
            text="The limits of a single block, a thread and a grid. A launch beyond them is refused.",
        ),
        Step(
            name="agreement with the driver",
            shows=["agreement"],
            text="A table in a program may be wrong or old, so the stop compares it with what the driver says of this "
            "device. What the driver knows a program should ask for; a table is for devices that are not there.",
        ),
    ],
    look_at=[
        "'shared memory of a block' is 48 KiB for every kernel, and 'opted in' is what a kernel may have if it asks, "
        "227 KiB on compute capability 9.0. This package opts in by itself when a launch needs it.",
        "Some limits have not changed for many generations: 1,024 threads in a block, 255 registers of a thread, "
        "65,535 blocks in y and z. Shared memory is what differs most.",
        "Divide the two peaks: an H200 has 66.9 TFLOP/s in single precision and 4,814 GB/s. So a kernel with fewer "
        "than 14 operations for each byte that it moves waits for memory.",
        "In the table of peaks, the ratio of single to double precision is 2 for devices made for science, and 32 for "
        "a T1000.",
        "Where NVML is there, the rows 'now' show the live figures that `nvidia-smi` prints.",
    ],
    exercise=Exercise(
        task="Write `largest_tile(has: cuda.DeviceProperties) -> int`: how many rows and columns the largest square "
        "tile of floats has that one block can hold in shared memory, where the launch opts in to as much as the "
        "device allows. It must be right for devices of any generation.",
        hints=[
            "The names of three properties begin with `shared_memory_per_`. Which one is the limit of a block "
            "that has opted in?",
        ],
        answer="`shared_memory_per_block_optin` divided by the 4 bytes of a float is the number of elements, and the "
        "root of that, rounded down, is the side. A constant that is right on one device wastes shared memory on "
        "another, or makes a launch that is refused there.",
        check=check,
    ),
    course="The peaks of a T1000, a V100, an A100, an H100 and of an AMD 7995WX are those that lectures on GPU "
    "programming name; the other rows are this device's own.",
)
