"""Run a launch in machine code if the engine has all that its kernel needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .errors import NotNative
from .launch import run_blocks
from .machine import CodeCache, Kernel, compile_kernel
from .threads import run_in_threads

if TYPE_CHECKING:
    from ..running.launch import LaunchState

__all__ = ["run_native"]


# Compiling a kernel takes about as long: one that has cost as much with NumPy is worth it.
_WORTH_SECONDS = 0.1
# What machine code can record for observers.
_WATCHED = frozenset({"counters"})


def run_native(state: LaunchState, store: CodeCache | None, choose: bool = False, threads: int = 1) -> bool:
    """Run a launch, or return that the NumPy engine must; `store` keeps machine code between processes.

    Up to so many `threads` run a kernel without atomics and calls of Python's. With `choose`, only kernels run that are
    worth compiling, and whose atomics give the NumPy engine's results.
    """
    if choose and state.program.seconds < _WORTH_SECONDS:
        return False
    watch = state.observer.watch if state.observer is not None else frozenset()
    if watch is None or not watch <= _WATCHED or math.prod(state.launch.cluster) > 1:
        return False
    kernel = _kernel(state, store, watch)
    if kernel is None or (choose and (kernel.sites.ordered or kernel.spins)):
        return False
    if kernel.sites.atomics or kernel.sites.calls or kernel.spins:
        threads = 1
    threads = min(threads, state.blocks)
    if threads > 1:
        run_in_threads(kernel, state, threads)
    else:
        run_blocks(kernel, state)
    return True


def _kernel(state: LaunchState, store: CodeCache | None, watch: frozenset[str]) -> Kernel | None:
    """Return the kernel in machine code, compiled at its first launch that is watched so; None for one that isn't."""
    program, key = state.program, (state.local_size, watch)
    known: dict[tuple[int, frozenset[str]], Kernel | None] = program.native
    if key not in known:
        try:
            known[key] = compile_kernel(program, state.local_size, store, watch)
        except NotNative as lack:
            program.native_lack = str(lack)
            known[key] = None
    return known[key]
