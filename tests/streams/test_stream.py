"""Streams and their order of work; events and their three distinct errors."""

import numpy as np
import pytest

import cudart_py as cuda


def test_a_stream_is_done_until_it_has_work_and_not_used_behind_its_close(device):
    with pytest.raises(ValueError, match="argument 'priority' must be an int from -5 to 0, not the int 100"):
        cuda.Stream(priority=100)
    assert device.stream_priorities == (0, -5)
    stream = cuda.Stream(priority=-1, non_blocking=True)
    assert stream.priority == -1
    assert stream.done
    stream.synchronize()
    assert stream.device is device
    borrowed = cuda.Stream.borrow(stream.handle)
    assert borrowed.handle == stream.handle
    borrowed.close()
    stream.synchronize()
    stream.close()
    stream.close()
    assert stream.closed
    for use in (stream.synchronize, lambda: stream.done, stream.record, lambda: cuda.empty(3, stream=stream)):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_a_stream_may_be_borrowed_while_it_is_captured(stream):
    array = cuda.empty(4)
    with stream.capture() as graph:
        borrowed = cuda.Stream.borrow(stream.handle)
        cuda.memset(array, 0, stream=borrowed)
    assert borrowed.device == stream.device
    assert graph.node_count == 1


def test_streams_of_one_handle_are_equal_and_have_one_hash(device):
    stream, other, event = cuda.Stream(), cuda.Stream(), cuda.Event()
    again = cuda.Stream.borrow(stream.handle)
    assert stream == again
    assert hash(stream) == hash(again)
    assert {stream: 1}[again] == 1
    for different in (other, event, stream.handle):
        assert stream != different
    assert event == event  # the comparison is under test
    assert event != cuda.Event()
    assert cuda.legacy_default == cuda.Stream.borrow(cuda.legacy_default.handle)
    assert cuda.legacy_default != cuda.per_thread_default


def test_what_is_closed_equals_itself_alone_and_keeps_its_hash(device):
    stream, event = cuda.Stream(), cuda.Event()
    again = cuda.Stream.borrow(stream.handle)
    keys = {stream}
    stream.close()
    event.close()
    assert stream in keys
    assert event in {event}, "it was hashed only when closed"
    assert stream not in (again, cuda.Stream())


def test_a_with_block_closes_the_stream_and_makes_none_current(device):
    """CuPy's `with` block makes its stream current. The error message tells its users the difference."""
    with cuda.Stream(non_blocking=True) as stream:
        launched = cuda.compile('extern "C" __global__ void k() {}')["k"][1, 1]
        assert launched.stream is cuda.legacy_default
    with pytest.raises(ValueError, match="at the end of its `with` block, which does not make it current"):
        stream.synchronize()


