"""Tensor maps (``CUtensorMap``): the global array that a tensor copy accesses, and the box that it moves.

A tensor map has 128 bytes, in the simulator's own format. The axes are in the order of the PTX manual: elements are
contiguous along axis 0. A copy moves a box whose first element has given coordinates, which may be negative. In shared
memory, the rows of a box are `pitch` bytes apart. The parts of a box outside the array are filled when they are loaded,
and are not written when they are stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..instructions import conversions
from .matrix_descriptors import UNIT, swizzled

Array = NDArray[Any]

# The size of a tensor map in bytes, and the alignment of its address.
BYTES, ALIGNMENT = 128, 64
MOST_AXES = 5
# The alignment of a box in shared memory.
BOX_ALIGNMENT = 128
_SIGNATURE = 0x50414D54
# Bytes 8 to 15 are unused: CUTLASS and Triton clear a bit of them in the maps of small arrays, since the driver of CUDA
# 13.1 and earlier ones leave it set by mistake.
_LAYOUT = np.dtype(
    {
        "names": [
            *("signature", "element", "axes", "swizzle", "nan"),
            *("address", "sizes", "strides", "box", "steps", "interleave"),
        ],
        "formats": ["u4", "u1", "u1", "u1", "u1", "u8", ("u4", 5), ("u8", 4), ("u2", 5), ("u1", 5), "u1"],
        "offsets": [0, 4, 5, 6, 7, 88, 16, 40, 72, 82, 87],
        "itemsize": BYTES,
    }
)


class Element(NamedTuple):
    """An element type: the PTX type of its values in reductions, and its size in bytes.

    Loads round elements of a type that is `rounded` to TF32. Reductions flush subnormal numbers of a type with `ftz`.
    """

    ptx_type: str
    size: int
    rounded: bool = False
    ftz: bool = False

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers."""
        return "f" in self.ptx_type


# By the values of the enumeration CUtensorMapDataType. On an H200, loads flush no subnormal numbers of any type.
ELEMENTS = (
    Element("u8", 1), Element("u16", 2), Element("u32", 4), Element("s32", 4), Element("u64", 8), Element("s64", 8),
    Element("f16", 2), Element("f32", 4), Element("f64", 8), Element("bf16", 2),
    Element("f32", 4, ftz=True), Element("f32", 4, rounded=True), Element("f32", 4, rounded=True, ftz=True),
)  # fmt: skip  # rows of a table
# The NaN outside an array consists of these 16 bits, repeated (measured on an H200).
_NAN = 0x7FF7
_TF32_BITS = 0xFFFFE000
_to_tf32 = array_function(conversions.to_tf32, "f32")


# The values that the numbers of ``tensormap.replace`` mean, for fields that take a number from a list; further numbers
# are not simulated. PTX numbers the element types in another order than the driver.
ENUMERATIONS: dict[str, tuple[int, ...]] = {
    "elemtype": (0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12),
    "interleave_layout": (0,),
    "swizzle_mode": (0, 1, 2, 3),
    "fill_mode": (0, 1),
}
# The fields that ``tensormap.replace`` may change: a field of `_LAYOUT`, and the number that is added to the new value.
# PTX counts dimensions from 0.
_REPLACED = {
    "global_address": ("address", 0), "rank": ("axes", 1), "box_dim": ("box", 0), "global_dim": ("sizes", -1),
    "global_stride": ("strides", 0), "element_stride": ("steps", 0), "elemtype": ("element", 0),
    "swizzle_mode": ("swizzle", 0), "fill_mode": ("nan", 0), "interleave_layout": ("interleave", 0),
}  # fmt: skip  # rows of a table
FIELDS = frozenset(_REPLACED)
# The value of a field for which a kernel has chosen something that is not simulated.
NOT_SIMULATED = 255
_MOST_BOX, _MOST_STEP = 256, 8


class Change(NamedTuple):
    """A change of a field of tensor maps: its offset in bytes, its dtype, and its new values."""

    offset: int
    dtype: np.dtype[Any]
    values: Any


def changes(name: str, ordinal: int, values: Any) -> tuple[Change, Change]:
    """Return the bytes that change a field, given by its name in PTX, and those that mark the map as valid."""
    field, added = _REPLACED[name]
    assert _LAYOUT.fields is not None
    dtype, offset = _LAYOUT.fields[field][:2]
    kind = dtype.base
    changed = (np.asarray(values).astype(np.int64) + added).astype(kind)
    return (
        Change(offset + ordinal * kind.itemsize, kind, changed),
        Change(0, np.dtype(np.uint32), np.uint32(_SIGNATURE)),
    )


def lacking_feature(data: bytes) -> str:
    """Return which field of a tensor map, as PTX names it, has a value that is not simulated; "" if none has."""
    raw = np.frombuffer(data, _LAYOUT)[0]
    if raw["signature"] != _SIGNATURE:
        return ""
    return next((name for name in ENUMERATIONS if raw[_REPLACED[name][0]] == NOT_SIMULATED), "")


