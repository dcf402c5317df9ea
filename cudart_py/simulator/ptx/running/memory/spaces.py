"""Resolve addresses to bytes: global, shared, local, constant and parameter memory, and generic windows.

Every access is checked before it touches anything. The lowest and the highest address of the group are compared with
the allocation that the same instruction used last. Only if that fails are the lanes checked one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...compiling.opcode_table.opcodes import form_of
from ...instructions.clusters import OFFSET, RANK_SHIFT
from ...windows import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RESERVED_SHARED,
    RUNTIME_SHARED,
    SHARED_WINDOW,
    WINDOW_BYTES,
    WORKSPACE_WINDOW,
)
from .addresses import Address, Mixed

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from ..groups import Group
    from ..launch import LaunchState

Array = NDArray[Any]
ndarray = np.ndarray

ELEMENTS = {name: np.dtype(name) for name in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8", "c16")}
# The numbers of the windows of generic addresses that belong to memory.
_WINDOWS = [start // WINDOW_BYTES for start in (SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, WORKSPACE_WINDOW)]
# The start and the end of no allocation.
_NOWHERE = 0, 0
_ADDRESSES = (1 << 64) - 1
_WINDOW = (1 << 32) - 1
_REMEDY = (
    "; the kernel declares an extern __shared__ array: pass its size in bytes at the launch, as in "
    "kernel[grid, block, shared_bytes](...)"
)


class _Views(dict[str, Array]):
    """Views of the same bytes as elements of each type, each created at its first use."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        super().__init__()
        self._whole = data[: len(data) & ~15]

    def __missing__(self, name: str) -> Array:
        view = self[name] = self._whole.view(ELEMENTS[name])
        return view


class Space:
    """The bytes of one kind of memory, with a view for each element type.

    `size` is the end of the part that belongs to one block, lane or launch. It is None for global memory, which
    consists of allocations instead. The part's variables begin at `first` and end at `variables_end`, which is `size`
    by default.
    """

    def __init__(
        self, name: str, data: NDArray[np.uint8], size: int | None, first: int = 0, variables_end: int | None = None
    ) -> None:
        self.name = name
        self.size = size
        self.first = first
        self.variables_end = size if variables_end is None else variables_end
        self.bytes = data
        self.views: dict[str, Array] = _Views(data)


def shared_space(state: LaunchState, data: NDArray[np.uint8]) -> Space:
    """Return the Space for the shared memory of a launch's blocks."""
    return Space("shared", data, state.shared_limit, RESERVED_SHARED, state.shared_end)


def _in_window(values: Any) -> Any:
    """Return signed offsets in the window of shared memory, whose addresses the hardware truncates to 32 bits.

    They are signed because an instruction's offset may bring an address before the window back into it.
    """
    if values.__class__ is ndarray:
        return (values.astype(np.uint32) if values.itemsize == 8 else values).view(np.int32)
    return np.uint32(int(values) & 0xFFFFFFFF).view(np.int32)


def _chosen(values: Array, positions: Array | None) -> Array:
    return values if positions is None else values.take(positions)


