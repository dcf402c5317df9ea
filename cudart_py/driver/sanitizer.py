"""The sanitizer: the simulator's checks for mistakes in kernels that hardware does not notice."""

from __future__ import annotations

import threading
import weakref
from typing import Literal

from ..base import arguments
from ..errors import SimulatorWarning
from ..host.callers import end_at_caller
from . import backend


class _Modes:
    """The modes that were chosen for the process, or inside one `with` block. The latest one applies.

    A choice that is then entered as a block is removed from here. A choice whose object no longer exists can never be
    entered again, so only the latest of several consecutive ones is kept.
    """

    def __init__(self, mode: str | None) -> None:
        self._chosen: list[tuple[weakref.ref[_Choice] | None, str]] = [] if mode is None else [(None, mode)]

    @property
    def mode(self) -> str | None:
        return self._chosen[-1][1] if self._chosen else None

    def choose(self, choice: _Choice, mode: str) -> None:
        kept: list[tuple[weakref.ref[_Choice] | None, str]] = []
        for one in self._chosen:
            if kept and _is_gone(kept[-1][0]) and _is_gone(one[0]):
                kept.pop()
            kept.append(one)
        self._chosen = [*kept, (weakref.ref(choice), mode)]

    def take_out(self, choice: _Choice) -> None:
        self._chosen = [(who, mode) for who, mode in self._chosen if who is None or who() is not choice]


def _is_gone(who: weakref.ref[_Choice] | None) -> bool:
    return who is None or who() is None


# Guards the variables below. Reentrant, because a signal handler may choose a mode while its thread holds the lock.
_lock = threading.RLock()
_of_process = _Modes(None)
# The modes of the open blocks, the latest last. Blocks of different threads may end in any order.
_blocks: list[_Modes] = []


def _apply() -> None:
    backend.chosen().set_sanitizer((_blocks[-1] if _blocks else _of_process).mode)


class _Choice:
    """A chosen mode. It applies at once; as a `with` block, it applies until the end of the block."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._block: _Modes | None = None
        with _lock:
            self._outside = _blocks[-1] if _blocks else _of_process
            self._outside.choose(self, mode)
            _apply()

    def __enter__(self) -> None:
        with _lock:
            if self._block is not None:
                raise ValueError("sanitizer: this block is already open; call sanitizer again for a nested block")
            self._outside.take_out(self)
            self._block = _Modes(self._mode)
            _blocks.append(self._block)
            _apply()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with _lock:
            if self._block is not None:
                _blocks.remove(self._block)
                self._block = None
                _apply()
        if isinstance(error, SimulatorWarning):
            end_at_caller(error)

    def __repr__(self) -> str:
        return f"<sanitizer {self._mode!r}>"


def sanitizer(mode: Literal["off", "warn", "error"]) -> _Choice:
    """Choose how the simulator reports mistakes that it finds in kernels: `cuda.sanitizer("error")`.

    - "warn", the default: each mistake is reported as a SimulatorWarning.
    - "error": the call that ran the kernel raises the warning as an exception.
    - "off": the simulator does not check for mistakes.

    The mode applies to the whole process or, inside a block (`with cuda.sanitizer("error"):`), until the end of the
    block. The previous mode then applies again. If several blocks are open, even in different threads, the mode of the
    one that was opened last applies. The environment variable CUDART_PY_SANITIZER sets the initial mode.

    Launches run when something waits for them, so synchronise inside the block. The traceback of an exception ends at
    the program's own line, without the frames of this package. On a GPU the mode has no effect; use compute-sanitizer
    from the CUDA toolkit there. Raises ValueError for any other mode.
    """
    arguments.choice("sanitizer", "mode", mode, ("off", "warn", "error"))
    return _Choice(mode)