USES = {
    "launch": lambda stream: cuda.compile('extern "C" __global__ void k() {}')["k"][1, 1, 0, stream](),
    "copy": lambda stream: cuda.memcpy(cuda.empty(3), np.ones(3), stream=stream),
    "fill": lambda stream: cuda.memset(cuda.empty(3), 0, stream=stream),
    "allocation": lambda stream: cuda.empty(3, stream=stream),
    "event": lambda stream: stream.record(),
    "wait": lambda stream: cuda.legacy_default.wait(stream),
    "handle": lambda stream: stream.handle,
    "library": lambda stream: cuda.Stream.borrow(stream.handle).synchronize(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_with_block_of_a_stream_that_was_used_before_is_refused(device, use):
    with cuda.Stream() as fresh:
        use(fresh)
    stream = cuda.Stream()
    use(stream)
    with pytest.raises(ValueError, match="a stream that has been used before cannot be entered"):
        stream.__enter__()
    assert not stream.closed
    asked = cuda.Stream(priority=-1)
    assert (asked.priority, asked.is_capturing) == (-1, False)
    with asked:
        pass
    with pytest.raises(ValueError, match="this Stream is closed"):
        asked.__enter__()
    with cuda.legacy_default, cuda.Stream.borrow(stream) as borrowed:
        borrowed.synchronize()
    assert not stream.closed


def test_default_streams_have_the_special_handles_and_never_close(device):
    assert cuda.legacy_default.handle == 1
    assert cuda.per_thread_default.handle == 2
    cuda.legacy_default.close()
    assert not cuda.legacy_default.closed


def test_a_stream_waits_for_another(device, rng):
    host = cuda.pinned_empty(1000, np.float32)
    host[:] = rng.random(1000)
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    a = cuda.empty(1000, np.float32, stream=first)
    b = cuda.empty(1000, np.float32, stream=second)
    cuda.memcpy(a, host, stream=first)
    second.wait(first)
    cuda.memcpy(b, a, stream=second)
    np.testing.assert_array_equal(b.to_host(), host)
    first.wait(second)  # the arrays are freed in `first`, after their last use in `second`
    with pytest.raises(cuda.errors.EventNotRecordedError):
        cuda.legacy_default.wait(cuda.Event())


@pytest.mark.parametrize(
    "use",
    [
        lambda array: cuda.memcpy(array, array, stream=5),
        lambda array: cuda.empty(4, stream=5),
        lambda array: array.close(stream=5),
        lambda array: cuda.Event().record(5),
        lambda array: cuda.Stream().wait(5),
    ],
)
def test_what_is_no_stream_is_said_so(device, use):
    with pytest.raises(TypeError, match=r"[Ss]tream.*not the int 5"):
        use(cuda.zeros(3))


@pytest.mark.parametrize("handle", [1, 2])
def test_a_borrowed_default_stream_stays_with_its_device(device, handle):
    """To the driver, the handle of a default stream refers to the default stream of the current device."""
    others = cuda.devices()[1:]
    if not others:
        pytest.skip("there is one device")
    stream = cuda.Stream.borrow(handle, device)
    for _ in range(3):
        with others[0]:
            array = cuda.empty(100, np.float32, stream=stream)
        assert array.device is device
        assert cuda.pointer_attributes(array).device is device
        with others[0]:
            array.close()


@pytest.mark.parametrize("protocol", [5, (0, 1), lambda: 5, lambda: (1, 2), lambda: (0, "x"), lambda: (0, None)])
def test_a_stream_whose_protocol_says_something_else_is_named(device, protocol):
    class Foreign:
        __cuda_stream__ = protocol if not callable(protocol) else staticmethod(protocol)

    with pytest.raises(TypeError, match=r"^Stream\.borrow: argument 'stream.*__cuda_stream__"):
        cuda.Stream.borrow(Foreign())


def test_what_is_no_event_is_named_and_nothing_recorded(device):
    with cuda.Stream() as stream:
        with pytest.raises(TypeError, match="Stream.record: argument 'event' must be an Event or None"):
            stream.record(stream)
        assert stream.done


def test_an_event_has_a_time_where_it_was_recorded_for_one(device):
    start, end = cuda.Event().record(), cuda.Event().record()
    end.synchronize()
    assert end.done
    assert 0 <= end - start < 10_000
    with pytest.raises(cuda.errors.EventTimingError, match="start event was made with timing=False"):
        end - cuda.Event(timing=False).record()
    with pytest.raises(cuda.errors.EventNotRecordedError, match="end event was never recorded"):
        cuda.Event() - end
    unrecorded = cuda.Event(blocking=True)
    assert unrecorded.done, "as in CUDA"
    unrecorded.close()
    unrecorded.close()
    with pytest.raises(ValueError, match="Event is closed"):
        unrecorded.record()


# Waits for milliseconds on a GPU. It is little work for the simulator, whose clock jumps ahead in such loops.
WAIT = 'extern "C" __global__ void wait() { for (long long begin = clock64(); clock64() - begin < 10000000;); }'


def test_an_event_not_reached_has_no_time(device):
    wait = cuda.compile(WAIT)["wait"]
    start = cuda.Event().record()
    wait[1, 1]()
    end = cuda.Event().record()
    with pytest.raises(cuda.errors.NotReadyError, match=r"not reached .*: first call synchronize\(\) on the end event"):
        end - start
    end.synchronize()
    assert end - start > 0


def test_a_start_event_that_is_not_reached_before_the_end_event_is_named(device):
    wait = cuda.compile(WAIT)["wait"]
    busy, idle = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    wait[1, 1, 0, busy]()
    start, end = busy.record(), idle.record()
    end.synchronize()
    with pytest.raises(cuda.errors.NotReadyError, match="the start event yet: .* on the start event"):
        end - start
    start.synchronize()
    assert np.isfinite(end - start)


def test_timed_measures_its_block(device):
    with cuda.timed() as t:
        with pytest.raises(ValueError, match="after the `with` block"):
            t.milliseconds  # noqa: B018  # the access is the test
        cuda.zeros(1000)
    assert t.milliseconds >= 0


ACROSS_DEVICES = """
import cudart_py as cuda
with cuda.Device(0):
    first, stream = cuda.Event().record(), cuda.Stream()
with cuda.Device(1):
    second = cuda.Event().record()
for ask in (lambda: second - first, lambda: stream.record(second)):
    try:
        ask()
    except ValueError as error:
        print(error)
"""


def test_events_of_two_devices_have_no_time_between_them(python):
    said = python(ACROSS_DEVICES, CUDART_PY_DRIVER="simulator", CUDART_PY_SIMULATOR_DEVICES="2").stdout.splitlines()
    assert said == [
        "the start event is on device 0 and the end event is on device 1: devices do not share a clock",
        "Event.record: argument 'stream' must be on device 1, like the event, not on device 0",
    ]


@pytest.mark.parametrize("attribute", ["ptr", "cuda_stream"])
def test_streams_of_older_cupy_and_pytorch_are_recognised_by_their_attributes(device, attribute):
    with cuda.Stream() as stream:
        of_cupy_or_pytorch = type("ExternalStream", (), {attribute: stream.handle})()
        borrowed = cuda.Stream.borrow(of_cupy_or_pytorch)
        assert (borrowed.handle, borrowed.device) == (stream.handle, device)
        for other in (type("Array", (), {attribute: stream.handle})(), type("Stream", (), {attribute: "x"})()):
            with pytest.raises(TypeError, match="is not a stream"):
                cuda.Stream.borrow(other)
