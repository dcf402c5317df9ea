"""Fault reports: the simulator's information on the last fault, in addition to its status."""

from __future__ import annotations

import re

from ...compilation.names.demangling import function_name

_reports: list[str] = []
# The same report until a call that fails because of it has added it to the driver's log.
_unlogged: list[str] = []


def put_report(text: str) -> None:
    """Keep the text of the last fault's report."""
    _reports[:] = _unlogged[:] = [readable(text)]


def add_to_report(text: str) -> None:
    """Add another text to the report of the last fault, which a call is about to pass on."""
    _reports[:] = _unlogged[:] = [f"{_unlogged[0]}\n{text}"]


def has_unlogged() -> bool:
    """Return whether there is a report that the driver's log does not have yet."""
    return bool(_unlogged)


def readable(text: str) -> str:
    """Return a report with functions' C++ names in place of mangled ones, except in the instruction at its end."""
    said, mark, instruction = text.partition(", instruction '")
    return re.sub(r"\b_Z\w+", lambda match: function_name(match[0]), said) + mark + instruction


def summary(text: str) -> str:
    """Return the first line of a report, without the instruction at its end."""
    return readable(text).partition("\n")[0].partition(", instruction '")[0]


def take_report() -> str | None:
    """Return the report of the last fault (kernel, source line, thread, address), and clear it."""
    _unlogged.clear()
    return _reports.pop() if _reports else None


def take_unlogged() -> str | None:
    """Return the report of the last fault if the driver's log does not have it yet; `take_report` still returns it."""
    return _unlogged.pop() if _unlogged else None
