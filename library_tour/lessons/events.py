"""The lesson of `events`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..lesson import Exercise, Lesson, Step
from ..stop import Check

COUNT = 1003
# One step takes so many seconds longer than the others.
LONGER = 0.05


class Steps:
    """Steps in a stream of which one is long, and which remember whether the device had begun when they were queued."""

    def __init__(self, stream: cuda.Stream, count: int, long: int) -> None:
        self.begun: list[int] = []
        self.early: list[int] = []
        temperatures = cuda.full(COUNT, 100.0, np.float32)
        cuda.legacy_default.synchronize()

        def step(number: int) -> None:
            if self.begun:
                self.early.append(number)
            stream.launch_host_function(partial(self.begun.append, number))
            # A fill, since the first launches of a kernel take longer: the code is loaded, or made for a processor.
            cuda.memset(temperatures, 20.0, stream=stream)
            if number == long:
                stream.launch_host_function(partial(time.sleep, LONGER))

        self.calls: list[Callable[[], object]] = [partial(step, number) for number in range(count)]


def check(answer: ModuleType) -> Iterator[Check]:
    """Ask for the times of steps of which the second or the first takes long; look at when the device began."""
    for count, long in ((4, 1), (3, 0), (1, 0)):
        with cuda.Stream(non_blocking=True) as stream:
            # Work of the stream that comes before the steps is no part of their time.
            stream.launch_host_function(partial(time.sleep, 10 * LONGER))
            steps = Steps(stream, count, long)
            times = answer.step_times(steps.calls, stream)
            named = f"{count} step{'s' if count > 1 else ''}"
            found = f"The times were {', '.join(f'{ms:.3f}' for ms in times)} ms."
            yield Check(f"{named}: one time each, none below zero", len(times) == count and min(times) >= 0, found)
            yield Check(f"{named}: all steps are done", len(steps.begun) == count and stream.done)
            yield Check(f"{named}: step {long} takes longest", times.index(max(times)) == long, found)
            least, most = 1e3 * LONGER, 1e4 * LONGER
            fact = f"{named}: the time of step {long} is that of the step, {least:g} ms and a little more"
            yield Check(fact, 0.95 * least <= times[long] < most, found)
            yield Check(f"{named}: all are queued before the device has begun the first", not steps.early)


LESSON = Lesson(
    learn=[
        "What an event is: a mark in a stream, which is done when all work queued before it is done.",
        "How the time between two events tells how long the device takes, while a clock of the host tells how long "
        "the calls take.",
        "How an event makes one stream wait for another, without a wait of the host.",
        "Before what the host has to wait: before it reads a result, and before it reads its clock.",
    ],
    steps=[
        Step(
            name="wait in another stream",
            shows=["run"],
            text="`first.record()` puts a mark behind the copy in the first stream. `second.wait(arrived)` lets the "
            "second stream go on only when this mark is reached, while the host queues both copies without a wait. "
            "Then `arrived - start` is the time between two marks, in milliseconds. An event that was made with "
            "`timing=False`, or was never recorded, has no time and says so.",
        ),
        Step(
            name="launches that are timed",
            shows=["cool", "cooling"],
            text="Ten launches, and an event behind each. The host waits for each event, or for none. The returned "
            "event is the last one's, so that the caller can wait for it.",
        ),
        Step(
            name="each clock",
            shows=["waits"],
            text="The host's clock is read when the calls have returned, after one wait at the end, or after a wait "
            "in each call. Right after the calls, `event.done` says that the work has not ended: this clock has "
            "measured the time in which the launches were queued.",
        ),
        Step(
            name="result read too early",
            shows=["read_early"],
            text="The same mistake with data. The copy to pinned memory is only queued, and the host reads what lay "
            "there before. The value is right after `synchronize()`. This step is wrong on purpose.",
        ),
    ],
    look_at=[
        "The column 'done' is the same with and without a GPU: only where the host has waited is the work done.",
        "On an H200 ten launches take 2.01 ms by events. The host's clock says 0.116 ms without a wait, which would be "
        "46,195 GB/s, more than ten times what a copy within its memory reaches. With one wait it says 2.03 ms, and "
        "with a wait in each call 2.13 ms, since the device is idle while the host waits and launches again.",
        "The copy of 268,435,456 bytes to an H200 takes 4.84 ms by events; its call alone returns after 0.11 ms.",
        "The note of 'result read too early' shows both values that the host has read.",
    ],
    exercise=Exercise(
        task="Write `step_times(steps, stream)`: it calls the functions of the list `steps` in turn, each of which "
        "queues work in `stream`, and returns the milliseconds that the device takes for each step. All steps must be "
        "queued before the host waits, so that the device is never idle in between. The stream may still have other "
        "work to do at the beginning, whose time does not count.",
        hints=[
            "`stream.record()` returns an event. How many events lie around and between the steps? Which of them must "
            "be done before the first difference may be taken?",
        ],
        answer="One event lies before the first step and one behind each, so the end of a step is the start of the "
        "next one. The first event is reached only when the earlier work is done, so its time is not counted. The "
        "events are reached in the order of the stream: it is enough to wait for the last one. A clock of the host "
        "would need a wait in each step, in which the device runs out of work.",
        check=check,
    ),
    course="The figure in the column of the course is 0.043 ms for ten steps of CUB's transform, read from a clock of "
    "the host without a wait. The course does not name the card.",
)
