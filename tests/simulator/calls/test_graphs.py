"""Stream capture and graphs: what is captured, the errors of capture, launches, updates."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import memory
from tests.simulator.kernels import function, ptx
from tests.simulator.support import HostCalls, Status, download, ok, upload

Mode = bindings.CUstreamCaptureMode
Captured = bindings.CUstreamCaptureStatus
INVALIDATED = (Status.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, None)


def make_stream(*, blocking: bool = False) -> Any:
    return ok(driver.cuStreamCreate(0 if blocking else 1))


def begin(stream: Any, mode: Any = Mode.CU_STREAM_CAPTURE_MODE_GLOBAL) -> None:
    ok(driver.cuStreamBeginCapture(stream, mode))


def end(stream: Any) -> Any:
    return ok(driver.cuStreamEndCapture(stream))


@pytest.fixture
def stream(context: Any) -> Any:
    return make_stream()


def instantiate(graph: Any) -> Any:
    return ok(driver.cuGraphInstantiate(graph, 0))


def fill_graph(stream: Any, address: int, *values: int) -> Any:
    begin(stream)
    for place, value in enumerate(values):
        ok(driver.cuMemsetD8Async(address + place, value, 1, stream))
    return end(stream)


def test_no_graph_holds_a_prefetch(stream: Any) -> None:
    address = ok(driver.cuMemAllocManaged(64, 1))
    location = bindings.CUmemLocation()
    location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    begin(stream)
    refused = driver.cuMemPrefetchAsync(address, 64, location, 0, stream)
    assert refused == (Status.CUDA_ERROR_NOT_SUPPORTED,)
    assert driver.cuStreamEndCapture(stream)[0] == Status.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED


def test_captured_work_runs_only_at_a_launch(stream: Any, calls: HostCalls) -> None:
    begin(stream)
    calls.launch(stream, "a")
    graph = end(stream)
    ok(driver.cuStreamSynchronize(stream))
    assert calls.names == []
    executable = instantiate(graph)
    for _ in range(3):
        ok(driver.cuGraphLaunch(executable, stream))
    assert calls.names == []
    ok(driver.cuStreamSynchronize(stream))
    assert calls.names == ["a", "a", "a"]


def test_a_captured_kernels_parameters_are_copied(stream: Any) -> None:
    kernel = function(ok(driver.cuModuleLoadData(ptx())), "add")
    address, value = upload(np.zeros(1, np.int32)), ctypes.c_int(1)
    parameters = ctypes.c_void_p(address), value, ctypes.c_uint(1)
    pointers = (ctypes.c_void_p * 3)(*map(ctypes.addressof, parameters))
    begin(stream)
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, ctypes.addressof(pointers), 0))
    value.value = 1000
    ok(driver.cuGraphLaunch(instantiate(end(stream)), stream))
    assert download(address, 1, np.int32)[0] == 11


def test_a_captured_copy_reads_its_source_when_it_runs(stream: Any) -> None:
    host, device = np.full(10, 1, np.uint8), upload(np.zeros(10, np.uint8))
    begin(stream)
    ok(driver.cuMemcpyHtoDAsync(device, host, 10, stream))
    executable = instantiate(end(stream))
    host[:] = 2
    ok(driver.cuGraphLaunch(executable, stream))
    assert (download(device, 10) == 2).all()


def test_nodes_have_types_and_edges(stream: Any) -> None:
    device = upload(np.zeros(10, np.uint8))
    graph = fill_graph(stream, device, 1, 2, 3)
    assert ok(driver.cuGraphGetNodes(graph)) == ([], 3)
    nodes, count = ok(driver.cuGraphGetNodes(graph, 3))
    assert count == len(nodes) == 3
    assert ok(driver.cuGraphNodeGetType(nodes[0])) == bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET
    before, after, _, edges = ok(driver.cuGraphGetEdges(graph, 2))
    assert edges == 2
    assert [(int(a), int(b)) for a, b in zip(before, after, strict=True)] == [
        (int(nodes[0]), int(nodes[1])),
        (int(nodes[1]), int(nodes[2])),
    ]
    assert ok(driver.cuGraphGetRootNodes(graph)) == ([], 1)
    assert ok(driver.cuGraphNodeGetDependencies(nodes[2]))[2] == 1


def test_a_graph_is_drawn(stream: Any, tmp_path: Path) -> None:
    device = upload(np.zeros(10, np.uint8))
    graph = fill_graph(stream, device, 1, 2)
    path = tmp_path / "graph.dot"
    ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), 0))
    assert "node_0 -> node_1" in path.read_text()
    assert "pitch" not in path.read_text()
    verbose = bindings.CUgraphDebugDot_flags.CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE
    ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), verbose))
    assert f"at {device:#x}" in path.read_text()
    assert "pitch" in path.read_text()
    assert driver.cuGraphDebugDotPrint(graph, b"/no/such/folder", 0) == (Status.CUDA_ERROR_OPERATING_SYSTEM,)


def test_forked_streams_are_captured_and_joined(stream: Any, calls: HostCalls) -> None:
    other, fork, join = make_stream(), ok(driver.cuEventCreate(2)), ok(driver.cuEventCreate(2))
    begin(stream)
    calls.launch(stream, "first")
    ok(driver.cuEventRecord(fork, stream))
    ok(driver.cuStreamWaitEvent(other, fork, 0))
    assert ok(driver.cuStreamIsCapturing(other)) == Captured.CU_STREAM_CAPTURE_STATUS_ACTIVE
    calls.launch(other, "other")
    calls.launch(stream, "same")
    ok(driver.cuEventRecord(join, other))
    ok(driver.cuStreamWaitEvent(stream, join, 0))
    calls.launch(stream, "last")
    graph = end(stream)
    assert ok(driver.cuStreamIsCapturing(other)) == Captured.CU_STREAM_CAPTURE_STATUS_NONE
    assert ok(driver.cuGraphGetEdges(graph))[3] == 4
    ok(driver.cuGraphLaunch(instantiate(graph), stream))
    ok(driver.cuStreamSynchronize(stream))
    assert calls.names == ["first", "same", "other", "last"]


def test_a_stream_that_does_not_come_back_is_unjoined(stream: Any, calls: HostCalls) -> None:
    other, fork = make_stream(), ok(driver.cuEventCreate(2))
    begin(stream)
    ok(driver.cuEventRecord(fork, stream))
    ok(driver.cuStreamWaitEvent(other, fork, 0))
    calls.launch(other, "other")
    assert driver.cuStreamEndCapture(stream) == (Status.CUDA_ERROR_STREAM_CAPTURE_UNJOINED, None)
    assert ok(driver.cuStreamIsCapturing(other)) == Captured.CU_STREAM_CAPTURE_STATUS_NONE


def test_only_the_first_stream_ends_a_capture(stream: Any) -> None:
    other, fork = make_stream(), ok(driver.cuEventCreate(2))
    begin(stream)
    ok(driver.cuEventRecord(fork, stream))
    ok(driver.cuStreamWaitEvent(other, fork, 0))
    assert driver.cuStreamEndCapture(other) == (Status.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, None)
    assert driver.cuStreamEndCapture(stream) == INVALIDATED


def test_two_captures_do_not_merge(stream: Any) -> None:
    other, event = make_stream(), ok(driver.cuEventCreate(2))
    begin(stream)
    begin(other)
    ok(driver.cuEventRecord(event, stream))
    assert driver.cuStreamWaitEvent(other, event, 0) == (Status.CUDA_ERROR_STREAM_CAPTURE_MERGE,)
    assert driver.cuStreamEndCapture(stream) == INVALIDATED
    assert driver.cuStreamEndCapture(other) == INVALIDATED


def test_a_wait_for_what_is_outside_breaks_the_isolation(stream: Any) -> None:
    event = ok(driver.cuEventCreate(2))
    ok(driver.cuEventRecord(event, 0))
    begin(stream)
    assert driver.cuStreamWaitEvent(stream, event, 0) == (Status.CUDA_ERROR_STREAM_CAPTURE_ISOLATION,)
    assert driver.cuStreamEndCapture(stream) == INVALIDATED


@pytest.mark.parametrize("call", ["cuStreamSynchronize", "cuStreamQuery"])
def test_waiting_for_a_captured_stream_spoils_the_capture(stream: Any, call: str) -> None:
    begin(stream)
    assert getattr(driver, call)(stream) == (Status.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
    assert ok(driver.cuStreamIsCapturing(stream)) == Captured.CU_STREAM_CAPTURE_STATUS_INVALIDATED
    refused = driver.cuMemsetD8Async(upload_after(stream), 0, 1, stream)
    assert refused == INVALIDATED[:1]
    assert driver.cuStreamEndCapture(stream) == INVALIDATED
    assert ok(driver.cuStreamIsCapturing(stream)) == Captured.CU_STREAM_CAPTURE_STATUS_NONE


def upload_after(stream: Any) -> int:
    """Allocate where a capture that is under way does not mind."""
    before = ok(driver.cuThreadExchangeStreamCaptureMode(Mode.CU_STREAM_CAPTURE_MODE_RELAXED))
    address = int(ok(driver.cuMemAlloc(16)))
    ok(driver.cuThreadExchangeStreamCaptureMode(before))
    return address


@pytest.mark.parametrize("call", ["cuEventSynchronize", "cuEventQuery"])
def test_a_captured_event_cannot_be_waited_for(stream: Any, call: str) -> None:
    event = ok(driver.cuEventCreate(2))
    begin(stream)
    ok(driver.cuEventRecord(event, stream))
    assert getattr(driver, call)(event) == (Status.CUDA_ERROR_CAPTURED_EVENT,)
    assert driver.cuStreamEndCapture(stream) == INVALIDATED


def test_unsafe_calls_spoil_a_global_capture(stream: Any) -> None:
    begin(stream)
    assert driver.cuMemAlloc(100) == (Status.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, None)
    assert driver.cuStreamEndCapture(stream) == INVALIDATED


def test_unsafe_calls_leave_a_relaxed_capture_alone(stream: Any) -> None:
    begin(stream, Mode.CU_STREAM_CAPTURE_MODE_RELAXED)
    ok(driver.cuMemAlloc(100))
    end(stream)


def test_another_threads_capture_forbids_only_when_it_is_global(stream: Any) -> None:
    def answer(mode: Any) -> Any:
        results: list[Any] = []

        def run() -> None:
            context = ok(driver.cuDevicePrimaryCtxRetain(0))
            ok(driver.cuCtxSetCurrent(context))
            results.append(driver.cuMemAlloc(100)[0])

        begin(stream, mode)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        driver.cuStreamEndCapture(stream)
        return results[0]

    assert answer(Mode.CU_STREAM_CAPTURE_MODE_GLOBAL) == Status.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    assert answer(Mode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == Status.CUDA_SUCCESS


def test_another_thread_ends_a_capture_without_a_graph(stream: Any) -> None:
    """As an H200's driver did, in all modes but the relaxed one."""
    begin(stream)
    results: list[Any] = []

    def run() -> None:
        ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
        results.append(driver.cuStreamEndCapture(stream))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert results == [(Status.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, None)]
    assert driver.cuStreamEndCapture(stream) == (Status.CUDA_ERROR_ILLEGAL_STATE, None)
    ok(driver.cuMemAlloc(64))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_destroying_the_first_stream_of_a_capture_ends_it_for_every_thread(stream: Any, elsewhere: bool) -> None:
    """As an H100's driver did, in all modes."""
    begin(stream)

    def run() -> None:
        ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
        ok(driver.cuStreamDestroy(stream))
        ok(driver.cuMemAlloc(64))
        ok(driver.cuCtxSynchronize())

    if elsewhere:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()
    ok(driver.cuMemAlloc(64))
    ok(driver.cuCtxSynchronize())
    other = make_stream()
    begin(other)
    end(other)


