"""Findings: what the checks have found that hardware doesn't notice, on its way to the program.

A finding changes nothing about a launch. It waits here until the driver's function that ran the kernel returns,
and is then a warning, or an exception when the checks are set to "error".
"""

from __future__ import annotations

import os
import warnings

from .callers import calling_frame
from .reports import readable

__all__ = ["MODES", "deliver", "mode", "pending", "put_finding", "set_checks"]

CHECKS_VARIABLE = "CUDART_PY_SIMULATOR_CHECKS"
MODES = ("off", "warn", "error")
_SPELLINGS = {"": "warn", "0": "off", "1": "warn"}

# Findings that no function has delivered yet.
pending: list[str] = []


class _State:
    """The mode that the program chose, None while the environment's holds."""

    def __init__(self) -> None:
        self.chosen: str | None = None


_state = _State()


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
    """Choose the mode for launches that run from now on, None for the environment's; return what was chosen before."""
    before, _state.chosen = _state.chosen, chosen
    return before


def put_finding(text: str) -> None:
    """Keep a finding until it is delivered."""
    pending.append(readable(text))


def deliver() -> None:
    """Warn of what is pending, at the program's own line; raise it when the mode, or a filter, says so."""
    from ..checking import SimulatorWarning

    texts = pending[:]
    pending.clear()
    if mode() == "error":
        raise SimulatorWarning("\n".join(texts))
    frame = calling_frame()
    for text in texts:
        if frame is None:
            warnings.warn(text, SimulatorWarning, stacklevel=2)
            continue
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        name = frame.f_globals.get("__name__", "")
        warnings.warn_explicit(text, SimulatorWarning, frame.f_code.co_filename, frame.f_lineno, name, registry)
