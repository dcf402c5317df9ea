"""Sampling: when it stops, which samples count, and how the device's clock rate is read."""

import contextlib
import itertools
import math
import random
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.benchmark import MeasureOptions, clock_locks, clocks, locked_clocks
from cudart_py.benchmark.clocks import FIRST_PAUSE, LONGEST_PAUSE, PATIENCE
from cudart_py.benchmark.sampling import Sample, collect
from cudart_py.benchmark.stopping import SettledEntropy
from cudart_py.context.nvml import nvml

STEADY = MeasureOptions(min_samples=5, min_seconds=0.1, max_seconds=1.0, precision=0.001)


class Bench:
    """A simulated clock that samples and pauses advance."""

    def __init__(self, samples):
        self.time = 0.0
        self.pauses = []
        self._samples = iter(samples)

    def take(self):
        sample = next(self._samples)
        self.time += sample.seconds
        return sample

    def pause(self, seconds):
        self.pauses.append(seconds)
        self.time += seconds

    def collect(self, options):
        return collect(self.take, options, now=lambda: self.time, pause=self.pause)


def steady(seconds, clock=None):
    return itertools.repeat(Sample(seconds, clock))


def noisy(seconds):
    numbers = random.Random(1)
    while True:
        yield Sample(seconds * numbers.choice([0.5, 1.0, 1.5]))


def test_equal_samples_end_it_when_the_least_time_is_over_and_noisy_ones_when_the_time_is_up():
    assert len(Bench(steady(0.01)).collect(STEADY).seconds) in (10, 11)
    bench = Bench(noisy(0.01))
    bench.collect(STEADY)
    assert bench.time == pytest.approx(1.0, abs=0.02)


def test_the_least_count_is_taken_however_long_it_takes_and_the_greatest_never_exceeded():
    assert len(Bench(steady(10.0)).collect(STEADY).seconds) == STEADY.min_samples
    assert len(Bench(noisy(1e-6)).collect(MeasureOptions(min_samples=3, max_samples=7)).seconds) == 7


def test_a_loose_precision_ends_earlier_than_a_tight_one():
    loose, tight = (
        len(Bench(noisy(1e-3)).collect(MeasureOptions(precision=p, min_seconds=0.0, max_seconds=100.0)).seconds)
        for p in (0.1, 0.02)
    )
    assert loose < tight


@pytest.mark.parametrize(
    ("samples", "rejected"),
    [
        (itertools.repeat(Sample(0.01, None)), False),
        (itertools.cycle([Sample(0.01, 1980.0), Sample(0.01, 1965.0), Sample(0.02, 1200.0)]), True),
        # Samples from before a rise of the clock rate are judged by the rates seen until then.
        (itertools.chain([Sample(0.01, 1200.0)], itertools.repeat(Sample(0.01, 1980.0))), False),
    ],
    ids=["no clock", "dropped clock", "rising clock"],
)
def test_samples_at_a_dropped_clock_are_thrown_away(samples, rejected):
    found = Bench(samples).collect(STEADY)
    assert set(found.seconds) == {0.01}
    assert (found.rejected > 0) == rejected
    assert found.clock in (None, 1965.0, 1972.5, 1980.0)


def test_the_device_gets_longer_and_longer_pauses_until_its_clock_becomes_the_reference():
    longest = [Sample(0.01, 2000.0)], [Sample(0.02, 1000.0)] * 3, [Sample(0.01, 2000.0)], steady(0.02, 1000.0)
    bench = Bench(itertools.chain(*longest))
    found = bench.collect(STEADY)
    growing = [min(LONGEST_PAUSE, FIRST_PAUSE * 2**number) for number in range(PATIENCE - 1)]
    assert bench.pauses == [*growing[:3], *growing]
    assert growing[-1] == LONGEST_PAUSE
    assert found.rejected == 3 + PATIENCE - 1
    assert found.seconds.count(0.02) >= STEADY.min_samples - 2


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"precision": -1.0}, ValueError, "precision"),
        ({"precision": float("nan")}, ValueError, "precision"),
        ({"max_seconds": "1"}, TypeError, "max_seconds"),
        ({"min_seconds": True}, TypeError, "min_seconds"),
        ({"min_samples": 0}, ValueError, "min_samples"),
        ({"max_samples": 2.5}, TypeError, "max_samples"),
        ({"warm_up_seconds": -0.1}, ValueError, "warm_up_seconds"),
        ({"min_samples": 6, "max_samples": 5}, ValueError, "'min_samples' is the int 6, but"),
    ],
)
def test_a_bad_option_is_named(options, error, words):
    with pytest.raises(error, match=words):
        MeasureOptions(**options)


