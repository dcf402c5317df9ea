"""Graphs: captures, launches, the objects that graphs keep alive, and calls that a capture rejects."""

import gc
import threading
import weakref

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.context import capture as captures_module


@pytest.fixture
def arrays(device, stream):
    x, y = cuda.full(10, 1, np.float32, stream=stream), cuda.zeros(10, np.float32, stream=stream)
    stream.synchronize()
    yield x, y
    x.close()
    y.close()


@pytest.fixture
def add(module):
    """Return a function that queues y += a * x in a stream."""

    def queue(stream, a, x, y, count=1):
        for _ in range(count):
            module["saxpy"][1, 32, 0, stream](a, x, y, x.size)

    return queue


@pytest.fixture
def captured(add, stream, arrays):
    """Return a graph of y += 2 * x."""
    with stream.capture() as graph:
        add(stream, 2.0, *arrays)
    return graph


def test_what_is_captured_runs_only_when_the_graph_is_launched(device, module, add, stream, arrays):
    x, y = arrays
    bound = module["saxpy"][1, 32, 0, stream].bind(2.0, x, y, 10)
    assert not stream.is_capturing
    with stream.capture() as graph:
        add(stream, 2.0, x, y, count=2)
        bound()
        assert stream.is_capturing
        with pytest.raises(ValueError, match="still being captured"):
            graph.instantiate()
    assert not stream.is_capturing
    assert y.to_host(stream=stream).sum() == 0
    assert graph.handle
    assert graph.node_count == 3
    executable = graph.instantiate()
    assert executable.node_count == 3
    executable.upload(stream)
    graph.close()
    for launches in (1, 2, 3):
        executable.launch(stream)
        np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10, 6.0 * launches))
    executable.launch()
    device.synchronize()
    assert y.to_host()[0] == 24, "by default it is launched in the legacy stream"


def test_copies_fills_and_callbacks_are_captured_and_run_at_every_launch(add, stream, arrays):
    source, out = cuda.pinned_empty(10, np.float32), cuda.pinned_empty(10, np.float32)
    x, y = arrays
    seen = []
    with stream.capture() as graph:
        x.copy_from(source, stream=stream)
        cuda.memset(y, 0, stream=stream)
        add(stream, 2.0, x, y)
        y.to_host(out, stream=stream)
        stream.launch_host_function(lambda: seen.append(out.tolist()))
    assert graph.node_count == 5
    executable = graph.instantiate()
    for value in (1, 5):
        source[:] = value
        executable.launch(stream)
        stream.synchronize()
    assert seen == [[2.0] * 10, [10.0] * 10]


def test_the_executable_graph_keeps_alive_what_it_uses(add, stream, arrays):
    y = arrays[1]

    def make():
        x = cuda.full(10, 3, np.float32, stream=stream)
        with stream.capture() as graph:
            add(stream, 1.0, x, y)
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


def test_streams_that_wait_for_an_event_join_the_capture(add, stream, arrays):
    x, y = arrays
    with cuda.Stream(non_blocking=True) as other, cuda.Event(timing=False) as fork, cuda.Event(timing=False) as join:
        with stream.capture() as outer:
            with other.capture() as inner:
                add(other, 2.0, x, y)
            add(stream, 2.0, x, y, count=2)
        assert (outer.node_count, inner.node_count) == (2, 1), "before it joins, it is captured on its own"
        z = cuda.zeros(10, np.float32, stream=stream)
        stream.synchronize()
        held = weakref.ref(z)
        with stream.capture() as graph:
            fork.record(stream)
            other.wait(fork)
            add(stream, 2.0, x, y)
            add(other, 3.0, x, z)
            stream.wait(join.record(other))
        del z
        gc.collect()
        assert not captures_module.captures
        assert graph.node_count == 2
        graph.instantiate().launch(stream)
        np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10, 2))
        np.testing.assert_array_equal(held().to_host(stream=stream), np.full(10, 3))


def test_update_takes_other_parameters_and_other_arrays_which_it_keeps_alive(add, stream, arrays, captured):
    x, y = arrays
    z = cuda.zeros(10, np.float32, stream=stream)
    with stream.capture() as second:
        add(stream, 5.0, x, z)
    executable = captured.instantiate()
    executable.update(second)
    second.close()
    kept = weakref.ref(z)
    del z
    gc.collect()
    assert y.to_host(stream=stream).sum() == 0
    y.close()
    executable.launch(stream)
    np.testing.assert_array_equal(kept().to_host(stream=stream), np.full(10, 5))


