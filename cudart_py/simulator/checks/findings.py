"""Findings: the mistakes that the checks have found, on their way to the program.

A finding changes nothing about a launch. It waits here until the driver's function that ran the kernel returns, and
is then a warning, or an exception when the mode of the checks is "error".
"""

from __future__ import annotations

import os

from ...callers import warn_caller
from ...errors import SimulatorWarning
from ..state.fault_reports import readable

__all__ = [
    "deliver",
    "mode",
    "pending",
    "put_finding",
    "set_checks",
]

CHECKS_VARIABLE = "CUDART_PY_SIMULATOR_CHECKS"
MODES = ("off", "warn", "error")
_SPELLINGS = {"": "warn", "0": "off", "1": "warn"}

# Findings that no function has delivered yet.
pending: list[str] = []


class _Choice:
    """The mode that the program chose, None while the environment decides."""

    def __init__(self) -> None:
        self.chosen: str | None = None


_state = _Choice()


def mode() -> str:
    """Return "off", "warn" or "error": what `set_checks` chose, else what the environment says."""
    if _state.chosen is not None:
        return _state.chosen
    value = os.environ.get(CHECKS_VARIABLE, "")
    found = _SPELLINGS.get(value, value)
    if found not in MODES:
        raise ValueError(f"{CHECKS_VARIABLE}={value!r} is not one of 0, 1, {', '.join(MODES)}")
    return found


def set_checks(chosen: str | None) -> str | None:
    """Choose the mode for launches that run from now on, None for the environment's; return the previous choice."""
    before, _state.chosen = _state.chosen, chosen
    return before


def put_finding(text: str) -> None:
    """Keep a finding until it is delivered."""
    pending.append(readable(text))


def deliver() -> None:
    """Warn of the pending findings at the program's own line; raise them when the mode, or a filter, says so."""
    texts = pending[:]
    pending.clear()
    if mode() == "error":
        raise SimulatorWarning("\n".join(texts))
    for text in texts:
        warn_caller(text, SimulatorWarning)
