"""Measuring in many streams: which of them count, and what work is called with."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cudart_py as cuda
import cudart_py.fast_streams
from cudart_py import measuring
from cudart_py.benchmark import Measurement, MeasureOptions, measure
from cudart_py.fast_streams import fast_streams, slowest_of_the_fast

QUICK = MeasureOptions(min_samples=3, min_seconds=0.0, max_seconds=0.0, warm_up_seconds=0.0)


@pytest.fixture
def times(monkeypatch):
    """Take the driver's event times for a device's, so that the whole of it runs on any driver."""
    monkeypatch.setattr(measuring, "has_capability", lambda name: name == "gpu_timing")


class Counting:
    """Work for any stream: each call adds 1 to a number on the device, and notes its stream on the host."""

    def __init__(self):
        self.streams = []
        self.number = cuda.zeros(1, np.int32)
        source = 'extern "C" __global__ void add(int *number) { atomicAdd(number, 1); }'
        self._kernel = cuda.compile(source)["add"]

    def __call__(self, stream):
        self.streams.append(stream)
        self._kernel[1, 1, 0, stream](self.number)


@pytest.mark.parametrize(
    ("times", "slowest"),
    [
        ([1.45, 1.44, 1.46, 1.45, 1.58, 1.60], 1.46),
        ([1.60, 1.45, 1.58, 1.44], 1.45),
        ([1.45, 1.44, 1.46, 1.45], 1.46),
        # One kind as wide as it was seen on an H200, and two with something between them.
        ([1.40, *np.linspace(1.42, 1.48, 40), 1.49], 1.49),
        ([*np.linspace(1.40, 1.49, 20), 1.515, *np.linspace(1.53, 1.64, 40)], 1.515),
        ([2.0], 2.0),
    ],
)
def test_slow_streams_are_told_from_fast_ones(times, slowest):
    assert slowest_of_the_fast(times) == slowest


class Chosen:
    """A measure of launches that is made up: the streams in groups of ten are slow or fast as the letters say."""

    def __init__(self, groups):
        self.groups = itertools.cycle(groups)
        self.streams = []

    def __call__(self, launch, stream):
        launch()
        if len(self.streams) % 10 == 0:
            self.group = next(self.groups)
        self.streams.append((stream, self.group))
        return {"fast": 1.4e-6, "slow": 1.6e-6}[self.group]


@pytest.mark.parametrize(
    ("groups", "made", "given"),
    [
        (["fast", "slow"], 64, 30),
        # Too few of the first streams are fast, and then of all.
        (["slow"] * 4 + ["fast"], 192, 30),
        (["slow"] * 9 + ["fast"], 256, 20),
        # There may be others until enough were seen.
        (["fast"], 256, 30),
        (["slow"], 256, 30),
    ],
)
def test_only_fast_streams_are_given_and_all_are_closed(device, groups, made, given):
    seconds = Chosen(groups)
    with fast_streams(device, 30, seconds) as streams:
        kinds = dict(seconds.streams)
        assert (len(kinds), len(streams)) == (made, given)
        assert len(set(streams)) == given
        assert {kinds[stream] for stream in streams} == {"fast" if "fast" in groups else "slow"}
    assert all(stream.closed for stream in kinds)


def test_streams_are_given_from_all_groups(device):
    seconds = Chosen(["fast", "fast", "slow"])
    with fast_streams(device, 12, seconds) as streams:
        made = [stream for stream, _ in seconds.streams]
        assert {made.index(stream) // 10 for stream in streams} == {0, 1, 3, 4, 6}


def test_what_fails_leaves_no_stream_open(device):
    made = []

    def seconds(launch, stream):
        made.append(stream)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), fast_streams(device, 3, seconds):
        pass
    assert [stream.closed for stream in made] == [True]


def test_each_stream_gives_a_sample(device, times, monkeypatch):
    monkeypatch.setattr(measuring, "_empty_seconds", lambda launch, stream: 1e-6)
    work = Counting()
    found = measure(work, streams=4, batch=5, options=QUICK)
    assert (found.streams, len(found.samples), found.batch, found.cache) == (4, 4, 5, "warm")
    used = list(dict.fromkeys(work.streams))
    assert [work.streams.count(stream) for stream in used] == [1 + 3 * 5] * 4
    assert work.number.to_host() == 4 * (1 + 3 * 5)
    assert all(stream.closed for stream in used)


def test_the_streams_are_told_apart_by_an_empty_kernel(device, times, monkeypatch):
    monkeypatch.setattr(cudart_py.fast_streams, "_AT_A_TIME", 2)
    monkeypatch.setattr(cudart_py.fast_streams, "_MOST", 4)
    work = Counting()
    found = measure(work, streams=3, batch=2, options=QUICK)
    assert 1 <= found.streams <= 3
    assert len(set(work.streams)) == found.streams


def test_the_first_streams_batch_is_all_streams_batch(device, times, monkeypatch):
    monkeypatch.setattr(measuring, "_empty_seconds", lambda launch, stream: 1e-6)
    planned = iter([7, 9])
    monkeypatch.setattr(measuring.DeviceTimer, "plan_batch", lambda timer: setattr(timer, "batch", next(planned)))
    assert measure(Counting(), streams=3, options=QUICK).batch == 7


def test_a_graph_in_each_stream(device, times, monkeypatch):
    monkeypatch.setattr(measuring, "_empty_seconds", lambda launch, stream: 1e-6)
    work = Counting()
    assert measure(work, streams=2, batch=5, graph=True, options=QUICK).captured
    assert work.number.to_host() == 2 * (1 + 3 * 5)


def test_a_driver_without_times_runs_it_once(device, monkeypatch):
    monkeypatch.setattr(measuring, "has_capability", lambda name: False)
    work = Counting()
    found = measure(work, streams=48, bytes=4)
    assert not found.timed
    assert work.number.to_host() == 1
    assert work.streams[0].closed


def test_the_fixture_runs_it_once_where_nothing_is_timed(device):
    work = Counting()
    measuring.run_once(work, streams=48)
    assert len(work.streams) == 1


@pytest.mark.parametrize("streams", [1.5, True, "2"])
def test_the_number_of_streams_is_an_int(device, streams):
    with pytest.raises(TypeError, match="streams is an int or None"):
        measure(lambda stream: None, streams=streams)


def test_at_least_one_stream_is_needed(device):
    with pytest.raises(ValueError, match="streams is 0, and at least 1 is needed"):
        measure(lambda stream: None, streams=0)


def test_a_stream_and_streams_exclude_each_other(device):
    with cuda.Stream() as stream, pytest.raises(TypeError, match="not both"):
        measure(lambda stream: None, stream=stream, streams=2)


def test_streams_take_one_function(device):
    with pytest.raises(TypeError, match="fn is one function, which is called with each stream, not 2"):
        measure([lambda stream: None] * 2, streams=2)


def test_the_record_says_in_how_many_streams():
    found = Measurement((1e-6,) * 5, batch=300, streams=5)
    assert found.as_dict()["streams"] == 5
    assert "5 streams of 300 calls" in str(found)
    assert "streams" not in Measurement((1e-6,)).as_dict()
