"""Stream capture and graphs: what is captured, the errors of capture, launches, updates."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import memory
from tests.simulator.kernels import INVALID, function, ptx
from tests.simulator.support import Player, Status, download, ok, struct, upload

FORK = "begin s, record e s, wait t e, "
SPOILT = "end s -> STREAM_CAPTURE_INVALIDATED"

CAPTURES = {
    "a stream that does not come back is unjoined": FORK
    + "capturing t active, run t a, end s -> STREAM_CAPTURE_UNJOINED, capturing t none",
    "only the first stream ends a capture": FORK + "end t -> STREAM_CAPTURE_UNMATCHED, " + SPOILT,
    # As an H100's driver did.
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
    "memory from outside is not freed": "take s a, begin s, free s a -> INVALID_VALUE, " + SPOILT,
}


@pytest.mark.parametrize("case", CAPTURES)
def test_captures_have_the_drivers_answers(play: Player, case: str) -> None:
    play(CAPTURES[case])


def instantiate(graph: Any) -> Any:
    return ok(driver.cuGraphInstantiate(graph, 0))


def fill_graph(play: Player, address: int, *values: int) -> Any:
    play("begin s")
    for place, value in enumerate(values):
        ok(driver.cuMemsetD8Async(address + place, value, 1, play["s"]))
    return play("end s")


def run(graph: Any, play: Player) -> None:
    ok(driver.cuGraphLaunch(instantiate(graph), play["s"]))
    play("sync s")


def test_no_graph_holds_a_prefetch(play: Player) -> None:
    address = ok(driver.cuMemAllocManaged(64, 1))
    location = struct("CUmemLocation", type=bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE)
    play("begin s")
    refused = driver.cuMemPrefetchAsync(address, 64, location, 0, play["s"])
    assert refused == (Status.CUDA_ERROR_NOT_SUPPORTED,)
    play(SPOILT)


def test_captured_work_of_joined_streams_runs_at_each_launch(play: Player) -> None:
    fork = "begin s, run s first, record e s, wait t e, run t other, run s same, record e2 t, wait s e2, run s last"
    graph = play(f"{fork}, end s")
    play("capturing t none, sync device")
    assert ok(driver.cuGraphGetEdges(graph))[3] == 4
    executable = instantiate(graph)
    for _ in range(2):
        ok(driver.cuGraphLaunch(executable, play["s"]))
    assert play.calls.names == []
    play("sync s")
    assert play.calls.names == ["first", "same", "other", "last"] * 2


@pytest.mark.parametrize("changed", [False, True])
def test_a_captured_kernels_parameters_are_copied_and_can_be_changed(play: Player, changed: bool) -> None:
    kernel = function(ok(driver.cuModuleLoadData(ptx())), "add")
    address, value = upload(np.zeros(1, np.int32)), ctypes.c_int(1)
    parameters = ctypes.c_void_p(address), value, ctypes.c_uint(1)
    pointers = (ctypes.c_void_p * 3)(*map(ctypes.addressof, parameters))
    play("begin s")
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, play["s"], ctypes.addressof(pointers), 0))
    value.value = 1000
    graph = play("end s")
    executable = instantiate(graph)
    if changed:
        sizes = {f"{kind}Dim{axis}": 1 for kind in ("grid", "block") for axis in "XYZ"}
        packed = ((address, 90, 1), (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint))
        made = struct("CUDA_KERNEL_NODE_PARAMS", func=kernel, kernelParams=packed, **sizes)
        (node,), _ = ok(driver.cuGraphGetNodes(graph, 1))
        ok(driver.cuGraphExecKernelNodeSetParams(executable, node, made))
    ok(driver.cuGraphLaunch(executable, play["s"]))
    assert download(address, 1, np.int32)[0] == (100 if changed else 11)


def test_a_captured_copy_reads_its_source_when_it_runs(play: Player) -> None:
    host, device = np.full(10, 1, np.uint8), upload(np.zeros(10, np.uint8))
    play("begin s")
    ok(driver.cuMemcpyHtoDAsync(device, host, 10, play["s"]))
    graph = play("end s")
    host[:] = 2
    run(graph, play)
    assert (download(device, 10) == 2).all()


def test_nodes_have_types_and_edges(play: Player) -> None:
    graph = fill_graph(play, upload(np.zeros(10, np.uint8)), 1, 2, 3)
    assert ok(driver.cuGraphGetNodes(graph)) == ([], 3)
    nodes, count = ok(driver.cuGraphGetNodes(graph, 3))
    assert count == len(nodes) == 3
    assert ok(driver.cuGraphNodeGetType(nodes[0])) == bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET
    before, after, _, edges = ok(driver.cuGraphGetEdges(graph, 2))
    assert edges == 2
    first, second, third = map(int, nodes)
    assert [*map(int, before)] == [first, second]
    assert [*map(int, after)] == [second, third]
    assert ok(driver.cuGraphGetRootNodes(graph)) == ([], 1)
    assert ok(driver.cuGraphNodeGetDependencies(nodes[2]))[2] == 1


def test_a_graph_is_drawn(play: Player, module: Any, tmp_path: Path) -> None:
    device, path = upload(np.zeros(10, np.int32)), tmp_path / "graph.dot"
    play("begin s")
    ok(driver.cuMemsetD8Async(device, 0, 1, play["s"]))
    packed = ((device,), (ctypes.c_void_p,))
    ok(driver.cuLaunchKernel(function(module, "bounded"), 1, 1, 1, 1, 1, 1, 0, play["s"], packed, 0))
    graph = play("end s")
    ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), 0))
    assert "node_0 -> node_1" in path.read_text()
    assert "pitch" not in path.read_text()
    verbose = bindings.CUgraphDebugDot_flags.CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE
    ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), verbose))
    drawing = path.read_text()
    assert all(text in drawing for text in (f"at {device:#x}", "pitch", f"parameter 0: {device:#x} (8 bytes)"))
    assert driver.cuGraphDebugDotPrint(graph, b"/no/such/folder", 0) == (Status.CUDA_ERROR_OPERATING_SYSTEM,)


def elsewhere(work: Callable[[], Any]) -> Any:
    """Return what a function returns in another thread, where the context is current too."""
    results: list[Any] = []

    def run() -> None:
        ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
        results.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


@pytest.mark.parametrize(
    ("mode", "here", "there"),
    [("global", "forbidden", "forbidden"), ("thread_local", "forbidden", "allowed"), ("relaxed", "allowed", "allowed")],
)
def test_a_captures_mode_says_which_threads_may_make_unsafe_calls(
    play: Player, mode: str, here: str, there: str
) -> None:
    answers = {"allowed": Status.CUDA_SUCCESS, "forbidden": Status.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED}
    for expected, asked in ((here, lambda work: work()), (there, elsewhere)):
        play(f"begin s {mode}")
        assert asked(lambda: driver.cuMemAlloc(100)[0]) == answers[expected]
        play("end s" if expected == "allowed" else SPOILT)


def test_a_thread_may_exchange_its_mode_for_a_relaxed_one(play: Player) -> None:
    play("begin s")
    mode = bindings.CUstreamCaptureMode
    before = ok(driver.cuThreadExchangeStreamCaptureMode(mode.CU_STREAM_CAPTURE_MODE_RELAXED))
    assert before == mode.CU_STREAM_CAPTURE_MODE_GLOBAL
    ok(driver.cuMemAlloc(16))
    ok(driver.cuThreadExchangeStreamCaptureMode(before))
    play("end s")


def test_another_thread_ends_a_capture_without_a_graph(play: Player) -> None:
    """As an H200's driver did, in all modes but the relaxed one."""
    play("begin s")
    elsewhere(lambda: play("end s -> STREAM_CAPTURE_WRONG_THREAD"))
    play("end s -> ILLEGAL_STATE")
    ok(driver.cuMemAlloc(64))


