"""Copies of boxes of arrays by tensor maps, and changes of tensor maps by kernels.

The former are ``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk.tensor``, the latter ``tensormap.replace`` and
``tensormap.cp_fenceproxy``.

As for other bulk copies, the bytes are copied immediately, in lane order. A barrier counts all bytes of a box that is
loaded, even if a part of the box is outside the array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...operations import atomics, tensor_maps
from ...operations.matrix_descriptors import UNIT
from ...operations.tensor_maps import ALIGNMENT, BYTES, Box, TensorMap
from ...syntax.types import dtype_of
from ..groups import split
from .addresses import Address, Mixed
from .bulk_copies import Named, complete, places_of, receiving

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from ..groups import Group
    from ..observer import Observer
    from .spaces import Space

Array = NDArray[Any]

_INTEGERS = {"u32", "s32", "u64"}
_HALVES = {"f16", "bf16"}
_ORDERED = {*_INTEGERS, "s64", *_HALVES}
# The element types that each reduction supports on an H200. It has no sums and bitwise operations of s64.
_REDUCED = {
    "add": {*_INTEGERS, *_HALVES, "f32", "f64"}, "min": _ORDERED, "max": _ORDERED,
    "inc": {"u32"}, "dec": {"u32"}, "and": _INTEGERS, "or": _INTEGERS, "xor": _INTEGERS,
}  # fmt: skip  # rows of a table
_WORD, _SHIFT = 8, 3
_WARP = 32


class _Units(NamedTuple):
    """The units of one side of the copies: the position of the lane that moves each unit, and the units' Address."""

    lanes: Array
    address: Address
    size: int


