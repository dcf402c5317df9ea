"""Run a launch in machine code if the engine has all that its kernel needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .errors import NotNative
from .launch import run_blocks
from .machine import CodeCache, Kernel, compile_kernel

if TYPE_CHECKING:
    from ..running.launch import LaunchState

__all__ = ["run_native"]


def run_native(state: LaunchState, store: CodeCache | None) -> bool:
    """Run a launch, or return that the NumPy engine must; `store` keeps machine code between processes."""
    launch = state.launch
    if state.observer is not None or math.prod(launch.cluster) > 1:
        return False
    kernel = _kernel(state, store)
    if kernel is None:
        return False
    run_blocks(kernel, state)
    return True


def _kernel(state: LaunchState, store: CodeCache | None) -> Kernel | None:
    """Return the kernel in machine code, compiled at its first launch; None for one that isn't."""
    program = state.program
    known: dict[int, Kernel | None] = program.native
    if state.local_size not in known:
        try:
            known[state.local_size] = compile_kernel(program, state.local_size, store)
        except NotNative as lack:
            program.native_lack = str(lack)
            known[state.local_size] = None
    return known[state.local_size]
