"""Nodes that calls add to graphs, connect and change; the same as captured ones."""

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import INVALID, function
from tests.simulator.support import HostCalls, Status, create_array, download, ok, struct, upload

KIND = bindings.CUgraphNodeType
ATTRIBUTE = bindings.CUlaunchAttributeID
REFUSED = (INVALID, None)
UNSUPPORTED = (Status.CUDA_ERROR_NOT_SUPPORTED,)
N = 37
EXTENTS = dict.fromkeys((f"{kind}Dim{axis}" for kind in ("grid", "block") for axis in "XYZ"), 1)


@pytest.fixture
def x(context: Any) -> int:
    return upload(np.random.default_rng().integers(1, 200, N, np.uint8))


@pytest.fixture
def y(context: Any) -> int:
    return upload(np.full(N, 0xA5, np.uint8))


def fill(address: int, value: int, **fields: int) -> Any:
    given = {"elementSize": 1, "width": N, "height": 1, **fields}
    return struct("CUDA_MEMSET_NODE_PARAMS", dst=bindings.CUdeviceptr(address), value=value, **given)


def copy(destination: int, source: int, **fields: Any) -> Any:
    device = bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE
    given = {"srcMemoryType": device, "dstMemoryType": device, "WidthInBytes": N, "Height": 1, "Depth": 1, **fields}
    return struct("CUDA_MEMCPY3D", srcDevice=source, dstDevice=destination, **given)


def adding(module: Any, address: int, value: int, **fields: Any) -> Any:
    """Return the parameters of a launch that adds `value` and 10 to the first int."""
    values = (address, value, 1), (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)
    given = {"func": function(module, "add"), "kernelParams": values, **EXTENTS, **fields}
    return struct("CUDA_KERNEL_NODE_PARAMS", **given)


def add_fill(graph: Any, address: int, value: int, *before: Any, **fields: int) -> Any:
    return ok(driver.cuGraphAddMemsetNode(graph, before, len(before), fill(address, value, **fields), 0))


def add_copy(graph: Any, destination: int, source: int, *before: Any) -> Any:
    return ok(driver.cuGraphAddMemcpyNode(graph, before, len(before), copy(destination, source), 0))


def add_empty(graph: Any, *before: Any) -> Any:
    return ok(driver.cuGraphAddEmptyNode(graph, before, len(before)))


def instantiate(graph: Any, flags: int = 0) -> Any:
    return ok(driver.cuGraphInstantiate(graph, flags))


def run(graph: Any, stream: Any = 0) -> None:
    ok(driver.cuGraphLaunch(instantiate(graph), stream))
    ok(driver.cuCtxSynchronize())


def numbers(nodes: Any) -> list[int]:
    return [int(node) for node in nodes]


def edges(graph: Any) -> set[tuple[int, int]]:
    count = ok(driver.cuGraphGetEdges(graph, 0))[-1]
    before, after = ok(driver.cuGraphGetEdges(graph, count))[:2]
    return set(zip(numbers(before), numbers(after), strict=True))


def test_edges_that_exist_or_do_not_are_refused_and_change_nothing(graph: Any) -> None:
    one, two = add_empty(graph), add_empty(graph)
    foreign = add_empty(ok(driver.cuGraphCreate(0)))
    ok(driver.cuGraphAddDependencies(graph, [one], [two], None, 1))
    for before, after in (([one], [two]), ([one], [one]), ([two, two], [one, one]), ([two], [foreign]), ([two], [])):
        count = len(before)
        assert driver.cuGraphAddDependencies(graph, before, after, None, count) == (INVALID,)
    assert driver.cuGraphRemoveDependencies(graph, [two], [one], None, 1) == (INVALID,)
    programmatic = struct("CUgraphEdgeData", from_port=1)
    assert driver.cuGraphAddDependencies(graph, [two], [one], [programmatic], 1) == UNSUPPORTED
    for dependencies in ([one, one], [foreign]):
        assert driver.cuGraphAddEmptyNode(graph, dependencies, len(dependencies)) == REFUSED
    assert edges(graph) == {(int(one), int(two))}
    assert numbers(ok(driver.cuGraphGetRootNodes(graph, 1))[0]) == [int(one)]


def test_a_cycle_is_found_when_the_graph_is_instantiated(graph: Any) -> None:
    one = add_empty(graph)
    two = add_empty(graph, one)
    add_empty(graph, two)
    ok(driver.cuGraphAddDependencies(graph, [two], [one], None, 1))
    assert driver.cuGraphInstantiate(graph, 0) == REFUSED
    given = bindings.CUDA_GRAPH_INSTANTIATE_PARAMS()
    assert driver.cuGraphInstantiateWithParams(graph, given) == REFUSED
    assert given.result_out == bindings.CUgraphInstantiateResult.CUDA_GRAPH_INSTANTIATE_ERROR
    ok(driver.cuGraphRemoveDependencies(graph, [two], [one], None, 1))
    run(graph)