# The device's clock rate


class NvmlError(Exception):
    pass


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        ([345, 1980], [1980.0]),  # the first reading shows that the clock rate can be read
        ([NvmlError("not supported")], [None]),
        ([345, NvmlError("busy"), 1980], [None, 1980.0]),
    ],
)
def test_the_clock_is_that_of_the_multiprocessors_in_megahertz_where_it_can_be_read(monkeypatch, readings, found):
    bindings = SimpleNamespace(
        NvmlError=NvmlError,
        ClockType=SimpleNamespace(CLOCK_SM=1),
        device_get_handle_by_pci_bus_id_v2=lambda bus: bus,
        device_get_clock_info=Mock(side_effect=readings),
    )
    monkeypatch.setattr(clocks, "nvml", lambda: bindings)
    device = SimpleNamespace(properties=SimpleNamespace(pci_bus_id="0000:01:00.0"))
    clock = clocks.clock_reader.__wrapped__(device)
    assert [clock() for _ in found] == found


def test_without_nvml_no_clock_is_known_and_the_reason_is_kept(monkeypatch):
    fails = Mock(side_effect=NvmlError("no library"))
    monkeypatch.setattr("cuda.bindings.nvml", SimpleNamespace(init_v2=fails), raising=False)
    with pytest.raises(cuda.errors.NotSupportedError, match="^no library$"):
        nvml()
    assert clocks.clock_reader.__wrapped__(None)() is None


# The rule by entropy


def test_the_entropy_is_that_of_the_times_in_bins_of_the_precision():
    rule = SettledEntropy(0.01)
    samples = [1e-3] * 5 + [1.001e-3] * 2 + [2e-3] * 3 + [5e-3] * 6
    for seconds in samples:
        rule.add(seconds)
    shares = np.array([7, 3, 6]) / 16
    assert rule.entropy == pytest.approx(-(shares * np.log2(shares)).sum())


def test_the_entropy_of_times_with_two_modes_settles_and_that_of_ever_new_times_does_not():
    options = MeasureOptions(stop="entropy", precision=0.01, min_seconds=0, max_seconds=math.inf, max_samples=5000)
    numbers = random.Random(3)
    modes = (Sample(numbers.choice([1e-3, 2e-3])) for _ in itertools.count())
    assert options.min_samples < len(Bench(modes).collect(options).seconds) < 1000
    growing = (Sample(1e-3 * 1.02**number) for number in itertools.count())
    assert len(Bench(growing).collect(replace(options, max_samples=1000)).seconds) == 1000
    assert len(Bench(steady(1e-3)).collect(options).seconds) == options.min_samples
    with pytest.raises(ValueError, match="'stop' must be one of 'precision'"):
        MeasureOptions(stop="never")


# Locked clocks


@pytest.fixture
def locking(monkeypatch, device):
    """Return a fake NVML that records how it locks clocks; set its `error` to make it refuse."""
    calls = []

    def lock(handle, low, high):
        if fake.error is not None:
            raise fake.error
        calls.append((handle, low, high))

    fake = SimpleNamespace(
        NvmlError=NvmlError,
        ClockLimitId=SimpleNamespace(TDP=0xFFFFFF01),
        device_get_handle_by_pci_bus_id_v2=lambda address: "handle",
        device_set_gpu_locked_clocks=lock,
        device_reset_gpu_locked_clocks=lambda handle: calls.append((handle, "reset")),
        calls=calls,
        error=None,
    )
    monkeypatch.setattr(clock_locks, "nvml", lambda: fake)
    monkeypatch.setattr(clock_locks, "capabilities", lambda: frozenset({"gpu_timing"}))
    return fake


@pytest.mark.parametrize(("clock", "limit"), [("base", 0xFFFFFF01), (1500, 1500)])
def test_clocks_are_locked_within_the_block_whatever_ends_it(locking, clock, limit):
    # The error ends the block, as an interrupt would.
    with contextlib.suppress(ZeroDivisionError), locked_clocks(clock):
        assert locking.calls == [("handle", limit, limit)]
        raise ZeroDivisionError
    assert locking.calls[1:] == [("handle", "reset")]


def test_clocks_that_may_not_be_locked_are_an_error_with_the_remedy(locking):
    locking.error = NvmlError("no permission")
    with (
        pytest.raises(cuda.errors.NotSupportedError, match="no permission.*administrator"),
        locked_clocks(),
    ):
        pass
    assert locking.calls == []
    with pytest.raises(ValueError, match="'clock'"), locked_clocks(0):
        pass
