"""Move data between registers and memory: loads, stores, atomics and copies, each checked first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...operations import atomics, mbarriers
from ...syntax.types import dtype_of
from ..warps import warp_table
from .addresses import Address, Mixed
from .spaces import ELEMENTS, Resolver

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction

Array = NDArray[Any]
ndarray = np.ndarray


class Memory(Resolver):
    """The data transfers of the groups of one launch."""

    def load(self, address: Address | Mixed, offset: int, name: str, shift: int, site: Instruction) -> Any:
        """Load one element per lane; return a scalar when all lanes share the address."""
        if isinstance(address, Mixed):
            return self.load_vector(address, offset, name, shift, 1, site)[0]
        self.check(address, offset, 1 << shift, site)
        if address.places.__class__ is not ndarray:
            return address.space.views[name][(address.places + offset) >> shift]
        return _elements(address, offset, name, shift, 1)[0]

    def load_vector(
        self, address: Address | Mixed, offset: int, name: str, shift: int, count: int, site: Instruction
    ) -> list[Any]:
        """Load `count` consecutive elements per lane, checked as one access."""
        if isinstance(address, Mixed):
            found = np.empty((count, address.group.n), ELEMENTS[name])
            for positions, part in address.parts:
                self.check(part, offset, count << shift, site, positions)
                found[:, positions] = np.stack(_elements(part, offset, name, shift, count))
            return list(found)
        self.check(address, offset, count << shift, site)
        return _elements(address, offset, name, shift, count)

    def store(
        self, address: Address | Mixed, offset: int, name: str, shift: int, values: Sequence[Any], site: Instruction
    ) -> None:
        """Store consecutive elements per lane, checked as one access; if lanes share an address, the last lane wins."""
        parts = address.parts
        for positions, part in parts:
            self.check(part, offset, len(values) << shift, site, positions)
            if part.space.name == "param":
                raise part.group.unsupported("a store to a kernel's parameter", site)
        for positions, part in parts:
            chosen = values
            if positions is not None:
                chosen = [value[positions] if value.__class__ is ndarray else value for value in values]
            _put(part, offset, name, shift, chosen)

    # --- operations that read and write

    def atomic(
        self,
        operation: str,
        ptx_type: str,
        address: Address | Mixed,
        offset: int,
        values: tuple[Any, ...],
        site: Instruction,
        wanted: bool = True,
    ) -> Array:
        """Perform one atomic operation per lane, in lane order; return the previous values, valid only if `wanted`."""
        dtype = dtype_of(ptx_type)
        size = ELEMENTS[dtype].itemsize
        group = address.group
        out = np.empty(group.n, dtype)
        for positions, part in address.parts:
            self.check(part, offset, size, site, positions)
            shift = size.bit_length() - 1
            view = part.space.views[dtype]
            index = (part.places + offset) >> shift
            count = group.n if positions is None else len(positions)
            if index.__class__ is not ndarray:
                index = np.full(count, index)
            if part.space.size is None:
                # NumPy copies a whole array that seems to overlap an operand, so the view is cut to its used part.
                first = (part.low + offset - self.base) >> shift
                view = view[first : ((part.high + offset - self.base) >> shift) + 1]
                index = index - first
            chosen = [np.broadcast_to(value, group.n) for value in values]
            if positions is not None:
                chosen = [value[positions] for value in chosen]
            # Additions in global memory flush subnormal numbers.
            ftz = ptx_type == "f32" and part.space.size is None
            if not wanted and operation != "cas":
                atomics.reduce_only(operation, view, index, *chosen, type_=ptx_type, ftz=ftz)
                continue
            if ptx_type == "b128":
                out[slice(None) if positions is None else positions] = _swap_wide(operation, view, index, chosen)
                continue
            old = atomics.apply(operation, view, index, *chosen, type_=ptx_type, ftz=ftz)
            if positions is None:
                return old
            out[positions] = old
        return out

    def copy(
        self,
        to: Address | Mixed,
        to_offset: int,
        source: Address | Mixed,
        from_offset: int,
        size: int,
        read: Any,
        site: Instruction,
    ) -> None:
        """Copy the first `read` bytes per lane, or all if it is None, and store zeros up to `size` bytes."""
        words = size // 4
        if read is None or np.all(read == size):
            values = self.load_vector(source, from_offset, "u4", 2, words, site)
        else:
            assert isinstance(source, Address)
            group = source.group
            wanted = np.broadcast_to(read, group.n).astype(np.int64)
            positions = np.flatnonzero(wanted)
            loaded = np.zeros((words, group.n), np.uint32)
            if len(positions):
                part = source.select(positions)
                self.check(part, from_offset, size, site, positions)
                loaded[:, positions] = np.stack(_elements(part, from_offset, "u4", 2, words))
            left = np.clip(wanted - 4 * np.arange(words)[:, None], 0, 4)
            values = list(loaded & ((1 << 8 * left) - 1).astype(np.uint32))
        self.store(to, to_offset, "u4", 2, values, site)

    def mbarrier(
        self,
        verb: str,
        address: Address | Mixed,
        offset: int,
        values: tuple[Any, ...],
        site: Instruction,
        parity: bool = False,
    ) -> Any:
        """Perform one mbarrier operation per lane; see `operations.mbarriers`."""
        if isinstance(address, Mixed):
            raise address.group.unsupported("a barrier through mixed addresses", site)
        self.check(address, offset, 8, site)
        n = address.group.n
        index = np.broadcast_to((address.places + offset) >> 3, n)
        operands = [np.broadcast_to(value, n) for value in values]
        if verb in ("test_wait", "try_wait"):
            address.group.chunk.state.waits.keep(address.group, site, index, operands[0], parity)
        warps, _, _ = warp_table(address.group)
        try:
            return mbarriers.apply(verb, address.space.views["u8"], index, operands, parity, warps)
        except mbarriers.TooManyArrivals as found:
            what = (
                f"a warp makes {found.arrivals} arrivals at once at a barrier that still expects {found.missing} of "
                f"{found.needed}: hardware adds up the arrivals of a warp's instruction, and fails if there are more "
                "than the phase still expects"
            )
            raise address.group.fault("CUDA_ERROR_LAUNCH_FAILED", what, site, found.lane) from None


def _placed(address: Address, offset: int, name: str, shift: int) -> tuple[Array, Any]:
    """Return a view, and the indices in it of the elements `offset` bytes after each place."""
    view = address.space.views[name]
    # An address may be before the start of its space if the offset brings it back into the space. Its index in a
    # view that starts at the offset would be negative.
    if offset < 0 or address.low < 0 or offset & ((1 << shift) - 1):
        return view, (address.places + offset) >> shift
    return (view[offset >> shift :] if offset else view), address.index(shift)


def _run(address: Address, offset: int, name: str, shift: int, count: int) -> list[Array] | None:
    """Return views of the `count` elements per lane, if those of each lane follow those of the lane before it."""
    start = address.run_start(count << shift)
    if start < 0:
        return None
    first = (start + offset) >> shift
    elements = address.space.views[name][first : first + count * len(address.places)]
    return [elements[number::count] for number in range(count)]


def _elements(address: Address, offset: int, name: str, shift: int, count: int) -> list[Any]:
    """Return `count` consecutive elements per lane, as scalars if all lanes share the address."""
    if address.places.__class__ is not ndarray:
        start = (address.places + offset) >> shift
        return list(address.space.views[name][start : start + count])
    run = _run(address, offset, name, shift, count)
    if run is not None:
        return [column.copy() for column in run]
    view, index = _placed(address, offset, name, shift)
    return [view[number:].take(index) if number else view.take(index) for number in range(count)]


def _put(address: Address, offset: int, name: str, shift: int, values: Sequence[Any]) -> None:
    """Store consecutive elements per lane; if lanes share an address, the last lane wins."""
    if address.places.__class__ is not ndarray:
        start = (address.places + offset) >> shift
        for number, value in enumerate(values):
            address.space.views[name][start + number] = value[-1] if value.__class__ is ndarray else value
        return
    run = _run(address, offset, name, shift, len(values))
    if run is not None:
        for number, value in enumerate(values):
            run[number][...] = value
        return
    view, index = _placed(address, offset, name, shift)
    for number, value in enumerate(values):
        view[number:][index] = value


def _swap_wide(operation: str, view: Array, index: Array, values: list[Array]) -> Array:
    """Exchange or compare-and-swap 128-bit patterns, lane by lane."""
    found = np.empty(len(index), view.dtype)
    for lane, place in enumerate(index):
        found[lane] = view[place]
        if operation == "exch" or view[place].tobytes() == values[0][lane].tobytes():
            view[place] = values[-1][lane]
    return found
