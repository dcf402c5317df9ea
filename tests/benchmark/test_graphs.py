"""Batches that are launched as a graph, and batches that cannot be captured and are launched call by call."""

from types import SimpleNamespace

import pytest

import cudart_py as cuda
from cudart_py.benchmark import MeasureOptions, measure
from cudart_py.benchmark.device.batch_graph import capture_calls
from cudart_py.benchmark.device.timing import DeviceTimer

QUICK = MeasureOptions(min_samples=3, min_seconds=0.0, max_seconds=0.0, warm_up_seconds=0.0)


@pytest.fixture
def stream(device):
    with cuda.Stream(non_blocking=True) as stream:
        yield stream


@pytest.fixture
def adding(stream, counting):
    return counting(stream)


def test_calls_are_captured_in_turn_and_a_graph_does_what_they_do(stream, counting, adding):
    other = counting(stream)
    graph = capture_calls(iter([adding, other, adding]), 3, stream)
    assert adding.number.to_host() == 0
    for _ in range(2):
        graph.launch(stream)
    assert [int(work.number.to_host(stream=stream)[0]) for work in (adding, other)] == [4, 2]


@pytest.mark.parametrize(
    ("batch", "graph", "captured", "calls"),
    [(5, True, True, 1 + 5), (5, False, False, 1 + 3 * 5), (1, True, False, 1 + 3)],
    ids=["captured once", "call by call", "a single call is no batch"],
)
def test_a_batch_is_captured_once_where_a_graph_is_asked_for(
    device, event_times, stream, adding, batch, graph, captured, calls
):
    found = measure(adding, stream=stream, batch=batch, graph=graph, flush_l2=False, options=QUICK)
    assert (found.captured, found.batch, found.cache) == (captured, batch, "warm")
    assert len(adding.streams) == calls
    assert adding.number.to_host(stream=stream) == 1 + 3 * batch


def test_what_cannot_be_captured_is_launched_call_by_call(device, event_times, stream, counting, adding):
    def work():
        adding()
        stream.synchronize()

    default = counting()
    for fn, where in ((work, stream), (default, None)):
        found = measure(fn, stream=where, batch=5, graph=True, options=QUICK)
        assert (found.timed, found.captured) == (True, False)
    assert default.number.to_host() == 1 + 3 * 5


def test_after_a_capture_that_failed_the_stream_can_be_used(stream, counting, adding):
    def fail():
        adding()
        raise ZeroDivisionError

    assert capture_calls(iter([fail]), 1, stream) is None
    adding()
    assert adding.number.to_host(stream=stream) == 1
    with cuda.Stream(non_blocking=True) as other:  # its work is not captured in the graph
        assert capture_calls(iter([counting(other)]), 1, stream) is None


def test_a_graph_that_cannot_be_held_is_measured_without_blocking(device, stream, adding):
    times_out = SimpleNamespace(timed_out=True, hold=lambda: None, release=lambda: None)
    timer = DeviceTimer([adding], stream, flush=False, clock=lambda: None, blocker=times_out)
    timer.batch = 4
    timer.capture_batch()
    timer.sample()
    assert (timer.batch, timer.blocked, timer.captured) == (4, False, True)
    timer.close()
