"""Products that come again are launched as graphs: which, in which streams, for how long, and what if they cannot."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py._driver import api
from library_tour.libraries import blas, gemm, handles
from library_tour.libraries.handles import library_handle, thread_cache


class Recordable:
    """Stands in for cuBLAS: a product fills `out` with `value`, as work of the stream that a graph can record."""

    def __init__(self, library):
        self.calls, self.stream, self.value, self.workspaces = 0, 0, 1, []
        library.set_stream = self.set_stream
        library.set_workspace = lambda handle, address, nbytes: self.workspaces.append(address)
        library.gemm_ex = self.gemm_ex

    def set_stream(self, handle, stream):
        self.stream = stream

    def gemm_ex(self, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, *rest):
        self.calls += 1
        api.cuMemsetD8Async(c, self.value, 4 * m * n, self.stream)


@pytest.fixture
def cublas(software, monkeypatch):
    monkeypatch.setattr(blas, "REPEATS", 4)
    return Recordable(software.cublas)


def matrix(value=0.0):
    return cuda.full((4, 4), value, np.float32)


def again(times, *operands, **options):
    for _ in range(times):
        gemm(*operands, **options)


def graphs():
    return thread_cache("gemm graphs")


def used_bytes():
    cuda.Device(0).synchronize()
    return cuda.Device(0).memory_pool.used


def test_the_fifth_product_is_launched_and_not_called(cublas):
    a, out = matrix(), matrix()
    again(4, a, a, out)
    called = cublas.calls
    cuda.memset(out.view(np.uint8), 0)
    gemm(a, a, out)
    assert cublas.calls == called
    assert np.all(out.to_host().view(np.uint8) == 1)


def test_each_operand_and_number_makes_another_product(cublas):
    a, b, out = matrix(), matrix(), matrix()
    for operands, options in (((a, a, out), {}), ((b, a, out), {}), ((a, b, out), {}), ((a, a, out), {"alpha": 2.0})):
        again(4, *operands, **options)
    assert len(graphs()) == 4


def test_the_handle_is_back_in_its_stream_and_its_workspace_after_recording(cublas):
    a, out = matrix(), matrix()
    with cuda.Stream() as stream:
        again(4, a, a, out, stream=stream)
        handle = library_handle("cublas", stream, cuda.Device(0))
        assert cublas.stream == handle.bound == stream.handle
        assert cublas.workspaces[-1] == handle.workspace.pointer


def test_the_oldest_graph_goes_when_there_are_many(cublas, monkeypatch):
    monkeypatch.setattr(blas, "MOST_GRAPHS", 2)
    a, outs = matrix(), [matrix() for _ in range(3)]
    for out in outs:
        again(4, a, a, out)
    assert {call[4] for call in graphs()} == {out.pointer for out in outs[1:]}


def test_a_dropped_stream_is_destroyed_and_its_graphs_go(cublas):
    a, out = matrix(), matrix()
    seen = []
    before = None
    for _ in range(4):
        stream = cuda.Stream()
        again(5, a, a, out, stream=stream)
        seen.append(weakref.ref(stream))
        del stream
        gc.collect()
        assert not graphs()
        before = used_bytes() if before is None else before
    assert used_bytes() == before
    assert [reference() for reference in seen] == [None] * 4


def test_the_graphs_of_closed_streams_go_with_the_next_stream(cublas):
    a, out = matrix(), matrix()
    streams = [cuda.Stream() for _ in range(4)]
    outs = [matrix() for _ in streams]
    for stream, own in zip(streams, outs, strict=True):
        again(5, a, a, own, stream=stream)
    assert len(graphs()) == 4
    held = used_bytes()
    for stream in streams:
        stream.close()
    gemm(a, a, out)
    assert not graphs()
    assert used_bytes() < held


def test_a_stream_that_is_dropped_in_another_thread_takes_its_graphs_along(cublas):
    a, out = matrix(), matrix()
    streams = [cuda.Stream()]
    again(4, a, a, out, stream=streams[0])
    thread = threading.Thread(target=streams.clear)
    thread.start()
    thread.join()
    assert not graphs()


def test_more_streams_than_have_workspaces_are_served_directly(cublas, monkeypatch):
    monkeypatch.setattr(handles, "MOST_RECORDED_STREAMS", 1)
    a, out, other = matrix(), matrix(), matrix()
    with cuda.Stream() as first, cuda.Stream() as second:
        again(5, a, a, out, stream=first)
        called = cublas.calls
        again(5, a, a, other, stream=second)
        assert cublas.calls == called + 5
        assert {call[0] for call in graphs()} == {first.handle}


def test_a_borrowed_stream_is_served_directly(cublas):
    a, out = matrix(), matrix()
    with cuda.Stream() as stream:
        again(6, a, a, out, stream=cuda.Stream.borrow(stream.handle))
    assert cublas.calls == 6
    assert not graphs()


@pytest.mark.parametrize("kind", [cuda.OutOfMemoryError, cuda.CaptureError])
def test_a_product_that_cannot_be_recorded_is_none_the_worse(cublas, monkeypatch, kind):
    """It is queued as before, and recording it is not tried at each call."""
    tries = []

    def refuse(*arguments):
        tries.append(arguments)
        raise kind("no")

    a, out = matrix(), matrix()
    monkeypatch.setattr(handles.LibraryHandle, "record", refuse)
    again(9, a, a, out)
    assert len(tries) == 1
    assert cublas.calls == 9
    assert np.all(out.to_host().view(np.uint8) == 1)


def test_a_call_that_fails_while_it_is_recorded_leaves_the_handle_in_its_stream(cublas):
    a, out = matrix(), matrix()
    again(3, a, a, out)
    real, tries = cublas.gemm_ex, []

    def fail_in_recorder(*arguments):
        if cublas.stream != cuda.legacy_default.handle:
            tries.append(cublas.stream)
            raise cuda.OutOfMemoryError("no")
        real(*arguments)

    library_handle("cublas", cuda.legacy_default, cuda.Device(0)).functions.gemm_ex = fail_in_recorder
    again(4, a, a, out)
    assert len(tries) == 1
    assert cublas.stream == cuda.legacy_default.handle
    assert not graphs()
    assert np.all(out.to_host().view(np.uint8) == 1)


def test_a_recorded_product_is_called_while_its_stream_is_captured(cublas):
    a, out = matrix(), matrix()
    with cuda.Stream() as stream:
        again(5, a, a, out, stream=stream)
        called = cublas.calls
        with stream.capture() as graph:
            gemm(a, a, out, stream=stream)
        assert cublas.calls == called + 1
        assert graph.node_count == 1
