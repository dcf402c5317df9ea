"""Events and their three distinct errors."""

from __future__ import annotations

import pytest

import cudart_py as cuda


def test_elapsed_time_is_in_milliseconds_and_not_negative(device):
    start, end = cuda.Event().record(), cuda.Event().record()
    end.synchronize()
    assert end.done
    assert 0 <= end - start < 10_000


def test_an_event_without_timing_or_never_recorded_has_no_time(device):
    start, end = cuda.Event(timing=False).record(), cuda.Event().record()
    end.synchronize()
    with pytest.raises(cuda.EventTimingError, match="start event was made with timing=False"):
        end - start
    with pytest.raises(cuda.EventNotRecordedError, match="end event was never recorded"):
        cuda.Event() - end


# It waits for milliseconds on a GPU, which are no work for a driver in software.
WAIT = 'extern "C" __global__ void wait() { for (long long begin = clock64(); clock64() - begin < 10000000;); }'


def test_an_event_not_reached_has_no_time(device):
    wait = cuda.compile(WAIT)["wait"]
    start = cuda.Event().record()
    wait[1, 1]()
    end = cuda.Event().record()
    with pytest.raises(cuda.NotReadyError, match="is not reached yet"):
        end - start
    end.synchronize()
    assert end - start > 0


def test_timed_measures_its_block(device):
    with cuda.timed() as t:
        with pytest.raises(ValueError, match="after the `with` block"):
            t.milliseconds  # noqa: B018  # the access is the test
        cuda.zeros(1000)
    assert t.milliseconds >= 0


def test_an_unrecorded_event_is_done_as_in_cuda_and_a_closed_one_refused(device):
    event = cuda.Event(blocking=True)
    assert event.done
    event.close()
    event.close()
    with pytest.raises(ValueError, match="Event is closed"):
        event.record()


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
        "the start event is of device 0 and the end event of device 1: devices have no clock in common",
        "Event.record: the event is of device 1, and the stream of device 0",
    ]
