"""A capture ends however its block is left. Memory can then be allocated, and streams synchronized and captured."""

import functools
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.context import capture as captures_module
from cudart_py.streams.graphs.capturing import Capturing
from cudart_py.streams.graphs.conditionals import ConditionalNode
from tests.interrupts import interrupted


def fill(array, stream):
    cuda.memset(array, 1, stream=stream)


def assert_nothing_is_captured(device, stream=None):
    """Do everything that is forbidden during a capture, and capture once more."""
    assert not captures_module.captures
    with cuda.Stream() as blocking:
        x = cuda.zeros(4, np.float32)
        y = cuda.zeros(4, np.float32, stream=blocking)
        device.synchronize()
        assert blocking.done
        for each in (blocking, stream):
            if each is not None and not each.closed:
                with each.capture() as graph:
                    fill(x, each)
                assert graph.node_count == 1
                graph.instantiate().launch(each)
                each.synchronize()
        x.close()
        y.close()
    device.synchronize()


def in_a_thread(function):
    """Run a function in a new thread, wait for the thread to end, and return the exception that it raised."""

    def work():
        with cuda.Device(0):
            function()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).exception()


MODES = pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])


@MODES
@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("by_another_thread", [False, True])
def test_a_stream_closed_inside_its_capture_ends_it(device, mode, non_blocking, by_another_thread):
    x = cuda.zeros(4, np.float32)
    device.synchronize()
    closed = cuda.Stream(non_blocking=non_blocking)
    graphs = []

    def capture():
        with closed.capture(mode) as graph:
            graphs.append(graph)
            fill(x, closed)
            if by_another_thread:
                assert in_a_thread(closed.close) is None
            closed.close()
            assert_nothing_is_captured(device)

    with pytest.raises(cuda.errors.CaptureError, match="the stream was closed while it was being captured"):
        capture()
    assert in_a_thread(lambda: assert_nothing_is_captured(device)) is None
    assert_nothing_is_captured(device)
    assert graphs[0].closed
    with pytest.raises(ValueError, match="closed"):
        graphs[0].instantiate()


def test_what_waited_for_the_end_of_a_capture_is_done_when_its_stream_is_closed(device, driver_calls):
    closed = cuda.Stream(non_blocking=True)
    x = cuda.zeros(4, np.float32, stream=closed)
    closed.synchronize()
    capturing = closed.capture()
    capturing.__enter__()
    driver_calls.clear()
    x.close()
    assert driver_calls["cuMemFreeAsync"] == 0
    closed.close()
    assert driver_calls["cuMemFreeAsync"] == 1


def test_deferred_actions_run_in_order_when_the_whole_capture_has_ended(stream):
    x, done = cuda.zeros(4, np.float32), []
    with stream.capture(), stream.if_then(stream.condition()) as body:
        fill(x, body)
        for number in range(3):
            for each in (body, stream):
                captures_module.defer(each.handle, functools.partial(done.append, (each is stream, number)))
    assert done == [(of_stream, number) for of_stream in (True, False) for number in range(3)]


@pytest.mark.parametrize("older", [True, False])
def test_a_capture_goes_on_without_a_closed_stream_that_had_joined_it(device, older):
    streams = [cuda.Stream(non_blocking=True) for _ in range(2)]
    joined, stream = streams if older else reversed(streams)
    x = cuda.zeros(4, np.float32, stream=stream)
    stream.synchronize()
    with stream.capture() as graph:
        joined.wait(stream)
        fill(x, joined)
        stream.wait(joined)
        handle = joined.handle
        joined.close()
        assert captures_module.find(handle) is None
        fill(x, stream)
    assert graph.node_count == 2
    assert_nothing_is_captured(device, stream)
    x.close(stream=stream)


def test_a_borrowed_stream_closed_inside_its_capture_still_gives_the_graph(device, stream):
    x = cuda.zeros(4, np.float32, stream=stream)
    stream.synchronize()
    borrowed = cuda.Stream.borrow(stream.handle)
    with borrowed.capture() as graph:
        fill(x, stream)
        borrowed.close()
    assert graph.node_count == 1
    assert_nothing_is_captured(device, stream)


def drop(stream, mode):
    graph = stream.capture(mode).__enter__()
    assert graph.closed
    assert repr(graph) == "<Graph closed>"


