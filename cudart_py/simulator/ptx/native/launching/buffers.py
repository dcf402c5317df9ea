"""Host memory that machine code uses besides the device memory, reused by launches of a kernel with the same shape."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...running.scheduler import Chunk
from ...running.specials import coordinates
from ..layout import BARRIERS, LANES, PER_BLOCK, ROW_BYTES, SLOT_BYTES, SLOTS, Context, Count, ObjectWord
from ..library.checking.undefined import WORD as UNDEFINED_WORD
from .host_calls import HostCalls
from .host_memory import Parts, aligned
from .speculation import BlockRecords, CheckTables

if TYPE_CHECKING:
    from ...running.launch import LaunchPlan, LaunchState
    from ..machine import Kernel

Array = NDArray[Any]

_PAGE = 4096
# Buffers of more than this many bytes are not kept. A kernel keeps buffers for at most this many launch shapes: before
# one more is added, all others are dropped.
_MOST_BYTES, _MOST_SHAPES = 1 << 19, 4


@lru_cache(maxsize=16)
def _coordinates(block: tuple[int, int, int], warps: int) -> Array:
    """Return each lane's thread index, shape (warps, 3, 32); the array is shared and must not be written to."""
    axes = np.stack(coordinates(np.arange(warps * LANES), block))
    table = aligned(4 * axes.size).view(np.uint32).reshape(warps, 3, LANES)
    table[:] = axes.reshape(3, warps, LANES).transpose(1, 0, 2)
    return table