@pytest.mark.parametrize("where", [elsewhere, lambda work: work()])
def test_destroying_the_first_stream_of_a_capture_ends_it_for_every_thread(play: Player, where: Any) -> None:
    """As an H100's driver did, in all modes."""
    play("begin s")

    def destroy() -> None:
        play("destroy s")
        ok(driver.cuMemAlloc(64))
        play("sync device")

    where(destroy)
    ok(driver.cuMemAlloc(64))
    play("sync device, begin t, end t")


def test_a_captures_information_names_its_graph(play: Player) -> None:
    captured = bindings.CUstreamCaptureStatus
    assert ok(driver.cuStreamGetCaptureInfo(play["s"]))[0] == captured.CU_STREAM_CAPTURE_STATUS_NONE
    play("take null a, begin s, fill s a")
    status, identity, graph, before, _, count = ok(driver.cuStreamGetCaptureInfo(play["s"]))
    assert status == captured.CU_STREAM_CAPTURE_STATUS_ACTIVE
    assert int(identity) > 0
    assert len(before) == count == 1
    assert int(play("end s")) == int(graph)


def test_an_update_changes_later_launches_only(play: Player) -> None:
    device = upload(np.zeros(2, np.uint8))
    executable = instantiate(fill_graph(play, device, 1, 2))
    ok(driver.cuGraphLaunch(executable, play["s"]))
    outcome = ok(driver.cuGraphExecUpdate(executable, fill_graph(play, device, 3, 4)))
    assert outcome.result == bindings.CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
    assert download(device, 2).tolist() == [1, 2]
    ok(driver.cuGraphLaunch(executable, play["s"]))
    assert download(device, 2).tolist() == [3, 4]


