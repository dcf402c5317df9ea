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
    """An event that remembers the work that it comes after."""

    before: frozenset[str] = frozenset()


class FollowedStream(cuda.Stream):
    """A stream that remembers the work that must end before what is queued in it next."""

    def __init__(self) -> None:
        super().__init__(non_blocking=True)
        self.before: set[str] = set()

    def record(self, event: cuda.Event | None = None) -> cuda.Event:
        """Record an event that remembers the work before it."""
        event = event or FollowedEvent()
        if isinstance(event, FollowedEvent):
            event.before = frozenset(self.before)
        return super().record(event)

    def wait(self, other: cuda.Event | cuda.Stream, *, external: bool = False) -> None:
        """Make later work also come after the work before an event or in another stream."""
        super().wait(other, external=external)
        if isinstance(other, FollowedEvent | FollowedStream):
            self.before |= other.before


class Ring:
    """A plate bent into a ring, so that one strip is its own neighbour above and below."""

    def __init__(self, rows: int, columns: int) -> None:
        self.plate = np.random.default_rng(5).random((rows, columns), np.float32)
        with_halo = np.concatenate([self.plate[-1:], self.plate, self.plate[:1]])
        self.plates = [cuda.to_device(with_halo) for _ in range(2)]
        cuda.legacy_default.synchronize()
        self.came_after: dict[str, set[str]] = {}

    def work(self, kind: str, step: int, stream: cuda.Stream) -> None:
        """Queue one kind of work of a step, and note what it comes after."""
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
        """Check whether work in each step comes after other work, in the step `distance` earlier."""
        steps = range(distance, STEPS)
        return all(f"{earlier} {step - distance}" in self.came_after.get(f"{later} {step}", ()) for step in steps)


