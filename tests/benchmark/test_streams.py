"""Measuring in many streams: the choice of the fast ones, and the streams that are passed to the work."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

import cudart_py as cuda
import cudart_py.benchmark.device.fast_streams
from cudart_py.benchmark import MeasureOptions, clocks, measure, measuring
from cudart_py.benchmark.clocks import PATIENCE
from cudart_py.benchmark.device import samples as device_samples
from cudart_py.benchmark.device.fast_streams import fast_streams, slowest_of_the_fast
from cudart_py.benchmark.sampling import Sample

QUICK = MeasureOptions(min_samples=3, min_seconds=0.0, max_seconds=0.0, warm_up_seconds=0.0)


@pytest.mark.parametrize(
    ("times", "slowest"),
    [
        ([1.45, 1.44, 1.46, 1.45, 1.58, 1.60], 1.46),
        ([1.60, 1.45, 1.58, 1.44], 1.45),
        ([1.45, 1.44, 1.46, 1.45], 1.46),
        # One kind with the spread that was measured on an H200, and two kinds with a stream between them.
        ([1.40, *np.linspace(1.42, 1.48, 40), 1.49], 1.49),
        ([*np.linspace(1.40, 1.49, 20), 1.515, *np.linspace(1.53, 1.64, 40)], 1.515),
        # Disturbed measurements are not a kind of their own.
        ([*[1.45] * 32, *[1.58] * 31, 2.3], 1.45),
        ([*[1.45] * 32, *[1.58] * 29, 2.9, 2.9, 50.0], 1.45),
        ([2.0], 2.0),
    ],
)
def test_slow_streams_are_told_from_fast_ones(times, slowest):
    assert slowest_of_the_fast(times) == slowest


@pytest.mark.parametrize(
    ("groups", "made", "given"),
    [
        (["fast", "slow"], 64, 30),
        # Too few of the first streams are fast, and then too few of all streams.
        (["slow"] * 4 + ["fast"], 192, 30),
        (["slow"] * 9 + ["fast"], 256, 20),
        # All streams seem alike, so more are tried, because the others may be faster.
        (["slow"], 256, 30),
        # The streams are taken from all groups.
        (["fast", "fast", "slow"], 64, 12),
    ],
)
def test_only_fast_streams_of_all_groups_are_given_and_all_are_closed(device, groups, made, given):
    """Streams are slow or fast in groups of ten consecutive ones."""
    kinds = {}

    def seconds(launch, stream):
        launch()
        kinds[stream] = groups[len(kinds) // 10 % len(groups)]
        return {"fast": 1.4e-6, "slow": 1.6e-6}[kinds[stream]]

    with fast_streams(device, given if made < 256 else 30, seconds) as streams:
        assert (len(kinds), len(set(streams)), len(streams)) == (made, given, given)
        assert {kinds[stream] for stream in streams} == {"fast" if "fast" in groups else "slow"}
        order = list(kinds)
        assert given != 12 or {order.index(stream) // 10 for stream in streams} == {0, 1, 3, 4, 6}
    assert all(stream.closed for stream in kinds)


def test_what_fails_leaves_no_stream_open(device):
    made = []

    def seconds(launch, stream):
        made.append(stream)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), fast_streams(device, 3, seconds):
        pass
    assert [stream.closed for stream in made] == [True]


@pytest.fixture
def all_fast(monkeypatch):
    """Replace the choice of fast streams by new streams, without measuring them."""

    @contextlib.contextmanager
    def streams(device, count, seconds):
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(cuda.Stream(non_blocking=True)) for _ in range(count)]

    monkeypatch.setattr(device_samples, "fast_streams", streams)


# The number of calls of the work in a stream: one to warm up, and then three samples of a batch of five.
CALLS = 1 + 3 * 5


@pytest.mark.parametrize("graph", [False, True])
def test_each_stream_gives_a_sample(event_times, all_fast, counting, graph):
    work = counting()
    found = measure(work, streams=4, batch=5, graph=graph, options=QUICK)
    assert (found.streams, len(found.samples), found.batch, found.cache) == (4, 4, 5, "warm")
    used = list(dict.fromkeys(work.streams))
    # One more stream is used at the start.
    assert [work.streams.count(stream) for stream in used] == [1 + 5 if graph else CALLS] * 5
    assert (found.captured, work.number.to_host()) == (graph, 5 * CALLS)
    assert all(stream.closed for stream in used)


@pytest.fixture
def timed(device, event_times, all_fast, monkeypatch):
    """Return a function that replaces timers by fakes, whose samples, clock rate and so on it takes per stream."""

    def set_up(**streams):
        made = []

        def make(works, stream, **_):
            values = {name: given[min(len(made), len(given) - 1)] for name, given in streams.items()}
            samples = (Sample(seconds, values.get("clock")) for seconds in values["seconds"])

            def sample():
                timer.batch = values.get("batch", 1)  # a real timer may halve it
                return next(samples)

            def nothing():
                pass

            known = {"blocked": True, "captured": True, "overhead": 0.0, "flushes": False, "batch": 1} | values
            timer = SimpleNamespace(
                **known, memory=0, warmed=[], plan_batch=nothing, capture_batch=nothing, close=nothing
            )
            timer.sample, timer.batch, timer.warm_up = sample, 1, timer.warmed.append
            made.append(timer)
            return timer

        monkeypatch.setattr(device_samples, "DeviceTimer", make)
        monkeypatch.setattr(clocks, "LONGEST_PAUSE", 0)
        return made

    return set_up


@pytest.mark.parametrize(
    ("streams", "found"),
    [
        # A sample is the median of a stream; the first stream is the extra one at the start.
        ({"seconds": [[9, 9, 9], [1, 2, 30], [2, 3, 40]]}, {"samples": (2, 3)}),
        # Streams at a dropped clock rate are rejected until that rate is accepted as the reference.
        (
            {"seconds": [[1] * 20, [1] * 20, [*[7] * (PATIENCE - 1), 1, 1, 1]], "clock": [1980, 1980, 1000]},
            {"samples": (1, 1), "rejected": PATIENCE - 1},
        ),
        # The record combines the facts of all streams.
        (
            {"seconds": [[1, 1, 1]], "overhead": [9.0, 1.0, 3.0], "captured": [True, True, False],
             "blocked": [True, False, True], "batch": [5, 5, 2], "clock": [1980.0, 1980.0, 1960.0]},
            {"captured": False, "blocked": False, "batch": 2, "overhead": 2.0, "clock_mhz": 1970},
        ),
    ],
    ids=["median", "clock", "record"],
)  # fmt: skip  # grouped by meaning
def test_what_is_found_in_each_of_two_streams(timed, streams, found):
    timed(**streams)
    record = measure(lambda stream: None, streams=2, graph="captured" in streams, options=QUICK)
    assert {name: getattr(record, name) for name in found} == found


def test_times_are_shared_and_the_device_is_warmed_up_once(timed):
    timers = timed(seconds=[[1] * 3])
    options = MeasureOptions(min_samples=3, min_seconds=0.2, max_seconds=0.0, warm_up_seconds=0.5)
    measure(lambda stream: None, streams=2, options=options)
    assert [timer.warmed[0].warm_up_seconds for timer in timers] == [0.5, 0, 0]
    assert [timer.warmed[0].min_seconds for timer in timers] == [0, 0.1, 0.1]


def test_each_stream_is_judged_by_an_empty_kernel_in_it(event_times, counting, monkeypatch):
    launches = []
    real = device_samples.take

    def take(works, stream, plan, options, guard):
        launches.append((getattr(works[0], "launch", None), stream))
        return real(works, stream, plan, options, guard)

    monkeypatch.setattr(device_samples, "take", take)
    monkeypatch.setattr(cudart_py.benchmark.device.fast_streams, "_AT_A_TIME", 2)
    monkeypatch.setattr(cudart_py.benchmark.device.fast_streams, "MOST", 4)
    work = counting()
    found = measure(work, streams=3, batch=2, options=QUICK)
    judged = [(launch, stream) for launch, stream in launches if launch is not None]
    assert [launch.kernel.name for launch, _ in judged] == ["nothing"] * 4
    assert all(launch.stream is stream for launch, stream in judged)
    assert set(work.streams[CALLS:]) <= {stream for _, stream in judged}
    assert 1 <= found.streams <= 3


def test_a_driver_without_times_runs_it_once_with_a_stream(counting, no_times):
    work = counting()
    assert not measure(work, streams=48, bytes=4).timed
    assert work.number.to_host() == 1
    assert work.streams[0].closed
    measuring.run_once(work, streams=48)
    assert len(work.streams) == 2
    with pytest.raises(ValueError, match="'streams' must be an int from 2 to"):
        measuring.run_once(work, streams=1)
