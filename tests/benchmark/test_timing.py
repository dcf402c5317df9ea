"""How one sample of device time is taken: what is queued, in which order, and what a time-out changes."""

from __future__ import annotations

import pytest

import cudart_py as cuda
from cudart_py.benchmark import MeasureOptions, device_timing
from cudart_py.benchmark.device_timing import QUEUED_LAUNCHES, DeviceTimer, Trial


class Script:
    """A blocking kernel that is none: it notes what happens, and times out where it is told to."""

    def __init__(self, events, time_outs=()):
        self.events = events
        self._time_outs = iter(time_outs)
        self.timed_out = False

    def hold(self):
        self.events.append("hold")
        self.timed_out = next(self._time_outs, False)

    def release(self):
        self.events.append("release")


@pytest.fixture
def events():
    return []


@pytest.fixture
def make_timer(device, events):
    timers = []

    def make(*works, flush=False, blocker=None, clock=lambda: None):
        works = works or (lambda: events.append("work"),)
        timers.append(DeviceTimer(works, cuda.legacy_default, flush=flush, clock=clock, blocker=blocker))
        return timers[-1]

    yield make
    for timer in timers:
        timer.close()


def predict(timer, **calls):
    """Let a timer's trials have these seconds a call, instead of running them."""
    timer.try_calls = lambda count: Trial(calls["seconds"] * count, calls["host_seconds"] * count, None, False)


def test_the_work_is_queued_between_hold_and_release(make_timer, events):
    make_timer(blocker=Script(events)).sample()
    assert events == ["hold", "work", "release"]


def test_the_l2_cache_is_flushed_before_the_stream_is_held(make_timer, events, monkeypatch):
    monkeypatch.setattr(device_timing, "memset", lambda *_, **__: events.append("flush"))
    make_timer(flush=True, blocker=Script(events)).sample()
    assert events == ["flush", "hold", "work", "release"]


def test_the_flush_writes_more_than_the_cache_holds(make_timer, device, monkeypatch):
    written = []
    monkeypatch.setattr(device_timing, "memset", lambda array, *_, **__: written.append(array.nbytes))
    make_timer(flush=True).sample()
    assert written == [2 * device.properties.l2_cache_size]


def test_a_batch_is_not_flushed_and_gives_the_time_of_one_call(make_timer, events):
    timer = make_timer(flush=True)
    timer.batch = 4
    assert not timer.flushes
    timer.sample()
    assert events == ["work"] * 4
    predict(timer, seconds=2.0, host_seconds=0.0)
    assert timer.sample().seconds == 2.0


def test_several_functions_take_turns(make_timer, events):
    timer = make_timer(*(lambda name=name: events.append(name) for name in "abc"))
    timer.batch = 2
    timer.sample()
    timer.sample()
    assert "".join(events) == "abca"


def test_what_raises_lets_the_stream_go(make_timer, events):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_timer(fail, blocker=Script(events)).sample()
    assert events == ["hold", "release"]


def test_a_sample_that_timed_out_is_taken_again_without_blocking(make_timer, events):
    timer = make_timer(blocker=Script(events, [True]))
    timer.sample()
    assert events == ["hold", "work", "release", "work"]
    assert not timer.blocked


def test_a_batch_that_timed_out_is_halved(make_timer, events):
    timer = make_timer(blocker=Script(events, [True, True]))
    timer.batch = 8
    timer.sample()
    assert timer.batch == 2
    assert timer.blocked


def test_launches_that_wait_for_their_kernels_are_noticed_before_the_first_sample(make_timer, events):
    timer = make_timer(blocker=Script(events, [True]))
    timer.warm_up(MeasureOptions(warm_up_seconds=0.0))
    assert not timer.blocked
    assert events == ["work", "hold", "release"]


def test_warming_up_runs_every_function_once_at_least(make_timer, events):
    timer = make_timer(*(lambda name=name: events.append(name) for name in "abc"))
    timer.warm_up(MeasureOptions(warm_up_seconds=0.0))
    assert "".join(events) == "abc"


def test_what_events_cost_is_subtracted_once_a_sample(make_timer):
    timer = make_timer()
    timer.try_calls = lambda count: Trial(1.0 * count + 0.5, 0.0, None, False)
    timer.warm_up(MeasureOptions(warm_up_seconds=0.0))
    assert timer.overhead == 0.5
    timer.batch = 4
    assert timer.sample().seconds == 1.0


def test_no_sample_is_negative(make_timer):
    timer = make_timer()
    timer.overhead = 10.0
    assert timer.sample().seconds == 0.0


def test_the_clock_is_read_with_each_sample(make_timer):
    assert make_timer(clock=lambda: 1755.0).sample().clock == 1755.0


@pytest.mark.parametrize(
    ("seconds", "host_seconds", "batch"),
    [
        (1e-3, 4e-6, 1),  # long enough by itself
        (60e-6, 4e-6, 1),
        (40e-6, 4e-6, 25),  # as many as fill a millisecond
        (3e-6, 2e-6, 334),
        (3e-6, 20e-6, QUEUED_LAUNCHES // 10),  # perhaps ten launches a call: no more than a queue holds
        (3e-6, 1.0, 1),
        (0.0, 2e-6, QUEUED_LAUNCHES),
    ],
)
def test_short_work_is_measured_in_batches(make_timer, seconds, host_seconds, batch):
    timer = make_timer()
    predict(timer, seconds=seconds, host_seconds=host_seconds)
    timer.plan_batch()
    assert timer.batch == batch
