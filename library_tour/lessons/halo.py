"""The lesson of `halo`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare
from ..device_code import load
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

STEPS, RATE = 4, np.float32(0.2)


class FollowedEvent(cuda.Event):
    """An event that keeps which work it comes after."""

    before: frozenset[str] = frozenset()


class FollowedStream(cuda.Stream):
    """A stream that keeps which work comes before what is queued in it next: its own and what it waits for."""

    def __init__(self) -> None:
        super().__init__(non_blocking=True)
        self.before: set[str] = set()

    def record(self, event: cuda.Event | None = None) -> cuda.Event:
        """Record an event that keeps what comes before it."""
        event = event or FollowedEvent()
        if isinstance(event, FollowedEvent):
            event.before = frozenset(self.before)
        return super().record(event)

    def wait(self, other: cuda.Event | cuda.Stream) -> None:
        """Let later work come after that of an event or of another stream, too."""
        super().wait(other)
        if isinstance(other, FollowedEvent | FollowedStream):
            self.before |= other.before


class Ring:
    """A plate bent to a ring, so that one strip is its own neighbour above and below."""

    def __init__(self, rows: int, columns: int) -> None:
        self.plate = np.random.default_rng(5).random((rows, columns), np.float32)
        with_halo = np.concatenate([self.plate[-1:], self.plate, self.plate[:1]])
        self.plates = [cuda.to_device(with_halo) for _ in range(2)]
        cuda.legacy_default.synchronize()
        self.came_after: dict[str, set[str]] = {}

    def work(self, kind: str, step: int, stream: cuda.Stream) -> None:
        """Queue one kind of a step's work, and note what it comes after."""
        assert isinstance(stream, FollowedStream)
        self.came_after[f"{kind} {step}"] = set(stream.before)
        stream.before.add(f"{kind} {step}")
        now, then = self.plates[step % 2], self.plates[1 - step % 2]
        if kind == "send":
            cuda.memcpy(then[0], then[-2], stream=stream)
            cuda.memcpy(then[-1], then[1], stream=stream)
        else:
            load("halo")[f"heat_{kind}"][(1, now.shape[0]), (32, 2), 0, stream].bind(now, then, *now.shape, RATE)()

    def all_before(self, later: str, earlier: str, distance: int) -> bool:
        """Tell whether work of each step comes after other work of the step `distance` before it."""
        steps = range(distance, STEPS)
        return all(f"{earlier} {step - distance}" in self.came_after.get(f"{later} {step}", ()) for step in steps)


