"""The sanitizer: what the simulator looks for in kernels that hardware doesn't notice."""

from __future__ import annotations

from typing import Literal

from .. import arguments
from ..callers import end_at_caller
from ..errors import SimulatorWarning
from . import seam

__all__ = ["sanitizer"]


class _Choice:
    """A chosen mode: that of the process until another is chosen, or, as a `with` block, until its end."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._is_block = False
        # A choice takes the place of the one before, unless that is the mode of an open block.
        self._replaced = [choice for choice in _choices if not choice._is_block]
        _choices[:] = [*(choice for choice in _choices if choice._is_block), self]
        _apply()

    def __enter__(self) -> None:
        self._is_block = True
        # What it replaced holds again after the block. Other threads may have chosen between the call and here.
        before = [choice for choice in self._replaced if not choice._is_block]
        _choices[:] = [*before, *(choice for choice in _choices if choice not in (*before, self)), self]
        _apply()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        _choices.remove(self)
        _apply()
        if isinstance(error, SimulatorWarning):
            end_at_caller(error)


# The latest one decides. Those of several threads may end in any order.
_choices: list[_Choice] = []


def _apply() -> None:
    seam.set_sanitizer(_choices[-1]._mode if _choices else None)


def sanitizer(mode: Literal["off", "warn", "error"]) -> _Choice:
    """Choose what becomes of the mistakes that the simulator finds in launches: `cuda.sanitizer("error")`.

    "warn" makes each a SimulatorWarning, which is the default, "error" raises it from the call that ran the kernel,
    "off" looks for nothing. The mode is that of the whole process, until another one is chosen, or until the end of
    `with cuda.sanitizer("error"):`, after which the mode is what it was. Of the blocks that are open in any thread the
    latest one decides. At the start the environment variable CUDART_PY_SANITIZER does.

    Launches run when something waits for them, so synchronise inside. The traceback of what a block raises ends at the
    program's line, since what the call did inside explains nothing. On a GPU this changes nothing, and
    compute-sanitizer, a program of CUDA's toolkit, finds such mistakes. Raises ValueError for another mode.
    """
    arguments.choice("sanitizer", "mode", mode, ("off", "warn", "error"))
    return _Choice(mode)
