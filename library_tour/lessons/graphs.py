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
    """Queue a step, and note whether its stream is being captured."""
    captured.append(stream.is_capturing)
    launch()


def check(answer: ModuleType) -> Iterator[Check]:
    """Process one batch and several; count how often a step is queued, and check that it is captured."""
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
            yield at_most(f"{named}: `step` is called at most {STEPS} times in all", len(captured), STEPS)
            yield Check(f"{named}: the steps are captured", all(captured))


LESSON = Lesson(
    why="A small kernel can take less time than the host needs to launch it. On an H200, 100 launches with 1,003 "
    "elements each keep the host busy for 386 µs, and the device waits for the host most of that time. The same 100 "
    "launches as one **graph** keep the host busy for 3 µs and are done after 109 µs instead of 392 µs.\n\n"
    "A graph saves work on the host, but not on the device. With 268 million elements, the launches and the graph both "
    "take 79 ms, while a loop inside the kernel takes 2.2 ms. It pays to know whether the host or the device is the "
    "bottleneck.",
    learn=[
        "say how much host overhead a launch has, and when that overhead determines how long the work takes.",
        "capture the work of a stream into a graph once, and replay it with one call as often as you like.",
        "say what a graph records (addresses and scalars, for example), and what is read again at each replay (the "
        "contents of arrays).",
        "explain why a graph does not save the device any work, but a loop inside the kernel does.",
    ],
    idea="The host needs a few microseconds per launch. If kernels are shorter than that, the device idles between "
    "them. A graph records many operations and their order. The driver prepares it once, when the graph is "
    "**instantiated**. After that, the host launches the whole graph with a single call.\n\n"
    "The easiest way to build a graph is **stream capture**: while a stream is being captured, calls that would queue "
    "work add nodes to a graph instead, and nothing runs.\n\n"
    "The rule of thumb: use a graph when you repeat the same sequence of short kernels. When the kernels are long, "
    "look at what they do with memory instead.",
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
            text="`bind` checks and packs the arguments once, and each call only performs the launch. The driver still "
            "does its part a hundred times.",
        ),
        Step(
            name="one graph",
            shows=["Cooling.__init__", "Cooling.as_graph"],
            text="Inside `with stream.capture() as captured`, nothing runs: the launches become the nodes of a graph. "
            "`instantiate()` prepares the graph, and `launch` starts all of its work with a single call.",
        ),
        Step(
            name="one launch, loop inside",
            shows=["cooled", "cool_often"],
            text="The loop moves into the kernel. An element stays in a register for all steps, so it is read once "
            "and written once. That works because no element depends on another. If a step needed the results of "
            "neighbouring elements, all threads would have to wait for one another between steps.",
        ),
        Step(
            name="updated",
            shows=["facts"],
            text="The address of the array and the value of `part` are stored in the graph. `update` replaces them "
            "with those of another graph that has the same topology, without instantiating the graph again. A capture "
            "cannot record a call in which the host waits, and it cannot record a copy to or from pageable memory. "
            "Either call raises an error.",
        ),
        Step(
            name="two streams",
            shows=["branched"],
            text="A stream that waits for a stream under capture joins the capture. The graph then has two branches, "
            "which may run at the same time. Before the capture ends, the first stream must wait for the second.",
        ),
    ],
    look_at=[
        "On the simulator, compare the 'loads' and 'stores' columns. The graph performs as many of each as the "
        "hundred launches, and the loop inside the kernel performs a hundredth of them.",
        "On an H200, with 1,003 temperatures, 100 bound launches keep the host busy for 386 µs and are done after 392 "
        "µs. The graph keeps the host busy for 3 µs and is done after 109 µs. The loop inside the kernel is done "
        "after 10 µs.",
        "On an H200, with 268,435,459 temperatures, the launches and the graph take nearly the same time, 78.9 ms and "
        "78.7 ms. The loop inside the kernel takes 2.2 ms.",
        "The 'Recorded work' table is the same with and without a GPU. The 'capture' row shows that a capture "
        "runs nothing. The 'launched twice' row shows that each launch starts from what is in the array at that "
        "moment.",
    ],
    exercise=Exercise(
        task="The `process` function copies a batch to the device, takes 20 steps by calling `step`, copies the result "
        "back, and continues with the next batch. Change it so that `step` is called only 20 times in total, for any "
        "number of batches. All batches have the same size, and you may reuse the arrays `array` and `pinned` for "
        "every batch.",
        hints=[
            "`step` is called 20 times if the steps are captured once. What is the same for each batch, and "
            "what differs?",
            "The contents of pinned memory are read when a copy runs, not when it is captured. So the same captured "
            "copy can transfer a different batch each time.",
            "Capture the copy to the device, the steps and the copy back. For each batch, write to `pinned`, launch "
            "the graph, wait, and keep a copy of `pinned`.",
        ],
        answer="The copy to the device, the steps and the copy back are captured once. For each batch, the host writes "
        "the elements to the same pinned memory, launches the graph and waits. Do not capture a copy of the batch "
        "itself: that would fix the address of one batch, and a copy from pageable memory cannot be captured.",
        check=check,
    ),
    course="The lectures on which the tour is based report 4.61 s for 256 launches and 1.4 s for one launch with the "
    "loop inside, on a T1000. The lectures attribute the difference to the cost of launches. In fact, the passes over "
    "the 1 GiB arrays take that time: the loop inside the kernel reads and writes each element only once.",
)
