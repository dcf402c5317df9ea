"""Run a launch in machine code if the engine has all that its kernel needs."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING

from .errors import UnsupportedInstruction
from .launching.launch import run_blocks, run_checked
from .launching.threads import ThreadContext, run_in_threads
from .machine import CodeCache, Kernel, Processor, compile_kernel, processor

if TYPE_CHECKING:
    from ..running.launch import LaunchState

# What machine code can record for observers.
_WATCHED = frozenset({"checks", "counters"})


def run_native(
    state: LaunchState,
    store: CodeCache | None,
    *,
    compiles: bool = True,
    threads: int = 1,
    in_thread: ThreadContext = nullcontext,
) -> bool:
    """Run a launch, or return that the NumPy engine must; `store` keeps machine code between processes.

    Up to so many `threads` run a kernel without atomics and calls of Python's, each but the caller's within a context
    that `in_thread` returns. Without `compiles`, only kernels run
    whose machine code is there.
    """
    watch = state.observer.watch if state.observer is not None else frozenset()
    if watch is None or not watch <= _WATCHED or math.prod(state.launch.cluster) > 1:
        return False
    kernel = _kernel(state, store, watch, compiles)
    if kernel is None:
        return False
    if "checks" in watch:
        return run_checked(kernel, state)
    if kernel.sites.atomics or kernel.sites.calls or kernel.spins:
        threads = 1
    threads = min(threads, state.blocks)
    if threads > 1:
        run_in_threads(kernel, state, threads, in_thread)
    else:
        run_blocks(kernel, state)
    return True


def _kernel(state: LaunchState, store: CodeCache | None, watch: frozenset[str], compiles: bool) -> Kernel | None:
    """Return the kernel in machine code, None for one that isn't.

    It is found in the cache or, if `compiles` says so, compiled at its first launch that is watched so.
    """
    program, key = state.program, (state.local_size, watch, processor())
    known: dict[tuple[int, frozenset[str], Processor], Kernel | None] = program.native
    if key in known:
        return known[key]
    if not compiles and key in program.not_cached:
        return None
    try:
        found = compile_kernel(program, state.local_size, store, watch, only_cached=not compiles)
    except UnsupportedInstruction as lack:
        program.unsupported_reason = str(lack)
        known[key] = None
        return None
    except (OSError, MemoryError) as error:
        # There may be memory for it at another launch.
        program.unsupported_reason = f"memory or a library for LLVM: {error}"
        return None
    if found is None:
        program.not_cached.add(key)
    else:
        known[key] = found
    return found
