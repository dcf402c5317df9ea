"""Races of calls other than launches and plain copies, and the calls that order work: each case with and without order.

Every case queues two pieces of work that conflict, and orders them only if it is told to.
"""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import green_contexts
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE

N = 256
SOURCE = """
extern "C" __global__ void put(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 5 + threadIdx.x; }
extern "C" __global__ void get(const int* x, int* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }
"""


class Scene:
    """Two streams, two arrays and two kernels; `kept` holds what the queued work uses."""

    def __init__(self) -> None:
        module = cuda.compile(SOURCE)
        self.put, self.get = module["put"], module["get"]
        self.one, self.two = (cuda.Stream(non_blocking=True) for _ in range(2))
        self.x, self.out = cuda.zeros(N, np.int32), cuda.zeros(N, np.int32)
        self.kept: list[Any] = []

    def keep(self, thing: Any) -> Any:
        self.kept.append(thing)
        return thing

    def write(self, x: Any, stream: Any) -> None:
        self.put[1, N, 0, stream](x, N)

    def read(self, x: Any, stream: Any) -> None:
        self.get[1, N, 0, stream](x, self.out, N)

    def writes(self) -> Any:
        return self.put[1, N].bind(self.x, N)

    def reads(self) -> Any:
        return self.get[1, N].bind(self.x, self.out, N)

    def joined(self, ordered: bool) -> Any:
        """Return the second stream, which waits for the first if `ordered`."""
        if ordered:
            self.two.wait(self.one)
        return self.two

    def executable(self, graph: Any) -> Any:
        return self.keep(self.keep(graph).instantiate())


def ready(scene: Scene, *things: Any) -> None:
    """Wait for all work, and keep what later work uses. To free pinned memory, the host would wait for the device."""
    scene.kept += things
    gc.collect()
    cuda.current_device().synchronize()


def batch_writes(scene: Scene, ordered: bool) -> None:
    host = cuda.pinned_empty(N, np.int32)
    host[:] = 7
    ready(scene, host)
    cuda.batches.memcpy([(scene.x, host)], stream=scene.one)
    scene.read(scene.x, scene.joined(ordered))


def batch_reads(scene: Scene, ordered: bool) -> None:
    host = cuda.pinned_empty(N, np.int32)
    ready(scene, host)
    scene.write(scene.x, scene.one)
    cuda.batches.memcpy([(host, scene.x)], stream=scene.joined(ordered))


def discard(scene: Scene, ordered: bool) -> None:
    managed = cuda.managed_empty(N, np.int32)
    ready(scene, managed)
    cuda.batches.discard([managed], stream=scene.one)
    scene.write(managed, scene.joined(ordered))


def fill_of_managed_memory(scene: Scene, ordered: bool) -> None:
    managed = cuda.managed_empty(N, np.int32)
    managed[:] = 0
    ready(scene, managed)
    borrowed = cuda.DeviceArray.borrow(managed.ctypes.data, managed.shape, managed.dtype, owner=managed)
    cuda.memset(borrowed, 3, stream=scene.one)
    scene.write(managed, scene.joined(ordered))


def copy_of_pinned_memory(scene: Scene, ordered: bool) -> None:
    mapped = cuda.pinned_empty(N, np.int32, mapped=True)
    mapped[:] = 0
    ready(scene, mapped)
    scene.write(mapped, scene.one)
    scene.x.copy_from(mapped, stream=scene.joined(ordered))


def pinned_memory_of_a_pool(scene: Scene, ordered: bool) -> None:
    pinned = cuda.pinned_empty(N, np.int32, pool=scene.keep(cuda.MemoryPool(kind="pinned")))
    pinned[:] = 0
    ready(scene, pinned)
    scene.write(pinned, scene.one)
    scene.read(pinned, scene.joined(ordered))


def memory_of_a_pool(scene: Scene, ordered: bool) -> None:
    pooled = cuda.zeros(N, np.int32, pool=scene.keep(cuda.MemoryPool()))
    ready(scene, pooled)
    scene.write(pooled, scene.one)
    scene.read(pooled, scene.joined(ordered))


def growable_array(scene: Scene, ordered: bool) -> None:
    growable = cuda.virtual.GrowableArray(1 << 20, np.int32)
    array = growable.append(np.zeros(N, np.int32)).array
    ready(scene, growable, array)
    scene.write(array, scene.one)
    scene.read(array, scene.joined(ordered))