class Box(NamedTuple):
    """A box at given coordinates.

    `units` contains the address in shared memory of each unit of 16 bytes, in the order of the box's elements; `shape`
    is the number of its rows, and of bytes per row. `rows` contains the indices of the rows that are inside the array,
    and `starts` the global address of the first element of each of these rows that is inside. `inside` is the slice of
    bytes of a row that are inside.
    """

    units: Array
    shape: tuple[int, int]
    rows: Array
    starts: Array
    inside: slice

    @property
    def nbytes_inside(self) -> int:
        """The number of bytes of a row that are inside the array."""
        return int(self.inside.stop - self.inside.start)


@dataclass(frozen=True)
class TensorMap:
    """The contents of a tensor map.

    `element` is an index of `ELEMENTS`. `strides` are the bytes between elements along all axes but the first. `steps`
    are the strides, in elements, with which a box traverses its axes. `swizzle` is the number of address bits that
    swizzling changes: 0 to 3, for none, 32, 64 and 128 bytes. `nan` fills with NaN instead of zeros.
    """

    element: int
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int = 0
    nan: bool = False

    @property
    def kind(self) -> Element:
        """The element type."""
        return ELEMENTS[self.element]

    @property
    def extents(self) -> tuple[int, ...]:
        """The number of elements of a box along each axis; steps have no effect on axis 0."""
        return (self.box[0], *(-(-size // step) for size, step in zip(self.box[1:], self.steps[1:], strict=True)))

    @property
    def nbytes(self) -> int:
        """The size of a box in bytes, which a barrier counts whether or not the box is inside the array."""
        return math.prod(self.extents) * self.kind.size

    def pack(self) -> bytes:
        """Return the 128 bytes."""
        raw = np.zeros((), _LAYOUT)
        raw["signature"], raw["element"], raw["axes"] = _SIGNATURE, self.element, len(self.sizes)
        raw["swizzle"], raw["nan"], raw["address"] = self.swizzle, self.nan, self.address
        # A size may be 2**32.
        for name, values in (("sizes", [size - 1 for size in self.sizes]), ("strides", self.strides),
                             ("box", self.box), ("steps", self.steps)):  # fmt: skip  # one line for each half
            raw[name][: len(values)] = values
        return raw.tobytes()

    @classmethod
    def unpack(cls, data: bytes) -> TensorMap | None:
        """Return the contents of 128 bytes, or None if they are not a tensor map."""
        raw = np.frombuffer(data, _LAYOUT)[0]
        if raw["signature"] != _SIGNATURE:
            return None
        axes = int(raw["axes"])
        # A kernel may have composed the map.
        if not 1 <= axes <= MOST_AXES or lacking_feature(data):
            return None
        box, steps = raw["box"][:axes], raw["steps"][:axes]
        if min(box) < 1 or max(box) > _MOST_BOX or min(steps) < 1 or max(steps) > _MOST_STEP:
            return None

        def values(name: str, count: int = axes) -> tuple[int, ...]:
            return tuple(raw[name][:count].tolist())

        sizes = tuple(size + 1 for size in values("sizes"))
        return cls(
            int(raw["element"]), int(raw["address"]), sizes, values("strides", axes - 1), values("box"),
            values("steps"), int(raw["swizzle"]), bool(raw["nan"]),
        )  # fmt: skip  # in the order of the fields

    def at(self, address: int) -> TensorMap:
        """Return the map of an array at another address."""
        return replace(self, address=address)

    def locate(self, coordinates: Array, shared: int) -> Box:
        """Return the box at these coordinates, and at this address in shared memory as the kernel sees it."""
        extents, size = self.extents, self.kind.size
        place, inside = np.zeros(1, np.int64), np.ones(1, np.bool_)
        for axis in range(1, len(extents)):
            index = int(coordinates[axis]) + np.arange(extents[axis], dtype=np.int64) * self.steps[axis]
            here = (index >= 0) & (index < self.sizes[axis])
            # The last axis is the outermost one.
            place = (np.where(here, index * self.strides[axis - 1], 0)[:, None] + place).reshape(-1)
            inside = (here[:, None] & inside).reshape(-1)
        first = int(coordinates[0])
        low, high = max(0, -first), max(0, min(extents[0], self.sizes[0] - first))
        rows = np.flatnonzero(inside) if low < high else np.zeros(0, np.int64)
        length = extents[0] * size
        pitch = max(length, UNIT << self.swizzle) if self.swizzle else length
        units = np.arange(len(place))[:, None] * pitch + np.arange(0, length, UNIT)
        return Box(
            swizzled(shared + units.reshape(-1), 1 << self.swizzle),
            (len(place), length),
            rows,
            self.address + place[rows] + (first + low) * size,
            slice(low * size, max(low, high) * size),
        )

    def filled(self, shape: tuple[int, int]) -> Array:
        """Return the bytes of a box of this shape (rows, bytes) that is entirely outside the array."""
        return np.full((shape[0], shape[1] // 2), _NAN if self.nan else 0, np.uint16).view(np.uint8)

    def converted(self, data: Array) -> Array:
        """Return bytes from global memory as loads write them to shared memory."""
        if not self.kind.rounded or not data.size:
            return data
        # Unlike the result of `cvt`, a NaN has zeros in the bits that TF32 lacks.
        rounded = _to_tf32(np.ascontiguousarray(data).view(np.float32)).view(np.uint32) & np.uint32(_TF32_BITS)
        return np.asarray(rounded).view(np.uint8)
