"""Graphs: what is captured, what runs, what is kept alive, and what a capture refuses."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.context import capture as captures_module


@pytest.fixture
def stream(device):
    with cuda.Stream(non_blocking=True) as made:
        yield made


def saxpy_on(module, stream, a, x, y, count=1):
    for _ in range(count):
        module["saxpy"][1, 32, 0, stream](a, x, y, x.size)


@pytest.fixture
def arrays(device, stream):
    x, y = cuda.full(10, 1, np.float32, stream=stream), cuda.zeros(10, np.float32, stream=stream)
    stream.synchronize()
    yield x, y
    x.close()
    y.close()


def test_what_is_captured_runs_only_when_the_graph_is_launched(module, stream, arrays):
    x, y = arrays
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, x, y, count=3)
    assert y.to_host(stream=stream).sum() == 0
    assert graph.node_count == 3
    executable = graph.instantiate()
    executable.upload(stream)
    for launches in (1, 2, 3):
        executable.launch(stream)
        np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10, 6.0 * launches))


def test_copies_and_fills_are_captured_and_read_at_the_launch(module, stream):
    source, out = cuda.pinned_empty(10, np.float32), cuda.pinned_empty(10, np.float32)
    x, y = cuda.empty(10, np.float32, stream=stream), cuda.empty(10, np.float32, stream=stream)
    with stream.capture() as graph:
        x.copy_from(source, stream=stream)
        cuda.memset(y, 0, stream=stream)
        saxpy_on(module, stream, 2.0, x, y)
        y.to_host(out, stream=stream)
    assert graph.node_count == 4
    executable = graph.instantiate()
    for value in (1, 5):
        source[:] = value
        executable.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(out, np.full(10, 2.0 * value))


def test_a_graph_is_launched_on_the_legacy_stream_by_default(module, device, stream, arrays):
    x, y = arrays
    with stream.capture() as graph:
        saxpy_on(module, stream, 1.0, x, y)
    graph.instantiate().launch()
    device.synchronize()
    np.testing.assert_array_equal(y.to_host(), np.ones(10))


def test_the_executable_graph_keeps_alive_what_it_uses(device, module, stream):
    y = cuda.zeros(10, np.float32, stream=stream)

    def make():
        x = cuda.full(10, 3, np.float32, stream=stream)
        with stream.capture() as graph:
            saxpy_on(module, stream, 1.0, x, y)
        return weakref.ref(x), graph.instantiate()

    kept, executable = make()
    gc.collect()
    assert kept() is not None
    executable.launch(stream)
    np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10, 3))
    executable.close()
    del executable
    gc.collect()
    assert kept() is None


def test_a_bound_launch_can_be_captured(device, module, stream, arrays):
    x, y = arrays
    bound = module["saxpy"][1, 32, 0, stream].bind(2.0, x, y, 10)
    with stream.capture() as graph:
        bound()
    graph.instantiate().launch(stream)
    np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10, 2))


def test_an_array_that_was_closed_by_hand_is_refused_at_the_launch(device, module, stream):
    x, y = cuda.zeros(10, np.float32), cuda.zeros(10, np.float32)
    device.synchronize()
    with stream.capture() as graph:
        saxpy_on(module, stream, 1.0, x, y)
    executable = graph.instantiate()
    executable.launch(stream)
    stream.synchronize()
    x.close()
    with pytest.raises(ValueError, match="argument 1 of saxpy: the array is closed"):
        executable.launch(stream)


def test_streams_that_wait_for_an_event_join_the_capture(device, module, stream, arrays):
    x, y = arrays
    with cuda.Stream(non_blocking=True) as other, cuda.Event(timing=False) as fork, cuda.Event(timing=False) as join:
        z = cuda.zeros(10, np.float32, stream=stream)
        stream.synchronize()
        held = weakref.ref(z)
        with stream.capture() as graph:
            fork.record(stream)
            other.wait(fork)
            saxpy_on(module, stream, 2.0, x, y)
            saxpy_on(module, other, 3.0, x, z)
            stream.wait(join.record(other))
        del z
        gc.collect()
        assert not captures_module.captures
        assert graph.node_count == 2
        graph.instantiate().launch(stream)
        np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10, 2))
        np.testing.assert_array_equal(held().to_host(stream=stream), np.full(10, 3))


@pytest.mark.unsanitized("the capture fails on purpose")
def test_a_stream_that_was_not_joined_is_the_drivers_capture_error(device, module, stream, arrays):
    x, y = arrays
    with cuda.Stream(non_blocking=True) as other:
        with pytest.raises(cuda.CaptureError, match="UNJOINED"), stream.capture():  # noqa: PT012  # the block is tested
            other.wait(stream.record(cuda.Event(timing=False)))
            saxpy_on(module, other, 3.0, x, y)
        saxpy_on(module, stream, 1.0, x, y)
        np.testing.assert_array_equal(y.to_host(stream=stream), np.ones(10))


def test_update_takes_other_parameters_and_other_arrays(device, module, stream, arrays):
    x, y = arrays
    z = cuda.zeros(10, np.float32, stream=stream)
    with stream.capture() as first:
        saxpy_on(module, stream, 2.0, x, y)
    with stream.capture() as second:
        saxpy_on(module, stream, 5.0, x, z)
    executable = first.instantiate()
    executable.update(second)
    executable.launch(stream)
    assert y.to_host(stream=stream).sum() == 0
    np.testing.assert_array_equal(z.to_host(stream=stream), np.full(10, 5))


@pytest.mark.unsanitized("the update fails on purpose")
def test_update_with_a_graph_of_another_shape_changes_nothing(device, module, stream, arrays):
    x, y = arrays
    with stream.capture() as first:
        saxpy_on(module, stream, 2.0, x, y)
    with stream.capture() as second:
        saxpy_on(module, stream, 2.0, x, y, count=2)
    executable = first.instantiate()
    with pytest.raises(cuda.CudaError, match="GRAPH_EXEC_UPDATE"):
        executable.update(second)
    with pytest.raises(TypeError, match="argument 'graph' must be a Graph, not an object of type ExecutableGraph"):
        executable.update(executable)
    executable.launch(stream)
    np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10, 2))


def test_dot_names_the_kernels(module, stream, arrays):
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, *arrays)
    assert "digraph" in graph.dot()
    verbose = graph.dot(verbose=True)
    assert "saxpy" in verbose
    assert len(verbose) > len(graph.dot())


class BlockError(Exception):
    pass


def test_a_block_that_raises_ends_the_capture_and_leaves_no_graph(device, module, stream, arrays):
    with pytest.raises(BlockError), stream.capture() as graph:  # noqa: PT012  # the block is tested
        saxpy_on(module, stream, 2.0, *arrays)
        raise BlockError
    assert graph.closed
    with pytest.raises(ValueError, match="argument 'graph' must be open, not a closed Graph"):
        graph.instantiate()
    assert not captures_module.captures
    saxpy_on(module, stream, 1.0, *arrays)
    assert arrays[1].to_host(stream=stream).sum() == 10


def test_a_wrong_argument_in_the_block_reaches_the_caller(device, module, stream, arrays):
    with pytest.raises(TypeError, match="argument 0 of saxpy"), stream.capture():
        saxpy_on(module, stream, "2", *arrays)
    stream.synchronize()


def test_a_graph_has_no_handle_before_its_block_has_ended(module, stream, arrays):
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, *arrays)
        with pytest.raises(ValueError, match="still being captured"):
            graph.instantiate()
    assert graph.handle


def test_a_stream_is_captured_once_at_a_time(stream):
    with pytest.raises(cuda.CaptureError, match="captured already"), stream.capture(), stream.capture():
        pass
    with stream.capture() as graph:
        pass
    assert graph.node_count == 0


def test_another_stream_can_be_captured_inside(device, module, stream, arrays):
    x, y = arrays
    with cuda.Stream(non_blocking=True) as other, stream.capture() as outer:
        with other.capture() as inner:
            saxpy_on(module, other, 2.0, x, y)
        saxpy_on(module, stream, 2.0, x, y, count=2)
    assert (outer.node_count, inner.node_count) == (2, 1)


def test_the_legacy_stream_cannot_be_captured(device):
    with pytest.raises(cuda.CaptureError, match="legacy default stream"), cuda.legacy_default.capture():
        pass


def test_an_unknown_mode_is_refused(stream):
    with pytest.raises(
        ValueError, match="'mode' must be one of 'global', 'thread_local', 'relaxed', not the str 'fast'"
    ):
        stream.capture("fast")


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_pageable_copy_is_refused_and_spoils_nothing(module, stream, arrays, direction):
    x, y = arrays
    host = np.zeros(10, np.float32)
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, x, y)
        with pytest.raises(cuda.CaptureError, match="pageable host memory cannot be captured"):
            cuda.memcpy(*((x, host) if direction == "up" else (host, x)), stream=stream)
    assert graph.node_count == 1


def test_an_allocation_is_refused_and_spoils_nothing(module, stream, arrays):
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, *arrays)
        with pytest.raises(cuda.CaptureError, match="allocate before the capture"):
            cuda.empty(10, stream=stream)
    assert graph.node_count == 1


@pytest.mark.parametrize("which", ["captured", "legacy"])
def test_an_array_that_is_dropped_inside_is_freed_after_the_capture(device, module, stream, arrays, which):
    dropped = cuda.zeros(10, stream=stream if which == "captured" else None)
    device.synchronize()
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, *arrays)
        del dropped
        gc.collect()
    assert graph.node_count == 1
    graph.instantiate().launch(stream)
    stream.synchronize()


def test_other_garbage_inside_does_not_spoil_the_capture(device, module, stream, arrays):
    pitched, event, pinned = cuda.empty_pitched((3, 3)), cuda.Event(), cuda.pinned_empty(3)
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, *arrays)
        del pitched, event, pinned
        gc.collect()
    assert graph.node_count == 1


@pytest.mark.unsanitized("the capture fails on purpose")
@pytest.mark.parametrize("use", ["synchronize", "done"])
def test_what_cannot_be_captured_is_the_drivers_capture_error(module, stream, arrays, use):
    with pytest.raises(cuda.CaptureError, match="STREAM_CAPTURE_UNSUPPORTED"), stream.capture() as graph:  # noqa: PT012  # the block is tested
        saxpy_on(module, stream, 2.0, *arrays)
        stream.synchronize() if use == "synchronize" else stream.done
    assert graph.closed
    stream.synchronize()


@pytest.mark.unsanitized("the capture fails on purpose")
def test_a_spoilt_capture_is_an_error_at_its_end(module, stream, arrays):
    with pytest.raises(cuda.CaptureError, match="INVALIDATED"), stream.capture():  # noqa: PT012  # the block is tested
        saxpy_on(module, stream, 2.0, *arrays)
        with pytest.raises(cuda.CaptureError):
            stream.synchronize()
    stream.synchronize()


def test_a_callback_in_a_graph_runs_at_every_launch(device, stream):
    seen = []
    with stream.capture() as graph:
        stream.add_callback(lambda: seen.append(len(seen)))
    executable = graph.instantiate()
    for _ in range(3):
        executable.launch(stream)
    stream.synchronize()
    assert seen == [0, 1, 2]


def test_debug_mode_does_not_synchronise_inside_a_capture(device, module, stream, arrays):
    with cuda.debug():
        with stream.capture() as graph:
            saxpy_on(module, stream, 2.0, *arrays)
        graph.instantiate().launch(stream)
    assert arrays[1].to_host(stream=stream).sum() == 20


def test_a_closed_graph_is_refused(device, module, stream, arrays):
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, *arrays)
    executable = graph.instantiate()
    graph.close()
    executable.launch(stream)
    executable.close()
    with pytest.raises(ValueError, match="this ExecutableGraph is closed"):
        executable.launch(stream)
    with pytest.raises(ValueError, match="this Graph is closed"):
        graph.dot()


def test_a_launch_on_a_closed_stream_is_refused(device, module, stream, arrays):
    with stream.capture() as graph:
        saxpy_on(module, stream, 2.0, *arrays)
    executable, closed = graph.instantiate(), cuda.Stream()
    closed.close()
    with pytest.raises(ValueError, match="'stream' must be open, not a closed Stream"):
        executable.launch(closed)


@pytest.mark.xdist_group("free memory")
def test_graphs_come_and_go(device, module, stream, arrays):
    x, y = arrays
    before = device.memory_info.free
    for _ in range(300):
        with stream.capture() as graph:
            saxpy_on(module, stream, 0.0, x, y)
        graph.instantiate().launch(stream)
    del graph
    gc.collect()
    device.synchronize()
    assert device.memory_info.free >= before - (16 << 20)


# -- what the errors of captures and updates say ------------------------------------------------


def test_a_stream_tells_whether_it_is_captured(device):
    with cuda.Stream() as stream:
        assert not stream.is_capturing
        with stream.capture():
            assert stream.is_capturing
        assert not stream.is_capturing


def test_an_unjoined_stream_is_explained(device, module):
    x = cuda.zeros(4, np.int32)

    def capture():
        with cuda.Stream() as stream, cuda.Stream() as other, stream.capture():
            other.wait(stream)
            cuda.memset(x, 1, stream=other)

    with pytest.raises(cuda.CaptureError, match=r"call stream\.wait\(other\) before the capture ends"):
        capture()


def test_a_wait_inside_a_capture_is_explained(device):
    remedy = "make this call before or after the capture"
    with cuda.Stream() as stream, pytest.raises(cuda.CaptureError, match=remedy), stream.capture():
        stream.synchronize()


def test_an_update_says_what_differs(device):
    x, y = cuda.zeros(4, np.int32), cuda.zeros(4, np.int32)
    with cuda.Stream() as stream:
        with stream.capture() as one:
            cuda.memset(x, 1, stream=stream)
        with stream.capture() as two:
            cuda.memset(x, 1, stream=stream)
            cuda.memset(x, 2, stream=stream)
        with stream.capture() as copy:
            cuda.memcpy(x, y, stream=stream)
        executable = one.instantiate()
        assert (executable.node_count, two.instantiate().node_count) == (1, 2)
        with pytest.raises(cuda.CudaError, match="The graph has 2 nodes, and the executable graph has 1"):
            executable.update(two)
        with pytest.raises(cuda.CudaError, match="Node 0 is a memcpy in the graph, and a memset in the executable"):
            executable.update(copy)
        executable.launch(stream)
        stream.synchronize()
        assert (x.to_host() == 1).all()
