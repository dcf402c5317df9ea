"""Checks: what the simulator looks for in kernels that hardware doesn't notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _driver, arguments

__all__ = ["SimulatorWarning", "checks"]


class SimulatorWarning(UserWarning):
    """A mistake in a kernel that hardware hides: a race, a read of what nobody wrote, a barrier that threads miss.

    The launch's results are what they would be without the check. `cuda.checks("error")` makes it an exception.
    """


@contextmanager
def checks(mode: str) -> Iterator[None]:
    """Say what becomes of the simulator's findings in launches that run inside: `with cuda.checks("error"):`.

    "warn" makes each a SimulatorWarning, which is the default, "error" raises it from the call that ran the kernel,
    "off" looks for nothing. Outside, the environment variable CUDART_PY_SIMULATOR_CHECKS holds. Launches run when
    something waits for them, so synchronise inside. On a GPU this changes nothing. Raises ValueError for another mode.
    """
    arguments.choice("checks", "mode", mode, ("off", "warn", "error"))
    before = _driver.set_checks(mode)
    try:
        yield
    finally:
        _driver.set_checks(before)
