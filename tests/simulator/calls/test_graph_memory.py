"""Memory that graphs allocate and free by nodes, and the events that nodes record and wait for."""

from typing import Any

import numpy as np
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import INVALID
from tests.simulator.support import Player, Status, download, ok, struct, upload

REFUSED = (INVALID, None)
UNSUPPORTED = Status.CUDA_ERROR_NOT_SUPPORTED
USED, USED_HIGH, RESERVED, RESERVED_HIGH = bindings.CUgraphMem_attribute
SIZE = 5000
# The unit in which an H200's driver takes memory for graphs.
UNIT = 32 << 20
AUTO_FREE = bindings.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH


def allocation(size: int = SIZE, device: int = 0, **fields: Any) -> Any:
    given = {
        "poolProps__allocType": bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED,
        "poolProps__location__type": bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE,
        "poolProps__location__id": device,
        **fields,
    }
    return struct("CUDA_MEM_ALLOC_NODE_PARAMS", bytesize=size, **given)


def allocate(graph: Any) -> tuple[Any, int]:
    given = allocation()
    node = ok(driver.cuGraphAddMemAllocNode(graph, None, 0, given))
    return node, int(given.dptr)


def fill(graph: Any, address: int, value: int, before: Any) -> Any:
    sizes = {"elementSize": 1, "width": SIZE, "height": 1}
    given = struct("CUDA_MEMSET_NODE_PARAMS", dst=bindings.CUdeviceptr(address), value=value, **sizes)
    return ok(driver.cuGraphAddMemsetNode(graph, [before], 1, given, 0))


def copy_out(graph: Any, address: int, before: Any) -> int:
    """Add a copy to new memory, and return its address."""
    there, kind = upload(np.full(SIZE, 0xEE, np.uint8)), bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE
    sizes = {"WidthInBytes": SIZE, "Height": 1, "Depth": 1, "srcMemoryType": kind, "dstMemoryType": kind}
    given = struct("CUDA_MEMCPY3D", srcDevice=address, dstDevice=there, **sizes)
    ok(driver.cuGraphAddMemcpyNode(graph, [before], 1, given, 0))
    return there


def statistics() -> list[int]:
    return [int(ok(driver.cuDeviceGetGraphMemAttribute(0, one))) for one in (USED, USED_HIGH, RESERVED, RESERVED_HIGH)]


def test_a_graph_allocates_uses_and_frees_memory_by_nodes(graph: Any) -> None:
    node, address = allocate(graph)
    filled = fill(graph, address, 6, node)
    there = copy_out(graph, address, filled)
    (copied,) = [
        one for one in ok(driver.cuGraphGetNodes(graph, 3))[0]
        if ok(driver.cuGraphNodeGetType(one)) == bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY
    ]  # fmt: skip  # grouped
    freed = ok(driver.cuGraphAddMemFreeNode(graph, [copied], 1, address))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    for _ in range(2):
        ok(driver.cuGraphLaunch(executable, 0))
    assert download(there, SIZE).tolist() == [6] * SIZE
    kept = ok(driver.cuGraphMemAllocNodeGetParams(node))
    assert (kept.bytesize, int(kept.dptr)) == (SIZE, address)
    assert int(ok(driver.cuGraphMemFreeNodeGetParams(freed))) == address
    assert driver.cuMemFree(address) == (INVALID,)


def test_a_graph_that_allocates_moves_into_another(graph: Any) -> None:
    inner = ok(driver.cuGraphCreate(0))
    node, address = allocate(inner)
    there = copy_out(inner, address, fill(inner, address, 8, node))
    given = struct(
        "CUgraphNodeParams",
        type=bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH,
        graph__graph=inner,
        graph__ownership=bindings.CUgraphChildGraphNodeOwnership.CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
    )
    moved = ok(driver.cuGraphAddNode(graph, None, None, 0, given))
    assert int(ok(driver.cuGraphChildGraphNodeGetGraph(moved))) == int(inner)
    executable = ok(driver.cuGraphInstantiate(graph, AUTO_FREE))
    assert ok(driver.cuGraphExecGetFlags(executable)) == AUTO_FREE
    for _ in range(2):
        ok(driver.cuGraphLaunch(executable, 0))
    assert download(there, SIZE).tolist() == [8] * SIZE


def test_invalid_allocations_and_frees_are_refused(graph: Any) -> None:
    node, address = allocate(graph)
    for given in (None, allocation(0), allocation(poolProps__allocType=bindings.CUmemAllocationType(0))):
        assert driver.cuGraphAddMemAllocNode(graph, None, 0, given) == REFUSED
    assert driver.cuGraphAddMemAllocNode(graph, None, 0, allocation(device=9))[0] == Status.CUDA_ERROR_INVALID_DEVICE
    ordinary = upload(np.zeros(4, np.uint8))
    for pointer in (0, ordinary, address + 1):
        assert driver.cuGraphAddMemFreeNode(graph, [node], 1, pointer) == REFUSED
    ok(driver.cuGraphAddMemFreeNode(graph, [node], 1, address))
    assert driver.cuGraphAddMemFreeNode(graph, [node], 1, address) == REFUSED


