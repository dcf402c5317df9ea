"""Changes of single nodes in executable graphs by raw calls, and what the driver refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import Status, download, ok, upload

REFUSED = (Status.CUDA_ERROR_INVALID_VALUE,)
BYTES = 64


@pytest.fixture
def stream(context: Any) -> Any:
    return ok(driver.cuStreamCreate(1))


class Graph:
    """A graph of a copy and a fill, its executable form, and the memory that they use."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.source, self.destination = (upload(np.full(BYTES, value, np.uint8)) for value in (1, 2))
        ok(driver.cuStreamBeginCapture(stream, 0))
        ok(driver.cuMemcpyDtoDAsync(self.destination, self.source, BYTES, stream))
        ok(driver.cuMemsetD8Async(self.source, 3, BYTES, stream))
        self.graph = ok(driver.cuStreamEndCapture(stream))
        (self.copy, self.fill), _ = ok(driver.cuGraphGetNodes(self.graph, 2))
        self.executable = ok(driver.cuGraphInstantiate(self.graph, 0))
        self.context = ok(driver.cuCtxGetCurrent())

    def set_copy(self, parameters: Any, node: Any = None) -> Any:
        return driver.cuGraphExecMemcpyNodeSetParams(self.executable, node or self.copy, parameters, self.context)

    def set_fill(self, parameters: Any, node: Any = None) -> Any:
        return driver.cuGraphExecMemsetNodeSetParams(self.executable, node or self.fill, parameters, self.context)


@pytest.fixture
def graph(stream: Any) -> Graph:
    return Graph(stream)


def copy_parameters(destination: int, source: int, width: int, height: int = 1, **others: int) -> Any:
    made, kind = bindings.CUDA_MEMCPY3D(), bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE
    made.srcMemoryType = made.dstMemoryType = kind
    made.srcDevice, made.dstDevice = source, destination
    made.WidthInBytes, made.Height, made.Depth = width, height, 1
    made.srcPitch = made.dstPitch = width
    for name, value in others.items():
        setattr(made, name, value)
    return made


def fill_parameters(address: int, value: int, width: int, **others: int) -> Any:
    made = bindings.CUDA_MEMSET_NODE_PARAMS()
    made.dst = bindings.CUdeviceptr(address)
    made.value, made.elementSize, made.width, made.height = value, 1, width, 1
    for name, one in others.items():
        setattr(made, name, one)
    return made


def test_a_copy_and_a_fill_are_changed_for_later_launches_alone(graph: Graph) -> None:
    ok(driver.cuGraphLaunch(graph.executable, graph.stream))
    ok(graph.set_copy(copy_parameters(graph.source, graph.destination, 8)))
    ok(graph.set_fill(fill_parameters(graph.destination, 0x0708, 2, elementSize=2)))
    assert download(graph.destination, BYTES, np.uint8).tolist() == [1] * BYTES
    ok(driver.cuGraphLaunch(graph.executable, graph.stream))
    assert download(graph.destination, 6, np.uint8).tolist() == [8, 7, 8, 7, 1, 1]
    assert download(graph.source, 10, np.uint8).tolist() == [1] * 8 + [3] * 2


def test_a_copy_takes_one_row_of_known_memory_alone(graph: Graph) -> None:
    ends = graph.destination, graph.source
    assert graph.set_copy(None) == REFUSED
    assert graph.set_copy(copy_parameters(*ends, 0)) == REFUSED
    assert graph.set_copy(copy_parameters(*ends, 8, 2)) == REFUSED
    assert graph.set_copy(copy_parameters(*ends, 8, Depth=2, srcHeight=1, dstHeight=1)) == REFUSED
    assert graph.set_copy(copy_parameters(*ends, BYTES + 1)) == REFUSED
    assert graph.set_copy(copy_parameters(*ends, 8), graph.fill) == REFUSED
    ok(driver.cuGraphLaunch(graph.executable, graph.stream))
    assert download(graph.destination, BYTES, np.uint8).tolist() == [1] * BYTES


def test_a_fill_keeps_its_single_row(graph: Graph) -> None:
    assert graph.set_fill(None) == REFUSED
    assert graph.set_fill(fill_parameters(graph.source, 1, 0)) == REFUSED
    assert graph.set_fill(fill_parameters(graph.source, 1, 4, height=2, pitch=8)) == REFUSED
    assert graph.set_fill(fill_parameters(graph.source, 1, 4, elementSize=3)) == REFUSED
    assert graph.set_fill(fill_parameters(graph.source, 1, BYTES + 1)) == REFUSED
    assert graph.set_fill(fill_parameters(graph.source, 1, 4), graph.copy) == REFUSED
    ok(graph.set_fill(fill_parameters(graph.source, 1, 4, pitch=3, elementSize=4)))


def test_memory_of_another_kind_is_refused(graph: Graph) -> None:
    managed = ok(driver.cuMemAllocManaged(BYTES, 1))
    assert graph.set_copy(copy_parameters(managed, graph.source, 8)) == REFUSED
    assert graph.set_copy(copy_parameters(graph.destination, managed, 8)) == REFUSED
    assert graph.set_fill(fill_parameters(managed, 1, 8)) == REFUSED


def test_a_wrong_context_is_refused(graph: Graph) -> None:
    wrong = (Status.CUDA_ERROR_INVALID_CONTEXT,)
    copy, fill = copy_parameters(graph.destination, graph.source, 8), fill_parameters(graph.source, 1, 8)
    assert driver.cuGraphExecMemcpyNodeSetParams(graph.executable, graph.copy, copy, 7) == wrong
    assert driver.cuGraphExecMemsetNodeSetParams(graph.executable, graph.fill, fill, 7) == wrong


def test_a_disabled_node_keeps_its_parameters(graph: Graph) -> None:
    ok(driver.cuGraphNodeSetEnabled(graph.executable, graph.copy, 0))
    ok(graph.set_copy(copy_parameters(graph.destination, graph.source, 8)))
    assert ok(driver.cuGraphNodeGetEnabled(graph.executable, graph.copy)) == 0
    ok(driver.cuGraphLaunch(graph.executable, graph.stream))
    ok(driver.cuGraphNodeSetEnabled(graph.executable, graph.copy, 1))
    assert download(graph.destination, BYTES, np.uint8).tolist() == [2] * BYTES
    ok(driver.cuGraphLaunch(graph.executable, graph.stream))
    assert download(graph.destination, 9, np.uint8).tolist() == [3] * 8 + [2]
    assert driver.cuGraphNodeSetEnabled(graph.executable, 7, 1) == REFUSED
