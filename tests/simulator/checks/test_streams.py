"""Races between streams: work on one array in two or three streams, each hazard beside its correctly ordered twin.

The hazards are computed here, only from which operations write and from the waits between the streams.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, reports

pytestmark = WRONG_ON_PURPOSE

N = 256
SOURCE = """
#define KERNEL(NAME) extern "C" __global__ void NAME(int* a, int v, int n)
#define I (blockIdx.x * 64 + threadIdx.x)
KERNEL(put) { if (I < n) a[I] = v + I; }
KERNEL(add) { if (I < n) a[I] += v; }
KERNEL(flip) { if (I < n && a[I] != v) a[I] = ~a[I]; }
KERNEL(count) { if (I < n) atomicAdd(&a[I], v); }
KERNEL(highest) { if (I < n) atomicMax(&a[I], v + 1000 * (int)I); }
extern "C" __global__ void get(int* a, int* out, int n) { if (I < n) out[I] = a[I]; }
"""


class Buffers:
    """The arrays that the operations of one program use besides the shared one: an output each, kept until the end."""

    def __init__(self, module: Any, count: int) -> None:
        self.module = module
        self.value = 0
        # What work of streams still uses.
        self.kept: list[Any] = []
        self.device = [cuda.zeros(N, np.int32) for _ in range(count)]
        self.host = [cuda.pinned_empty(N, np.int32) for _ in range(count)]
        for number, host in enumerate(self.host):
            host[:] = 5 + number

    def unused(self, arrays: list[Any]) -> Any:
        """Return an array that no other operation uses."""
        self.kept.append(arrays.pop())
        return self.kept[-1]

    def next_value(self) -> int:
        """Return a value that no other operation stores, since storing the value that is there already isn't a race."""
        self.value += 1
        return self.value


Work = Callable[[Buffers, Any, Any], Any]


def kernel(name: str) -> Work:
    """Return the launch of a kernel that writes."""

    def launch(buffers: Buffers, x: Any, stream: Any) -> None:
        buffers.module[name][4, 64, 0, stream](x, buffers.next_value(), x.size)

    return launch


def get(buffers: Buffers, x: Any, stream: Any) -> None:
    buffers.module["get"][4, 64, 0, stream](x, buffers.unused(buffers.device), x.size)


def in_graph(work: Work) -> Work:
    """Return the launch of a graph that holds some work."""

    def launch(buffers: Buffers, x: Any, stream: Any) -> None:
        recording = cuda.Stream(non_blocking=True)
        with recording.capture() as graph:
            work(buffers, x, recording)
        buffers.kept.append(executable := graph.instantiate())
        executable.launch(stream)

    return launch


class Operation(NamedTuple):
    """Work on an array; `atomic` work writes, and isn't a hazard for other atomic work."""

    work: Work
    writes: bool = True
    atomic: bool = False