def test_a_destroyed_node_leaves_the_graph_but_not_its_executable_graph(graph: Any, x: int) -> None:
    first = add_empty(graph)
    node = add_fill(graph, x, 9, first)
    last = add_empty(graph, node)
    executable = instantiate(graph)
    ok(driver.cuGraphDestroyNode(node))
    assert driver.cuGraphNodeGetType(node) == REFUSED
    assert ok(driver.cuGraphNodeGetDependencies(last, 0))[-1] == 0
    assert numbers(ok(driver.cuGraphGetNodes(graph, 2))[0]) == numbers([first, last])
    assert driver.cuGraphExecMemsetNodeSetParams(executable, node, fill(x, 1), 0) == (INVALID,)
    ok(driver.cuGraphLaunch(executable, 0))
    assert download(x, N).tolist() == [9] * N


def test_a_clone_has_nodes_that_correspond_to_the_originals(graph: Any, x: int) -> None:
    first = add_empty(graph)
    second = add_empty(graph, first)
    # Edges may lead from a later node to an earlier one.
    third = add_fill(graph, x, 4)
    ok(driver.cuGraphAddDependencies(graph, [third], [first], None, 1))
    clone = ok(driver.cuGraphClone(graph))
    found = [ok(driver.cuGraphNodeFindInClone(node, clone)) for node in (first, second, third)]
    assert numbers(ok(driver.cuGraphGetNodes(clone, 3))[0]) == numbers(found)
    a, b, c = numbers(found)
    assert edges(clone) == {(a, b), (c, a)}
    for node, other in ((first, graph), (found[0], clone), (first, ok(driver.cuGraphCreate(0)))):
        assert driver.cuGraphNodeFindInClone(node, other) == REFUSED
    ok(driver.cuGraphDestroy(graph))
    run(clone)
    assert download(x, N).tolist() == [4] * N


def test_a_graph_inside_a_node_is_destroyed_with_the_node_alone(graph: Any) -> None:
    child = ok(driver.cuGraphCreate(0))
    add_empty(child)
    node = ok(driver.cuGraphAddChildGraphNode(graph, None, 0, child))
    inner = ok(driver.cuGraphChildGraphNodeGetGraph(node))
    assert driver.cuGraphDestroy(inner) == (INVALID,)
    ok(driver.cuGraphDestroyNode(node))
    assert driver.cuGraphGetNodes(inner, 0)[0] == INVALID
    ok(driver.cuGraphDestroy(child))


def test_the_general_call_adds_nodes_of_all_types(graph: Any, x: int, y: int, module: Any, calls: HostCalls) -> None:
    event, other, values = ok(driver.cuEventCreate(0)), ok(driver.cuGraphCreate(0)), upload(np.array([1], np.int32))
    add_fill(other, y, 6)
    kernel, memory = adding(module, values, 2), fill(x, 3)
    packed = {f"kernel__{name}": getattr(kernel, name) for name in ("func", "kernelParams", *EXTENTS)}
    names = ("dst", "value", "elementSize", "width", "height")
    filled = {f"memset__{name}": getattr(memory, name) for name in names}
    last: list[Any] = []
    for kind, fields in (
        ("KERNEL", packed),
        ("MEMSET", filled),
        ("EVENT_RECORD", {"eventRecord__event": event}),
        ("WAIT_EVENT", {"eventWait__event": event}),
        ("EMPTY", {}),
        ("HOST", {"host__fn": calls.make("a")}),
        ("GRAPH", {"graph__graph": other}),
        ("MEMCPY", {"memcpy__copyParams": copy(y, x)}),
    ):
        type_ = getattr(KIND, f"CU_GRAPH_NODE_TYPE_{kind}")
        given = struct("CUgraphNodeParams", type=type_, **fields)
        last = [ok(driver.cuGraphAddNode(graph, last, None, len(last), given))]
        assert ok(driver.cuGraphNodeGetType(last[0])) == type_
    run(graph)
    assert calls.names == ["a"]
    assert download(y, N).tolist() == [3] * N
    assert download(values, 1, np.int32)[0] == 1 + 2 + 10
    ok(driver.cuEventQuery(event))


