import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.calls.graphs.execution import bodies
from tests.simulator.kernels import INVALID, function, loaded
from tests.simulator.support import HostCalls, Player, Status, download, ok, struct, upload

FORK = "begin s, record e s, wait t e, "
SPOILT = "end s -> STREAM_CAPTURE_INVALIDATED"

CAPTURES = {
    "a stream that does not come back is unjoined": FORK
    + "capturing t active, run t a, end s -> STREAM_CAPTURE_UNJOINED, capturing t none",
    "only the first stream ends a capture": FORK + "end t -> STREAM_CAPTURE_UNMATCHED, " + SPOILT,
    # Observed with the driver of an H100.
    "a capture goes on without a stream that joined it": FORK + "destroy t, capturing s active, end s",
    "two captures do not merge": "begin s, begin t, record e s, wait t e -> STREAM_CAPTURE_MERGE, "
    "end s -> STREAM_CAPTURE_INVALIDATED, end t -> STREAM_CAPTURE_INVALIDATED",
    "a wait for what is outside breaks the isolation": "record e null, begin s, "
    "wait s e -> STREAM_CAPTURE_ISOLATION, " + SPOILT,
    "a captured stream cannot be waited for": "take null a, begin s, sync s -> STREAM_CAPTURE_UNSUPPORTED, "
    "capturing s invalidated, fill s a -> STREAM_CAPTURE_INVALIDATED, " + SPOILT + ", capturing s none",
    "a captured stream cannot be queried": "begin s, query s -> STREAM_CAPTURE_UNSUPPORTED, " + SPOILT,
    "a captured event cannot be waited for": "begin s, record e s, sync e -> CAPTURED_EVENT, " + SPOILT,
    "a captured event cannot be queried": "begin s, record e s, query e -> CAPTURED_EVENT, " + SPOILT,
    "the legacy stream would wait for a blocking captured one": "take null a, begin b, "
    "capturing null none -> STREAM_CAPTURE_IMPLICIT, fill null a -> STREAM_CAPTURE_IMPLICIT, "
    "end b -> STREAM_CAPTURE_INVALIDATED",
    "an allocation in the legacy stream would wait too": "begin b, take null a -> STREAM_CAPTURE_IMPLICIT, "
    "end b -> STREAM_CAPTURE_INVALIDATED",
    "the legacy stream goes on beside a non-blocking captured one": "take null a, begin s, fill null a, end s",
    "a capture begins and ends once": "end s -> ILLEGAL_STATE, begin s, begin s -> ILLEGAL_STATE, end s, "
    "begin null -> STREAM_CAPTURE_UNSUPPORTED",
    "memory from outside is not freed": "take s a, begin s, free s a -> INVALID_VALUE, end s",
}


@pytest.mark.parametrize("case", CAPTURES)
def test_captures_have_the_drivers_answers(play: Player, case: str) -> None:
    play(CAPTURES[case])


def test_a_graph_is_drawn(play: Player, module: Any, tmp_path: Path) -> None:
    device, path = upload(np.zeros(10, np.int32)), tmp_path / "graph.dot"
    play("begin s")
    ok(driver.cuMemsetD8Async(device, 0, 1, play["s"]))
    packed = ((device,), (ctypes.c_void_p,))
    ok(driver.cuLaunchKernel(function(module, "bounded"), 1, 1, 1, 1, 1, 1, 0, play["s"], packed, 0))
    graph = play("end s")
    assert ok(driver.cuGraphGetRootNodes(graph)) == ([], 1)
    add(graph, condition(graph, 4), SWITCH, 2)
    drawings = []
    for flags in (0, bindings.CUgraphDebugDot_flags.CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE):
        ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), flags))
        drawings.append(path.read_text())
        assert "node_0 -> node_1" in drawings[-1]
        assert r"CONDITIONAL\nswitch of 0, 0 nodes" in drawings[-1]
    details = (f"at {device:#x}", "pitch", f"parameter 0: {device:#x} (8 bytes)", "default 4")
    assert [all(text in drawing for text in details) for drawing in drawings] == [False, True]
    assert driver.cuGraphDebugDotPrint(graph, b"/no/such/folder", 0) == (Status.CUDA_ERROR_OPERATING_SYSTEM,)


