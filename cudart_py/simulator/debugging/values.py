"""Values of expressions for all lanes of a group, and the memory that their addresses refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...debugging.expression_syntax import ExpressionError
from ..ptx.windows import LOCAL_WINDOW, RESERVED_SHARED, SHARED_WINDOW, WINDOW_BYTES
from .symbols.cpp_types import INDEX, UNSIGNED, CType, Pointer, Scalar, Structure, Unknown
from .symbols.cpp_types import Array as ArrayType

if TYPE_CHECKING:
    from .moments import Moment
    from .recorder import Recorder

Array = NDArray[Any]
_ADDRESS = np.dtype(np.uint64)


class Value:
    """A value of a type for each lane of a group.

    `data` is an array over the lanes: of numbers, or of addresses for a pointer. An array or a structure has only
    `addresses`, as does everything else in memory. `known` is false for lanes without a value, such as those whose
    pointer is out of bounds; those for which `is_placed` is true have an address nevertheless. `members` has those of
    a structure that is in no memory, such as threadIdx.
    """

    def __init__(
        self,
        type_: CType,
        data: Array | None = None,
        addresses: Array | None = None,
        known: Array | None = None,
        members: dict[str, Value] | None = None,
    ) -> None:
        self.type = type_
        self.addresses = addresses
        self.members = members or {}
        lanes = len(data if data is not None else addresses if addresses is not None else ())
        self.known: Array = np.ones(lanes, np.bool_) if known is None else known
        self.is_placed = self.known
        self._data = data

    @property
    def data(self) -> Array:
        """The numbers or addresses; raises ExpressionError for an array, a structure or an unknown type."""
        self.check_type()
        if self._data is None:
            raise ExpressionError(f"a {self.type.name} is not a number: name one of its elements or members")
        return self._data

    def check_type(self) -> None:
        """Raise ExpressionError if the type is not known."""
        if isinstance(self.type, Unknown):
            name = self.type.variable
            raise ExpressionError(
                f"the type of {name!r} is not known: cast it, as in ((float*){name})[0], or use x/4fw {name}"
            )


class MemoryView:
    """The memory that the lanes of a group could access at a moment."""

    def __init__(self, recorder: Recorder, moment: Moment, lanes: Array) -> None:
        self._recorder = recorder
        self._moment = moment
        self._lanes = lanes

    def load(self, type_: CType, addresses: Array, known: Array) -> Value:
        """Return the value at an address per lane."""
        if isinstance(type_, (ArrayType, Structure, Unknown)):
            return Value(type_, None, addresses, known)
        raw, inside = self.bytes(addresses, type_.size)
        data = raw.view(type_.dtype if isinstance(type_, Scalar) else _ADDRESS).reshape(-1)
        value = Value(type_, data, addresses, known & inside)
        value.is_placed = known
        return value

    def bytes(self, addresses: Array, size: int) -> tuple[Array, Array]:
        """Return `size` bytes per lane, one row per lane, and masks of the lanes with accessible and written bytes.

        All of global memory counts as written, because the host may have written it.
        """
        found = np.zeros((len(addresses), size), np.uint8)
        written = np.zeros(len(addresses), np.bool_)
        chunk = self._moment.chunk
        for array, places, picked in self._placed(addresses, size):
            where = places[:, None] + np.arange(size)
            found[picked] = self._read(array, where)
            written[picked] = True
            if array is chunk.shared.bytes:
                written[picked] = (self._read(self._recorder.writers(chunk).places, where) >= 0).all(axis=1)
            elif array is chunk.local.bytes:
                written[picked] = self._read(self._recorder.writers(chunk).local, where).all(axis=1)
        return found, written

    def writing_lanes(self, address: int, size: int) -> Array:
        """Return the lanes that write to `size` bytes at an address in the moment's instruction, in ascending order."""
        found = [
            write.lanes[(write.places < place + size) & (write.places + write.size > place)]
            for array, (place,), _ in self._placed(np.array([address], np.uint64), size)
            for write in self._moment.writes
            if write.array is array
        ]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))

    def _read(self, array: Array, where: Array) -> Array:
        return self._recorder.read(array, where.ravel(), self._moment).reshape(where.shape)

    def _placed(self, addresses: Array, size: int) -> list[tuple[Array, Array, Array]]:
        """Return, per memory space, its bytes, and the places and positions of the lanes that may access it."""
        chunk = self._moment.chunk
        addresses = addresses.astype(np.int64)
        threads = chunk.threads
        shared_base = self._lanes // threads * chunk.shared_stride
        windows = (
            (chunk.shared.bytes, SHARED_WINDOW, shared_base, RESERVED_SHARED, chunk.state.shared_limit),
            (chunk.local.bytes, LOCAL_WINDOW, self._lanes * chunk.local_stride, 0, chunk.state.local_size),
        )
        parts = []
        for array, window, base, first, limit in windows:
            offsets = addresses - window
            picked = np.flatnonzero(
                (offsets >= first) & (offsets <= limit - size) & (addresses < window + WINDOW_BYTES)
            )
            if len(picked):
                parts.append((array, (offsets + base)[picked], picked))
        memory = chunk.state.memory
        starts, ends = memory.extents()
        if len(starts):
            extent = np.searchsorted(starts, addresses, "right") - 1
            picked = np.flatnonzero((extent >= 0) & (addresses <= ends[extent] - size))
            if len(picked):
                parts.append((memory.bytes, addresses[picked] - memory.base, picked))
        return parts


def space_of(address: int) -> str:
    """Return the state space of an address: global, shared or local."""
    windows = (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW))
    return next((name for name, first in windows if first <= address < first + WINDOW_BYTES), "global")


def index_value(coordinates: Array) -> Value:
    """Return threadIdx or blockIdx, from one row of three coordinates per lane."""
    members = {axis: Value(UNSIGNED, coordinates[:, place]) for place, axis in enumerate("xyz")}
    return Value(INDEX, None, None, np.ones(len(coordinates), np.bool_), members)


def extents_value(extents: tuple[int, int, int], lanes: int) -> Value:
    """Return blockDim or gridDim, which is the same for all lanes."""
    return index_value(np.broadcast_to(np.array(extents, np.uint32), (lanes, 3)))


def as_pointer(value: Value) -> Value:
    """Return an array as a pointer to its first element, as C++ does, and any other value unchanged.

    Raises ExpressionError for a value of an unknown type.
    """
    value.check_type()
    if isinstance(value.type, ArrayType):
        return Value(Pointer(value.type.element), value.addresses, None, value.known)
    return value


def as_address(value: Value) -> Value:
    """Return a value as `as_pointer` does, but one of an unknown type as a pointer to ``void``."""
    if isinstance(value.type, Unknown):
        return Value(Pointer(None), value.addresses, None, value.known)
    return as_pointer(value)
