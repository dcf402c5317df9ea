"""Run a launch in machine code if the native engine supports everything that its kernel needs."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING

from .compile_policy import estimate_of
from .errors import UnsupportedInstruction
from .launching.runs import ThreadContext, run_blocks, run_checked
from .machine import CodeCache, Kernel, Processor, compile_kernel, processor

if TYPE_CHECKING:
    from ..running.launch import LaunchState

# The least number of instructions per host thread, counted over all CUDA threads. They take about 5 milliseconds, and
# starting a host thread takes a few tenths of a millisecond.
_WORTH_THREAD = 1 << 22
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
    threads = _useful_threads(kernel, state, threads)
    if "checks" not in watch:
        run_blocks(kernel, state, threads, in_thread)
        return True
    if not kernel.recorded.unwritten and run_checked(kernel, state, threads, in_thread):
        return True
    following = None
    if kernel.recorded.unwritten and "clusters" not in watch:
        following = _kernel(state, store, watch | {"undefined"}, compiles)
    return following is not None and run_checked(following, state, threads, in_thread)


def _useful_threads(kernel: Kernel, state: LaunchState, threads: int) -> int:
    """Return how many host threads run a launch: one if it is short, or if its blocks may see each other's progress."""
    sites = kernel.sites
    if sites.atomics or sites.calls or sites.fences or sites.bulk or sites.spins:
        return 1
    executed = state.blocks * state.threads * estimate_of(state.program).executed
    return max(1, min(threads, state.blocks, executed // _WORTH_THREAD))


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