@pytest.mark.parametrize("by_hand", [False, True])
def test_parameters_are_returned_as_they_were_set(
    by_hand: bool, graph: Any, x: int, y: int, module: Any, stream: Any
) -> None:
    kernel = adding(module, x, 4)
    if by_hand:
        ok(driver.cuGraphAddKernelNode(graph, None, 0, kernel))
        add_copy(graph, y, x)
        add_fill(graph, x, 8)
    else:
        ok(driver.cuStreamBeginCaptureToGraph(stream, graph, None, None, 0, 0))
        ok(driver.cuLaunchKernel(kernel.func, 1, 1, 1, 1, 1, 1, 0, stream, kernel.kernelParams, 0))
        ok(driver.cuMemcpyDtoDAsync(y, x, N, stream))
        ok(driver.cuMemsetD8Async(x, 8, N, stream))
        ok(driver.cuStreamEndCapture(stream))
    first, second, third = ok(driver.cuGraphGetNodes(graph, 3))[0]
    launched = ok(driver.cuGraphKernelNodeGetParams(first))
    assert int(launched.func) == int(kernel.func)
    assert [getattr(launched, name) for name in EXTENTS] == [1] * 6
    pointers = (ctypes.c_void_p * 3).from_address(launched.kernelParams)
    assert ctypes.c_uint64.from_address(pointers[0] or 0).value == x
    assert ctypes.c_int.from_address(pointers[1] or 0).value == 4
    copied = ok(driver.cuGraphMemcpyNodeGetParams(second))
    assert (int(copied.srcDevice), int(copied.dstDevice), copied.WidthInBytes, copied.Height) == (x, y, N, 1)
    filled = ok(driver.cuGraphMemsetNodeGetParams(third))
    assert (int(filled.dst), filled.value, filled.elementSize, filled.width, filled.height) == (x, 8, 1, N, 1)
    # What a call returns can be passed to another call.
    ok(driver.cuGraphKernelNodeSetParams(first, launched))
    ok(driver.cuGraphMemcpyNodeSetParams(second, copied))
    ok(driver.cuGraphMemsetNodeSetParams(third, filled))


def test_a_copy_between_an_array_and_pitched_memory_is_returned_as_it_was_set(graph: Any) -> None:
    array, pitch = ok(create_array(8, 5)), 48
    flat = upload(np.arange(5 * pitch, dtype=np.uint8))
    kinds = bindings.CUmemorytype
    given = copy(0, flat, dstMemoryType=kinds.CU_MEMORYTYPE_ARRAY, dstArray=array, dstXInBytes=8, dstY=1)
    given.srcPitch, given.WidthInBytes, given.Height, given.srcHeight = pitch, 24, 3, 3
    node = ok(driver.cuGraphAddMemcpyNode(graph, None, 0, given, 0))
    kept = ok(driver.cuGraphMemcpyNodeGetParams(node))
    names = ("dstArray", "dstXInBytes", "dstY", "dstZ", "srcDevice", "srcPitch", "srcHeight", "WidthInBytes", "Height")
    assert [int(getattr(kept, name)) for name in names] == [int(getattr(given, name)) for name in names]


def test_nodes_of_an_executable_graph_are_changed(graph: Any, x: int, y: int, module: Any, calls: HostCalls) -> None:
    values = upload(np.zeros(1, np.int32))
    kernel = ok(driver.cuGraphAddKernelNode(graph, None, 0, adding(module, values, 1)))
    filled = add_fill(graph, x, 1, kernel)
    old = struct("CUDA_HOST_NODE_PARAMS", fn=calls.make("old"))
    host = ok(driver.cuGraphAddHostNode(graph, [filled], 1, old))
    assert int(ok(driver.cuGraphHostNodeGetParams(host)).fn) == int(old.fn)
    executable = instantiate(graph)
    ok(driver.cuGraphExecHostNodeSetParams(executable, host, struct("CUDA_HOST_NODE_PARAMS", fn=calls.make("new"))))
    changed = adding(module, values, 30)
    packed = {f"kernel__{name}": getattr(changed, name) for name in ("func", "kernelParams", *EXTENTS)}
    given = struct("CUgraphNodeParams", type=KIND.CU_GRAPH_NODE_TYPE_KERNEL, **packed)
    ok(driver.cuGraphExecNodeSetParams(executable, kernel, given))
    assert driver.cuGraphExecNodeSetParams(executable, filled, given) == (INVALID,)
    assert driver.cuGraphExecHostNodeSetParams(executable, kernel, None) == (INVALID,)
    ok(driver.cuGraphLaunch(executable, 0))
    assert download(values, 1, np.int32)[0] == 10 + 30
    assert calls.names == ["new"]


