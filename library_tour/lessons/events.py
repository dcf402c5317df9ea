"""The lesson of `events`."""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np

import cudart_py as cuda

from ..lesson import Exercise, Lesson, Step
from ..stop import Check

COUNT = 1003
# One step takes this many seconds longer than the others.
LONGER = 0.05


class Steps:
    """Steps in a stream with earlier work, one of them long.

    They note whether the earlier work was done when they were queued. While `traced`, the line of the answer that
    waited for it is noted too.
    """

    def __init__(self, stream: cuda.Stream, count: int, long: int) -> None:
        self.begun: list[int] = []
        self.early: list[int] = []
        self.waited = ""  # the line of the answer that waited for the earlier work
        self._line = ""
        self._done = done = list[bool]()
        temperatures = cuda.full(COUNT, 100.0, np.float32)
        cuda.legacy_default.synchronize()

        def step(number: int) -> None:
            if done:
                self.early.append(number)
                self.waited = self.waited or self._line
            stream.launch_host_function(partial(self.begun.append, number))
            # A fill, because the first launches of a kernel take longer: its code must be loaded or compiled.
            cuda.memset(temperatures, 20.0, stream=stream)
            if number == long:
                stream.launch_host_function(partial(time.sleep, LONGER))

        self.calls: list[Callable[[], object]] = [partial(step, number) for number in range(count)]
        stream.launch_host_function(partial(time.sleep, 10 * LONGER))
        stream.launch_host_function(partial(done.append, True))

    @contextmanager
    def traced(self, file: str) -> Iterator[None]:
        """Note the lines of a file that are executed in this block."""

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            if frame.f_code.co_filename != file:
                return None
            if event == "line":
                if self._done:
                    self.waited = self.waited or self._line
                source = linecache.getline(file, frame.f_lineno).strip()
                self._line = f"{Path(file).name}:{frame.f_lineno}: {source}"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(before)


def check(answer: ModuleType) -> Iterator[Check]:
    """Time steps, the first or second of which is long, and check that all are queued before the host waits."""
    for count, long in ((4, 1), (3, 0), (1, 0)):
        with cuda.Stream(non_blocking=True) as stream:
            steps = Steps(stream, count, long)
            with steps.traced(str(answer.__file__)):
                times = answer.step_times(steps.calls, stream)
            named = f"{count} step{'s' if count > 1 else ''}"
            found = f"The times were {', '.join(f'{ms:.3f}' for ms in times)} ms."
            yield Check(f"{named}: one time per step, none negative", len(times) == count and min(times) >= 0, found)
            yield Check(f"{named}: all steps have run", len(steps.begun) == count and stream.done)
            yield Check(f"{named}: step {long} takes longest", times.index(max(times)) == long, found)
            least, most = 1e3 * LONGER, 1e4 * LONGER
            fact = f"{named}: step {long} takes {least:g} ms or a little more"
            yield Check(fact, 0.95 * least <= times[long] < most, found)
            waited = f"The host waited for the stream at {steps.waited}"
            yield Check(f"{named}: all steps are queued before the host waits", not steps.early, waited)


LESSON = Lesson(
    why="On an H200, ten launches of a kernel take 2.01 ms. A host clock that is read right after the calls shows "
    "0.235 ms. At that speed, the kernel would move data at 22,800 GB/s, more than five times the rate of a copy "
    "within the H200's memory. The clock is correct, but it has timed the calls, not the work: a launch only queues a "
    "kernel and returns.\n\n"
    "The lectures on which the tour is based report 0.043 ms for ten steps, which is wrong for this reason. Events "
    "avoid the mistake, because the device itself records the time. They also let one stream wait for another while "
    "the host continues.",
    learn=[
        "say what an event is: a mark in a stream that is reached when all work queued before it is done.",
        "measure time on the device with two events, and say what a host clock measures instead.",
        "make one stream wait for another without making the host wait.",
        "say what the host must wait for before it reads a result or its clock.",
    ],
    idea="A **stream** is a queue of work for the device. The host adds copies and launches to it and continues "
    "immediately; the device works through the queue in order. An **event** is a mark in that queue. When the device "
    "reaches the mark, it records the time. The difference between two events is therefore the time that the device "
    "took for the work between them, whatever the host did in the meantime.\n\n"
    "A stream can also wait for an event in another stream. The wait is queued like any other work, so it holds up "
    "only that stream.\n\n"
    "The rule of thumb: an asynchronous call returns when its work is queued. Wait before you read a result, and wait "
    "before you read a clock.",
    steps=[
        Step(
            name="wait in another stream",
            shows=["run"],
            text="`first.record()` puts a mark after the copy in the first stream. `second.wait(arrived)` holds back "
            "the second stream until this mark is reached, while the host queues both copies and continues. Then "
            "`arrived - start` is the time between two marks, in milliseconds. If an event was created with "
            "`timing=False`, or was never recorded, its time is not available, and asking for it raises an error.",
        ),
        Step(
            name="ten launches, timed",
            shows=["cool", "cooling"],
            text="Ten launches, with an event after each one. The host waits either for every event or for none. The "
            "function returns the last event, so that the caller can wait for it.",
        ),
        Step(
            name="host, no wait",
            shows=["waits"],
            text="The host clock is read as soon as the calls have returned, after one wait at the end, or after a "
            "wait for each launch. When the calls have returned, `event.done` is still false: the work has not "
            "finished, and the clock has measured only how long it took to queue the launches.",
        ),
        Step(
            name="result read too early",
            shows=["read_early"],
            text="Wrong on purpose. This is the same mistake with data. The copy to pinned memory is only queued, and "
            "the host reads what was in that memory before. After `synchronize()`, the value is correct.",
        ),
    ],
    look_at=[
        "The 'done' column is the same with and without a GPU. The work is done only where the host has waited.",
        "On an H200, events show 2.01 ms for ten launches. With one wait at the end, the host clock shows 2.06 ms. "
        "With a wait after each launch, it shows 2.18 ms, because the device is idle while the host notices the end "
        "of a kernel and launches the next one.",
        "On an H200, events show 4.84 ms for a copy of 268,435,456 bytes. The call alone returns after 0.14 ms.",
        "The note for 'result read too early' shows both values that the host reads.",
    ],
    exercise=Exercise(
        task="Write `step_times(steps, stream)`. It calls the functions in `steps` one after another. Each of them "
        "queues work in `stream`. Return the time that the device takes for each step, in milliseconds. All steps must "
        "be queued before the host waits for anything, so that the device is never idle between them. The stream may "
        "still be busy with earlier work when your function is called. Do not wait for that work either; its time must "
        "not count.",
        hints=[
            "`stream.record()` returns an event. The difference between two events is the time between them, in "
            "milliseconds.",
            "The end of one step is the start of the next. How many events do you need for three steps?",
            "The events in a stream are reached in order. Wait once, for the last one, and take the differences then.",
        ],
        answer="One event goes before the first step and one after each, so the end of a step is the start of the "
        "next one. The first event is reached only when the earlier work is done, so that work is not counted. The "
        "stream reaches its events in order, so it is enough to wait for the last. A host clock would need a wait "
        "after each step, and the device would run out of work each time.",
        check=check,
    ),
    course="The 'course ms' column shows 0.043 ms for ten steps of CUB's transform. In the lectures on which the tour "
    "is based, this time was measured with a host clock and without a wait. The lectures do not name the card.",
)
