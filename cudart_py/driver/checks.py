"""Checks: what the simulator looks for in kernels that hardware doesn't notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from .. import arguments
from ..callers import end_at_caller
from ..errors import SimulatorWarning
from . import seam

__all__ = ["checks"]


@contextmanager
def checks(mode: Literal["off", "warn", "error"]) -> Iterator[None]:
    """Choose what becomes of the mistakes that the simulator finds in launches inside `with cuda.checks("error"):`.

    "warn" makes each a SimulatorWarning, which is the default, "error" raises it from the call that ran the kernel,
    "off" looks for nothing. The traceback of what is raised ends at the program's line, since what the call did inside
    explains nothing. Outside, the environment variable CUDART_PY_SIMULATOR_CHECKS holds. Launches run when
    something waits for them, so synchronise inside. On a GPU this changes nothing. Raises ValueError for another mode.
    """
    arguments.choice("checks", "mode", mode, ("off", "warn", "error"))
    before = seam.set_checks(mode)
    try:
        yield
    except SimulatorWarning as error:
        end_at_caller(error)
        raise
    finally:
        seam.set_checks(before)
