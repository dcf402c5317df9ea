"""Findings: the mistakes that the checks have found, on their way to the program.

A finding changes nothing about a launch. It waits here until the driver's function that ran the kernel returns, and
is then a warning, or an exception when the mode of the checks is "error".
"""

from __future__ import annotations

import os

from ...errors import SimulatorWarning
from ...host.callers import warn_caller
from ..state.fault_reports import readable

CHECKS_VARIABLE = "CUDART_PY_SANITIZER"
MODES = ("off", "warn", "error")
_SPELLINGS = {"": "warn", "0": "off", "1": "warn"}


class Finding:
    """A mistake, by the report of where it was found first, which waits to be delivered.

    `again` counts the other instructions of the same line that make the same mistake.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._others = 0

    def again(self) -> None:
        """Count another instruction."""
        self._others += 1

    def __str__(self) -> str:
        if not self._others:
            return self._text
        instructions = f"{self._others} more instruction{'s' * (self._others > 1)}"
        return f"{self._text}\n    the same at {instructions} of this line (unrolled loops have several)"


# Findings that no function has delivered yet.
pending: list[Finding] = []


class _Choice:
    """The mode that the program chose, None while the environment decides."""

    def __init__(self) -> None:
        self.chosen: str | None = None


_state = _Choice()


def mode() -> str:
    """Return "off", "warn" or "error": what `set_sanitizer` chose, else what the environment says."""
    if _state.chosen is not None:
        return _state.chosen
    value = os.environ.get(CHECKS_VARIABLE, "")
    found = _SPELLINGS.get(value, value)
    if found not in MODES:
        raise ValueError(f"{CHECKS_VARIABLE}={value!r} is not one of 0, 1, {', '.join(MODES)}")
    return found


def set_sanitizer(chosen: str | None) -> str | None:
    """Choose the mode for launches that run from now on, None for the environment's; return the previous choice."""
    before, _state.chosen = _state.chosen, chosen
    return before


def put_finding(text: str) -> Finding:
    """Keep a finding until it is delivered, and return it."""
    finding = Finding(readable(text))
    pending.append(finding)
    return finding


def deliver() -> None:
    """Warn of the pending findings at the program's own line; raise them when the mode, or a filter, says so."""
    texts = [str(finding) for finding in pending]
    pending.clear()
    if mode() == "error":
        raise SimulatorWarning("\n".join(texts))
    for text in texts:
        warn_caller(text, SimulatorWarning)