def test_a_capture_goes_on_when_a_stream_that_joined_it_is_destroyed(stream: Any) -> None:
    """As an H100's driver did."""
    begin(stream)
    other, event = make_stream(), ok(driver.cuEventCreate(2))
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuStreamWaitEvent(other, event, 0))
    ok(driver.cuStreamDestroy(other))
    assert ok(driver.cuStreamIsCapturing(stream)) == Captured.CU_STREAM_CAPTURE_STATUS_ACTIVE
    end(stream)


def test_the_legacy_stream_would_wait_for_a_blocking_captured_one(context: Any) -> None:
    blocking, device = make_stream(blocking=True), upload(np.zeros(10, np.uint8))
    begin(blocking)
    assert driver.cuStreamIsCapturing(0) == (Status.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, None)
    assert driver.cuMemsetD8Async(device, 0, 1, 0) == (Status.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,)
    assert driver.cuStreamEndCapture(blocking) == INVALIDATED


def test_an_allocation_in_the_legacy_stream_would_wait_for_a_blocking_captured_one_too(context: Any) -> None:
    blocking = make_stream(blocking=True)
    begin(blocking)
    assert driver.cuMemAllocAsync(1000, 0) == (Status.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, None)
    assert driver.cuStreamEndCapture(blocking) == INVALIDATED


