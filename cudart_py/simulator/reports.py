"""Reports: what the simulator can say about the last fault beyond its status, and what it can do beyond a GPU."""

from __future__ import annotations

__all__ = ["CAPABILITIES", "put_report", "take_report"]

CAPABILITIES: frozenset[str] = frozenset({"profile"})

_reports: list[str] = []


def put_report(text: str) -> None:
    """Keep the text of the last fault's report."""
    _reports[:] = [text]


def take_report() -> str | None:
    """Return the report of the last fault, once: kernel, source line, thread, address."""
    return _reports.pop() if _reports else None
