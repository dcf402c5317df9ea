import itertools
import time
from types import SimpleNamespace

from library_tour import timing


def test_work_that_waits_is_timed_by_the_hosts_clock(device, event_times):
    assert timing.waiting_ms(lambda: time.sleep(0.002)) >= 2
    assert timing.call_ms(lambda: time.sleep(0.002)) >= 2


def test_short_work_is_repeated_until_it_took_long_enough_together(device, monkeypatch):
    tick, ticks = timing.QUICK.min_seconds / 8, itertools.count()
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: tick * next(ticks)))
    calls = []
    assert timing.waiting_ms(lambda: calls.append(1)) == 1e3 * tick
    # A call takes two ticks of the clock, and checking whether the time is up takes a third.
    assert len(calls) == 3