def test_calls_for_another_type_of_node_are_refused(graph: Any, x: int, module: Any) -> None:
    empty, event = add_empty(graph), ok(driver.cuEventCreate(0))
    for name in ("Kernel", "Memcpy", "Memset", "Host", "MemAlloc", "MemFree"):
        assert getattr(driver, f"cuGraph{name}NodeGetParams")(empty) == REFUSED
    for name in ("Kernel", "Memcpy", "Memset", "Host"):
        assert getattr(driver, f"cuGraph{name}NodeSetParams")(empty, None) == (INVALID,)
    for name in ("EventRecord", "EventWait"):
        assert getattr(driver, f"cuGraph{name}NodeGetEvent")(empty) == REFUSED
        assert getattr(driver, f"cuGraph{name}NodeSetEvent")(empty, event) == (INVALID,)
    assert driver.cuGraphKernelNodeGetAttribute(empty, ATTRIBUTE.CU_LAUNCH_ATTRIBUTE_PRIORITY) == REFUSED
    assert driver.cuGraphAddMemsetNode(graph, None, 0, fill(x, 1, width=0), 0) == REFUSED
    assert driver.cuGraphAddMemcpyNode(graph, None, 0, copy(x, x, WidthInBytes=0), 0) == REFUSED
    assert driver.cuGraphAddHostNode(graph, None, 0, struct("CUDA_HOST_NODE_PARAMS")) == REFUSED
    assert driver.cuGraphAddKernelNode(graph, None, 0, None) == REFUSED
    assert driver.cuGraphAddEventWaitNode(graph, None, 0, 5)[0] == Status.CUDA_ERROR_INVALID_HANDLE
    assert ok(driver.cuGraphGetNodes(graph, 0)) == ([], 1)


def attribute(node: Any, name: str) -> Any:
    return ok(driver.cuGraphKernelNodeGetAttribute(node, getattr(ATTRIBUTE, f"CU_LAUNCH_ATTRIBUTE_{name}")))


def set_attribute(node: Any, name: str, **fields: Any) -> Any:
    value = struct("CUkernelNodeAttrValue", **fields)
    return driver.cuGraphKernelNodeSetAttribute(node, getattr(ATTRIBUTE, f"CU_LAUNCH_ATTRIBUTE_{name}"), value)


def test_kernel_nodes_have_attributes_that_are_copied(graph: Any, x: int, module: Any) -> None:
    node, other = (ok(driver.cuGraphAddKernelNode(graph, None, 0, adding(module, x, 1, gridDimX=4))) for _ in "ab")
    assert attribute(node, "PRIORITY").priority == attribute(node, "CLUSTER_DIMENSION").clusterDim.x == 0
    domains = attribute(node, "MEM_SYNC_DOMAIN_MAP").memSyncDomainMap
    assert (domains.default_, domains.remote) == (0, 1)
    ok(set_attribute(node, "PRIORITY", priority=-9))
    ok(set_attribute(node, "CLUSTER_DIMENSION", clusterDim__x=2, clusterDim__y=1, clusterDim__z=1))
    ok(set_attribute(node, "COOPERATIVE", cooperative=1))
    refused = set_attribute(node, "CLUSTER_DIMENSION", clusterDim__x=3, clusterDim__y=1, clusterDim__z=1)
    assert refused == (Status.CUDA_ERROR_INVALID_CLUSTER_SIZE,)
    assert set_attribute(node, "SYNCHRONIZATION_POLICY") == (INVALID,)
    ok(driver.cuGraphKernelNodeCopyAttributes(other, node))
    ok(driver.cuGraphKernelNodeSetParams(other, adding(module, x, 2, gridDimX=2)))
    # The least value is the greatest priority that the device has.
    assert attribute(other, "PRIORITY").priority == ok(driver.cuCtxGetStreamPriorityRange())[1]
    assert attribute(other, "CLUSTER_DIMENSION").clusterDim.x == 2
    assert attribute(other, "COOPERATIVE").cooperative == 1


def test_a_graph_by_hand_updates_a_captured_one_even_if_its_nodes_were_created_in_another_order(
    graph: Any, stream: Any, x: int, y: int
) -> None:
    ok(driver.cuStreamBeginCapture(stream, 0))
    ok(driver.cuMemcpyDtoDAsync(y, x, N, stream))
    ok(driver.cuMemsetD8Async(x, 3, N, stream))
    executable = instantiate(ok(driver.cuStreamEndCapture(stream)))
    last = add_fill(graph, y, 5)
    first = add_copy(graph, x, y)
    assert driver.cuGraphExecUpdate(executable, graph)[0] == Status.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    ok(driver.cuGraphAddDependencies(graph, [first], [last], None, 1))
    ok(driver.cuGraphExecUpdate(executable, graph))
    ok(driver.cuGraphLaunch(executable, stream))
    assert download(x, N).tolist() == [0xA5] * N
    assert download(y, N).tolist() == [5] * N