def assignment(scene: Scene, ordered: bool) -> None:
    array = cuda.zeros(N, np.int32, stream=scene.one)
    ready(scene, array)
    array[2:5] = 7  # in the array's own stream
    scene.read(array, scene.joined(ordered))


def node_that_records(scene: Scene, ordered: bool) -> None:
    event, graph = scene.keep(cuda.Event()), cuda.graphs.Graph()
    graph.add(cuda.graphs.NodeRecord(event), after=graph.add(scene.writes()))
    executable = scene.executable(graph)
    ready(scene)
    executable.launch(scene.one)
    if ordered:
        scene.two.wait(event)
    scene.read(scene.x, scene.two)


def node_that_waits(scene: Scene, ordered: bool) -> None:
    event, graph = scene.keep(cuda.Event()), cuda.graphs.Graph()
    graph.add(scene.reads(), after=graph.add(cuda.graphs.NodeWait(event)) if ordered else ())
    executable = scene.executable(graph)
    ready(scene)
    scene.write(scene.x, scene.one)
    event.record(scene.one)
    executable.launch(scene.two)


def captured_external_record(scene: Scene, ordered: bool) -> None:
    event = scene.keep(cuda.Event())
    with scene.one.capture() as graph:
        scene.write(scene.x, scene.one)
        event.record(scene.one, external=True)
    executable = scene.executable(graph)
    ready(scene)
    executable.launch(scene.one)
    if ordered:
        scene.two.wait(event)
    scene.read(scene.x, scene.two)


def captured_external_wait(scene: Scene, ordered: bool) -> None:
    event = scene.keep(cuda.Event())
    with scene.two.capture() as graph:
        if ordered:
            scene.two.wait(event, external=True)
        scene.read(scene.x, scene.two)
    executable = scene.executable(graph)
    ready(scene)
    scene.write(scene.x, scene.one)
    event.record(scene.one)
    executable.launch(scene.two)


def edge(scene: Scene, ordered: bool) -> None:
    graph = cuda.graphs.Graph()
    before = graph.add(scene.writes())
    after = graph.add(scene.reads(), after=before)
    if not ordered:
        graph.remove_edge(before, after)
    executable = scene.executable(graph)
    ready(scene)
    executable.launch(scene.one)


def empty_node(scene: Scene, ordered: bool) -> None:
    graph = cuda.graphs.Graph()
    before = graph.add(scene.writes())
    graph.add(scene.reads(), after=graph.add_empty(after=before if ordered else ()))
    executable = scene.executable(graph)
    ready(scene)
    executable.launch(scene.one)


def node_of_memory_operations(scene: Scene, ordered: bool) -> None:
    flag = cuda.pinned_empty(1, np.uint32)
    flag[:] = 0
    graph = cuda.graphs.Graph()
    operations = cuda.graphs.NodeMemoryOperations([cuda.batches.WriteValue(flag, 1)])
    graph.add(operations, after=graph.add(scene.writes()))
    executable = scene.executable(graph)
    ready(scene, flag)
    executable.launch(scene.one)
    if ordered:
        scene.two.wait_value(flag, 1)
    scene.read(scene.x, scene.two)


def record_of_a_green_context(scene: Scene, ordered: bool) -> None:
    part, stream = green_part(scene)
    scene.write(scene.x, stream)
    if ordered:
        scene.two.wait(part.record())
    scene.read(scene.x, scene.two)


def wait_of_a_green_context(scene: Scene, ordered: bool) -> None:
    part, stream = green_part(scene)
    scene.write(scene.x, scene.one)
    if ordered:
        part.wait(scene.one.record())
    scene.read(scene.x, stream)


def green_part(scene: Scene) -> tuple[green_contexts.GreenContext, Any]:
    (group,), _ = green_contexts.multiprocessors().split(8)
    part = green_contexts.GreenContext(group)
    stream = part.stream()
    ready(scene, part, stream)
    return part, stream


CASES = (
    batch_writes, batch_reads, discard, fill_of_managed_memory, copy_of_pinned_memory, pinned_memory_of_a_pool,
    memory_of_a_pool, growable_array, assignment, node_that_records, node_that_waits, captured_external_record,
    captured_external_wait, edge, empty_node, node_of_memory_operations, record_of_a_green_context,
    wait_of_a_green_context,
)  # fmt: skip  # a list of names


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_work_races_unless_the_call_that_orders_it_is_made(case: Callable[[Scene, bool], None]) -> None:
    for ordered in (False, True):
        texts = found(case, Scene(), ordered)
        assert all("race: " in text for text in texts), texts
        assert bool(texts) is not ordered, (ordered, texts)
