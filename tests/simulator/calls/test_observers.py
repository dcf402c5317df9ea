"""Counters and checks of one launch see the same events."""

from __future__ import annotations

import inspect
from typing import Any

from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.ptx.running.observer import Observer

# What machine code records is no event: one observer at most, the checks, has records.
EVENTS = {name: method for name, method in vars(Observer).items() if inspect.isfunction(method) and name != "records"}


def test_each_observer_sees_each_event_in_turn() -> None:
    for event, method in EVENTS.items():
        seen: list[tuple[Any, ...]] = []
        watching = [Observer(), Observer()]
        for number, observer in enumerate(watching):
            setattr(observer, event, lambda *arguments, number=number, seen=seen: seen.append((number, *arguments)))
        arguments = tuple(inspect.signature(method).parameters)[1:]
        getattr(Observers(*watching), event)(*arguments)
        assert seen == [(0, *arguments), (1, *arguments)], event


def test_the_checks_of_several_observers_have_the_records() -> None:
    counters, checks = Observer(), Observer()
    counters.watch, checks.watch = frozenset({"counters"}), frozenset({"checks"})
    checks.records = lambda: "records"
    both = Observers(counters, checks)
    both.start(None)
    assert both.watch == {"checks", "counters"}
    assert both.records() == "records"
    checks.watch = None
    both.start(None)
    assert both.watch is None
