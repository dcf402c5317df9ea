"""Choose what watches a launch: the counters of open profiles, the checks, both or nothing."""

from __future__ import annotations

from typing import Any

from . import findings, profiles
from .checks import Checks
from .ptx.observer import Observer

__all__ = ["Several", "observer"]


class Several:
    """Tell several observers what happens, in order."""

    def __init__(self, *observers: Observer) -> None:
        self.observers = observers

    def __getattr__(self, event: str) -> Any:
        methods = [getattr(observer, event) for observer in self.observers]

        def tell(*arguments: Any) -> None:
            for method in methods:
                method(*arguments)

        # Kept, so that an event is looked up once.
        setattr(self, event, tell)
        return tell


def observer() -> Any:
    """Return what watches a launch that begins now, None for nothing."""
    counters = profiles.counters()
    if findings.mode() == "off":
        return counters
    checks = Checks()
    return checks if counters is None else Several(counters, checks)
