"""Messages of the stand-ins on standard error, and the answer of functions that the simulator lacks."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

Implementation = Callable[..., Any]

_NOT_SUPPORTED = 801  # CUDA_ERROR_NOT_SUPPORTED, and cudaErrorNotSupported
_named: set[str] = set()
# The number of reports of each finding, by its place and kind, such as "kernel add at sum.cu:3: race".
_findings: Counter[str] = Counter()
_is_embedded = False


def note_embedding(embedded: bool) -> None:
    """Remember whether the stand-in has started Python, in a program of another language."""
    global _is_embedded
    _is_embedded = embedded


def is_embedded() -> bool:
    """Return whether the stand-in has started Python, in a program of another language."""
    return _is_embedded


def say(text: str) -> None:
    """Print a line of the stand-ins on standard error."""
    print(f"cudart-py: {text}", file=sys.stderr, flush=True)  # noqa: T201  # the program has no other place for it


def say_finding(text: str) -> None:
    """Print a finding of the checks, unless one of the same kind at the same place has been printed."""
    what = ": ".join(text.split(": ", 2)[:2])
    _findings[what] += 1
    if _findings[what] == 1:
        say(text)


def say_repeats() -> None:
    """Print how often the findings were reported that were reported more than once."""
    for what, times in _findings.items():
        if times > 1:
            say(f"reported {times} times in all: {what}")
    _findings.clear()


def not_supported(name: str) -> Implementation:
    """Return an implementation that answers CUDA_ERROR_NOT_SUPPORTED, and names the function once."""

    def refuse(*_: Any) -> int:
        if name not in _named:
            _named.add(name)
            say(f"{name} is not supported by the simulator")
        return _NOT_SUPPORTED

    return refuse
