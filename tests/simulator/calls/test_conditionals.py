"""Conditional nodes by raw calls: what the driver takes, what it refuses, and how the bodies run."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.calls.graphs import bodies
from tests.simulator.kernels import function, loaded
from tests.simulator.support import HostCalls, Status, ok, struct, upload

INVALID = (Status.CUDA_ERROR_INVALID_VALUE, None)
UNSUPPORTED = (Status.CUDA_ERROR_NOT_SUPPORTED, None)
IF, WHILE, SWITCH = bindings.CUgraphConditionalNodeType
SOURCE = """
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void set(cudaGraphConditionalHandle condition, unsigned value) {
    cudaGraphSetConditional(condition, value);
}
"""


@pytest.fixture
def graph(context: Any) -> Any:
    return ok(driver.cuGraphCreate(0))


def condition(graph: Any, default: int = 0) -> Any:
    return ok(driver.cuGraphConditionalHandleCreate(graph, ok(driver.cuCtxGetCurrent()), default, 1))


def parameters(handle: Any, kind: Any = IF, size: int = 1) -> Any:
    return struct(
        "CUgraphNodeParams",
        type=bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL,
        conditional__handle=bindings.CUgraphConditionalHandle(int(handle)),
        conditional__type=kind,
        conditional__size=size,
        conditional__ctx=ok(driver.cuCtxGetCurrent()),
    )


def add(graph: Any, handle: Any, kind: Any = IF, size: int = 1) -> list[Any]:
    """Add a conditional node and return the graphs of its bodies."""
    given = parameters(handle, kind, size)
    ok(driver.cuGraphAddNode(graph, None, None, 0, given))
    return list(given.conditional.phGraph_out)


def begin(stream: Any, graph: Any) -> None:
    ok(driver.cuStreamBeginCaptureToGraph(stream, graph, None, None, 0, 0))


def fill(stream: Any, graph: Any, address: int) -> None:
    """Let a graph fill a byte."""
    begin(stream, graph)
    ok(driver.cuMemsetD8Async(address, 1, 1, stream))
    assert int(ok(driver.cuStreamEndCapture(stream))) == int(graph)


def test_a_loop_without_an_end_reaches_the_limit_of_seconds(
    stream: Any, graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "launch_limits", lambda: (0, 0.05))
    (body,) = add(graph, condition(graph, 1), WHILE)
    fill(stream, body, upload(np.zeros(1, np.uint8)))
    ok(driver.cuGraphLaunch(ok(driver.cuGraphInstantiate(graph, 0)), stream))
    assert driver.cuStreamSynchronize(stream) == (Status.CUDA_ERROR_LAUNCH_TIMEOUT,)
    assert "a loop of a graph" in driver.take_report()


def test_a_node_takes_a_condition_of_its_graph_or_one_around_it_that_no_other_has(graph: Any) -> None:
    def added(given: Any) -> Any:
        return driver.cuGraphAddNode(graph, None, None, 0, given)

    handle, elsewhere = condition(graph), condition(ok(driver.cuGraphCreate(0)))
    wrong = ((handle, IF, 0), (handle, IF, 3), (handle, WHILE, 2), (handle, SWITCH, 0), (12345,), (elsewhere,))
    for given in (None, *(parameters(*one) for one in wrong)):
        assert added(given) == INVALID
    assert added(bindings.CUgraphNodeParams()) == UNSUPPORTED
    no_context = (Status.CUDA_ERROR_INVALID_CONTEXT, None)
    for arguments, status in (((graph, 0, 1, 2), INVALID), ((7, 0, 1, 1), INVALID), ((graph, 7, 1, 1), no_context)):
        assert driver.cuGraphConditionalHandleCreate(*arguments) == status
    outer, (body,) = condition(graph), add(graph, handle)
    inner = condition(body)
    assert added(parameters(handle)) == added(parameters(inner)) == INVALID
    add(body, outer)
    add(body, inner)


def test_a_graph_is_instantiated_whole_and_not_copied(stream: Any, graph: Any) -> None:
    def refused(status: Any, words: str) -> None:
        assert driver.cuGraphInstantiate(graph, 0) == status
        assert words in driver.take_report()

    unused = condition(graph)
    refused(INVALID, "belongs to no conditional node")
    (body,) = add(graph, unused)
    assert driver.cuGraphClone(graph) == UNSUPPORTED
    begin(stream, body)
    HostCalls().launch(stream, "a")
    ok(driver.cuStreamEndCapture(stream))
    refused(UNSUPPORTED, "CU_GRAPH_NODE_TYPE_HOST")
    # A capture that was spoiled destroys the graph that it was given.
    begin(stream, body)
    driver.cuStreamSynchronize(stream)
    assert driver.cuStreamEndCapture(stream)[0] == Status.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    refused(INVALID, "destroyed by a capture")


def test_a_drawing_says_what_the_node_is(graph: Any, tmp_path: Any) -> None:
    handle, path = condition(graph, 4), tmp_path / "graph.dot"
    add(graph, handle, SWITCH, 2)
    ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), 1))
    assert r"CONDITIONAL\nswitch of 0, 0 nodes" in path.read_text()
    assert rf"condition {int(handle):#x}\ndefault 4" in path.read_text()


def test_a_capture_to_a_graph_goes_on_behind_the_nodes_given(stream: Any, graph: Any) -> None:
    address = upload(np.zeros(1, np.uint8))
    fill(stream, graph, address)
    (first,), _ = ok(driver.cuGraphGetNodes(graph, 1))
    ok(driver.cuStreamBeginCaptureToGraph(stream, graph, [first], None, 1, 0))
    ok(driver.cuMemsetD8Async(address, 2, 1, stream))
    ok(driver.cuStreamEndCapture(stream))
    (_, second), _ = ok(driver.cuGraphGetNodes(graph, 2))
    before, _, _ = ok(driver.cuGraphNodeGetDependencies(second, 1))
    assert [int(one) for one in before] == [int(first)]
    other = ok(driver.cuGraphCreate(0))
    assert driver.cuStreamBeginCaptureToGraph(stream, other, [first], None, 1, 0) == INVALID[:1]
    assert driver.cuStreamBeginCaptureToGraph(0, other, None, None, 0, 0)[0] != Status.CUDA_SUCCESS


def test_a_kernel_sets_only_conditions_that_there_are(stream: Any, graph: Any) -> None:
    kernel = function(loaded(SOURCE), "set")
    given = ((int(condition(graph)), 1), (ctypes.c_uint64, ctypes.c_uint32))
    for expected in (Status.CUDA_SUCCESS, Status.CUDA_ERROR_ILLEGAL_ADDRESS):
        ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, given, 0))
        assert driver.cuStreamSynchronize(stream) == (expected,)
        if expected == Status.CUDA_SUCCESS:
            ok(driver.cuGraphDestroy(graph))
    assert "is no condition of a graph; block (0, 0, 0), thread (0, 0, 0)" in driver.take_report()