def test_the_legacy_stream_goes_on_beside_a_non_blocking_captured_one(stream: Any) -> None:
    device = upload(np.zeros(10, np.uint8))
    begin(stream)
    ok(driver.cuMemsetD8Async(device, 3, 1, 0))
    end(stream)
    assert download(device, 1)[0] == 3


def test_a_capture_begins_and_ends_once(stream: Any) -> None:
    illegal = Status.CUDA_ERROR_ILLEGAL_STATE
    assert driver.cuStreamEndCapture(stream) == (illegal, None)
    begin(stream)
    assert driver.cuStreamBeginCapture(stream, 0) == (illegal,)
    end(stream)
    assert driver.cuStreamBeginCapture(0, 0) == (Status.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)


def test_a_captures_information_names_its_graph(stream: Any) -> None:
    assert ok(driver.cuStreamGetCaptureInfo(stream))[0] == Captured.CU_STREAM_CAPTURE_STATUS_NONE
    device = upload(np.zeros(1, np.uint8))
    begin(stream)
    ok(driver.cuMemsetD8Async(device, 0, 1, stream))
    status, identity, graph, before, _, count = ok(driver.cuStreamGetCaptureInfo(stream))
    assert status == Captured.CU_STREAM_CAPTURE_STATUS_ACTIVE
    assert int(identity) > 0
    assert len(before) == count == 1
    assert int(end(stream)) == int(graph)


