"""Tensor maps, `cuda.tensor_maps`: descriptors of arrays, with which one thread copies a whole box of elements."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Literal, get_args

import numpy as np

from .base import arguments
from .context.device import Device
from .driver import enums
from .driver.calls import api
from .memory.array import DeviceArray

__all__ = ["TensorMap"]
__dir__ = __all__.copy  # without private names and imports

Element = Literal["bfloat16", "float32_ftz", "tfloat32", "tfloat32_ftz"]

# The driver's name of the element type for each dtype. Copies only move elements of other types of one byte.
_TYPES = {
    "bool": "UINT8", "int8": "UINT8", "uint8": "UINT8", "int16": "UINT16", "uint16": "UINT16", "int32": "INT32",
    "uint32": "UINT32", "int64": "INT64", "uint64": "UINT64", "float16": "FLOAT16", "float32": "FLOAT32",
    "float64": "FLOAT64", "bfloat16": "BFLOAT16", "float8_e4m3fn": "UINT8", "float8_e5m2": "UINT8",
}  # fmt: skip  # rows of a table
# The driver's name and the dtype of the array for each value of the argument `element`.
_OTHER_TYPES = {
    "bfloat16": ("BFLOAT16", "uint16"),
    "float32_ftz": ("FLOAT32_FTZ", "float32"),
    "tfloat32": ("TFLOAT32", "float32"),
    "tfloat32_ftz": ("TFLOAT32_FTZ", "float32"),
}
_SWIZZLES = (0, 32, 64, 128)
_PROMOTIONS = (0, 64, 128, 256)
_UNIT = 16
_MOST_AXES, _MOST_BOX, _MOST_STEP, _MOST_STRIDE = 5, 256, 8, 1 << 40
_BYTES = 128


class TensorMap:
    """A tensor map, which kernels take as a `CUtensorMap` to copy boxes of an array (cuTensorMapEncodeTiled).

        boxes = cuda.tensor_maps.TensorMap(x, (64, 32), swizzle=128)
        kernel[grid, block, boxes.nbytes](boxes, out)

    The kernel's parameter is `const __grid_constant__ CUtensorMap`, and `cp.async.bulk.tensor` copies a box of the
    array to shared memory, or back. The array is kept alive.

    - `array`: a `DeviceArray` of one to five dimensions, of integers, float16, bfloat16, float32 or float64. The
      elements of its last axis must be adjacent; all other strides, and the address, must be multiples of 16 bytes.
    - `box`: the shape of the boxes, at most 256 elements along each axis, in the order of the array's axes. Kernels
      give the coordinates of a box in the opposite order, the last axis first. The last axis must have a multiple of
      16 bytes, and boxes must begin at multiples of 16 bytes along it.
    - `swizzle`: the size in bytes (32, 64 or 128) of the parts of shared memory in which units of 16 bytes are
      exchanged to avoid bank conflicts, or 0. The last axis of a box must not be longer.
    - `element_strides`: for each axis, the distance between the elements that are copied, from 1 to 8. A box then has
      `ceil(size / stride)` elements along the axis. The last axis has no stride.
    - `fill`: "zeros" or "nan", the value with which elements outside the array are loaded; "nan" needs floating-point
      elements. Elements outside the array are not written when a box is stored.
    - `element`: "bfloat16" for an array of `uint16`. For an array of `float32`, "tfloat32" rounds elements to TF32 when
      they are loaded, "float32_ftz" flushes subnormal numbers in reductions, and "tfloat32_ftz" does both.
    - `l2_promotion`: the size in bytes (64, 128 or 256) to which fetches into the L2 cache are extended, or 0.

    Raises TypeError for dtypes that tensor maps do not have, and ValueError for arrays and boxes that break these rules
    or if the device's compute capability is below 9.0.
    """

    __slots__ = ("_array", "_box", "_native", "_shape", "_swizzle")

    def __init__(
        self,
        array: DeviceArray,
        box: tuple[int, ...],
        *,
        swizzle: Literal[0, 32, 64, 128] = 0,
        element_strides: tuple[int, ...] | None = None,
        fill: Literal["zeros", "nan"] = "zeros",
        element: Element | None = None,
        l2_promotion: Literal[0, 64, 128, 256] = 0,
    ) -> None:
        call = "TensorMap"
        self._array = arguments.opened(call, "array", array, DeviceArray)
        if not 1 <= array.ndim <= _MOST_AXES:
            raise arguments.unusable(call, "array", "have one to five dimensions", f"the shape {array.shape}")
        kind = _type_of(array, element)
        strides = _strides(call, array)
        self._box = arguments.integers(call, "box", box, array.ndim, 1)
        steps = (1,) * array.ndim
        if element_strides is not None:
            steps = arguments.integers(call, "element_strides", element_strides, array.ndim, 1)
        self._swizzle = _one_of(call, "swizzle", swizzle, _SWIZZLES)
        self._shape = tuple(-(-size // step) for size, step in zip(self._box, steps, strict=True))
        self._check_box(steps)
        promotion = _one_of(call, "l2_promotion", l2_promotion, _PROMOTIONS)
        if arguments.choice(call, "fill", fill, ("zeros", "nan")) == "nan" and "FLOAT" not in kind:
            rule = "be 'zeros' unless the elements are floats"
            raise arguments.unusable(call, "fill", rule, f"'nan' for {array.dtype}")
        if array.device.compute_capability < (9, 0):
            rule = "be on a device of compute capability 9.0 or later"
            raise arguments.unusable(call, "array", rule, array.device)
        # The driver requires a list of strides even for one axis, and then ignores its element.
        pitches = strides[:-1] or (0,)
        self._native = api.cuTensorMapEncodeTiled(
            getattr(enums.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
            array.ndim,
            array.pointer,
            *([enums.cuuint64_t(value) for value in reversed(values)] for values in (array.shape, pitches)),
            *([enums.cuuint32_t(value) for value in reversed(values)] for values in (self._box, steps)),
            enums.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            _mode(enums.CUtensorMapSwizzle, "SWIZZLE", self._swizzle),
            _mode(enums.CUtensorMapL2promotion, "L2_PROMOTION", promotion, "L2_"),
            enums.CUtensorMapFloatOOBfill(int(fill == "nan")),
        )

    def _check_box(self, steps: tuple[int, ...]) -> None:
        """Raise ValueError for a box or strides of elements that break the driver's rules."""
        call, itemsize = "TensorMap", self._array.itemsize
        most = self._array.device.properties.shared_memory_per_block_optin
        if max(self._box) > _MOST_BOX:
            raise arguments.unusable(call, "box", f"have at most {_MOST_BOX} elements along each axis", self._box)
        row = self._box[-1] * itemsize
        if row % _UNIT:
            rule = f"have a multiple of {_UNIT} bytes along the last axis"
            raise arguments.unusable(call, "box", rule, f"{self._box[-1]} x {itemsize}")
        if self.nbytes > most:
            rule = f"have at most {most} bytes, which a block's shared memory has"
            raise arguments.unusable(call, "box", rule, self.nbytes)
        if self._swizzle and row > self._swizzle:
            rule = f"have at most {self._swizzle} bytes along the last axis with swizzle={self._swizzle}"
            raise arguments.unusable(call, "box", rule, row)
        if max(steps) > _MOST_STEP:
            raise arguments.unusable(call, "element_strides", f"be at most {_MOST_STEP}", steps)
        if steps[-1] != 1:
            rule = "be 1 for the last axis, whose elements are always copied one after another"
            raise arguments.unusable(call, "element_strides", rule, steps)

    # -- attributes ----------------------------------------------------------------------------

    @property
    def array(self) -> DeviceArray:
        """The array whose boxes are copied."""
        return self._array

    @property
    def box(self) -> tuple[int, ...]:
        """The shape of the boxes, including the elements that element strides skip."""
        return self._box

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements of a box in shared memory along each axis."""
        return self._shape

    @property
    def nbytes(self) -> int:
        """The size of a box in bytes, which the barrier of a load must expect even at the edges of the array."""
        return math.prod(self._shape) * self._array.itemsize

    @property
    def swizzle(self) -> int:
        """The size in bytes of the swizzled parts of shared memory, or 0."""
        return self._swizzle

    @property
    def device(self) -> Device:
        """The device that the array belongs to."""
        return self._array.device

    @property
    def closed(self) -> bool:
        """Whether the array has been closed."""
        return self._array.closed

    @property
    def native(self) -> Any:
        """The `CUtensorMap` of cuda.bindings, for raw calls."""
        return self._native

    def __bytes__(self) -> bytes:
        """Return the 128 bytes that a kernel takes, to be copied to an array of tensor maps for example."""
        return bytes((ctypes.c_char * _BYTES).from_address(self._native.getPtr()))

    def __repr__(self) -> str:
        array = "closed" if self.closed else f"{self._array.shape} {self._array.dtype}"
        return f"<TensorMap {array}, boxes of {self._box}>"

    # -- changes -------------------------------------------------------------------------------

    def replace_address(self, array: DeviceArray) -> None:
        """Make later launches use another array of the same shape, strides and dtype (cuTensorMapReplaceAddress).

        Launches that have been bound keep the previous array. Raises TypeError and ValueError for any other array.
        """
        call, before = "TensorMap.replace_address", self._array
        arguments.opened(call, "array", array, DeviceArray)
        if array.dtype != before.dtype:
            raise arguments.wrong_dtype(call, "array", f"{before.dtype} like the previous array", array.dtype)
        for name in ("shape", "strides", "device"):
            expected, actual = getattr(before, name), getattr(array, name)
            if actual != expected:
                raise arguments.unusable(call, "array", f"have the {name} {expected} of the previous array", actual)
        _check_address(call, array)
        api.cuTensorMapReplaceAddress(self._native, array.pointer)
        self._array = array


def _type_of(array: DeviceArray, element: Element | None) -> str:
    """Return the driver's name of the type of an array's elements."""
    call, dtype = "TensorMap", array.dtype
    if element is None:
        if dtype.name not in _TYPES:
            raise arguments.wrong_dtype(call, "array", "integers, float16, bfloat16, float32 or float64", dtype)
        return _TYPES[dtype.name]
    arguments.choice(call, "element", element, get_args(Element))
    kind, expected = _OTHER_TYPES[element]
    if dtype != np.dtype(expected):
        raise arguments.wrong_dtype(call, "array", f"{expected} with element={element!r}", dtype)
    return kind


def _strides(call: str, array: DeviceArray) -> tuple[int, ...]:
    """Return the strides of an array in bytes, after checking that a tensor map can have them."""
    _check_address(call, array)
    if not array.size:
        raise arguments.unusable(call, "array", "have elements", f"the shape {array.shape}")
    if array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        rule = "have adjacent elements along the last axis"
        raise arguments.unusable(call, "array", rule, f"strides of {array.strides} bytes")
    # The stride of an axis with a single element has no meaning, but the driver still requires a valid one.
    found = tuple(
        step if size > 1 else -(-step // _UNIT) * _UNIT for size, step in zip(array.shape, array.strides, strict=True)
    )
    for step in found[:-1]:
        if step % _UNIT or not 0 <= step < _MOST_STRIDE:
            rule = f"have strides that are multiples of {_UNIT} bytes, except along the last axis"
            raise arguments.unusable(call, "array", rule, array.strides, "make the array with empty_pitched")
    return found


def _check_address(call: str, array: DeviceArray) -> None:
    if array.pointer % _UNIT:
        raise arguments.unusable(call, "array", f"begin at a multiple of {_UNIT} bytes", f"at {array.pointer:#x}")


def _one_of(call: str, name: str, value: Any, known: tuple[int, ...]) -> int:
    found = arguments.integer(call, name, value)
    if found not in known:
        raise arguments.wrong_value(call, name, f"one of {', '.join(map(str, known))}", value)
    return found


def _mode(enum: Any, name: str, size: int, prefix: str = "") -> Any:
    """Return the member of an enum for a size in bytes, or for none if it is 0."""
    return getattr(enum, f"CU_TENSOR_MAP_{name}_{f'{prefix}{size}B' if size else 'NONE'}")
