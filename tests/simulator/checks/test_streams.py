"""Races between streams and between graph nodes, each hazard with a correctly ordered counterpart.

The tests compute the hazards from two facts only: which operations write, and which streams wait for which.
"""

import gc
import itertools
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import cudart_py as cuda
from tests.planted.cases import marked
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, found, reports

pytestmark = WRONG_ON_PURPOSE

KERNELS = FOLDER / "streams.cu"
N = 256
ENGINES = ["numpy", "native"]


class Buffers:
    """The arrays that the operations of a program use besides the shared one, kept alive until its end.

    Each operation stores a different value, because storing the value that is already there is not a race.
    """

    def __init__(self, kernels: Any, count: int) -> None:
        self.kernels, self.values, self.kept = kernels, itertools.count(1), []
        self.device = [cuda.zeros(N, np.int32) for _ in range(count)]
        self.host = [cuda.pinned_empty(N, np.int32) for _ in range(count)]
        for number, host in enumerate(self.host):
            host[:] = 5 + number

    def unused(self, arrays: list[Any]) -> Any:
        self.kept.append(arrays.pop())
        return self.kept[-1]


Work = Callable[[Buffers, Any, Any], Any]


def kernel(name: str) -> Work:
    return lambda b, x, s: b.kernels[name][-(-N // 48), 48, 0, s](x, next(b.values), x.size)


def reader(name: str) -> Work:
    return lambda b, x, s: b.kernels[name][-(-N // 48), 48, 0, s](x, b.unused(b.device), x.size)


def in_graph(work: Work) -> Work:
    def launch(b: Buffers, x: Any, s: Any) -> None:
        (recording,) = separate(1)
        with recording.capture() as graph:
            work(b, x, recording)
        b.kept.append(executable := graph.instantiate())
        executable.launch(s)

    return launch


class Operation(NamedTuple):
    """Work on the elements `of` an array; `atomic` work writes too, but does not conflict with other atomic work."""

    work: Work
    writes: bool = True
    atomic: bool = False
    of: slice = slice(None)


OPERATIONS = {
    "store": Operation(kernel("put")),
    "read-modify-write": Operation(kernel("add")),
    "conditional write": Operation(kernel("flip")),
    "read": Operation(reader("get"), writes=False),
    "read of one element": Operation(reader("first"), writes=False, of=slice(1)),
    "store to even elements": Operation(kernel("evens"), of=slice(0, None, 2)),
    "store to odd elements": Operation(kernel("odds"), of=slice(1, None, 2)),
    "stores on two lines": Operation(kernel("branches")),
    "store of bytes": Operation(kernel("bytes")),
    "store and atomic": Operation(kernel("put_then_count")),
    "atomic of a block": Operation(kernel("block")),
    "compare-and-swap": Operation(kernel("swap"), atomic=True),
    "atomic add": Operation(kernel("count"), atomic=True),
    "atomic maximum": Operation(kernel("highest"), atomic=True),
    "fill": Operation(lambda b, x, s: cuda.memset(x, next(b.values), stream=s)),
    "copy to the device": Operation(lambda b, x, s: x.copy_from(b.unused(b.host)[: x.size], stream=s)),
    "copy to the host": Operation(lambda b, x, s: x.to_host(out=b.unused(b.host)[: x.size], stream=s), writes=False),
    "copy within the device": Operation(
        lambda b, x, s: cuda.memcpy(b.unused(b.device)[: x.size], x, stream=s), writes=False
    ),
    "copy from the device": Operation(lambda b, x, s: cuda.memcpy(x, b.unused(b.device)[: x.size], stream=s)),
    "graph that adds": Operation(in_graph(kernel("add"))),
    "graph that reads": Operation(in_graph(reader("get")), writes=False),
    "graph that fills": Operation(in_graph(lambda b, x, s: cuda.memset(x, next(b.values), stream=s))),
}
PARTS = {"all": slice(0, N), "first": slice(0, N // 2), "second": slice(N // 2, N)}


class Step(NamedTuple):
    """A step of a program: an operation in a stream on a part of the array, or a wait for another stream."""

    stream: int
    operation: str = ""
    part: str = "all"
    wait: int = -1
    how: str = ""


def separate(count: int = 2) -> list[Any]:
    return [cuda.Stream(non_blocking=True) for _ in range(count)]


def wait_by_third(waiting: Any, other: Any) -> None:
    (third,) = separate(1)
    third.wait(other)
    waiting.wait(third)


def wait_by_value(waiting: Any, other: Any) -> None:
    flag = cuda.pinned_empty(1, np.uint32)  # the queued operations use it as long as the streams exist
    flag[0] = 0
    KEPT.append(flag)
    other.write_value(flag, 1)
    waiting.wait_value(flag, 1)


KEPT: list[Any] = []
# In the last three, the host itself waits, so everything that it enqueues later is ordered after that.
WAITS: dict[str, Callable[[Any, Any], None]] = {
    "event": lambda waiting, other: waiting.wait(other.record()),
    "stream": lambda waiting, other: waiting.wait(other),
    "third stream": wait_by_third,
    "value": wait_by_value,
    "host": lambda waiting, other: other.synchronize(),
    "host by event": lambda waiting, other: other.record().synchronize(),
    "host for all": lambda waiting, other: cuda.current_device().synchronize(),
}


def elements(step: Step) -> set[int]:
    return set(range(N)[PARTS[step.part]][OPERATIONS[step.operation].of])


def is_hazard(steps: Sequence[Step]) -> bool:
    """Return whether two unordered operations conflict: they overlap, one writes, and not both are atomic."""
    before: dict[int, set[int]] = {}
    by_host: set[int] = set()
    done: list[tuple[Step, int, set[int]]] = []
    for number, step in enumerate(steps):
        known = before.setdefault(step.stream, set())
        if step.wait >= 0:
            waited = before.setdefault(step.wait, set())
            if step.how.startswith("host"):
                by_host |= waited if step.how != "host for all" else set(range(number))
            known |= waited
            continue
        known |= by_host
        mine, here = OPERATIONS[step.operation], elements(step)
        for other, place, _ in done:
            theirs = OPERATIONS[other.operation]
            overlap = here & elements(other)
            conflict = (mine.writes or theirs.writes) and not (mine.atomic and theirs.atomic)
            if overlap and conflict and place not in known:
                return True
        known.add(number)
        done.append((step, number, known))
    return False


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check all launches of the kernels, however long those with mistakes take: on a busy machine, it adds up."""
    monkeypatch.setattr("cudart_py.simulator.ptx.running.runs._MOST_SECONDS_AFTER_MISTAKE", np.inf)


def races(kernels: Any, steps: Sequence[Step], *streams: Any) -> list[str]:
    """Run a program in new streams, or in the given ones, and return the reported races."""
    buffers = Buffers(kernels, len(steps))
    x = cuda.zeros(N, np.int32)
    cuda.current_device().synchronize()
    lanes = streams or separate(3)
    gc.disable()  # to free pinned memory, the host waits for the device, which orders everything
    try:
        with reports() as texts:
            for step in steps:
                if step.wait >= 0:
                    WAITS[step.how](lanes[step.stream], lanes[step.wait])
                else:
                    OPERATIONS[step.operation].work(buffers, x[PARTS[step.part]], lanes[step.stream])
    finally:
        gc.enable()
    assert all("race: " in text and "in another stream" in text for text in texts), texts
    return texts


# The report for the first and the second operation. The stream that was used last runs first.
TEXTS = {
    ("read", "store"): r"kernel get at \S+:\d+: race: it reads .* kernel put in another stream, block .* wrote",
    ("copy to the host", "store"): "race: a copy reads global memory .* kernel put in another stream.* wrote at",
    ("read", "fill"): "kernel get at .*: race: it reads .* which a fill in another stream wrote",
    ("copy to the device", "read"): "race: a copy writes global memory .* kernel get in another stream.* read at",
    ("fill", "read"): "race: a fill writes global memory .* kernel get in another stream.* read at",
    ("copy to the device", "copy to the host"): "race: a copy writes .* which a copy in another stream read",
    ("fill", "copy to the host"): "race: a fill writes .* which a copy in another stream read",
}


@pytest.mark.parametrize("first", OPERATIONS)
def test_two_operations_race_unless_their_streams_are_ordered(kernels: Any, engine: str, first: str) -> None:
    waits = itertools.cycle(WAITS)
    for second in OPERATIONS:
        steps = [Step(0, first), Step(1, second)]
        texts = races(kernels, steps)
        assert bool(texts) is is_hazard(steps), second
        if (first, second) in TEXTS:
            (text,) = texts
            assert re.match(TEXTS[first, second], text)
            assert "the 1024-byte allocation" in text
        ordered = [steps[0], Step(1, wait=0, how=next(waits)), steps[1]]
        assert races(kernels, ordered) == [], second
    assert races(kernels, [Step(0, first, "first"), Step(1, "store", "second")]) == []


@pytest.mark.parametrize("engine", ["native"], indirect=True)
def test_work_that_overlaps_without_a_race_runs_in_machine_code(
    engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fresh.cu").write_text((FOLDER / "streams.cu").read_text())  # without doubts of earlier launches
    fresh = cuda.compile(tmp_path / "fresh.cu")
    monkeypatch.setattr("cudart_py.simulator.ptx.running.runs._run_chunks", None)
    for name in OPERATIONS:
        assert races(fresh, [Step(0, name, "first"), Step(1, name, "second"), Step(0, name, "first")]) == []


@pytest.mark.parametrize("kernel", ["watch", "guess"])
@pytest.mark.parametrize("other", OPERATIONS)
@pytest.mark.usefixtures("engine")
def test_volatile_loads_and_guesses_race_with_fewer_accesses_than_other_loads(
    kernels: Any, monkeypatch: pytest.MonkeyPatch, other: str, kernel: str
) -> None:
    """Volatile loads race only with accesses of block scope, and guesses for a compare-and-swap with plain writes.

    The stream that was used last runs first.
    """
    monkeypatch.setitem(OPERATIONS, kernel, Operation(reader(kernel), writes=False))
    scoped, operation = other == "atomic of a block", OPERATIONS[other]
    expected = scoped if kernel == "watch" else operation.writes and not (operation.atomic or scoped)
    assert bool(races(kernels, [Step(0, kernel), Step(1, other)])) is expected
    assert races(kernels, [Step(0, kernel, "first"), Step(1, other, "second")]) == []


def test_the_legacy_default_stream_orders_streams_unless_they_do_not_block(kernels: Any) -> None:
    steps = [Step(0, "store"), Step(1, "read")]
    assert races(kernels, steps, cuda.Stream(), cuda.legacy_default) == []
    assert races(kernels, steps, cuda.legacy_default, cuda.Stream()) == []
    assert races(kernels, steps, *separate(1), cuda.legacy_default)


def test_an_event_recorded_too_early_orders_nothing(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = separate()
    event = streams[0].record()
    monkeypatch.setitem(WAITS, "early", lambda waiting, other: waiting.wait(event))
    assert races(kernels, [Step(0, "store"), Step(1, wait=0, how="early"), Step(1, "read")], *streams)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.usefixtures("engine")
def test_a_copy_to_a_constant_that_another_streams_kernel_reads_is_a_race(kernels: Any, order: int) -> None:
    out = cuda.zeros(64, np.int32)
    cuda.current_device().synchronize()
    works = (
        lambda stream: kernels.symbol("gain").copy_from(np.ones(4, np.int32), stream=stream),
        lambda stream: kernels["scale"][1, 64, 0, stream](out),
    )
    (text,) = found(lambda: [work(stream) for work, stream in zip(works[::order], separate(), strict=True)])
    assert "in another stream" in text
    assert "into the 16-byte variable gain at 0x" in text


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.usefixtures("engine")
def test_nodes_of_a_graph_race_where_no_edge_is_between_them(kernels: Any, rounds: int, joined: bool) -> None:
    """The iterations of a conditional loop are ordered, and do not race with one another."""
    (one, other), (x, out, counter) = separate(), (cuda.zeros(N, np.int32) for _ in range(3))

    def fork_and_join(stream: Any) -> None:
        fork = stream.record()
        kernels["put"][6, 48, 0, stream](x, 1, N)
        other.wait(stream.record() if joined else fork)
        kernels["get"][6, 48, 0, other](x, out, N)
        stream.wait(other.record())

    cuda.current_device().synchronize()
    with one.capture() as graph:
        if rounds == 1:
            fork_and_join(one)
        else:
            again = one.condition(default=1)
            with one.while_loop(again) as body:
                fork_and_join(body)
                kernels["turn"][1, 1, 0, body](counter, rounds, again)
    executable = graph.instantiate()
    texts = found(executable.launch, one)
    assert all(re.search("race: .*in another node of the graph", text) for text in texts)
    assert bool(texts) is not joined
    assert counter.to_host()[0] == (rounds if rounds > 1 else 0)


@pytest.mark.parametrize("second", ["read", "atomic add", "copy to the host"])
def test_what_a_second_reader_or_atomic_has_done_does_not_hide_the_first(kernels, engine, second):
    """The last operation waits only for the second stream. The stream that was used last runs first."""
    last = "read" if OPERATIONS[second].atomic else "fill"
    read, ordered = [Step(1, second), Step(2, wait=1, how="event")], Step(2, last)
    steps = [*read, ordered, Step(0, second)]
    assert is_hazard(steps)
    assert races(kernels, steps)
    assert races(kernels, [Step(0, second), *read, Step(2, wait=0, how="event"), ordered]) == []


def test_a_race_names_the_lines_that_queued_the_copies() -> None:
    x, (a, b) = cuda.zeros(N, np.int32), separate()
    host, other = cuda.pinned_empty(N, np.int32), cuda.pinned_empty(N, np.int32)
    cuda.legacy_default.synchronize()
    with reports() as texts:
        x.copy_from(host, stream=a)  # AT write
        x.to_host(out=other, stream=b)  # AT read
    (text,) = texts
    read, write = (rf"test_streams.py:{min(marked(__file__, 'AT')[name])}\b" for name in ("read", "write"))
    first = rf"a copy writes .* which a copy in another stream read \(queued at \S*{read}\)"
    second = rf"a copy reads .* which a copy in another stream wrote \(queued at \S*{write}\)"
    assert re.search(
        rf"{first}.*; this copy was queued at \S*{write}|{second}.*; this copy was queued at \S*{read}", text
    )


def test_a_race_in_a_graph_is_between_nodes_and_names_the_lines_of_the_capture() -> None:
    x, (a, b) = cuda.zeros(N, np.int32), separate()
    host = cuda.pinned_empty(N, np.int32)
    cuda.legacy_default.synchronize()
    with a.capture() as graph:
        b.wait(a)
        x.copy_from(host, stream=a)
        cuda.memset(x, 3, stream=b)
        a.wait(b)
    with reports() as texts:
        graph.instantiate().launch(a)
    (text,) = texts
    assert re.search(
        r"which a (copy|fill) in another node of the graph wrote \(queued at \S*test_streams.py:\d+\)", text
    )
    assert "add an edge between the two nodes" in text
    assert "another stream" not in text


# Both launches may run at once. The second takes its index from the array that the first writes.
TOO_FAR = """
import numpy as np
import cudart_py as cuda

kernels = cuda.compile('''
extern "C" __global__ void set(int* index) { index[threadIdx.x] = 1 << 20; }
extern "C" __global__ void use(int* out, const int* index) { out[(1 << 20) + index[threadIdx.x]] = 1; }
''')
index, out = cuda.zeros(32, np.int32), cuda.zeros(32, np.int32)
cuda.legacy_default.synchronize()
streams = [cuda.Stream(non_blocking=True) for _ in range(2)]
try:
    kernels["set"][1, 32, 0, streams[0]](index)
    kernels["use"][1, 32, 0, streams[1]](out, index)
    for stream in streams:
        stream.synchronize()
except cuda.CudaError as error:
    print(error)
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_race_that_may_have_caused_a_fault_is_reported_beside_it(python: Any, engine: str) -> None:
    text = python(TOO_FAR, CUDART_PY_SIMULATOR_ENGINE=engine, CUDART_PY_SANITIZER="error").stdout
    assert "a global write of 4 bytes" in text
    assert "race: it reads 4 bytes" in text


FREE = (
    r"a free releases global memory at \S+ \(\d+ bytes? into the 1024-byte allocation .*\), which .* in another stream"
)


@pytest.mark.parametrize("first", OPERATIONS)
@pytest.mark.usefixtures("engine")
def test_a_free_races_with_work_in_another_stream_unless_the_two_are_ordered(kernels: Any, first: str) -> None:
    """CUDA: "accessing the memory after the free operation has been started is undefined behavior"."""
    for how in (None, *WAITS):
        buffers, (using, freeing) = Buffers(kernels, 1), separate()
        with cuda.Stream(non_blocking=True) as made:
            x = cuda.zeros(N, np.int32, stream=made)
        cuda.current_device().synchronize()
        gc.disable()  # to free pinned memory, the host waits for the device, which orders everything
        try:
            with reports() as texts:
                OPERATIONS[first].work(buffers, x, using)
                if how:
                    WAITS[how](freeing, using)
                x.close(stream=freeing)
                using.synchronize()  # the other order is a fault
        finally:
            gc.enable()
        assert bool(texts) is (how is None), (how, texts)
        assert all(re.search(FREE, text) for text in texts)


def random_program(number: int) -> list[Step]:
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


@pytest.mark.parametrize(
    "numbers", [[*range(40), 44, 49, 421], pytest.param(range(40, 700), marks=pytest.mark.exhaustive)]
)
def test_random_programs_race_where_nothing_orders_a_hazard(
    kernels: Any, numbers: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both engines report the same threads and lines."""
    hazards = 0
    for number in numbers:
        steps = random_program(number)
        texts = {}
        for engine in ENGINES:
            monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
            # If many threads have read an element, or one has stored and then updated it, the engines name different
            # ones of these accesses.
            unlike = r"0x[0-9a-f]+|(?<=kernel first in another stream), block .*?\), thread .*?\)"
            unlike += r"|(?<=kernel put_then_count in another stream), .*?(?=, and nothing)"
            texts[engine] = [re.sub(unlike, "", text) for text in races(kernels, steps)]
            assert bool(texts[engine]) is is_hazard(steps), (number, engine, steps)
        assert texts["native"] == texts["numpy"], (number, steps)
        hazards += is_hazard(steps)
    assert len(numbers) / 4 <= hazards <= len(numbers) * 3 / 4
