"""Changes of single nodes in executable graphs by raw calls, and what the driver refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import Status, download, ok, struct, upload

REFUSED = (Status.CUDA_ERROR_INVALID_VALUE,)
BYTES = 64


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

    def set_copy(self, parameters: Any, node: Any = None, context: Any = None) -> Any:
        arguments = self.executable, node or self.copy, parameters, context or self.context
        return driver.cuGraphExecMemcpyNodeSetParams(*arguments)

    def set_fill(self, parameters: Any, node: Any = None, context: Any = None) -> Any:
        arguments = self.executable, node or self.fill, parameters, context or self.context
        return driver.cuGraphExecMemsetNodeSetParams(*arguments)

    def launch(self) -> None:
        ok(driver.cuGraphLaunch(self.executable, self.stream))


@pytest.fixture
def graph(stream: Any) -> Graph:
    return Graph(stream)


def copy_of(destination: int, source: int, width: int, **others: int) -> Any:
    kinds = dict.fromkeys(["srcMemoryType", "dstMemoryType"], bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE)
    sizes = {"WidthInBytes": width, "Height": 1, "Depth": 1, "srcPitch": width, "dstPitch": width}
    return struct("CUDA_MEMCPY3D", srcDevice=source, dstDevice=destination, **{**kinds, **sizes, **others})


def fill_of(address: int, value: int, width: int, **others: int) -> Any:
    given = {"elementSize": 1, "height": 1, **others}
    return struct("CUDA_MEMSET_NODE_PARAMS", dst=bindings.CUdeviceptr(address), value=value, width=width, **given)


def test_what_a_node_cannot_do_is_refused_and_changes_nothing(graph: Graph) -> None:
    """A copy takes one row of known memory, and a fill keeps its single row; neither takes another kind of memory."""
    there, here = graph.destination, graph.source
    managed = ok(driver.cuMemAllocManaged(BYTES, 1))
    for copy in (
        None,
        copy_of(there, here, 0),
        copy_of(there, here, 8, Height=2),
        copy_of(there, here, 8, Depth=2, srcHeight=1, dstHeight=1),
        copy_of(there, here, BYTES + 1),
        copy_of(managed, here, 8),
        copy_of(there, managed, 8),
    ):
        assert graph.set_copy(copy) == REFUSED
    for fill in (
        None,
        fill_of(here, 1, 0),
        fill_of(here, 1, 4, height=2, pitch=8),
        fill_of(here, 1, 4, elementSize=3),
        fill_of(here, 1, BYTES + 1),
        fill_of(managed, 1, 8),
    ):
        assert graph.set_fill(fill) == REFUSED
    copy, fill = copy_of(there, here, 8), fill_of(here, 1, 4)
    assert graph.set_copy(copy, graph.fill) == REFUSED
    assert graph.set_fill(fill, graph.copy) == REFUSED
    wrong = (Status.CUDA_ERROR_INVALID_CONTEXT,)
    assert graph.set_copy(copy, context=7) == wrong
    assert graph.set_fill(fill, context=7) == wrong
    graph.launch()
    assert download(there, BYTES, np.uint8).tolist() == [1] * BYTES
    ok(graph.set_fill(fill_of(here, 1, 4, pitch=3, elementSize=4)))


def test_a_disabled_node_keeps_its_parameters(graph: Graph) -> None:
    ok(driver.cuGraphNodeSetEnabled(graph.executable, graph.copy, 0))
    ok(graph.set_copy(copy_of(graph.destination, graph.source, 8)))
    assert ok(driver.cuGraphNodeGetEnabled(graph.executable, graph.copy)) == 0
    graph.launch()
    ok(driver.cuGraphNodeSetEnabled(graph.executable, graph.copy, 1))
    assert download(graph.destination, BYTES, np.uint8).tolist() == [2] * BYTES
    graph.launch()
    assert download(graph.destination, 9, np.uint8).tolist() == [3] * 8 + [2]
    assert driver.cuGraphNodeSetEnabled(graph.executable, 7, 1) == REFUSED