class Resolver:
    """The resolver of the addresses that one launch's groups access, which also checks the accesses.

    It doesn't refer back to the launch. The reference cycle would keep the launch's memory alive after the last other
    reference to the launch is gone.
    """

    def __init__(self, state: LaunchState) -> None:
        self._memory = memory = state.memory
        self.base = memory.base
        self.global_space = Space("global", memory.bytes, None)
        self._extents: dict[int, tuple[int, int]] = {}
        self._cluster = prod(state.launch.cluster)
        self.look_up()
        self._params = Space("param", state.parameter_bytes, state.parameter_size)
        self._workspace = Space("workspace", np.zeros(4096, np.uint8), 4096)

    # --- addresses

    def global_(self, group: Group, values: Any) -> Address:
        """Resolve global or constant addresses."""
        return Address(self.global_space, group, values, -self.base)

    def shared(self, group: Group, values: Any) -> Address:
        """Resolve addresses in the shared memory of each lane's block."""
        return self._shared(group, _in_window(values), None)

    def _shared(self, group: Group, seen: Any, positions: Array | None) -> Address:
        """Resolve addresses in the shared memory of a block: the lane's own, or the one whose rank the address has."""
        chunk, base = group.chunk, _chosen(group.shared_base, positions)
        own = Address(chunk.shared, group, seen, base)
        if self._cluster == 1 or own.low < 0 or own.high >> RANK_SHIFT > self._cluster:
            return own
        places = own.seen
        ranks = places >> RANK_SHIFT
        if not np.any(ranks):
            return own
        block = chunk.block_of_lane[_chosen(group.lane_numbers, positions)]
        named = np.where(ranks > 0, block - block % self._cluster + ranks - 1, block)
        return Address(chunk.shared, group, places & OFFSET, named * chunk.shared_stride)

    def local(self, group: Group, values: Any) -> Address:
        """Resolve addresses in each lane's local memory."""
        return Address(group.chunk.local, group, values, group.local_base)

    def param(self, group: Group, values: Any) -> Address:
        """Resolve addresses in the launch's parameters."""
        return Address(self._params, group, values, 0)

    def generic(self, group: Group, values: Any) -> Address | Mixed:
        """Resolve generic addresses by their window, in one part per window if the lanes use several."""
        if values.__class__ is not ndarray:
            values = np.full(group.n, values)
        whole = self.global_(group, values)
        if whole.low >= 0 and whole.high < SHARED_WINDOW:
            return whole
        if whole.low // WINDOW_BYTES == whole.high // WINDOW_BYTES:
            return self._windowed(group, whole.seen, whole.low // WINDOW_BYTES, None)
        # The windows are between global addresses.
        windows = whole.seen // WINDOW_BYTES
        windows = np.where(np.isin(windows, _WINDOWS), windows, 0)
        parts = []
        for window in np.unique(windows):
            positions = np.flatnonzero(windows == window)
            parts.append((positions, self._windowed(group, whole.seen[positions], int(window), positions)))
        return Mixed(group, parts)

    def _windowed(self, group: Group, seen: Array, window: int, positions: Array | None) -> Address:
        """Resolve the generic addresses of the lanes at `positions`, which are in the window with this number."""
        start = window * WINDOW_BYTES
        if start == SHARED_WINDOW:
            return self._shared(group, seen - start, positions)
        if start == LOCAL_WINDOW:
            return Address(group.chunk.local, group, seen - start, _chosen(group.local_base, positions))
        if start == PARAM_WINDOW:
            return Address(self._params, group, seen - start, 0)
        if start == WORKSPACE_WINDOW:
            return Address(self._workspace, group, seen - start, 0)
        return self.global_(group, seen)

    def place(self, group: Group, space: str, values: Any) -> Address | Mixed:
        """Resolve addresses in the named space: global, shared, local, param or generic."""
        placed: dict[str, Callable[[Group, Any], Address | Mixed]] = {
            "global": self.global_, "shared": self.shared, "local": self.local, "param": self.param,
            "generic": self.generic,
        }  # fmt: skip  # rows of a table
        return placed[space](group, values)

    # --- checks

    def check(
        self, address: Address, offset: int, size: int, site: Instruction, positions: Array | None = None
    ) -> None:
        """Raise Fault unless `size` bytes at `offset` from each address may be accessed, and are aligned to `size`."""
        space, low, end = address.space, address.low + offset, address.high + offset + size
        if space.size is not None:
            inside = low >= space.first and end <= space.size
        else:
            extent = self._extents.get(id(site), _NOWHERE)
            if low < extent[0] or end > extent[1]:
                extent = self._found(low, site)
            inside = extent[0] <= low and end <= extent[1]
        if not inside or (address.bits | offset) & (size - 1):
            self._check_lanes(address, offset, size, site, positions, inside)

    def look_up(self) -> None:
        """Look up the allocations again; this is necessary at once only if the kernel has freed memory."""
        self._generation = self._memory.generation
        self._starts, self._ends = self._memory.extents()
        self._extents.clear()

    def _found(self, low: int, site: Instruction) -> tuple[int, int]:
        """Return the start and the end of the allocation that an address may be in, and keep them for its instruction.

        The next access of the instruction is probably to the same allocation.
        """
        if self._memory.generation != self._generation:
            self.look_up()
        index = int(np.searchsorted(self._starts, low, "right")) - 1
        if index < 0:
            return _NOWHERE
        extent = self._extents[id(site)] = int(self._starts[index]), int(self._ends[index])
        return extent

    def _check_lanes(
        self, address: Address, offset: int, size: int, site: Instruction, positions: Array | None, inside: bool
    ) -> None:
        """Raise Fault for the first lane whose access is not aligned, or is outside, unless all are `inside`."""
        seen = np.atleast_1d(address.seen) + offset
        outside = np.zeros(len(seen), np.bool_) if inside else self._outside(address.space, seen, size)
        wrong = np.flatnonzero(seen & (size - 1))
        if len(wrong) and not outside[wrong[0]]:
            position = int(wrong[0])
            status, what = "CUDA_ERROR_MISALIGNED_ADDRESS", f"needs an address aligned to {size} bytes"
        elif outside.any():
            position = int(outside.argmax())
            # An H200 returns a different status if the cluster has no block of this rank.
            absent = address.space.name == "shared" and self._absent_rank(int(seen[position])) is not None
            status = "CUDA_ERROR_LAUNCH_FAILED" if absent else "CUDA_ERROR_ILLEGAL_ADDRESS"
            freed = address.space.size is None and self._memory.is_freed(int(seen[position]))
            what = "touches freed memory" if freed else "is out of bounds"
        else:
            return
        space, place = address.space, int(seen[position])
        where = self._memory.describe(place) if space.size is None else self._place(space, place, address.group)
        mask = _WINDOW if space.name == "shared" else _ADDRESSES
        name = "constant" if form_of(site).space == "const" else space.name
        report = f"a {name} {_verb(site, space)} of {_bytes(size)} at {place & mask:#x} {what}: {where}"
        lane = position if positions is None else int(positions[position])
        raise address.group.fault(status, report, site, lane)

    def _outside(self, space: Space, seen: Array, size: int) -> Array:
        """Return which accesses of `size` bytes are out of bounds; the shared memory of CUDA's own headers is not."""
        # The end of an access may overflow 64 bits, so its start is compared with the last valid start.
        if space.size is None:
            index = np.searchsorted(self._starts, seen, "right") - 1
            return np.asarray((index < 0) | (seen > np.append(self._ends, 0)[index] - size))
        outside = (seen < space.first) | (seen > space.size - size)
        if space.first:
            outside &= (seen < 0) | (seen > RUNTIME_SHARED - size)
        return outside

    def _absent_rank(self, seen: int) -> int | None:
        """Return the rank in an address of a cluster's shared memory if no block has this rank, else None."""
        rank = (seen >> RANK_SHIFT) - 1
        return rank if rank >= self._cluster > 1 else None

    def _place(self, space: Space, seen: int, group: Group) -> str:
        """Describe an address relative to the shared memory of its block or the memory of its thread."""
        assert space.variables_end is not None
        size = space.variables_end - space.first
        owner = "block" if space.name == "shared" else "thread"
        whole = f"the {owner}'s {size} bytes of {space.name} memory"
        if space.name != "shared" and seen >= 1 << 31:
            # A negative offset in a register of 32 or 64 bits.
            seen -= 1 << (32 if seen < 1 << 32 else 64)
        rank = self._absent_rank(seen) if space.name == "shared" else None
        if rank is not None:
            return f"it names the block of rank {rank}, in a cluster of {self._cluster} blocks"
        place = seen - space.first
        if place < 0:
            return f"{_bytes(-place)} before the start of {whole}"
        if place >= size:
            dynamic = space.name == "shared" and group.chunk.state.launch.entry.has_dynamic_shared
            return f"{_bytes(place - size)} past the end of {whole}{_REMEDY if dynamic else ''}"
        return f"{_bytes(place)} into {whole}"


def _verb(site: Instruction, space: Space) -> str:
    """Return the verb for an instruction's access to memory of a space: read, write or copy."""
    form = form_of(site)
    if form.row.access not in ("cp", "bulk"):
        return "write" if form.row.access in ("st", "red", "atom") else "read"
    if form.spaces.count(space.name) > 1:
        return "copy"
    return "write" if form.space in (space.name, "generic") else "read"


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"