OPERATIONS = {
    "store": Operation(kernel("put")),
    "read-modify-write": Operation(kernel("add")),
    "conditional write": Operation(kernel("flip")),
    "read": Operation(get, writes=False),
    "atomic add": Operation(kernel("count"), atomic=True),
    "atomic maximum": Operation(kernel("highest"), atomic=True),
    "fill": Operation(lambda b, x, s: cuda.memset(x, b.next_value(), stream=s)),
    "copy to the device": Operation(lambda b, x, s: x.copy_from(b.unused(b.host)[: x.size], stream=s)),
    "copy to the host": Operation(lambda b, x, s: x.to_host(out=b.unused(b.host)[: x.size], stream=s), writes=False),
    "copy within the device": Operation(
        lambda b, x, s: cuda.memcpy(b.unused(b.device)[: x.size], x, stream=s), writes=False
    ),
    "copy from the device": Operation(lambda b, x, s: cuda.memcpy(x, b.unused(b.device)[: x.size], stream=s)),
    "graph that adds": Operation(in_graph(kernel("add"))),
    "graph that reads": Operation(in_graph(get), writes=False),
    "graph that fills": Operation(in_graph(lambda b, x, s: cuda.memset(x, b.next_value(), stream=s))),
}
PARTS = {"all": slice(0, N), "first": slice(0, N // 2), "second": slice(N // 2, N)}


class Step(NamedTuple):
    """A step of a program: an operation of a stream on a part of the array, or a wait of it for another stream."""

    stream: int
    operation: str = ""
    part: str = "all"
    wait: int = -1
    how: str = ""


def wait_by_third(waiting: Any, other: Any) -> None:
    third = cuda.Stream(non_blocking=True)
    third.wait(other)
    waiting.wait(third)


# For the last two the host itself waits, so everything that it queues later comes after.
WAITS: dict[str, Callable[[Any, Any], None]] = {
    "event": lambda waiting, other: waiting.wait(other.record()),
    "stream": lambda waiting, other: waiting.wait(other),
    "third stream": wait_by_third,
    "host": lambda waiting, other: other.synchronize(),
    "host by event": lambda waiting, other: other.record().synchronize(),
}


def is_hazard(steps: Sequence[Step]) -> bool:
    """Return whether two operations that nothing orders are on the same elements, one of them a plain write."""
    before: dict[int, set[int]] = {}
    by_host: set[int] = set()
    done: list[tuple[Step, int, set[int]]] = []
    for number, step in enumerate(steps):
        known = before.setdefault(step.stream, set())
        if step.wait >= 0:
            waited = before.setdefault(step.wait, set())
            if step.how.startswith("host"):
                by_host |= waited
            known |= waited
            continue
        known |= by_host
        mine, here = OPERATIONS[step.operation], PARTS[step.part]
        for other, place, _ in done:
            theirs, there = OPERATIONS[other.operation], PARTS[other.part]
            overlap = max(here.start, there.start) < min(here.stop, there.stop)
            conflict = (mine.writes or theirs.writes) and not (mine.atomic and theirs.atomic)
            if overlap and conflict and place not in known:
                return True
        known.add(number)
        done.append((step, number, known))
    return False


@pytest.fixture(scope="module")
def module() -> Any:
    with cuda.Device(0):
        return cuda.compile(SOURCE)


def races(module: Any, steps: Sequence[Step]) -> list[str]:
    """Run a program; return the races that are reported."""
    buffers = Buffers(module, len(steps))
    x = cuda.zeros(N, np.int32)
    cuda.current_device().synchronize()
    lanes = [cuda.Stream(non_blocking=True) for _ in range(3)]
    with reports() as texts:
        for step in steps:
            if step.wait >= 0:
                WAITS[step.how](lanes[step.stream], lanes[step.wait])
            else:
                OPERATIONS[step.operation].work(buffers, x[PARTS[step.part]], lanes[step.stream])
    assert all("race: " in text and "in another stream" in text for text in texts), texts
    return texts


@pytest.mark.parametrize("first", OPERATIONS)
def test_two_operations_race_unless_their_streams_are_ordered(module: Any, engine: None, first: str) -> None:
    waits = itertools.cycle(WAITS)
    for second in OPERATIONS:
        steps = [Step(0, first), Step(1, second)]
        assert bool(races(module, steps)) is is_hazard(steps), second
        ordered = [steps[0], Step(1, wait=0, how=next(waits)), steps[1]]
        assert races(module, ordered) == [], second
        apart = [Step(0, first, "first"), Step(1, second, "second")]
        assert races(module, apart) == [], second


@pytest.mark.parametrize("second", ["read", "atomic add", "copy to the host"])
def test_what_a_second_reader_or_atomic_has_done_does_not_hide_the_first(
    module: Any, engine: None, second: str
) -> None:
    """The work that writes waits for the second stream alone; the stream that was used last runs first."""
    last = "read" if OPERATIONS[second].atomic else "fill"
    read, ordered = [Step(1, second), Step(2, wait=1, how="event")], Step(2, last)
    steps = [*read, ordered, Step(0, second)]
    assert is_hazard(steps)
    assert races(module, steps)
    assert races(module, [Step(0, second), *read, Step(2, wait=0, how="event"), ordered]) == []


def random_program(number: int) -> list[Step]:
    """Return a program of a few operations and waits of three streams."""
    generator = random.Random(number)
    steps = []
    for _ in range(generator.randrange(3, 9)):
        stream = generator.randrange(3)
        if generator.random() < 0.4:
            other = (stream + generator.randrange(1, 3)) % 3
            steps.append(Step(stream, wait=other, how=generator.choice(list(WAITS))))
        else:
            steps.append(Step(stream, generator.choice(list(OPERATIONS)), generator.choice(list(PARTS))))
    return steps


@pytest.mark.parametrize("numbers", [range(60), pytest.param(range(60, 300), marks=pytest.mark.exhaustive)])
def test_random_programs_race_where_nothing_orders_a_hazard(module: Any, numbers: range) -> None:
    hazards = 0
    for number in numbers:
        steps = random_program(number)
        assert bool(races(module, steps)) is is_hazard(steps), (number, steps)
        hazards += is_hazard(steps)
    assert len(numbers) / 4 < hazards < len(numbers) * 3 / 4
