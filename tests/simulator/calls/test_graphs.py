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
from tests.simulator.kernels import INVALID, function
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


def test_a_graph_is_drawn(play: Player, module: Any, tmp_path: Path) -> None:
    device, path = upload(np.zeros(10, np.int32)), tmp_path / "graph.dot"
    play("begin s")
    ok(driver.cuMemsetD8Async(device, 0, 1, play["s"]))
    packed = ((device,), (ctypes.c_void_p,))
    ok(driver.cuLaunchKernel(function(module, "bounded"), 1, 1, 1, 1, 1, 1, 0, play["s"], packed, 0))
    graph = play("end s")
    assert ok(driver.cuGraphGetRootNodes(graph)) == ([], 1)
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
    assert ok(driver.cuStreamGetCaptureInfo(play["t"]))[-1] == 0
    ok(driver.cuMemAlloc(16))
    ok(driver.cuThreadExchangeStreamCaptureMode(before))
    play("end s")


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
        assert graph.set_copy(copy) == (INVALID,)
    for fill in (
        None,
        fill_of(here, 1, 0),
        fill_of(here, 1, 4, height=2, pitch=8),
        fill_of(here, 1, 4, elementSize=3),
        fill_of(here, 1, BYTES + 1),
        fill_of(managed, 1, 8),
    ):
        assert graph.set_fill(fill) == (INVALID,)
    copy, fill = copy_of(there, here, 8), fill_of(here, 1, 4)
    assert graph.set_copy(copy, graph.fill) == (INVALID,)
    assert graph.set_fill(fill, graph.copy) == (INVALID,)
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
    assert driver.cuGraphNodeSetEnabled(graph.executable, 7, 1) == (INVALID,)