def test_a_streams_priority_and_access_policy_window_are_copied(stream: Any) -> None:
    priority = struct("CUstreamAttrValue", priority=-3)
    ok(driver.cuStreamSetAttribute(stream, bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY, priority))
    identity = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    value = struct("CUstreamAttrValue", accessPolicyWindow__num_bytes=64, accessPolicyWindow__hitRatio=0.5)
    ok(driver.cuStreamSetAttribute(stream, identity, value))
    other = ok(driver.cuStreamCreate(1))
    ok(driver.cuStreamCopyAttributes(other, stream))
    assert ok(driver.cuStreamGetPriority(other)) == ok(driver.cuStreamGetPriority(stream)) == -3
    kept = ok(driver.cuStreamGetAttribute(other, identity)).accessPolicyWindow
    assert (kept.num_bytes, kept.hitRatio) == (64, 0.5)
    value.accessPolicyWindow.hitRatio = 1.5
    assert driver.cuStreamSetAttribute(stream, identity, value) == (INVALID,)


def test_a_spoiled_capture_gives_up_its_allocations_and_no_graph_holds_a_prefetch(play: Player) -> None:
    start = ok(driver.cuMemGetInfo())
    play("begin s, take s a, sync s -> STREAM_CAPTURE_UNSUPPORTED, " + SPOILT)
    assert ok(driver.cuMemGetInfo()) == start
    address = ok(driver.cuMemAllocManaged(64, 1))
    location = struct("CUmemLocation", type=bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE)
    play("begin s")
    refused = driver.cuMemPrefetchAsync(address, 64, location, 0, play["s"])
    assert refused == (Status.CUDA_ERROR_NOT_SUPPORTED,)
    play(SPOILT)


BYTES = 64