@pytest.mark.unsanitized("the update fails on purpose")
def test_an_update_with_another_graph_says_what_differs_and_changes_nothing(add, stream, arrays, captured):
    x, y = arrays
    with stream.capture() as two:
        add(stream, 2.0, x, y, count=2)
    with stream.capture() as copy:
        cuda.memcpy(y, x, stream=stream)
    executable = captured.instantiate()
    with pytest.raises(cuda.CudaError, match=r"GRAPH_EXEC_UPDATE(.|\n)*has 2 nodes, but the executable graph has 1"):
        executable.update(two)
    with pytest.raises(cuda.CudaError, match="Node 0 is a memcpy in the graph, but a kernel in the executable"):
        executable.update(copy)
    with pytest.raises(TypeError, match="argument 'graph' must be a Graph, not an object of type ExecutableGraph"):
        executable.update(executable)
    executable.launch(stream)
    np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10, 2))


class BlockError(Exception):
    pass


def test_a_block_that_raises_ends_the_capture_and_leaves_no_graph(add, stream, arrays):
    with pytest.raises(TypeError, match="argument 0 of saxpy"), stream.capture():
        add(stream, "2", *arrays)
    with pytest.raises(BlockError), stream.capture() as graph:  # noqa: PT012  # the block is tested
        add(stream, 2.0, *arrays)
        raise BlockError
    assert graph.closed
    with pytest.raises(ValueError, match="argument 'graph' must be open, not a closed Graph"):
        graph.instantiate()
    assert not captures_module.captures
    add(stream, 1.0, *arrays)
    assert arrays[1].to_host(stream=stream).sum() == 10


def test_what_cannot_be_captured_is_refused_before_it_begins(stream):
    with pytest.raises(cuda.errors.CaptureError, match="already being captured"), stream.capture(), stream.capture():
        pass
    with stream.capture() as graph:
        pass
    assert graph.node_count == 0
    with pytest.raises(cuda.errors.CaptureError, match="legacy default stream"), cuda.legacy_default.capture():
        pass
    words = "'mode' must be one of 'global', 'thread_local' or 'relaxed', not the str 'fast'"
    with pytest.raises(ValueError, match=words):
        stream.capture("fast")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda x, host, stream: cuda.memcpy(x, host, stream=stream), "pageable host memory cannot be captured"),
        (lambda x, host, stream: cuda.memcpy(host, x, stream=stream), "pageable host memory cannot be captured"),
        (lambda x, host, stream: cuda.empty(10, stream=stream), "allocate before the capture"),
    ],
    ids=["copy up", "copy down", "allocation"],
)
def test_what_a_capture_refuses_spoils_nothing(add, stream, arrays, use, words):
    with stream.capture() as graph:
        add(stream, 2.0, *arrays)
        with pytest.raises(cuda.errors.CaptureError, match=words):
            use(arrays[0], np.zeros(10, np.float32), stream)
    assert graph.node_count == 1


@pytest.mark.parametrize("which", ["captured", "legacy", "others"])
def test_what_is_dropped_inside_is_freed_after_the_capture(device, add, stream, arrays, which):
    if which == "others":
        dropped = [cuda.empty_pitched((3, 3)), cuda.Event(), cuda.pinned_empty(3)]
    else:
        dropped = [cuda.zeros(10, stream=stream if which == "captured" else None)]
    device.synchronize()
    with stream.capture() as graph:
        add(stream, 2.0, *arrays)
        del dropped
        gc.collect()
    assert graph.node_count == 1
    graph.instantiate().launch(stream)
    stream.synchronize()


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_what_is_closed_or_dropped_during_a_capture_is_given_back_and_spoils_nothing(device, add, stream, arrays, mode):
    with cuda.Stream(non_blocking=True) as other:
        pool = cuda.MemoryPool.current(device)
        ours = [cuda.empty(1 << 20, stream=other), cuda.empty(1 << 20, stream=cuda.per_thread_default)]
        theirs = [cuda.empty(1 << 20, stream=cuda.per_thread_default)]
        rows, module = cuda.empty_pitched((3, 5)), cuda.compile('extern "C" __global__ void k() {}')
        pinned, used = cuda.register_host(np.zeros(5)), pool.used
        with stream.capture() as empty:
            add(stream, 2.0, *arrays)
        executable = empty.instantiate()
        with stream.capture(mode) as graph:
            add(stream, 2.0, *arrays)
            for thing in (*ours, rows, module, pinned, executable):
                thing.close()
            thread = threading.Thread(target=theirs.clear)
            thread.start()
            thread.join()
            add(stream, 2.0, *arrays)
        assert graph.node_count == 2
        for one in (other, cuda.per_thread_default, cuda.legacy_default):
            one.synchronize()
        assert pool.used <= used - 3 * (8 << 20)


