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


# The modes of the open `with cuda.checks(...):` blocks, the latest last. Those of several threads may end in any order.
_open_blocks: dict[object, str] = {}


@contextmanager
def checks(mode: Literal["off", "warn", "error"]) -> Iterator[None]:
    """Choose what becomes of the mistakes that the simulator finds in launches inside `with cuda.checks("error"):`.

    "warn" makes each a SimulatorWarning, which is the default, "error" raises it from the call that ran the kernel,
    "off" looks for nothing. The traceback of what is raised ends at the program's line, since what the call did inside
    explains nothing. The mode is that of the whole process: of the blocks that are open in any thread the latest one
    decides, and outside of all the environment variable CUDART_PY_SIMULATOR_CHECKS. Launches run when something waits
    for them, so synchronise inside. On a GPU this changes nothing. Raises ValueError for another mode.
    """
    arguments.choice("checks", "mode", mode, ("off", "warn", "error"))
    block = object()
    try:
        _open_blocks[block] = mode
        seam.set_checks(mode)
        yield
    except SimulatorWarning as error:
        end_at_caller(error)
        raise
    finally:
        _open_blocks.pop(block, None)
        seam.set_checks(next(reversed(_open_blocks.values()), None))
