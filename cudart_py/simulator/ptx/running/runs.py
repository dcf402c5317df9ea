"""Run the blocks of a launch: in machine code if that is worthwhile, otherwise in chunks with the NumPy engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING

from ....host.arithmetic import device_arithmetic
from ..compiling.program import program_of
from ..faults import Fault
from ..syntax.parser import Module
from .clock import Clock
from .device_runtime.runtime import DeviceRuntime
from .launch import Launch, LaunchState, MemoryLike
from .observer import Observer, RunAgain
from .scheduler import Chunk

if TYPE_CHECKING:
    from ..engines import MachineCode

# Enough lanes to amortise the cost of a NumPy call, few enough to stay in the processor's cache.
CHUNK_LANES = 32768
_MOST_SHARED = 1 << 26
_MOST_LOCAL = 1 << 28
_MOST_CHUNKS = 8
# If a mistake has been found in a launch, its other blocks run in machine code, without an observer, once NumPy has run
# it for this many seconds. If many launches of a kernel had mistakes, their seconds count together.
_MOST_SECONDS_AFTER_MISTAKE = 5.0
MANY_LAUNCHES = 20


def run(
    module: Module,
    launch: Launch,
    memory: MemoryLike,
    *,
    symbols: Mapping[str, int],
    print_: Callable[[str], None],
    steps: int | None = None,
    seconds: float | None = None,
    properties: Mapping[str, int],
    observer: Observer | None = None,
    clock: Clock | None = None,
    poll: Callable[[], None] = lambda: None,
    native: MachineCode | None = None,
    runtime: DeviceRuntime | None = None,
) -> None:
    """Execute a launch to completion.

    `native` may run the launch in machine code. `clock` is the device's clock, which continues from launch to launch;
    without it, the launch's time begins at 0. `steps` limits the number of instructions that groups of lanes execute,
    and `seconds` limits the simulator's run time. `poll` is called from time to time, and an exception that it raises
    ends the launch. `runtime` serves the calls with which a kernel launches others. Raises Fault for an error of the
    kernel and UnsupportedError for an instruction that isn't simulated.
    """
    if launch.entry.module is not module:
        raise ValueError(f"the entry {launch.entry.name} belongs to another module")
    with device_arithmetic():
        state = LaunchState(launch, memory, symbols, steps, seconds, properties, observer, clock or Clock(), poll)
        if runtime is not None:
            state.runtime = runtime
        if observer is not None:
            observer.start(state)
        try:
            if native is None or not native.run(state):
                started = time.monotonic()
                _run_chunks(state, native)
                taken = time.monotonic() - started
                state.program.seconds += taken
                if state.observer is not None and state.observer.has_mistake():
                    state.program.launches_with_mistakes += 1
                    state.program.seconds_with_mistakes += taken
                if native is not None:
                    native.after(state)
        finally:
            state.clock.end(state.steps_done)
            state.printed.empty(print_)
        if observer is not None and state.observer is None:
            observer.end_early()
        if observer is not None:
            observer.finish(state)


def _has_mistake(state: LaunchState) -> bool:
    """Return whether a mistake has been found in a launch that takes long, or in many of the kernel's that did."""
    observer, program = state.observer, state.program
    taken = time.monotonic() - state.began
    if program.launches_with_mistakes >= MANY_LAUNCHES:
        taken += program.seconds_with_mistakes
    return taken > _MOST_SECONDS_AFTER_MISTAKE and observer is not None and observer.has_mistake()


def _blocks_per_chunk(state: LaunchState) -> int:
    """Return the number of blocks per chunk: the whole grid of a cooperative launch, otherwise whole clusters."""
    if state.launch.cooperative:
        return state.blocks
    cluster = prod(state.launch.cluster)
    count = max(1, CHUNK_LANES // state.threads)
    count = min(count, max(1, _MOST_SHARED // state.shared_limit))
    if state.local_size:
        count = min(count, max(1, _MOST_LOCAL // (state.local_size * state.threads)))
    return min(max(count // cluster, 1) * cluster, state.blocks)


def _next_chunk(state: LaunchState, first: int, each: int) -> Chunk:
    """Return the chunk of the blocks from `first` on, of which there are at most `each`.

    For a debugger, it is a single cluster or block, or the blocks before the first one that the debugger must see.
    """
    count = min(each, state.blocks - first)
    if not state.stepped:
        return Chunk(state, first, count)
    assert state.observer is not None
    cluster = prod(state.launch.cluster)
    unseen = (state.observer.stepped_from(first) - first) // cluster * cluster
    if state.launch.cooperative and unseen < count:
        unseen = 0
    if unseen and state.observer.can_restart:
        return Chunk(state, first, min(count, unseen), program_of(state.launch.entry))
    return Chunk(state, first, count if state.launch.cooperative else cluster)


def _run_chunks(state: LaunchState, native: MachineCode | None) -> None:
    """Run all blocks, again from the first one if a debugger asks for it."""
    while True:
        try:
            _run_all_chunks(state, native)
        except RunAgain:
            assert state.observer is not None
            state.observer.restart(state)
        else:
            return


def _run_all_chunks(state: LaunchState, native: MachineCode | None) -> None:
    """Run chunks in order; if a chunk waits for blocks that haven't started, also start the next chunk."""
    each = _blocks_per_chunk(state)
    following = 0
    most = _MOST_CHUNKS
    active: list[Chunk] = []
    try:
        while active or following < state.blocks:
            if not active and native is not None and _has_mistake(state):
                state.first_block = following
                if native.run_without_observer(state):
                    return
                native = None
            pending = following < state.blocks
            if pending and len(active) < most:
                active.append(_next_chunk(state, following, each))
                following += active[-1].blocks
            for chunk in list(active):
                alone = len(active) == 1 and following >= state.blocks
                try:
                    ended = chunk.run(alone)
                except Fault as fault:
                    if state.observer is not None:
                        state.observer.failed(chunk, fault)
                    raise
                if ended:
                    active.remove(chunk)
                    chunk.print_out()
                    if state.observer is not None:
                        state.observer.ended(chunk)
                    chunk.let_go()
            observer = state.observer
            if active and observer is not None and observer.stepped and observer.never_ends(active):
                if following == state.blocks:
                    chunk = next(one for one in active if one.is_spinning)
                    deadlock = chunk.endless(active)
                    observer.failed(chunk, deadlock)
                    raise deadlock
                most *= 2  # because the blocks may wait for one that has not begun
    finally:
        # Chunks are left only if an exception has ended the launch.
        for chunk in active:
            chunk.print_out()
            chunk.let_go()
