"""Clocks that stay locked from the first GPU benchmark of a pytest run to its end."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

import pytest

from ...context.device import devices
from ...errors import CudaError, NotSupportedError
from ..clock_locks import BASE, Clock, locked_clocks


def clock_argument(text: str) -> Clock:
    """Parse the value of `--lock-clocks`."""
    if text == BASE:
        return BASE
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither {BASE!r} nor a number of MHz")
    return int(text)


class SessionClocks:
    """The plugin that locks the clocks of all devices before the first test with `gpu_benchmark`, and reports it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._locks = ExitStack()
        self._outcome = ""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Lock the clocks once."""
        if self._outcome or "gpu_benchmark" not in getattr(item, "fixturenames", ()):
            return
        try:
            for device in devices():
                self._locks.enter_context(locked_clocks(self._clock, device=device))
        except (NotSupportedError, CudaError) as error:
            self._locks.close()
            self._outcome = f"clocks are not locked: {error}"
        else:
            self._outcome = f"clocks were locked to {self._clock}{'' if self._clock == BASE else ' MHz'}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report whether the clocks were locked."""
        if self._outcome:
            terminalreporter.write_line(self._outcome)

    def pytest_unconfigure(self) -> None:
        """Unlock the clocks."""
        self._locks.close()