def reference(plate: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the ring after the steps. The first and the last column stay as they are."""
    for _ in range(STEPS):
        above, below = np.roll(plate, 1, axis=0), np.roll(plate, -1, axis=0)
        around = (np.roll(plate, 1, axis=1) + np.roll(plate, -1, axis=1)) + (above + below) - 4 * plate
        plate = np.concatenate([plate[:, :1], (plate + RATE * around)[:, 1:-1], plate[:, -1:]], axis=1)
    return plate


def check(answer: ModuleType) -> Iterator[Check]:
    """Take steps of a ring with two streams, and track the order of their work."""
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
    yield Check("each step computes its edges and its interior, and sends the edges", queued == set(ring.came_after))
    yield Check("a step sends after its edges are computed", ring.all_before("send", "edges", 0))
    yield Check(
        "the edges are computed after the halo of the previous step has arrived", ring.all_before("edges", "send", 1)
    )
    overlaps = not ring.all_before("send", "inside", 0) and not ring.all_before("inside", "send", 0)
    yield Check("the copies and the interior of a step do not wait for one another", overlaps)


LESSON = Lesson(
    why="Two GPUs should be twice as fast as one. For the heated plate, they nearly are: on two H200s, a step of a "
    "plate with 16,384 x 16,384 cells takes 0.265 ms instead of 0.514 ms, an efficiency of 0.97. If the devices "
    "compute first and exchange their edges afterwards, the efficiency is 0.93, and the loss grows with the number of "
    "devices.\n\n"
    "The better version does not compute faster. It computes the edges first, and sends them while it computes "
    "everything else. On two H200s, that hides 99 % of the exchange.",
    learn=[
        "divide a plate among devices, so that each has a strip of rows and a copy of its neighbours' nearest rows, "
        "the halo.",
        "overlap the exchange of edges with the computation of the interior by computing the edges first.",
        "synchronise the streams of several devices with events, while the host only queues the work.",
        "estimate the number of devices beyond which the exchange can no longer be hidden, and say why larger plates "
        "scale to more devices.",
    ],
    idea="A cell needs its neighbours, and at the cut between two strips, one of the neighbours is on another device. "
    "So each strip keeps a copy of the nearest row of the next strip, its **halo**, which must be updated after every "
    "step. The exchange takes the same time however tall a strip is, but the time to compute a strip falls as the "
    "number of devices grows.\n\n"
    "The neighbours need only two rows of a strip. If these are computed first, they can be sent while the device "
    "computes the rest. The exchange costs nothing as long as it takes less time than computing the rest.\n\n"
    "The rule of thumb: compute first what others wait for, send it in a second stream, and let events, not the host, "
    "enforce the order.",
    steps=[
        Step(
            name="one strip",
            shows=["heated", "heat_down", "heat_between", "heat_strip", "cuts"],
            text="One step of the heat simulation on one device. The new value of a cell depends on the four cells "
            "around it. Each thread computes four columns in two rows, from top to bottom. `cuts` divides the rows "
            "among several devices.",
        ),
        Step(
            name="sequential",
            shows=["Strip", "Strips", "take_steps"],
            text="A strip has an extra row at each end, its halo. `step` makes the `compute` stream wait until the "
            "halo has arrived, computes the strip, and records the `written` event. `exchange` makes the `copies` "
            "stream wait for this event, copies the two edges into the halos of the neighbours, and records `sent`. "
            "The neighbours wait for `sent` in the next step. The host does not wait. Computation and copies "
            "alternate, because the copies need the strip and the next step needs the copies.",
        ),
        Step(
            name="overlapped",
            shows=["heat_edges", "heat_inside", "OVERLAPPED", "take_steps"],
            text="The kernel is split into two. `heat_edges` computes the two rows that the neighbours need, and "
            "`written` is recorded right after it. While the edges are sent, `heat_inside` computes the other rows, "
            "which do not need the new halo. The host code is the same: it records the event after the first kernel.",
        ),
        Step(
            name="no wait for the halo",
            shows=["without_waits", "take_steps"],
            text="Wrong on purpose. The list of events to wait for is emptied. Nothing then synchronises the streams "
            "of the two devices, so a strip may be computed from a stale halo.",
        ),
    ],
    look_at=[
        "The results of 'sequential' and 'overlapped' equal the result of 'one strip' bit for bit. On the simulator, "
        "the 'loads' column shows that the overlapped kernels perform slightly more loads, because both kernels read "
        "the rows near an edge.",
        "Two rows are sent across each cut per step, however tall the strips are. So the exchange takes the same time "
        "for short strips as for tall ones, while the computation per device shrinks as devices are added.",
        "For a plate with 16,384 rows and columns, two H200s with NVLink have an efficiency of 0.93 in the sequential "
        "version. The overlapped version hides 99 % of the exchange and has an efficiency of 0.97. With twice as many "
        "rows, the efficiency is 0.99.",
        "The note for 'no wait for the halo' identifies a kernel and a copy that access the same memory, and says that "
        "nothing orders the two accesses. On a GPU, such a program may return the right result by chance.",
    ],
    exercise=Exercise(
        task="A strip is bent into a ring and is its own neighbour. Write `take_step(edges, inside, send, compute, "
        "copies)`, which is called once per step. `edges` and `inside` compute the two parts of the strip, and `send` "
        "copies the new edges to the new halo. Each of the three functions queues its work in the stream that you "
        "pass. Call `edges` and `inside` with `compute`, and `send` with `copies`, once each. Order the calls so that "
        "the copies of a step can run at the same time as its `inside`.",
        hints=[
            "For streams `a` and `b`, `a.wait(b)` makes later work in `a` wait for everything queued in `b` so far.",
            "What must be queued in `compute` before the copies may begin, and what must not be queued there yet?",
            "The edges of a step need the halo of the previous one. Where does `compute` have to wait for `copies`?",
        ],
        answer="The edges are queued first, and `copies` waits for `compute` right after them, before `inside` is "
        "queued. At the beginning of a step, `compute` waits for `copies`, because the edges need the halo of the "
        "previous step. If `copies` waited only after `inside` was queued, or `compute` waited for the copies before "
        "`inside`, the result would be the same, but computing and copying would not overlap.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