def reference(plate: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the ring after the steps; the first and the last column stay as they are."""
    for _ in range(STEPS):
        above, below = np.roll(plate, 1, axis=0), np.roll(plate, -1, axis=0)
        around = (np.roll(plate, 1, axis=1) + np.roll(plate, -1, axis=1)) + (above + below) - 4 * plate
        plate = np.concatenate([plate[:, :1], (plate + RATE * around)[:, 1:-1], plate[:, -1:]], axis=1)
    return plate


def check(answer: ModuleType) -> Iterator[Check]:
    """Take steps of a ring with two streams, and follow which work comes after which."""
    ring = Ring(13, 64)
    compute, copies = FollowedStream(), FollowedStream()
    for step in range(STEPS):
        kinds: list[Callable[[cuda.Stream], None]] = [
            partial(ring.work, kind, step) for kind in ("edges", "inside", "send")
        ]
        answer.take_step(*kinds, compute, copies)
    cuda.current_device().synchronize()
    yield compare(f"the cells after {STEPS} steps", ring.plates[0].to_host()[1:-1], reference(ring.plate), 1e-5)
    queued = {f"{kind} {step}" for kind in ("edges", "inside", "send") for step in range(STEPS)}
    yield Check("each step computes its edges and its inside and sends", queued == set(ring.came_after))
    yield Check("a step sends after its edges are computed", ring.all_before("send", "edges", 0))
    yield Check(
        "the edges are computed after the halo of the step before has come", ring.all_before("edges", "send", 1)
    )
    overlaps = not ring.all_before("send", "inside", 0) and not ring.all_before("inside", "send", 0)
    yield Check("the copies and the inside of a step do not wait for one another", overlaps)


LESSON = Lesson(
    learn=[
        "How a plate is divided among devices: each has a strip of rows and copies of its neighbours' nearest rows, "
        "the halo.",
        "Why computing the edges first lets their way to the neighbours overlap with the computing of the inside.",
        "How events order the streams of several devices while the host only queues the work.",
        "Up to how many devices the exchange can be hidden, and why larger plates scale further.",
    ],
    steps=[
        Step(
            name="one strip",
            shows=["heated", "heat_down", "heat_between", "heat_strip", "cuts"],
            text="The step of the heat plate on one device. The new value of a cell needs the four cells around it. "
            "A thread goes down two rows of four columns. `cuts` divides the rows for several devices.",
        ),
        Step(
            name="in turn",
            shows=["Strip", "Strips", "take_steps"],
            text="A strip has one row more at each end, its halo. `step` lets the stream `compute` wait until the "
            "halo has come, computes the strip, and records the event `written`. `exchange` lets the stream `copies` "
            "wait for this event, copies the two edges into the halos of the neighbours, and records `sent`, for "
            "which the neighbours wait in the next step. The host waits for nothing. Computing and copying take "
            "turns, because the copies need the strip and the next step needs the copies.",
        ),
        Step(
            name="overlapped",
            shows=["heat_edges", "heat_inside", "OVERLAPPED", "take_steps"],
            text="The kernel becomes two. `heat_edges` computes the two rows that the neighbours need, and `written` "
            "is recorded right behind it. While the edges travel, `heat_inside` computes the other rows, which need "
            "nothing of the new halo. The host code is the same: it records the event behind the first kernel.",
        ),
        Step(
            name="halo not waited for",
            shows=["without_waits", "take_steps"],
            text="The list of events to wait for is emptied. The streams of two devices know nothing of one another, "
            "so a strip is computed from an old halo. This step is wrong on purpose.",
        ),
    ],
    look_at=[
        "The rows 'in turn' and 'overlapped' have the bits of one strip. Without a GPU, the column 'loads' "
        "shows that the overlapped kernels load a little more: rows near an edge are read by both kernels.",
        "Each inner cut sends two rows a step, however many rows a strip has. So the exchange takes as long for thin "
        "strips as for thick ones, while the computing becomes shorter with more devices.",
        "Two H200s with NVLink and a plate of 16,384 rows and columns have an efficiency of 0.93 in turn and of 0.97 "
        "overlapped; 0.99 of the exchange's time is hidden. A plate with twice as many rows has an efficiency of 0.99.",
        "The row 'halo not waited for' reports the kernel that read, the copy that wrote, and that nothing puts one "
        "before the other. On a GPU such a program may give the right result by chance.",
    ],
    exercise=Exercise(
        task="A strip is bent to a ring and is its own neighbour. Write `take_step(edges, inside, send, compute, "
        "copies)`, which is called once a step. `edges` and `inside` compute the two parts of the strip, and `send` "
        "copies the new edges to the new halo; each queues its work in the stream that it is called with. Queue the "
        "first two in `compute` and the third in `copies`, each once, so that the copies and the inside of a step can "
        "run at the same time.",
        hints=[
            "For streams `a` and `b`, `a.wait(b)` lets what is queued in `a` later wait for what has been queued in "
            "`b` so far. What has been queued in `compute` when the copies may begin, and what must not have been?",
        ],
        answer="The edges are queued first, and `copies` waits for `compute` right behind them, before the inside is "
        "queued. At the beginning of a step `compute` waits for `copies`, since the edges need the halo of the step "
        "before. If this wait came at the end of the copies and before the inside, or the wait of the copies behind "
        "the inside, the result would be the same, but the device would compute and copy in turn.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
