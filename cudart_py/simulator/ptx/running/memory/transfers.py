"""Move data between registers and memory: loads, stores, atomics and copies, each checked first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...faults import Fault, UnsupportedError
from ...operations import atomics, mbarriers
from ...syntax.types import dtype_of
from .addresses import Address, Mixed
from .spaces import ELEMENTS, Resolver

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction

Array = NDArray[Any]
ndarray = np.ndarray


class Memory(Resolver):
    """The data transfers of the groups of one launch."""

    def view(self, address: Address, offset: int, name: str, shift: int) -> tuple[Array, Any]:
        """Return a view, and the indices in it of the elements `offset` bytes after each place."""
        view = address.space.views[name]
        # An address may be before the start of its space if the offset brings it back into the space. Its index in a
        # view that starts at the offset would be negative.
        if offset < 0 or address.low < 0 or offset & ((1 << shift) - 1):
            return view, (address.places + offset) >> shift
        return (view[offset >> shift :] if offset else view), address.index(shift)

    def load(self, address: Address | Mixed, offset: int, name: str, shift: int, site: Instruction) -> Any:
        """Load one element per lane; return a scalar when all lanes share the address."""
        if isinstance(address, Mixed):
            return self._load_mixed(address, offset, name, shift, site)
        size = 1 << shift
        self.check(address, offset, size, site)
        places = address.places
        if places.__class__ is not ndarray:
            return address.space.views[name][(places + offset) >> shift]
        start = address.run_start(size)
        if start >= 0 and not (start + offset) & (size - 1):
            start = (start + offset) >> shift
            return address.space.views[name][start : start + len(places)].copy()
        view, index = self.view(address, offset, name, shift)
        return view.take(index)

    def _load_mixed(self, mixed: Mixed, offset: int, name: str, shift: int, site: Instruction) -> Any:
        out = np.empty(mixed.group.n, ELEMENTS[name])
        for positions, part in mixed.parts:
            self.check(part, offset, 1 << shift, site, positions)
            view, index = self.view(part, offset, name, shift)
            out[positions] = view[index]
        return out

    def load_vector(
        self, address: Address | Mixed, offset: int, name: str, shift: int, count: int, site: Instruction
    ) -> tuple[Any, ...]:
        """Load `count` consecutive elements per lane, checked as one access."""
        if isinstance(address, Mixed):
            for positions, part in address.parts:
                self.check(part, offset, count << shift, site, positions)
            return tuple(self._load_mixed(address, offset + (i << shift), name, shift, site) for i in range(count))
        stride = count << shift
        self.check(address, offset, stride, site)
        places = address.places
        views = address.space.views
        if places.__class__ is not ndarray:
            start = (places + offset) >> shift
            return tuple(views[name][start + i] for i in range(count))
        start = address.run_start(stride)
        if start >= 0:
            start = (start + offset) >> shift
            rows = views[name][start : start + count * len(places)].reshape(-1, count)
            return tuple(rows[:, i].copy() for i in range(count))
        index = (places + offset) >> shift
        view = views[name]
        return tuple(view[i:].take(index) if i else view.take(index) for i in range(count))

    def store(
        self, address: Address | Mixed, offset: int, name: str, shift: int, value: Any, site: Instruction
    ) -> None:
        """Store one element per lane; if lanes share an address, the last lane wins."""
        if isinstance(address, Mixed):
            for positions, part in address.parts:
                self.check(part, offset, 1 << shift, site, positions)
                view, index = self.view(part, offset, name, shift)
                view[index] = value[positions] if value.__class__ is ndarray else value
            return
        size = 1 << shift
        self.check(address, offset, size, site)
        if address.space.name == "param":
            raise UnsupportedError(
                address.group.chunk.state.located("a store to a kernel's parameter", site, address.group, 0)
            )
        places = address.places
        if places.__class__ is not ndarray:
            address.space.views[name][(places + offset) >> shift] = value[-1] if value.__class__ is ndarray else value
            return
        start = address.run_start(size)
        if start >= 0:
            start = (start + offset) >> shift
            address.space.views[name][start : start + len(places)] = value
            return
        view, index = self.view(address, offset, name, shift)
        view[index] = value

    def store_vector(
        self, address: Address | Mixed, offset: int, name: str, shift: int, values: tuple[Any, ...], site: Instruction
    ) -> None:
        """Store consecutive elements per lane, checked as one access."""
        for positions, part in parts_of(address):
            self.check(part, offset, len(values) << shift, site, positions)
        stride = len(values) << shift
        if isinstance(address, Address) and isinstance(address.places, ndarray):
            start = address.run_start(stride)
            if start >= 0:
                start = (start + offset) >> shift
                rows = address.space.views[name][start : start + len(values) * len(address.places)]
                rows = rows.reshape(-1, len(values))
                for i, value in enumerate(values):
                    rows[:, i] = value
                return
        for i, value in enumerate(values):
            self.store(address, offset + (i << shift), name, shift, value, site)

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
        for positions, part in parts_of(address):
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
            wanted = np.broadcast_to(read, group.n)
            positions = np.flatnonzero(wanted)
            loaded = np.zeros((words, group.n), np.uint32)
            if len(positions):
                part = source.select(positions)
                self.check(part, from_offset, size, site, positions)
                index = (part.places + from_offset) >> 2
                for word in range(words):
                    left = np.clip(wanted[positions].astype(np.int64) - 4 * word, 0, 4)
                    mask = ((1 << (8 * left)) - 1).astype(np.uint32)
                    loaded[word, positions] = part.space.views["u4"][index + word] & mask
            values = tuple(loaded)
        if words == 1:
            self.store(to, to_offset, "u4", 2, values[0], site)
        else:
            self.store_vector(to, to_offset, "u4", 2, values, site)

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
            raise UnsupportedError(
                address.group.chunk.state.located("a barrier through mixed addresses", site, address.group, 0)
            )
        self.check(address, offset, 8, site)
        n = address.group.n
        index = np.broadcast_to((address.places + offset) >> 3, n)
        operands = [np.broadcast_to(value, n) for value in values]
        if verb in ("test_wait", "try_wait"):
            address.group.chunk.state.waits.keep(address.group, site, index, operands[0], parity)
        chunk, lanes = address.group.chunk, address.group.lane_numbers
        warps = lanes // chunk.threads * -(-chunk.threads // 32) + lanes % chunk.threads // 32
        try:
            return mbarriers.apply(verb, address.space.views["u8"], index, operands, parity, warps)
        except mbarriers.TooManyArrivals as found:
            what = (
                f"a warp makes {found.arrivals} arrivals at once at a barrier that still expects {found.missing} of "
                f"{found.needed}: hardware adds up the arrivals of a warp's instruction, and fails if there are more "
                "than the phase still expects"
            )
            raise Fault(
                "CUDA_ERROR_LAUNCH_FAILED", chunk.state.located(what, site, address.group, found.lane)
            ) from None


def parts_of(address: Address | Mixed) -> list[tuple[Array | None, Address]]:
    """Return an access's parts with their positions; None means all lanes."""
    return [*address.parts] if isinstance(address, Mixed) else [(None, address)]


def _swap_wide(operation: str, view: Array, index: Array, values: list[Array]) -> Array:
    """Exchange or compare-and-swap 128-bit patterns, lane by lane."""
    found = np.empty(len(index), view.dtype)
    for lane, place in enumerate(index):
        found[lane] = view[place]
        if operation == "exch" or view[place].tobytes() == values[0][lane].tobytes():
            view[place] = values[-1][lane]
    return found