def drop_a_cycle(stream, mode):
    cycle = [stream.capture(mode)]
    cycle[0].__enter__()
    cycle.append(cycle)


def drop_a_generator(stream, mode):
    def steps():
        with stream.capture(mode):
            yield

    generator = steps()
    next(generator)
    assert captures_module.captures


def drop_in_another_thread(stream, mode):
    kept = [stream.capture(mode)]
    kept[0].__enter__()
    assert in_a_thread(kept.clear) is None


@MODES
@pytest.mark.parametrize("leave", [drop, drop_a_cycle, drop_a_generator, drop_in_another_thread])
def test_a_capture_that_was_entered_and_dropped_ends(device, stream, leave, mode):
    leave(stream, mode)
    gc.collect()
    assert_nothing_is_captured(device, stream)


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_the_block_raises_ends_the_capture_also_behind_the_close_of_its_stream(device, error, closes):
    stream, graphs = cuda.Stream(), []

    def capture():
        with stream.capture() as graph:
            graphs.append(graph)
            if closes:
                stream.close()
            raise error

    with pytest.raises(error):
        capture()
    assert graphs[0].closed
    assert_nothing_is_captured(device, stream)


def test_only_the_thread_that_began_a_capture_gets_its_graph(device, stream):
    """Another thread that leaves the block ends the capture without a graph; its own thread then finds it ended."""
    capturing = stream.capture()
    with pytest.raises(cuda.errors.CaptureError, match="has not begun"):
        capturing.__exit__(None, None, None)
    graph = capturing.__enter__()
    failure = in_a_thread(lambda: capturing.__exit__(None, None, None))
    assert isinstance(failure, cuda.errors.CaptureError)
    assert "STREAM_CAPTURE_WRONG_THREAD" in str(failure)
    with pytest.raises(cuda.errors.CaptureError, match="has not begun or has already ended"):
        capturing.__exit__(None, None, None)
    with pytest.raises(ValueError, match="closed"):
        graph.node_count  # noqa: B018  # reading it raises
    assert_nothing_is_captured(device, stream)


def test_a_capture_of_a_thread_that_has_ended_ends_with_its_stream(device):
    closed = cuda.Stream()
    capturing = closed.capture()
    assert in_a_thread(capturing.__enter__) is None
    with pytest.raises(cuda.errors.CaptureError, match="STREAM_CAPTURE_WRONG_THREAD"):
        capturing.__exit__(None, None, None)
    closed.close()
    assert_nothing_is_captured(device)


def test_a_capture_that_the_driver_fails_to_end_is_forgotten(device, driver_calls):
    """This happens when the context is lost."""
    failing = cuda.Stream()
    driver_calls.fails = "cuStreamEndCapture".__eq__
    with pytest.raises(cuda.CudaError, match="CUDA_ERROR_UNKNOWN"), failing.capture() as graph:
        pass
    driver_calls.fails = "".__eq__
    assert graph.closed
    assert_nothing_is_captured(device, failing)


def test_an_event_recorded_again_outside_a_capture_takes_nobody_into_it(device, stream):
    with cuda.Stream(non_blocking=True) as outside, cuda.Stream(non_blocking=True) as third:
        event = cuda.Event(timing=False)
        with stream.capture():
            event.record(stream)
            event.record(outside)
            third.wait(event)
            assert captures_module.find(third.handle) is None
            assert captures_module.find(stream.handle) is not None


def test_an_interrupt_anywhere_in_a_captures_begin_and_end_ends_it(device, stream):
    x = cuda.zeros(4, np.float32, stream=stream)
    stream.synchronize()

    def capture():
        with stream.capture():
            fill(x, stream)

    begin_and_end = {Capturing.__enter__.__code__, Capturing.__exit__.__code__}
    step = 1
    while interrupted(capture, begin_and_end, step, anywhere=True):
        assert not captures_module.captures, f"interrupt {step} left a capture"
        stream.synchronize()
        step += 1
    assert step > 100
    assert_nothing_is_captured(device, stream)


@pytest.mark.parametrize("kind", [Capturing, ConditionalNode])
def test_a_constructor_that_an_interrupt_kept_from_beginning_leaves_no_error(kind, monkeypatch):
    caught = []
    monkeypatch.setattr(sys, "unraisablehook", caught.append)
    kind.__new__(kind)
    gc.collect()
    assert not caught
