"""The lesson of `errors`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import poisoned
from ..device_code import load
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

COUNT = 8
# Launches of each case, by the names in `prepared`, and the index of the first that fails.
CASES = {
    None: ("fill", "fill", "fill"),
    1: ("fill", "null store", "fill", "fill"),
    0: ("failing assert", "fill", "null store"),
    3: ("fill", "fill", "fill", "null store"),
}


def prepared(names: tuple[str, ...]) -> list[cuda.BoundLaunch]:
    """Return launches of the stop's kernels by name, both correct and faulty ones."""
    module = load("errors")
    x = poisoned(COUNT, np.float32)
    negative = cuda.full(COUNT, -1.0, np.float32)
    launches = {
        "fill": module["fill"][1, 32].bind(x, COUNT, 3.0),
        "null store": module["store"][1, 1].bind(None, 1.0),
        "failing assert": module["require_positive"][1, 32].bind(negative, COUNT),
    }
    return [launches[name] for name in names]


def check(answer: ModuleType) -> Iterator[Check]:
    """Let the answer find the failing launch, if any; reset after each case, because a fault breaks the context."""
    for failing, names in CASES.items():
        found = answer.first_that_fails(prepared(names))
        fact = f"of {', '.join(names)}: " + ("no launch fails" if failing is None else f"launch {failing} fails")
        yield Check(fact, found == failing, f"The answer is {found}.")
        cuda.reset()


LESSON = Lesson(
    why="A launch returns within microseconds, but its kernel may run much longer: one of the course's kernels runs "
    "for 414 ms on an H200. If the kernel fails, the launch has long since returned without an error. The error "
    "surfaces in whichever call waits next, perhaps in a different file of your program, and seems to be the fault of "
    "that call.\n\n"
    "So the first question about a CUDA error is not where it was raised but which launch caused it. This stop makes "
    "ten common mistakes. It shows when and where each one is reported, and whether the program can continue.",
    learn=[
        "say which mistakes are reported immediately, and which surface only when a later call waits.",
        "find the launch that caused an error.",
        "tell errors that leave the context usable from those that do not.",
        "check every call, in Python and in C.",
    ],
    idea="The host queues work and continues; the device runs it later. This is an **asynchronous** launch. Mistakes "
    "therefore fall into two groups.\n\n"
    "The driver can detect some of them before anything is queued, for example an invalid launch configuration or an "
    "allocation that is too large. The call itself reports the error, no work has started, and the program may try "
    "again.\n\n"
    "Others happen while a kernel runs, for example a store to an invalid address or a failed assertion. They are "
    "reported at the latest by the next call that **synchronises**, which means that it waits for the device. They "
    "also leave the **context** unusable. The context is the process's entire state on the device: its memory, modules "
    "and streams. Every later call then returns the same error (the error is *sticky*), and on a GPU, the only remedy "
    "is a new process.\n\n"
    "In C, every call returns a status, except a launch with `<<<...>>>`: ask `cudaGetLastError()` for its status.\n\n"
    "```\n"
    "void check(cudaError_t status)\n"
    "{\n"
    '    if (status != cudaSuccess) { fprintf(stderr, "%s\\n", cudaGetErrorString(status)); exit(1); }\n'
    "}\n\n"
    "kernel<<<blocks, threads>>>(x, n);\n"
    "check(cudaGetLastError());       // was the launch refused?\n"
    "check(cudaDeviceSynchronize());  // did the kernel fail?\n"
    "```\n\n"
    "The rule of thumb: check every call. To find the launch at fault, wait after each launch.",
    steps=[
        Step(
            name="invalid configuration",
            shows=["error_of", "told", "invalid_configuration"],
            text="A block of 2,048 threads is refused before anything is queued. cudart-py raises a `ValueError` that "
            "names the argument. The same call to the driver returns a status, which `cuda.check` turns into an "
            "exception. The context remains usable. `error_of` returns the exception that a function raises, and "
            "`told` formats it for the report.",
        ),
        Step(
            name="failed allocation",
            shows=["TOO_LARGE", "failed_allocation"],
            text="The program asks for more memory than the device has. Again, the call itself reports the error. A "
            "program may free some memory and try again.",
        ),
        Step(
            name="null store",
            shows=["store", "fill", "launch_three", "null_store"],
            text="There are three launches, and the second one stores through a null pointer. All three return without "
            "an error, because a launch only queues its kernel. `to_host` waits for them and raises the kernel's "
            "error. From then on every call raises it: the context is lost.",
        ),
        Step(
            name="null store, debug()",
            shows=["launch_three", "null_store_in_debug_mode"],
            text="The same launches inside `with cuda.debug():`, which waits after each of them. Now the launch of "
            "`store` itself raises the error, and the message names the kernel, its grid and block, and the line that "
            "launched it. `CUDART_PY_DEBUG=1` does the same for a whole program, without changing it.",
        ),
        Step(
            name="kernel assert",
            shows=["require_positive", "kernel_assert"],
            text="`assert` works in a kernel as it does in C. It documents what the kernel relies on. A failed "
            "assertion makes the context unusable.",
        ),
        Step(
            name="uninitialised memory",
            shows=["copy", "uninitialised_memory"],
            text="No status reports this mistake. New memory holds whatever was there before, so an array that is "
            "read before it is written has arbitrary contents. The simulator keeps track of the bytes that have been "
            "written, and warns.",
        ),
    ],
    look_at=[
        "The 'status' column shows the status that the driver returns to a C program. The 'exception' column shows "
        "the exception that cudart-py raises. `ValueError` and `TypeError` mean that cudart-py refused the call "
        "before the driver saw it.",
        "Read the note for 'null store'. The simulator reports the kernel, the source line and the address. On a GPU, "
        "none of these is known; the error can only list the launches since the last successful synchronisation.",
        "Mistakes that make a context unusable are made in separate processes, always on the simulator.",
        "For the last table, kernels receive a structure of 4,096 bytes, the limit of older devices, and one of nearly "
        "32,764 bytes, the limit of recent ones.",
    ],
    exercise=Exercise(
        task="Write `first_that_fails(launches: Sequence[cuda.BoundLaunch]) -> int | None`. It performs the launches "
        "one after another and returns the index of the first one that fails, or None if all succeed.",
        hints=[
            "How do you know that a kernel has finished? Which call raises the error of a kernel that failed?",
            "You can be certain that an error belongs to a launch if the host waits after that launch and before the "
            "next one.",
            "`with cuda.debug():` waits after each launch. So does a call to `cuda.current_device().synchronize()`.",
        ],
        answer="Inside `cuda.debug()`, every launch waits for its kernel, so the launch that caused an error also "
        "raises it. Calling `cuda.current_device().synchronize()` after each launch works too. Both approaches cost "
        "time, because the host and the device no longer work at the same time. Use them to find errors, not in every "
        "run.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