class Graph:
    """A graph with one copy node and one fill node, its executable graph, and the memory that they use."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.source, self.destination = (upload(np.full(BYTES, value, np.uint8)) for value in (1, 2))
        ok(driver.cuStreamBeginCapture(stream, 0))
        ok(driver.cuMemcpyDtoDAsync(self.destination, self.source, BYTES, stream))
        ok(driver.cuMemsetD8Async(self.source, 3, BYTES, stream))
        graph = ok(driver.cuStreamEndCapture(stream))
        (self.copy, self.fill), _ = ok(driver.cuGraphGetNodes(graph, 2))
        self.executable = ok(driver.cuGraphInstantiate(graph, 0))
        self.context = ok(driver.cuCtxGetCurrent())

    def set_copy(self, there: int, here: int, width: int, node: Any = None, context: Any = 0, **more: int) -> Any:
        kinds = dict.fromkeys(["srcMemoryType", "dstMemoryType"], bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE)
        sizes = {"WidthInBytes": width, "Height": 1, "Depth": 1, "srcPitch": width, "dstPitch": width}
        given = struct("CUDA_MEMCPY3D", srcDevice=here, dstDevice=there, **{**kinds, **sizes, **more})
        where = self.executable, node or self.copy
        return driver.cuGraphExecMemcpyNodeSetParams(*where, given, context or self.context)

    def set_fill(self, address: int, width: int, node: Any = None, context: Any = 0, **more: int) -> Any:
        sizes = {"elementSize": 1, "height": 1, "width": width, **more}
        given = struct("CUDA_MEMSET_NODE_PARAMS", dst=bindings.CUdeviceptr(address), value=1, **sizes)
        where = self.executable, node or self.fill
        return driver.cuGraphExecMemsetNodeSetParams(*where, given, context or self.context)

    def launched(self, count: int) -> list[int]:
        ok(driver.cuGraphLaunch(self.executable, self.stream))
        return download(self.destination, count).tolist()


def test_what_a_node_cannot_do_is_refused_and_changes_nothing(stream: Any) -> None:
    """A copy needs one row of allocated memory, a fill keeps its single row, and neither may change the memory type."""
    graph = Graph(stream)
    there, here = graph.destination, graph.source
    managed = ok(driver.cuMemAllocManaged(BYTES, 1))
    for answer in (
        driver.cuGraphExecMemcpyNodeSetParams(graph.executable, graph.copy, None, graph.context),
        graph.set_copy(there, here, 0),
        graph.set_copy(there, here, 8, Height=2),
        graph.set_copy(there, here, 8, Depth=2, srcHeight=1, dstHeight=1),
        graph.set_copy(there, here, BYTES + 1),
        graph.set_copy(managed, here, 8),
        graph.set_copy(there, managed, 8),
        graph.set_copy(there, here, 8, graph.fill),
        driver.cuGraphExecMemsetNodeSetParams(graph.executable, graph.fill, None, graph.context),
        graph.set_fill(here, 0),
        graph.set_fill(here, 4, height=2, pitch=8),
        graph.set_fill(here, 4, elementSize=3),
        graph.set_fill(here, BYTES + 1),
        graph.set_fill(managed, 8),
        graph.set_fill(here, 4, graph.copy),
        driver.cuGraphNodeSetEnabled(graph.executable, 7, 1),
    ):
        assert answer == (INVALID,)
    wrong = (Status.CUDA_ERROR_INVALID_CONTEXT,)
    assert graph.set_copy(there, here, 8, context=7) == graph.set_fill(here, 4, context=7) == wrong
    assert graph.launched(BYTES) == [1] * BYTES
    ok(graph.set_fill(here, 4, pitch=3, elementSize=4))


def test_a_disabled_node_keeps_its_parameters(stream: Any) -> None:
    graph = Graph(stream)
    ok(driver.cuGraphNodeSetEnabled(graph.executable, graph.copy, 0))
    ok(graph.set_copy(graph.destination, graph.source, 8))
    assert ok(driver.cuGraphNodeGetEnabled(graph.executable, graph.copy)) == 0
    assert graph.launched(BYTES) == [2] * BYTES
    ok(driver.cuGraphNodeSetEnabled(graph.executable, graph.copy, 1))
    assert graph.launched(9) == [3] * 8 + [2]


REFUSED = (INVALID, None)
UNSUPPORTED = (Status.CUDA_ERROR_NOT_SUPPORTED, None)
IF, WHILE, SWITCH = bindings.CUgraphConditionalNodeType
SOURCE = """
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void set(cudaGraphConditionalHandle condition, unsigned value) {
    cudaGraphSetConditional(condition, value);
}
"""


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
    given = parameters(handle, kind, size)
    ok(driver.cuGraphAddNode(graph, None, None, 0, given))
    return list(given.conditional.phGraph_out)


def begin(stream: Any, graph: Any) -> None:
    ok(driver.cuStreamBeginCaptureToGraph(stream, graph, None, None, 0, 0))


def fill(stream: Any, graph: Any, address: int) -> None:
    begin(stream, graph)
    ok(driver.cuMemsetD8Async(address, 1, 1, stream))
    assert int(ok(driver.cuStreamEndCapture(stream))) == int(graph)


def test_a_loop_without_an_end_reaches_the_limit_of_seconds(stream, graph, monkeypatch):
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
        assert added(given) == REFUSED
    signal = bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL
    assert added(struct("CUgraphNodeParams", type=signal)) == UNSUPPORTED
    no_context = (Status.CUDA_ERROR_INVALID_CONTEXT, None)
    for arguments, status in (((graph, 0, 1, 2), REFUSED), ((7, 0, 1, 1), REFUSED), ((graph, 7, 1, 1), no_context)):
        assert driver.cuGraphConditionalHandleCreate(*arguments) == status
    outer, (body,) = condition(graph), add(graph, handle)
    inner = condition(body)
    assert added(parameters(handle)) == added(parameters(inner)) == REFUSED
    add(body, outer)
    add(body, inner)


def test_a_graph_is_instantiated_whole_and_not_copied(stream: Any, graph: Any) -> None:
    def refused(status: Any, words: str) -> None:
        assert driver.cuGraphInstantiate(graph, 0) == status
        assert words in driver.take_report()

    unused = condition(graph)
    refused(REFUSED, "does not belong to any conditional node")
    (body,) = add(graph, unused)
    assert driver.cuGraphClone(graph) == UNSUPPORTED
    begin(stream, body)
    HostCalls().launch(stream, "a")
    ok(driver.cuStreamEndCapture(stream))
    refused(REFUSED, "CU_GRAPH_NODE_TYPE_HOST")
    # Ending an invalidated capture destroys the graph that it captures to.
    begin(stream, body)
    driver.cuStreamSynchronize(stream)
    assert driver.cuStreamEndCapture(stream)[0] == Status.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    refused(REFUSED, "destroyed by a capture")


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
    assert driver.cuStreamBeginCaptureToGraph(stream, other, [first], None, 1, 0) == (INVALID,)
    assert driver.cuStreamBeginCaptureToGraph(0, other, None, None, 0, 0)[0] != Status.CUDA_SUCCESS


def test_a_kernel_sets_only_conditions_that_there_are(stream: Any, graph: Any) -> None:
    kernel = function(loaded(SOURCE), "set")
    given = ((int(condition(graph)), 1), (ctypes.c_uint64, ctypes.c_uint32))
    for expected in (Status.CUDA_SUCCESS, Status.CUDA_ERROR_ILLEGAL_ADDRESS):
        ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, given, 0))
        assert driver.cuStreamSynchronize(stream) == (expected,)
        if expected == Status.CUDA_SUCCESS:
            ok(driver.cuGraphDestroy(graph))
    assert "is not a condition of a graph; block (0, 0, 0), thread (0, 0, 0)" in driver.take_report()
