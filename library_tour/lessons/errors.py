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
# What each case launches; the names are those of the functions below.
CASES = {
    None: ("fill", "fill", "fill"),
    1: ("fill", "null store", "fill", "fill"),
    0: ("failing assert", "fill", "null store"),
    3: ("fill", "fill", "fill", "null store"),
}


def prepared(names: tuple[str, ...]) -> list[cuda.BoundLaunch]:
    """Return launches of the stop's kernels, right ones and wrong ones."""
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
    """Let the answer find the wrong launch, or none; begin anew after each case, because a fault ends everything."""
    for failing, names in CASES.items():
        found = answer.first_that_fails(prepared(names))
        fact = f"of {', '.join(names)}: " + ("no launch fails" if failing is None else f"launch {failing} fails")
        yield Check(fact, found == failing, f"the answer is {found}")
        cuda.reset()


LESSON = Lesson(
    learn=[
        "Which mistakes are refused at once, and which surface only when a later call waits for the kernel.",
        "Why the call that raises an error is often not the one that caused it, and how to find the launch that did.",
        "Which errors leave the device usable, and which end the context, so that a program has to start anew.",
        "Why every call of CUDA has to be checked, and how this package and a C program do that.",
    ],
    steps=[
        Step(
            name="invalid configuration",
            shows=["error_of", "told", "invalid_configuration"],
            text="A block of 2,048 threads is refused before anything is queued. The package raises a `ValueError` "
            "that names the argument. The driver's own call returns a status, which `cuda.check` turns into an "
            "exception. The device goes on working. `error_of` returns what a function raises, and `told` describes it "
            "beside the status.",
        ),
        Step(
            name="failed allocation",
            shows=["TOO_LARGE", "failed_allocation"],
            text="More memory than there is. This error, too, is the call's own and is over once it is raised: a "
            "program may free something and try again.",
        ),
        Step(
            name="null store",
            shows=["store", "fill", "launch_three", "null_store"],
            text="Three launches, of which the second one stores to the null pointer. All three return without an "
            "error, since none has run yet. `to_host` waits for them, and raises what the kernel has done. From then "
            "on every call raises it: the context is lost.",
        ),
        Step(
            name="null store, debug()",
            shows=["launch_three", "null_store_in_debug_mode"],
            text="The same inside `with cuda.debug():`, which waits after each launch. Now the launch of `store` "
            "itself raises, and the error names its kernel, its shape and its line. `CUDART_PY_DEBUG=1` does the same "
            "for a whole program, without a change of it.",
        ),
        Step(
            name="kernel assert",
            shows=["require_positive", "kernel_assert"],
            text="An assertion in a kernel works as in C, and ends the context as a fault does. It says in the code "
            "what the kernel relies on.",
        ),
        Step(
            name="memory not cleared",
            shows=["copy", "not_cleared"],
            text="The mistake that no status reports: an array that is read before it is written holds whatever was "
            "there before. The simulator keeps track of what was written, and warns.",
        ),
    ],
    look_at=[
        "The column 'status' is what the driver returns to a C program, and 'exception' what this package raises for "
        "it. Where the exception is a `ValueError` or a `TypeError`, the package has refused the mistake before the "
        "driver saw it.",
        "In the text of 'null store', the simulator names the kernel, its line and the address. A GPU knows none of "
        "these; there, the list of launches since the last good synchronisation is what remains.",
        "Mistakes that end a context are made in processes of their own, and always on the simulator: on a GPU nothing "
        "but a new process helps after them.",
    ],
    exercise=Exercise(
        task="Write `first_that_fails(launches: Sequence[cuda.BoundLaunch]) -> int | None`. It makes the launches one "
        "after the other and returns the place of the first one that fails, or None where all work.",
        hints=[
            "When has a kernel run? Which call raises the error of a kernel that has failed?",
        ],
        answer="Inside `cuda.debug()` each launch is followed by a synchronisation, so a fault is raised by the launch "
        "that caused it. To call `cuda.current_device().synchronize()` after each launch finds it as well. Either "
        "costs time, because the host and the device no longer work at the same time: it is for finding errors, and "
        "not for every run.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
