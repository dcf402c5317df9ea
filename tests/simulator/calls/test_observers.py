from __future__ import annotations

import inspect
from typing import Any

from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.ptx.running.observer import Observer


def test_counters_and_checks_see_each_event_of_a_launch_one_after_the_other() -> None:
    for event, method in vars(Observer).items():
        # What machine code records is no event: one observer at most, the checks, has records.
        if inspect.isfunction(method) and event != "records":
            seen: list[tuple[Any, ...]] = []
            watching = [Observer(), Observer()]
            for number, observer in enumerate(watching):
                setattr(observer, event, lambda *given, number=number, seen=seen: seen.append((number, *given)))
            arguments = tuple(inspect.signature(method).parameters)[1:]
            getattr(Observers(*watching), event)(*arguments)
            assert seen == [(0, *arguments), (1, *arguments)], event