class Resident:
    """The memory of one block while it runs, or of a cluster's `blocks`: warps' states, shared and local memory."""

    def __init__(self, kernel: Kernel, state: LaunchState, warps: int, blocks: int = 1) -> None:
        stride = state.local_stride
        # The blocks of a cluster are as close as in a chunk, and only the last one has room for whole warps.
        self._parts = Parts(
            {
                Context.STATES: kernel.state_bytes * (1 if kernel.sites.alone else warps * blocks),
                Context.SHARED: state.shared_limit * blocks,
                Context.LOCAL: stride * (warps * LANES + state.threads * (blocks - 1)),
                Context.ARRIVALS: 8 * BARRIERS * blocks,
            }
        )
        self.states, self.shared, self.local = map(self._parts.of, (Context.STATES, Context.SHARED, Context.LOCAL))
        self.nbytes = self._parts.nbytes
        # Lanes write here before they read, so it is never cleared. Launches with clusters call no shared functions.
        self.saves = np.zeros(kernel.layout.save_bytes * warps * LANES, np.uint8)
        self.records: list[BlockRecords] = []
        if "checks" in kernel.watch:
            undefined_bytes = UNDEFINED_WORD + state.shared_limit if "undefined" in kernel.watch else 0
            sizes = state.shared_end, 4 * stride * warps, undefined_bytes
            self.records = [BlockRecords(kernel.sites, warps, *sizes) for _ in range(blocks)]
        # The words of the context that describe this memory and the records.
        self.words = self._parts.addresses | {
            Context.LOCAL_BYTES: stride * warps * LANES,
            Context.SAVES: self.saves.ctypes.data,
        }
        distances = {
            Context.SHARED: state.shared_limit, Context.LOCAL: stride * state.threads, Context.ARRIVALS: 8 * BARRIERS,
        }  # fmt: skip  # from block to block
        self._rows = np.zeros((blocks, ROW_BYTES // 8), np.uint64)
        for block, row in enumerate(self._rows):
            words = {word: self.words[word] + block * distance for word, distance in distances.items()}
            if self.records:
                words |= self.records[block].addresses
            row[: len(PER_BLOCK)] = [words.get(word, 0) for word in PER_BLOCK]
        if self.records:
            self.words |= self.records[0].addresses
        self.words[Context.CLUSTER_BLOCKS] = self._rows.ctypes.data

    def clear(self) -> None:
        """Reset the memory to its initial state."""
        self._parts.clear()
        for records in self.records:
            records.clear()


class Buffers:
    """The context of launches of one shape, and the memory that it points to."""

    def __init__(self, kernel: Kernel, state: LaunchState) -> None:
        self.warps = warps = -(-state.threads // LANES)
        self.context = context = aligned(8 * Context.WORDS).view(np.uint64)
        self.context_address = context.ctypes.data
        # The signed number of instructions that are left of the budget.
        self.budget = context[Context.BUDGET : Context.BUDGET + 1].view(np.int64)
        places = len(kernel.layout.places) if "counters" in kernel.watch else 0
        counted = len(kernel.sites.counted) if "counters" in kernel.watch else 0
        self._cleared = Parts(
            {
                Context.FAULT_ADDRESSES: 8 * LANES,
                Context.EXCHANGE: SLOTS * SLOT_BYTES,
                Context.BLOCK_COUNTS: 16 * places,
                Context.ACCESS_COUNTS: 8 * Count.WORDS * counted,
            }
        )
        self.fault_addresses = self._cleared.of(Context.FAULT_ADDRESSES, np.int64)
        self.exchange = self._cleared.of(Context.EXCHANGE).reshape(SLOTS, SLOT_BYTES)
        self.block_counts = self._cleared.of(Context.BLOCK_COUNTS, np.int64).reshape(places, 2)
        self.access_counts = self._cleared.of(Context.ACCESS_COUNTS, np.int64).reshape(counted, Count.WORDS)
        self.parameters = np.zeros_like(state.parameter_bytes)
        # For each site, the bounds of the allocation that it used last. At first they begin at the highest address, so
        # that each site looks up its allocation. A site of textures or surfaces has an empty list of objects instead.
        self._no_object = np.zeros(ObjectWord.WORDS, np.uint64)
        self.sites = np.zeros(2 * max(len(kernel.sites.sites), 1), np.uint64)
        self.sites[0::2], self.sites[1::2] = (1 << 64) - 1, self._no_object.ctypes.data
        self._new_sites = self.sites.copy()
        self.symbols = np.zeros(len(kernel.sites.symbols) + 1, np.uint64)
        members = np.full(warps, 0xFFFFFFFF, np.uint32)
        if state.threads % LANES:
            members[-1] = (1 << state.threads % LANES) - 1
        arrays: dict[Context, Array] = {
            Context.PARAMETERS: self.parameters,
            Context.SITES: self.sites,
            Context.SYMBOLS: self.symbols,
            Context.SPECIALS: _specials(kernel, state),
            Context.THREADS: _coordinates(state.launch.block, warps),
            Context.WORKSPACE: aligned(_PAGE),
            Context.SM_NUMBERS: state.plan.multiprocessors,
            Context.MEMBERS: members,
        }
        self._kept = list(arrays.values())
        self.host_calls = HostCalls()
        context[Context.PYTHON] = self.host_calls.address
        memory = state.memory
        context[Context.DELTA] = memory.bytes.ctypes.data - memory.base & (1 << 64) - 1
        context[Context.PARAMETER_SIZE] = state.parameter_size
        context[Context.WORKSPACE_SIZE] = _PAGE
        context[Context.SHARED_END] = state.shared_end
        context[Context.SHARED_LIMIT] = state.shared_limit
        context[Context.LOCAL_STRIDE] = state.local_stride
        context[Context.LOCAL_SIZE] = state.local_size
        context[Context.WARPS] = warps
        context[Context.LAST_BLOCK] = state.blocks
        context[Context.FRESH] = 1
        context[Context.FOLLOWS] = "undefined" in kernel.watch
        context[Context.GRID_X], context[Context.GRID_Y] = state.launch.grid[:2]
        context[Context.SMS] = len(arrays[Context.SM_NUMBERS])
        context[Context.CLUSTER : Context.CLUSTER_X] = prod(state.launch.cluster)
        context[Context.CLUSTER_X : Context.CLUSTER_Z + 1] = state.launch.cluster
        self.resident = Resident(kernel, state, warps, prod(state.launch.cluster))
        addresses = {word: array.ctypes.data for word, array in arrays.items()}
        for word, value in (addresses | self._cleared.addresses | self.resident.words).items():
            context[word] = value
        self._new = context.copy()
        # Data that depends on the allocations: their starts and ends, copies of these for machine code, and the checks'
        # tables.
        self._extents: tuple[Array, Array] | None = None
        self._placed: list[Array] = []
        self._tables: CheckTables | None = None
        self.nbytes = self.resident.nbytes + self._cleared.nbytes + sum(array.nbytes for array in self._kept)

    def place_extents(self, extents: tuple[Array, Array]) -> None:
        """Pass the sorted starts and ends of the allocations to machine code.

        Machine code gets copies with an additional, empty allocation at index -1. `extents` is a new pair of arrays
        whenever the allocations have changed.
        """
        if extents is not self._extents:
            self._placed = [np.concatenate([[0], array]).astype(np.uint64) for array in extents]
            self._extents = extents
            starts, ends = (array.ctypes.data + 8 for array in self._placed)
            for context in (self.context, self._new):
                context[Context.EXTENTS], context[Context.STARTS], context[Context.ENDS] = len(extents[0]), starts, ends
        self.sites[:] = self._new_sites

    def check_tables(self, extents: tuple[Array, Array], base: int) -> CheckTables:
        """Return the tables for the checks of a launch with these allocations."""
        if self._tables is None or self._tables.of is not extents:
            self._tables = CheckTables(len(self.sites) // 2, extents, base)
            for word, value in self._tables.words.items():
                self.context[word] = self._new[word] = value
        return self._tables

    def clear(self) -> None:
        """Reset everything to its initial state."""
        self.context[:] = self._new
        self._cleared.clear()
        self.resident.clear()


def _specials(kernel: Kernel, state: LaunchState) -> Array:
    chunk = Chunk(state, 0, 1)
    values = [int(chunk.special(name)) for name in kernel.sites.specials]
    chunk.let_go()
    return np.array([*values, 0], np.uint64)


class BufferPool:
    """A kernel's buffers that no launch is using, keyed by the plan of their launches."""

    def __init__(self) -> None:
        self._idle: dict[LaunchPlan, Buffers] = {}

    def take(self, kernel: Kernel, state: LaunchState) -> Buffers:
        """Return buffers for a launch, in their initial state."""
        buffers = self._idle.pop(state.plan, None)
        if buffers is None:
            return Buffers(kernel, state)
        buffers.clear()
        return buffers

    def give_back(self, buffers: Buffers, state: LaunchState) -> None:
        """Keep buffers for later launches."""
        if buffers.nbytes > _MOST_BYTES:
            return
        if len(self._idle) >= _MOST_SHAPES:
            self._idle.clear()
        self._idle[state.plan] = buffers