def test_memory_that_outlives_a_launch_is_freed_before_the_next(graph: Any) -> None:
    _, address = allocate(graph)
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphLaunch(executable, 0))
    assert driver.cuGraphLaunch(executable, 0) == (INVALID,)
    assert "has not been freed" in driver.take_report()
    ok(driver.cuMemsetD8(address, 1, SIZE))
    ok(driver.cuMemFree(address))
    assert driver.cuMemFree(address) == (INVALID,)
    ok(driver.cuGraphLaunch(executable, 0))
    ok(driver.cuMemFreeAsync(address, 0))


def test_a_destroyed_graph_gives_up_the_memory_that_no_launch_has_left_allocated(context: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    for launches in (0, 1):
        graph = ok(driver.cuGraphCreate(0))
        _, address = allocate(graph)
        executable = ok(driver.cuGraphInstantiate(graph, 0))
        for _ in range(launches):
            ok(driver.cuGraphLaunch(executable, 0))
        ok(driver.cuGraphDestroy(graph))
        ok(driver.cuGraphExecDestroy(executable))
        if launches:
            ok(driver.cuMemFree(address))
        ok(driver.cuCtxSynchronize())
        assert driver.cuMemFree(address) == (INVALID,)
        assert ok(driver.cuMemGetInfo()) == start


def test_the_memory_of_graphs_is_counted_until_it_is_trimmed(graph: Any) -> None:
    _, address = allocate(graph)
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    assert statistics() == [0, 0, 0, 0]
    ok(driver.cuGraphLaunch(executable, 0))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuDeviceGraphMemTrim(0))
    assert statistics() == [UNIT] * 4
    ok(driver.cuMemFree(address))
    assert statistics() == [UNIT] * 4
    ok(driver.cuDeviceGraphMemTrim(0))
    assert statistics() == [0, UNIT, 0, UNIT]
    ok(driver.cuDeviceSetGraphMemAttribute(0, USED_HIGH, 0))
    assert statistics() == [0, 0, 0, UNIT]
    ok(driver.cuDeviceSetGraphMemAttribute(0, RESERVED_HIGH, 0))
    for attribute, value in ((USED, 0), (RESERVED_HIGH, 5), (7, 0)):
        assert driver.cuDeviceSetGraphMemAttribute(0, attribute, value) == (INVALID,)
    assert driver.cuDeviceGetGraphMemAttribute(0, 7) == REFUSED
    assert statistics() == [0] * 4


def record(graph: Any, event: Any, *before: Any) -> Any:
    return ok(driver.cuGraphAddEventRecordNode(graph, before, len(before), event))


def launch(graph: Any, stream: Any) -> None:
    ok(driver.cuGraphLaunch(ok(driver.cuGraphInstantiate(graph, 0)), stream))


def test_an_event_that_is_recorded_again_after_a_launch_keeps_its_later_record(play: Player, graph: Any) -> None:
    record(graph, play["e"])
    launch(graph, play["s"])
    play("run t a, record e t, sync s")
    assert driver.cuEventElapsedTime(play["e"], play["e"]) == (Status.CUDA_ERROR_NOT_READY, None)
    play("query e -> NOT_READY, sync e")
    assert play.calls.names == ["a"]


def test_the_events_of_nodes_are_changed(play: Player, graph: Any) -> None:
    recording = record(graph, play["e1"])
    waiting = ok(driver.cuGraphAddEventWaitNode(graph, None, 0, play["e1"]))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphExecEventRecordNodeSetEvent(executable, recording, play["e2"]))
    ok(driver.cuGraphExecEventWaitNodeSetEvent(executable, waiting, play["e3"]))
    for node, wrong in ((waiting, "Record"), (recording, "Wait")):
        refused = getattr(driver, f"cuGraphExecEvent{wrong}NodeSetEvent")(executable, node, play["e1"])
        assert refused == (INVALID,)
    play("run s a, record e3 s")
    ok(driver.cuGraphLaunch(executable, play["t"]))
    play("wait u e2, run u b, sync u")
    assert play.calls.names == ["a", "b"]
    ok(driver.cuGraphEventRecordNodeSetEvent(recording, play["e3"]))
    ok(driver.cuGraphEventWaitNodeSetEvent(waiting, play["e2"]))
    events = driver.cuGraphEventRecordNodeGetEvent(recording), driver.cuGraphEventWaitNodeGetEvent(waiting)
    assert [int(ok(one)) for one in events] == [int(play["e3"]), int(play["e2"])]


def test_a_captured_free_of_another_graphs_memory_frees_it_at_each_launch(graph: Any, stream: Any) -> None:
    _, address = allocate(graph)
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamBeginCapture(stream, bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    ok(driver.cuMemFreeAsync(address, stream))
    freeing = ok(driver.cuGraphInstantiate(ok(driver.cuStreamEndCapture(stream)), 0))
    for _ in range(2):
        ok(driver.cuMemsetD8Async(address, 1, SIZE, stream))  # it is still allocated
        ok(driver.cuGraphLaunch(freeing, stream))
        assert driver.cuGraphLaunch(freeing, stream) == (INVALID,)
        assert "is not allocated" in driver.take_report()
        ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
