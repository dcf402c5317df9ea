"""Checks: what the simulator looks for in kernels that hardware doesn't notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from .. import arguments
from . import seam

__all__ = ["checks"]


@contextmanager
def checks(mode: Literal["off", "warn", "error"]) -> Iterator[None]:
    """Choose what becomes of the mistakes that the simulator finds in launches inside `with cuda.checks("error"):`.

    "warn" makes each a SimulatorWarning, which is the default, "error" raises it from the call that ran the kernel,
    "off" looks for nothing. Outside, the environment variable CUDART_PY_SIMULATOR_CHECKS holds. Launches run when
    something waits for them, so synchronise inside. On a GPU this changes nothing. Raises ValueError for another mode.
    """
    arguments.choice("checks", "mode", mode, ("off", "warn", "error"))
    before = seam.set_checks(mode)
    try:
        yield
    finally:
        seam.set_checks(before)