@pytest.mark.unsanitized("the capture fails on purpose")
@pytest.mark.parametrize("use", [cuda.Stream.synchronize, cuda.Stream.done.fget])
def test_what_cannot_be_captured_is_the_drivers_error_with_a_remedy(add, stream, arrays, use):
    words = r"STREAM_CAPTURE_UNSUPPORTED(.|\n)*make this call before or after the capture"
    with pytest.raises(cuda.errors.CaptureError, match=words), stream.capture() as graph:  # noqa: PT012  # the block is tested
        add(stream, 2.0, *arrays)
        use(stream)
    assert graph.closed
    with pytest.raises(cuda.errors.CaptureError, match="INVALIDATED"), stream.capture():  # noqa: PT012  # as above
        add(stream, 2.0, *arrays)
        with pytest.raises(cuda.errors.CaptureError):
            use(stream)
    stream.synchronize()


@pytest.mark.unsanitized("the capture fails on purpose")
def test_a_copy_without_its_stream_names_the_argument_that_is_missing(stream, arrays):
    pinned = cuda.pinned_empty(10, np.float32)
    calls = (arrays[0].copy_from, arrays[0].to_host, lambda host: cuda.memcpy(arrays[0], host))
    for call in calls:
        words = "make this call before or after the capture, or pass stream= if it is a copy of pinned memory"
        with pytest.raises(cuda.errors.CaptureError, match=words), stream.capture():
            call(pinned)
    with stream.capture() as graph:
        arrays[0].copy_from(pinned, stream=stream)
    assert graph.node_count == 1


@pytest.mark.unsanitized("the capture fails on purpose")
def test_a_stream_that_was_not_joined_is_the_drivers_capture_error_with_a_remedy(add, stream, arrays):
    words = r"UNJOINED(.|\n)*call stream\.wait\(other\) before the capture ends"
    with cuda.Stream(non_blocking=True) as other:
        with pytest.raises(cuda.errors.CaptureError, match=words), stream.capture():  # noqa: PT012  # the block is tested
            other.wait(stream.record(cuda.Event(timing=False)))
            add(other, 3.0, *arrays)
        add(stream, 1.0, *arrays)
        np.testing.assert_array_equal(arrays[1].to_host(stream=stream), np.ones(10))


def test_debug_mode_does_not_synchronise_inside_a_capture(add, stream, arrays):
    with cuda.debug():
        with stream.capture() as graph:
            add(stream, 2.0, *arrays)
        graph.instantiate().launch(stream)
    assert arrays[1].to_host(stream=stream).sum() == 20


def test_what_is_closed_is_refused_and_has_no_drawing(device, add, stream, captured):
    x, y, closed = cuda.zeros(10, np.float32), cuda.zeros(10, np.float32), cuda.Stream()
    device.synchronize()
    with stream.capture() as graph:
        add(stream, 1.0, x, y)
    executable = graph.instantiate()
    executable.launch(stream)
    stream.synchronize()
    x.close()
    with pytest.raises(ValueError, match="argument 1 of saxpy: the array is closed"):
        executable.launch(stream)
    closed.close()
    with pytest.raises(ValueError, match="'stream' must be open, not a closed Stream; .* by .* `with` block"):
        captured.instantiate().launch(closed)
    executable.close()
    with pytest.raises(ValueError, match="this ExecutableGraph is closed"):
        executable.launch(stream)
    text, verbose = captured.dot(), captured.dot(verbose=True)
    assert "digraph" in text
    assert "saxpy" in verbose
    assert len(verbose) > len(text)
    captured.close()
    with pytest.raises(ValueError, match="this Graph is closed"):
        captured.dot()


@pytest.mark.xdist_group("free memory")
def test_graphs_come_and_go(device, add, stream, arrays):
    before = device.memory_info.free
    for _ in range(300):
        with stream.capture() as graph:
            add(stream, 0.0, *arrays)
        graph.instantiate().launch(stream)
    del graph
    gc.collect()
    device.synchronize()
    assert device.memory_info.free >= before - (16 << 20)
