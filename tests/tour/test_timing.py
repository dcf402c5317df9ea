from __future__ import annotations

import time

from library_tour import timing


def test_work_that_waits_is_timed_by_the_hosts_clock_and_repeated_if_short(device, event_times):
    assert timing.waiting_ms(lambda: time.sleep(0.002)) >= 2
    assert timing.call_ms(lambda: time.sleep(0.002)) >= 2
    calls = []
    timing.waiting_ms(lambda: calls.append(1))
    assert len(calls) > 3
