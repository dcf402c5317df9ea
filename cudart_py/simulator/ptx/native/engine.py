"""Run a launch in machine code if the native engine supports everything that its kernel needs."""

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

# The kinds of events that machine code can record for observers.
_WATCHED = frozenset({"checks", "counters"})


def run_native(
    state: LaunchState,
    store: CodeCache | None,
    *,
    compiles: bool = True,
    threads: int = 1,
    in_thread: ThreadContext = nullcontext,
) -> bool:
    """Run a launch and return True, or return False if the NumPy engine must run it.

    `store` keeps machine code between processes. Up to `threads` host threads run a kernel that has no atomics, makes
    no calls to Python and never spins; each thread except the caller's runs within a context that `in_thread` returns.
    If `compiles` is false, the kernel runs only if its machine code already exists.
    """
    watch = state.observer.watch if state.observer is not None else frozenset()
    if watch is None or not watch <= _WATCHED:
        return False
    if math.prod(state.launch.cluster) > 1:
        watch, threads = watch | {"clusters"}, 1
    kernel = _kernel(state, store, watch, compiles)
    if kernel is None:
        return False
    if "checks" in watch:
        if not kernel.recorded.unwritten and run_checked(kernel, state):
            return True
        following = None
        if kernel.recorded.unwritten and "clusters" not in watch:
            following = _kernel(state, store, watch | {"undefined"}, compiles)
        return following is not None and run_checked(following, state)
    if kernel.sites.atomics or kernel.sites.calls or kernel.spins:
        threads = 1
    threads = min(threads, state.blocks)
    if threads > 1:
        run_in_threads(kernel, state, threads, in_thread)
    else:
        run_blocks(kernel, state)
    return True


def _kernel(state: LaunchState, store: CodeCache | None, watch: frozenset[str], compiles: bool) -> Kernel | None:
    """Return the kernel in machine code, or None if there is no machine code for it.

    The machine code comes from the cache. If it isn't there and `compiles` is true, the kernel is compiled at its first
    launch with this set of watched events.
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
        # Not remembered in `known`: a later launch may have enough memory.
        program.unsupported_reason = f"memory or a library for LLVM: {error}"
        return None
    if found is None:
        program.not_cached.add(key)
    else:
        known[key] = found
    return found