def test_an_update_changes_later_launches_only(stream: Any) -> None:
    device = upload(np.zeros(2, np.uint8))
    executable = instantiate(fill_graph(stream, device, 1, 2))
    ok(driver.cuGraphLaunch(executable, stream))
    outcome = ok(driver.cuGraphExecUpdate(executable, fill_graph(stream, device, 3, 4)))
    assert outcome.result == bindings.CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
    assert download(device, 2).tolist() == [1, 2]
    ok(driver.cuGraphLaunch(executable, stream))
    assert download(device, 2).tolist() == [3, 4]


def test_an_update_of_another_shape_fails_with_a_report(stream: Any) -> None:
    device = upload(np.zeros(4, np.uint8))
    executable = instantiate(fill_graph(stream, device, 1, 2))
    failed = driver.cuGraphExecUpdate(executable, fill_graph(stream, device, 1, 2, 3))
    assert failed == (Status.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, None)
    assert "3 nodes instead of 2" in (driver.take_report() or "")
    begin(stream)
    ok(driver.cuMemcpyDtoDAsync(device, device + 2, 1, stream))
    ok(driver.cuMemsetD8Async(device, 0, 1, stream))
    assert driver.cuGraphExecUpdate(executable, end(stream))[0] == Status.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    assert "NODE_TYPE_CHANGED" in (driver.take_report() or "")


def test_destroyed_graphs_are_invalid_and_their_executables_go_on(stream: Any) -> None:
    device = upload(np.zeros(1, np.uint8))
    graph = fill_graph(stream, device, 7)
    executable = instantiate(graph)
    ok(driver.cuGraphDestroy(graph))
    assert driver.cuGraphDestroy(graph) == (Status.CUDA_ERROR_INVALID_VALUE,)
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuGraphExecDestroy(executable))
    assert driver.cuGraphLaunch(executable, stream) == (Status.CUDA_ERROR_INVALID_VALUE,)
    assert download(device, 1)[0] == 7


def test_a_clone_has_nodes_of_its_own(stream: Any) -> None:
    device = upload(np.zeros(1, np.uint8))
    graph = fill_graph(stream, device, 7)
    clone = ok(driver.cuGraphClone(graph))
    ok(driver.cuGraphDestroy(graph))
    ok(driver.cuGraphLaunch(instantiate(clone), stream))
    assert download(device, 1)[0] == 7


def test_a_kernels_parameters_are_changed_in_an_executable(stream: Any) -> None:
    kernel = function(ok(driver.cuModuleLoadData(ptx())), "add")
    address = upload(np.zeros(1, np.int32))
    types = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)
    begin(stream)
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, ((address, 1, 1), types), 0))
    graph = end(stream)
    executable = instantiate(graph)
    parameters = bindings.CUDA_KERNEL_NODE_PARAMS()
    parameters.func = kernel
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1
    parameters.kernelParams = ((address, 90, 1), types)
    (node,), _ = ok(driver.cuGraphGetNodes(graph, 1))
    ok(driver.cuGraphExecKernelNodeSetParams(executable, node, parameters))
    ok(driver.cuGraphLaunch(executable, stream))
    assert download(address, 1, np.int32)[0] == 100


