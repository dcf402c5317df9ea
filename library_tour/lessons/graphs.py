"""The lesson of `graphs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..device_code import blocks_for, load
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

STEPS, BLOCK = 20, 256
AMBIENT, PART = 20.0, 1 / 64
TOLERANCE = 1e-3


def queue_step(launch: Callable[[], object], stream: cuda.Stream, captured: list[bool]) -> None:
    """Queue a step, and note whether its stream is captured meanwhile."""
    captured.append(stream.is_capturing)
    launch()


def check(answer: ModuleType) -> Iterator[Check]:
    """Process one batch and several; count how often a step is queued, and look whether it is captured."""
    kernel = load("graphs")["cool"]
    for count, size in ((4, 512), (1, 77)):
        batches = np.random.default_rng(5).uniform(0, 100, (count, size)).astype(np.float32)
        array, pinned = cuda.zeros(size, np.float32), cuda.pinned_empty(size, np.float32)
        pinned.fill(0)
        cuda.legacy_default.synchronize()
        with cuda.Stream(non_blocking=True) as stream:
            launch = kernel[blocks_for(size, BLOCK), BLOCK, 0, stream].bind(array, AMBIENT, PART, size)
            captured: list[bool] = []
            step = partial(queue_step, launch, stream, captured)
            results = answer.process(list(batches), array, pinned, step, stream)
            named = f"{count} batch{'es' if count > 1 else ''}"
            expected = AMBIENT + (batches.astype(np.float64) - AMBIENT) * (1 - PART) ** STEPS
            got = np.array(results, np.float32)
            yield compare(f"{named}: each is returned after all steps", got, expected.astype(np.float32), TOLERANCE)
            yield at_most(f"{named}: `step` is called {STEPS} times in all", len(captured), STEPS)
            yield Check(f"{named}: the steps are captured, not run at once", all(captured))


LESSON = Lesson(
    learn=[
        "What a launch costs the host, and when that decides how long the work takes.",
        "How a stream's work is captured into a graph once, and then started by one call as often as needed.",
        "What is part of a graph, such as addresses and scalars, and what is read anew at each launch: the arrays.",
        "Why a graph saves the device no work, while a loop inside the kernel does.",
    ],
    steps=[
        Step(
            name="launches, arguments checked",
            shows=["cooled", "cool", "Cooling.checked"],
            text="A step is one launch, and 100 steps are 100 launches. The wrapper checks and packs the arguments "
            "each time.",
        ),
        Step(
            name="launches, arguments bound",
            shows=["cooled", "cool", "Cooling.one_by_one"],
            text="`bind` has checked and packed the arguments once; a call only launches. The driver still does its "
            "part a hundred times.",
        ),
        Step(
            name="one graph",
            shows=["Cooling.__init__", "Cooling.as_graph"],
            text="Between `with stream.capture() as captured` and its end nothing runs: the launches become the nodes "
            "of a graph. `instantiate()` prepares it, and `launch` starts all of it by a single call.",
        ),
        Step(
            name="one launch, loop inside",
            shows=["cooled", "cool_often"],
            text="The loop moves into the kernel. A number stays in a register for all steps, and is read and written "
            "once. That is possible because a number needs no other one. Where a step needs the neighbours' results, "
            "all threads would have to wait for each other between the steps.",
        ),
        Step(
            name="updated",
            shows=["facts"],
            text="The address of the array and the value of `part` are parts of the graph. `update` takes over the "
            "addresses and values of another graph of the same shape, without preparing everything again. A wait of "
            "the host cannot be captured, nor can a copy of pageable memory, and both are refused.",
        ),
        Step(
            name="two streams",
            shows=["branched"],
            text="A stream that waits for a captured stream joins the capture. The graph then has two branches, which "
            "may run at the same time. Before the end the first stream must wait for the second one again.",
        ),
    ],
    look_at=[
        "The columns 'loads' and 'stores': the graph has those of the hundred launches, and the loop inside has a "
        "hundredth of them.",
        "On an H200, for few temperatures, 100 bound launches keep the host for 386 µs, and are done after 392 µs. The "
        "graph keeps the host for 3 µs and is done after 109 µs, and the loop inside after 10 µs.",
        "On an H200, over 268,435,459 temperatures, launches and graph take as long, 78.8 ms and 78.7 ms, since the "
        "memory is the limit. The loop inside takes 2.2 ms.",
        "The table of what a graph records is the same with and without a GPU. 'capture' shows that a capture runs "
        "nothing, and 'launched twice' that a launch starts from what is in the array by then.",
    ],
    exercise=Exercise(
        task="The function `process` copies a batch to the device, takes 20 steps by calling `step`, copies the result "
        "back, and goes on with the next batch. Change it so that `step` is called 20 times in all, for any number of "
        "batches. All batches have the same size; `array` and `pinned` may be used for each of them.",
        hints=[
            "What is the same for each batch, and what differs? The content of pinned memory is read when a copy "
            "runs, and not when it is captured.",
        ],
        answer="Copy in, steps and copy out are captured once. For each batch the host writes the numbers to the same "
        "pinned memory, launches the graph and waits. It must not capture a copy of the batch itself: that would fix "
        "the address of one batch, and pageable memory is refused.",
        check=check,
    ),
    course="The course measured 4.61 s for 256 launches and 1.4 s for one launch with the loop inside, on a T1000. It "
    "attributes the difference to the cost of launches. In fact the difference is the time of passes over arrays of 1 "
    "GiB: the loop inside reads and writes each number once.",
)
