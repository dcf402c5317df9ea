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
from ...faults import Fault
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
from .clusters import RANK_SHIFT, map_address, rank_of

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from ..groups import Group
    from ..launch import LaunchState

Array = NDArray[Any]
ndarray = np.ndarray

ELEMENTS = {name: np.dtype(name) for name in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8", "c16")}
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


def _summary(values: Any) -> tuple[Any, int, int, int]:
    """Return values as int64, and their minimum, maximum and bitwise OR."""
    if values.__class__ is ndarray:
        signed = values.view(np.int64) if values.itemsize == 8 else values.astype(np.int64)
        return signed, int(signed.min()), int(signed.max()), int(np.bitwise_or.reduce(signed))
    value = int(values)
    if value >= 1 << 63:
        value -= 1 << 64
    return value, value, value, value


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
        self._starts, self._ends = memory.extents()
        self._generation = memory.generation
        self._params = Space("param", state.parameter_bytes, state.parameter_size)
        self._workspace = Space("workspace", np.zeros(4096, np.uint8), 4096)

    def forget(self) -> None:
        """Look up the allocations again at the next access, because a kernel has allocated or freed memory."""
        self._extents.clear()

    # --- addresses

    def global_(self, group: Group, values: Any) -> Address:
        """Resolve global or constant addresses."""
        places, low, high, bits = _summary(values)
        return Address(self.global_space, group, places - self.base, low, high, bits)

    def shared(self, group: Group, values: Any) -> Address:
        """Resolve addresses in the shared memory of each lane's block."""
        if self._cluster > 1:
            return self._in_cluster(group, _in_window(values), None)
        places, low, high, bits = _summary(_in_window(values))
        return Address(group.chunk.shared, group, places + group.shared_base, low, high, bits)

    def _in_cluster(self, group: Group, values: Any, positions: Array | None) -> Address:
        """Resolve addresses in the shared memory of any block of the cluster, by the rank in each address."""
        places, low, high, bits = _summary(values)
        chunk = group.chunk
        base = group.shared_base if positions is None else group.shared_base.take(positions)
        ranks = places >> RANK_SHIFT
        if low < 0 or high >> RANK_SHIFT > self._cluster or not np.any(ranks):
            return Address(chunk.shared, group, places + base, low, high, bits)
        block = chunk.block_of_lane[group.lane_numbers if positions is None else group.lane_numbers[positions]]
        named = np.where(ranks > 0, block - block % self._cluster + ranks - 1, block)
        own = places & ((1 << RANK_SHIFT) - 1)
        base = named * chunk.shared_stride
        found = Address(chunk.shared, group, own + base, int(np.min(own)), int(np.max(own)), bits)
        found.base = base
        return found

    def local(self, group: Group, values: Any) -> Address:
        """Resolve addresses in each lane's local memory."""
        places, low, high, bits = _summary(values)
        return Address(group.chunk.local, group, places + group.local_base, low, high, bits)

    def param(self, group: Group, values: Any) -> Address:
        """Resolve addresses in the launch's parameters."""
        places, low, high, bits = _summary(values)
        return Address(self._params, group, places, low, high, bits)

    def generic(self, group: Group, values: Any) -> Address | Mixed:
        """Resolve generic addresses by their window, in one part per window if the lanes use several."""
        if values.__class__ is not ndarray:
            values = np.full(group.n, values)
        places, low, high, bits = _summary(values)
        if low >= 0 and high < SHARED_WINDOW:
            return Address(self.global_space, group, places - self.base, low, high, bits)
        kind = self._kind(low)
        if kind == self._kind(high) != "global":
            return self._windowed(group, kind, places, low, high, bits, None)
        # The windows are between global addresses, so the lanes between two global ones may use them.
        kinds = np.frompyfunc(self._kind, 1, 1)(places).astype("U9")
        names = np.unique(kinds)
        if len(names) == 1:
            return self._windowed(group, str(names[0]), places, low, high, bits, None)
        parts = []
        for name in names:
            positions = np.flatnonzero(kinds == name)
            chosen = places.take(positions)
            part = self._windowed(
                group,
                str(name),
                chosen,
                int(chosen.min()),
                int(chosen.max()),
                int(np.bitwise_or.reduce(chosen)),
                positions,
            )
            parts.append((positions, part))
        return Mixed(group, parts)

    @staticmethod
    def _kind(address: int) -> str:
        if 0 <= address - SHARED_WINDOW < WINDOW_BYTES:
            return "shared"
        if 0 <= address - LOCAL_WINDOW < WINDOW_BYTES:
            return "local"
        if 0 <= address - PARAM_WINDOW < WINDOW_BYTES:
            return "param"
        if 0 <= address - WORKSPACE_WINDOW < WINDOW_BYTES:
            return "workspace"
        return "global"

    def _windowed(
        self, group: Group, kind: str, places: Any, low: int, high: int, bits: int, positions: Array | None
    ) -> Address:
        def chosen(base: Any) -> Any:
            return base.take(positions) if positions is not None and base.__class__ is ndarray else base

        if kind == "shared" and self._cluster > 1:
            return self._in_cluster(group, places - SHARED_WINDOW, positions)
        if kind == "shared":
            space, base, window = group.chunk.shared, chosen(group.shared_base), SHARED_WINDOW
        elif kind == "local":
            space, base, window = group.chunk.local, chosen(group.local_base), LOCAL_WINDOW
        elif kind == "param":
            space, base, window = self._params, 0, PARAM_WINDOW
        elif kind == "workspace":
            space, base, window = self._workspace, 0, WORKSPACE_WINDOW
        else:
            return Address(self.global_space, group, places - self.base, low, high, bits)
        return Address(space, group, places + (base - window), low - window, high - window, bits & (window - 1))

    def place(self, group: Group, space: str, values: Any) -> Address | Mixed:
        """Resolve addresses in the named space: global, shared, local, param or generic."""
        placed: dict[str, Callable[[Group, Any], Address | Mixed]] = {
            "global": self.global_, "shared": self.shared, "local": self.local, "param": self.param,
            "generic": self.generic,
        }  # fmt: skip  # rows of a table
        return placed[space](group, values)

    def map_address(self, address: Any, rank: Any) -> Any:
        """Map an address in shared memory to the corresponding address in the block with the given rank."""
        return map_address(address, rank) if self._cluster > 1 else address

    def rank_of(self, group: Group, address: Any) -> Any:
        """Return the rank of the block whose shared memory contains an address."""
        return rank_of(group, address)

    # --- checks

    def check(
        self, address: Address, offset: int, size: int, site: Instruction, positions: Array | None = None
    ) -> None:
        """Raise Fault unless `size` bytes at `offset` from each address may be accessed, and are aligned to `size`."""
        if (address.bits | offset) & (size - 1):
            self._check_alignment(address, offset, size, site, positions)
        low = address.low + offset
        end = address.high + offset + size
        limit = address.space.size
        if limit is not None:
            if low < address.space.first or end > limit:
                self._check_places(address, offset, size, site, positions)
            return
        extent = self._extents.get(id(site))
        if extent is None or low < extent[0] or end > extent[1]:
            self._check_extents(address, offset, size, site, positions)

    def _check_alignment(
        self, address: Address, offset: int, size: int, site: Instruction, positions: Array | None
    ) -> None:
        seen = self._seen(address) + offset
        wrong = np.flatnonzero(seen & (size - 1))
        if len(wrong):
            position = int(wrong[0])
            if self._outside(address.space, seen[position], size):
                self._fail_outside(address, offset, size, site, positions)
            self._fail("CUDA_ERROR_MISALIGNED_ADDRESS", f"needs an address aligned to {size} bytes", address, position,
                       int(seen[position]), size, site, positions)  # fmt: skip  # grouped by meaning

    def _check_extents(
        self, address: Address, offset: int, size: int, site: Instruction, positions: Array | None
    ) -> None:
        memory = self._memory
        if memory.generation != self._generation:
            self._generation = memory.generation
            self._starts, self._ends = memory.extents()
            self._extents.clear()
        low, end = address.low + offset, address.high + offset + size
        index = int(np.searchsorted(self._starts, low, "right")) - 1
        if index >= 0 and end <= self._ends[index]:
            self._extents[id(site)] = (int(self._starts[index]), int(self._ends[index]))
            return
        seen = self._seen(address) + offset
        found = np.searchsorted(self._starts, seen, "right") - 1
        if not len(self._starts) or ((found < 0) | (seen > self._ends[found] - size)).any():
            self._fail_outside(address, offset, size, site, positions)

    def _seen(self, address: Address) -> Array:
        """Return addresses as the kernel sees them, one per lane or a single one."""
        if address.low == address.high:
            return np.array([address.low], np.int64)
        if address.space is self.global_space:
            return np.asarray(address.places + self.base)
        if address.base is not None:
            return np.asarray(address.places - address.base)
        base: Any
        if address.space.name == "shared":
            base = address.group.shared_base
        elif address.space.name == "local":
            base = address.group.local_base
        else:
            base = 0
        if base.__class__ is ndarray and len(base) != len(address.places):
            # In a part of a mixed access, the lanes' bases are unknown, but all bases are multiples of the arena's
            # stride.
            chunk = address.group.chunk
            stride = chunk.shared_stride if address.space.name == "shared" else chunk.local_stride
            return np.asarray(address.places % stride)
        return np.asarray(address.places - base)

    def _outside(self, space: Space, seen: Any, size: int) -> bool:
        # The end of an access may overflow 64 bits, so its start is compared with the last valid start.
        if space.size is not None:
            if space.first and 0 <= seen <= RUNTIME_SHARED - size:
                return False
            return bool(seen < space.first or seen > space.size - size)
        index = int(np.searchsorted(self._starts, seen, "right")) - 1
        return index < 0 or bool(seen > self._ends[index] - size)

    def _check_places(
        self, address: Address, offset: int, size: int, site: Instruction, positions: Array | None
    ) -> None:
        """Raise Fault if any lane is out of bounds; the shared memory of CUDA's own headers is in bounds."""
        if any(self._outside(address.space, seen, size) for seen in self._seen(address) + offset):
            self._fail_outside(address, offset, size, site, positions)

    def _fail_outside(
        self, address: Address, offset: int, size: int, site: Instruction, positions: Array | None
    ) -> None:
        seen = self._seen(address) + offset
        position = next(place for place, value in enumerate(seen) if self._outside(address.space, value, size))
        # An H200 returns a different status if the cluster has no block of this rank.
        absent = address.space.name == "shared" and self._absent_rank(int(seen[position])) is not None
        status = "CUDA_ERROR_LAUNCH_FAILED" if absent else "CUDA_ERROR_ILLEGAL_ADDRESS"
        place = int(seen[position])
        freed = address.space.size is None and self._memory.is_freed(place)
        what = "touches freed memory" if freed else "is out of bounds"
        self._fail(status, what, address, position, place, size, site, positions)

    def _absent_rank(self, seen: int) -> int | None:
        """Return the rank in an address of a cluster's shared memory if no block has this rank, else None."""
        rank = (seen >> RANK_SHIFT) - 1
        return rank if rank >= self._cluster > 1 else None

    def _fail(
        self,
        status: str,
        what: str,
        address: Address,
        position: int,
        seen: int,
        size: int,
        site: Instruction,
        positions: Array | None,
    ) -> None:
        if positions is not None:
            position = int(positions[position])
        space = address.space
        where = self._memory.describe(seen) if space.size is None else self._place(space, seen, address.group)
        mask = _WINDOW if space.name == "shared" else _ADDRESSES
        name = "constant" if form_of(site).space == "const" else space.name
        raise Fault(
            status,
            address.group.chunk.state.located(
                f"a {name} {_verb(site, space)} of {_bytes(size)} at {seen & mask:#x} {what}: {where}",
                site,
                address.group,
                position,
            ),
        )

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
    """Return the word for what an instruction does to memory of a space: read, write or copy."""
    form = form_of(site)
    if form.row.access not in ("cp", "bulk"):
        return "write" if form.row.access in ("st", "red", "atom") else "read"
    if form.spaces.count(space.name) > 1:
        return "copy"
    return "write" if form.space in (space.name, "generic") else "read"


def _bytes(count: int) -> str:
    return f"{count} byte" if count == 1 else f"{count} bytes"
