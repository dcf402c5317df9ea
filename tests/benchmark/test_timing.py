"""A single sample of device time: what is queued and in which order, and the effects of a time-out."""

import pytest

import cudart_py as cuda
from cudart_py.benchmark import MeasureOptions
from cudart_py.benchmark.device import timing as device_timing
from cudart_py.benchmark.device.timing import QUEUED_LAUNCHES, DeviceTimer, Trial


class Script:
    """A fake blocking kernel that records its calls, and times out as scripted."""

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


def test_the_l2_cache_is_flushed_and_the_work_queued_between_hold_and_release(make_timer, device, events, monkeypatch):
    written = []
    monkeypatch.setattr(device_timing, "memset", lambda array, *_, **__: written.append((len(events), array.nbytes)))
    make_timer(blocker=Script(events)).sample()
    make_timer(flush=True, blocker=Script(events)).sample()
    assert events == ["hold", "work", "release"] * 2
    assert written == [(3, 2 * device.properties.l2_cache_size)]


def test_a_batch_is_not_flushed(make_timer, events):
    timer = make_timer(flush=True)
    timer.batch = 4
    assert not timer.flushes
    timer.sample()
    assert events == ["work"] * 4


def test_what_raises_lets_the_stream_go(make_timer, events):
    with pytest.raises(ZeroDivisionError):
        make_timer(lambda: 1 / 0, blocker=Script(events)).sample()
    assert events == ["hold", "release"]


@pytest.mark.parametrize(
    ("time_outs", "batch", "expected"),
    [([True], 1, (1, False)), ([True, True], 8, (2, True))],
    ids=["taken again without blocking", "halved"],
)
def test_what_timed_out_is_taken_again(make_timer, events, time_outs, batch, expected):
    timer = make_timer(blocker=Script(events, time_outs))
    timer.batch = batch
    timer.sample()
    assert (timer.batch, timer.blocked) == expected
    assert batch > 1 or events == ["hold", "work", "release", "work"]


def test_launches_that_wait_for_their_kernels_are_noticed_before_the_first_sample(make_timer, events):
    timer = make_timer(blocker=Script(events, [True]))
    timer.warm_up(MeasureOptions(warm_up_seconds=0.0))
    assert not timer.blocked
    assert events == ["work", "hold", "release"]


def test_several_functions_warm_up_once_at_least_and_then_take_turns(make_timer, events):
    timer = make_timer(*(lambda name=name: events.append(name) for name in "abc"))
    timer.warm_up(MeasureOptions(warm_up_seconds=0.0))
    timer.batch = 2
    timer.sample()
    timer.sample()
    assert "".join(events[:3]) == "abc"
    assert "".join(events[3:]) in ("abca", "bcab", "cabc")


def test_what_events_cost_is_subtracted_once_a_sample_and_the_clock_read(make_timer):
    timer = make_timer(clock=lambda: 1755.0)
    real = timer.try_calls
    timer.try_calls = lambda count: Trial(1.0 * count + 0.5, 0.0, None, False)
    timer.warm_up(MeasureOptions(warm_up_seconds=0.0))
    assert timer.overhead == 0.5
    timer.batch = 4
    assert timer.sample().seconds == 1.0
    timer.overhead, timer.try_calls = 10.0, real
    assert (timer.sample()) == (0.0, 1755.0)


@pytest.mark.parametrize(
    ("seconds", "host_seconds", "batch"),
    [
        (1e-3, 4e-6, 1),  # a single call is long enough
        (60e-6, 4e-6, 1),
        (40e-6, 4e-6, 25),  # enough calls to fill a millisecond
        (3e-6, 2e-6, 334),
        (3e-6, 20e-6, QUEUED_LAUNCHES // 10),  # a call may be ten launches, which must fit in the queue
        (3e-6, 1.0, 1),
        (0.0, 2e-6, QUEUED_LAUNCHES),
    ],
)
def test_short_work_is_measured_in_batches(make_timer, seconds, host_seconds, batch):
    timer = make_timer()
    timer.try_calls = lambda count: Trial(seconds * count, host_seconds * count, None, False)
    timer.plan_batch()
    assert timer.batch == batch
