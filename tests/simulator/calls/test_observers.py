"""Counters and checks of one launch see the same events."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.ptx.running.observer import Observer

EVENTS = {name: method for name, method in vars(Observer).items() if inspect.isfunction(method)}


@pytest.mark.parametrize("event", EVENTS)
def test_each_observer_sees_each_event_in_turn(event: str) -> None:
    seen: list[tuple[Any, ...]] = []
    watching = [Observer(), Observer()]
    for number, observer in enumerate(watching):
        setattr(observer, event, lambda *arguments, number=number: seen.append((number, *arguments)))
    arguments = tuple(f"argument {index}" for index in range(len(inspect.signature(EVENTS[event]).parameters) - 1))
    getattr(Observers(*watching), event)(*arguments)
    assert seen == [(0, *arguments), (1, *arguments)]