def test_access_policy_windows_are_kept(stream: Any) -> None:
    identity = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    value = bindings.CUstreamAttrValue()
    window = value.accessPolicyWindow
    window.base_ptr, window.num_bytes, window.hitRatio = upload(np.zeros(64, np.uint8)), 64, 0.5
    window.hitProp = bindings.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    ok(driver.cuStreamSetAttribute(stream, identity, value))
    other = make_stream()
    ok(driver.cuStreamCopyAttributes(other, stream))
    kept = ok(driver.cuStreamGetAttribute(other, identity)).accessPolicyWindow
    assert (kept.num_bytes, kept.hitRatio) == (64, 0.5)
    window.hitRatio = 1.5
    assert driver.cuStreamSetAttribute(stream, identity, value) == (Status.CUDA_ERROR_INVALID_VALUE,)


def test_an_allocation_in_a_capture_begins_and_ends_with_each_launch(stream: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    result = upload(np.zeros(10, np.uint8))
    begin(stream)
    address = ok(driver.cuMemAllocAsync(10, stream))
    ok(driver.cuMemsetD8Async(address, 6, 10, stream))
    ok(driver.cuMemcpyDtoDAsync(result, address, 10, stream))
    ok(driver.cuMemFreeAsync(address, stream))
    graph = end(stream)
    assert ok(driver.cuGraphGetNodes(graph))[1] == 4
    assert memory.live.find(int(address)) is None
    executable = instantiate(graph)
    for _ in range(2):
        ok(driver.cuMemsetD8Async(result, 0, 10, stream))
        ok(driver.cuGraphLaunch(executable, stream))
        assert (download(result, 10) == 6).all()
        assert memory.live.find(int(address)) is None
    ok(driver.cuGraphDestroy(graph))
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuMemFree(result))
    assert ok(driver.cuMemGetInfo()) == start


def test_an_allocation_of_a_graph_may_be_freed_by_the_host(stream: Any) -> None:
    begin(stream)
    address = ok(driver.cuMemAllocAsync(10, stream))
    ok(driver.cuMemsetD8Async(address, 6, 10, stream))
    executable = instantiate(end(stream))
    for _ in range(2):
        ok(driver.cuGraphLaunch(executable, stream))
        assert (download(int(address), 10) == 6).all()
        ok(driver.cuMemFreeAsync(address, stream))


def test_a_spoiled_captures_allocations_are_given_up(stream: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    begin(stream)
    ok(driver.cuMemAllocAsync(10, stream))
    driver.cuStreamSynchronize(stream)
    assert driver.cuStreamEndCapture(stream) == INVALIDATED
    assert ok(driver.cuMemGetInfo()) == start


def test_memory_from_outside_is_not_freed_in_a_capture(stream: Any) -> None:
    address = ok(driver.cuMemAllocAsync(10, stream))
    begin(stream)
    assert driver.cuMemFreeAsync(address, stream) == (Status.CUDA_ERROR_INVALID_VALUE,)
    assert driver.cuStreamEndCapture(stream) == INVALIDATED


def test_a_graph_records_an_event_whenever_it_is_launched(stream: Any) -> None:
    event = ok(driver.cuEventCreate(0))
    external = bindings.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
    begin(stream)
    ok(driver.cuEventRecordWithFlags(event, stream, external))
    graph = instantiate(end(stream))
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuStreamSynchronize(stream))
    start = ok(driver.cuEventCreate(0))
    ok(driver.cuEventRecord(start, stream))
    ok(driver.cuGraphLaunch(graph, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert ok(driver.cuEventElapsedTime(start, event)) > 0


def test_a_verbose_drawing_has_the_parameters_of_kernels(module: Any, stream: Any, tmp_path: Path) -> None:
    device = upload(np.zeros(10, np.int32))
    begin(stream)
    value = ctypes.c_void_p(device)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(value))
    kernel = function(module, "bounded")
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, ctypes.addressof(pointers), 0))
    graph, path = end(stream), tmp_path / "graph.dot"
    ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), 1))
    assert f"parameter 0: {device:#x} (8 bytes)" in path.read_text()