class TensorCopies:
    """The tensor copies of a chunk's groups, and their changes of tensor maps."""

    def copy(
        self,
        group: Group,
        tensor: tuple[Address | Mixed, int],
        coordinates: tuple[Array, ...],
        shared: Named,
        site: Instruction,
        *,
        barrier: Named | None = None,
        ranks: Any = None,
        operation: str | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Make one copy per lane; all copies are checked before the first byte moves.

        `tensor` is the generic address of the tensor map, and `shared` the address of the box in shared memory. With a
        `barrier`, which counts the bytes, boxes are loaded. `ranks` has one bit for each block of the cluster that
        receives the box, at the same addresses in its own shared memory. Without a barrier, boxes are stored, or
        combined with the array by `operation`.
        """
        memory, own = group.chunk.memory, places_of(group, *shared)
        maps = _maps(group, *tensor, len(coordinates), operation, site)
        boxes = _boxes(group, maps, coordinates, own.places - own.base, barrier is not None, site)
        lanes, ends, counters = receiving(group, own, barrier, ranks, site)
        inside = [boxes[lane].units + base for lane, base in zip(lanes, ends.base, strict=True)]
        counts = [len(units) for units in inside]
        sides = [
            _units(group, ends.address.space, lanes, inside, np.repeat(ends.base, counts), UNIT),
            _global_units(group, boxes),
        ]
        for side in sides:
            if len(side.lanes):
                memory.check(side.address, 0, side.size, site, side.lanes)
        if observer is not None:
            into, source = sides if barrier is not None else reversed(sides)
            for kind, side in (("ld", source), ("st", into)):
                if len(side.lanes):
                    barriers = None if kind == "ld" or counters is None else np.repeat(counters.places, counts)
                    units = Mixed(group, [(side.lanes, side.address)])
                    observer.bulk(group, kind, units, side.size, barriers, site)
        spaces = memory.global_space, ends.address.space
        for lane, units in zip(lanes, inside, strict=True):
            if barrier is not None:
                _load(maps[lane], boxes[lane], *spaces, memory.base, units)
            else:
                _store(maps[lane], boxes[lane], *spaces, memory.base, units, operation)
        if counters is not None:
            complete(counters, np.array([maps[lane].nbytes for lane in lanes], np.int64))

    def replace(
        self,
        group: Group,
        tensor: tuple[Address | Mixed, int],
        field: str,
        ordinal: int,
        values: Any,
        site: Instruction,
    ) -> None:
        """Change a field of each lane's tensor map, or the element of a field with this number."""
        (address, start), memory, observer = tensor, group.chunk.memory, group.chunk.state.observer
        for offset, dtype, changed in tensor_maps.changes(field, ordinal, values):
            place = start + offset
            if observer is not None:
                observer.access(group, "st", address, place, dtype.itemsize, site, (changed,))
            memory.store(address, place, dtype.str[1:], dtype.itemsize.bit_length() - 1, (changed,), site)

    def copy_map(self, group: Group, space: tuple[str, str], places: tuple[Any, Any], site: Instruction) -> None:
        """Copy the 128 bytes of one tensor map per warp, between addresses in two spaces."""
        observer = group.chunk.state.observer
        _, first = np.unique(group.lane_numbers // _WARP, return_index=True)
        one = group if len(first) == group.n else split(group, [first], [group.pc])[0]
        to, source = (
            group.chunk.memory.place(one, name, np.broadcast_to(place, group.n)[first])
            for name, place in zip(space, places, strict=True)
        )
        for start in range(0, BYTES, ALIGNMENT):
            if observer is not None:
                observer.access(one, "ld", source, start, ALIGNMENT, site, ())
            words = group.chunk.memory.load_vector(source, start, "u8", _SHIFT, ALIGNMENT // _WORD, site)
            if observer is not None:
                observer.access(one, "st", to, start, ALIGNMENT, site, tuple(words))
            group.chunk.memory.store(to, start, "u8", _SHIFT, words, site)


def _maps(
    group: Group, address: Address | Mixed, offset: int, axes: int, operation: str | None, site: Instruction
) -> list[TensorMap]:
    """Return each lane's tensor map, or raise Fault if its 128 bytes don't suit the instruction."""
    words = [
        np.broadcast_to(word, group.n)
        for start in range(0, BYTES, ALIGNMENT)
        for word in group.chunk.memory.load_vector(address, offset + start, "u8", _SHIFT, ALIGNMENT // _WORD, site)
    ]
    maps = []
    for lane, row in enumerate(np.stack(words, axis=1)):
        lacking = tensor_maps.lacking_feature(row.tobytes())
        if lacking:
            what = f"a tensor copy by a tensor map with a value of {lacking} that is not simulated"
            raise group.unsupported(what, site, lane)
        found = TensorMap.unpack(row.tobytes())
        mistake = _mistake(found, axes, operation)
        if found is None or mistake:
            raise group.fault("CUDA_ERROR_ILLEGAL_INSTRUCTION", mistake, site, lane)
        maps.append(found)
    return maps


def _mistake(found: TensorMap | None, axes: int, operation: str | None) -> str:
    """Return why a tensor map doesn't suit an instruction, or an empty string if it does."""
    if found is None:
        return "a tensor copy by 128 bytes that are not a tensor map, which cuTensorMapEncodeTiled creates"
    if len(found.sizes) != axes:
        return f"a tensor copy with {axes} coordinates by a tensor map of {len(found.sizes)} dimensions"
    if operation is not None and found.kind.ptx_type not in _REDUCED[operation]:
        return f"a reduction by {operation} of elements of type {found.kind.ptx_type}"
    return ""


def _boxes(
    group: Group, maps: list[TensorMap], coordinates: tuple[Array, ...], shared: Array, loads: bool, site: Instruction
) -> list[Box]:
    """Return each lane's box, given its address in shared memory as the kernel sees it.

    The boxes of loads may begin before the array. An H200 does not execute other copies of such boxes.
    """
    wrong = np.flatnonzero(shared % tensor_maps.BOX_ALIGNMENT)
    if len(wrong):
        where = int(shared[wrong[0]]) & 0xFFFFFFFF
        what = f"a tensor copy with a box at {where:#x} in shared memory, which is not a multiple of 128 bytes"
        raise group.fault("CUDA_ERROR_MISALIGNED_ADDRESS", what, site, int(wrong[0]))
    bytes_before = coordinates[0] * np.array([one.kind.size for one in maps])
    wrong = np.flatnonzero(bytes_before % UNIT)
    if len(wrong):
        lane = int(wrong[0])
        what = (
            f"a tensor copy whose first coordinate is {coordinates[0][lane]}, for elements of {maps[lane].kind.size} "
            f"bytes: a box must begin at a multiple of {UNIT} bytes"
        )
        raise group.fault("CUDA_ERROR_ILLEGAL_INSTRUCTION", what, site, lane)
    starts = np.stack([np.broadcast_to(one, group.n) for one in coordinates], axis=1)
    wrong = np.flatnonzero((starts < 0).any(axis=1))
    if len(wrong) and not loads:
        lane = int(wrong[0])
        what = f"a tensor copy from shared memory to the negative coordinates {tuple(starts[lane].tolist())}"
        raise group.fault("CUDA_ERROR_ILLEGAL_INSTRUCTION", what, site, lane)
    return [one.locate(start, int(place)) for one, start, place in zip(maps, starts, shared, strict=True)]


def _units(group: Group, space: Space, lanes: Array, places: list[Array], base: Array, size: int) -> _Units:
    """Return the units at some places, of which there is one array per lane."""
    everything = np.concatenate([*places, np.zeros(0, np.int64)])
    owners = np.repeat(lanes, [len(some) for some in places])
    return _Units(owners, Address(space, group, everything - base, base), size)


def _global_units(group: Group, boxes: list[Box]) -> _Units:
    """Return the units of the boxes' parts inside their arrays; each has the largest size that divides all parts."""
    bits = UNIT | int(np.bitwise_or.reduce([box.nbytes_inside for box in boxes]))
    for box in boxes:
        bits |= int(np.bitwise_or.reduce(box.starts))
    size = bits & -bits
    memory = group.chunk.memory
    starts = [(box.starts[:, None] - memory.base + np.arange(0, box.nbytes_inside, size)).reshape(-1) for box in boxes]
    base = np.full(sum(map(len, starts)), -memory.base)
    return _units(group, memory.global_space, np.arange(len(boxes)), starts, base, size)


def _inside(box: Box, base: int) -> Array:
    """Return the places in global memory of the bytes of each row of a box that is inside the array."""
    places: Array = box.starts[:, None] - base + np.arange(box.nbytes_inside)
    return places


def _load(map_: TensorMap, box: Box, memory: Space, shared: Space, base: int, units: Array) -> None:
    rows = map_.filled(box.shape)
    rows[box.rows, box.inside] = map_.converted(memory.bytes[_inside(box, base)])
    shared.bytes[units[:, None] + np.arange(UNIT)] = rows.reshape(-1, UNIT)


def _store(
    map_: TensorMap, box: Box, memory: Space, shared: Space, base: int, units: Array, operation: str | None
) -> None:
    rows = shared.bytes[units[:, None] + np.arange(UNIT)].reshape(box.shape)
    stored = np.ascontiguousarray(rows[box.rows, box.inside])
    if operation is None:
        memory.bytes[_inside(box, base)] = stored
    elif stored.size:
        kind = map_.kind
        dtype = dtype_of(kind.ptx_type)
        places = (_inside(box, base)[:, :: kind.size] // kind.size).reshape(-1)
        # NumPy copies a whole array that seems to overlap an operand, so the view is cut to its used part.
        first = int(places.min())
        view = memory.views[dtype][first : int(places.max()) + 1]
        operands = stored.reshape(-1).view(dtype)
        atomics.reduce_only(operation, view, places - first, operands, type_=kind.ptx_type, ftz=kind.ftz)