def test_an_update_of_another_shape_fails_with_a_report(play: Player) -> None:
    device, failure = upload(np.zeros(4, np.uint8)), Status.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    executable = instantiate(fill_graph(play, device, 1, 2))
    assert driver.cuGraphExecUpdate(executable, fill_graph(play, device, 1, 2, 3)) == (failure, None)
    assert "3 nodes instead of 2" in (driver.take_report() or "")
    play("begin s")
    ok(driver.cuMemcpyDtoDAsync(device, device + 2, 1, play["s"]))
    ok(driver.cuMemsetD8Async(device, 0, 1, play["s"]))
    assert driver.cuGraphExecUpdate(executable, play("end s"))[0] == failure
    assert "NODE_TYPE_CHANGED" in (driver.take_report() or "")


def test_destroyed_graphs_are_invalid_and_their_clones_and_executables_go_on(play: Player) -> None:
    device = upload(np.zeros(1, np.uint8))
    graph = fill_graph(play, device, 7)
    executables = [instantiate(graph), instantiate(ok(driver.cuGraphClone(graph)))]
    ok(driver.cuGraphDestroy(graph))
    assert driver.cuGraphDestroy(graph) == (INVALID,)
    for executable in executables:
        ok(driver.cuMemsetD8Async(device, 0, 1, play["s"]))
        ok(driver.cuGraphLaunch(executable, play["s"]))
        ok(driver.cuGraphExecDestroy(executable))
        assert driver.cuGraphLaunch(executable, play["s"]) == (INVALID,)
        assert download(device, 1)[0] == 7


def test_access_policy_windows_are_kept(stream: Any) -> None:
    identity = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    value = bindings.CUstreamAttrValue()
    window = value.accessPolicyWindow
    window.base_ptr, window.num_bytes, window.hitRatio = upload(np.zeros(64, np.uint8)), 64, 0.5
    window.hitProp = bindings.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    ok(driver.cuStreamSetAttribute(stream, identity, value))
    other = ok(driver.cuStreamCreate(1))
    ok(driver.cuStreamCopyAttributes(other, stream))
    kept = ok(driver.cuStreamGetAttribute(other, identity)).accessPolicyWindow
    assert (kept.num_bytes, kept.hitRatio) == (64, 0.5)
    window.hitRatio = 1.5
    assert driver.cuStreamSetAttribute(stream, identity, value) == (INVALID,)


def test_an_allocation_in_a_capture_begins_and_ends_with_each_launch(play: Player) -> None:
    start = ok(driver.cuMemGetInfo())
    result = upload(np.zeros(10, np.uint8))
    play("begin s, take s a, fill s a")
    ok(driver.cuMemcpyDtoDAsync(result, play["a"], 10, play["s"]))
    play("free s a")
    graph = play("end s")
    assert ok(driver.cuGraphGetNodes(graph))[1] == 4
    assert memory.live.find(play["a"]) is None
    executable = instantiate(graph)
    for _ in range(2):
        ok(driver.cuMemsetD8Async(result, 0, 10, play["s"]))
        ok(driver.cuGraphLaunch(executable, play["s"]))
        assert (download(result, 10) == 1).all()
        assert memory.live.find(play["a"]) is None
    ok(driver.cuGraphDestroy(graph))
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuMemFree(result))
    assert ok(driver.cuMemGetInfo()) == start


def test_an_allocation_of_a_graph_may_be_freed_by_the_host(play: Player) -> None:
    executable = instantiate(play("begin s, take s a, fill s a, end s"))
    for _ in range(2):
        ok(driver.cuGraphLaunch(executable, play["s"]))
        assert (download(play["a"], 10) == 1).all()
        play("free s a")


def test_a_spoiled_captures_allocations_are_given_up(play: Player) -> None:
    start = ok(driver.cuMemGetInfo())
    play("begin s, take s a, sync s -> STREAM_CAPTURE_UNSUPPORTED, " + SPOILT)
    assert ok(driver.cuMemGetInfo()) == start


def test_a_graph_records_an_event_whenever_it_is_launched(play: Player) -> None:
    play("begin s")
    external = bindings.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
    ok(driver.cuEventRecordWithFlags(play["e"], play["s"], external))
    graph = play("end s")
    play("record e s, sync s, record e2 s")
    run(graph, play)
    assert ok(driver.cuEventElapsedTime(play["e2"], play["e"])) > 0
