"""Tensor maps: the descriptors of global arrays by which kernels copy boxes in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuda.bindings.driver import (
    CUresult,
    CUtensorMap,
    CUtensorMapFloatOOBfill,
    CUtensorMapInterleave,
    CUtensorMapL2promotion,
    CUtensorMapSwizzle,
    cuuint64_t,
)

from ...ptx.operations.matrix_descriptors import UNIT
from ...ptx.operations.tensor_maps import BYTES, ELEMENTS, MOST_AXES, TensorMap
from ...state.arguments import number
from ...state.attributes import attribute
from ...state.contexts import current
from ...state.errors import StatusError
from ..entry import entry

_MOST_SIZE, _MOST_STRIDE = 1 << 32, 1 << 40
_MOST_BOX, _MOST_STEP = 256, 8
_LEAST_INTERLEAVED = 3
# The number of address bits that each mode swizzles. Modes with larger units need compute capability 10.0.
_SWIZZLES = {
    CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE: 0,
    CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_32B: 1,
    CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B: 2,
    CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B: 3,
}

_PROMOTIONS = {item.value for item in CUtensorMapL2promotion}
_FILLS = {item.value for item in CUtensorMapFloatOOBfill}


def _require(condition: bool) -> None:
    if not condition:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


def _numbers(values: Sequence[Any] | None, count: int) -> tuple[int, ...]:
    """Return the first `count` numbers of a list; further ones are ignored, as in C."""
    found = tuple(number(value) for value in values or ())[:count]
    _require(len(found) == count)
    return found


@entry(values=1)
def cuTensorMapEncodeTiled(
    tensorDataType: Any,
    tensorRank: Any,
    globalAddress: Any,
    globalDim: Any,
    globalStrides: Any,
    boxDim: Any,
    elementStrides: Any,
    interleave: Any,
    swizzle: Any,
    l2Promotion: Any,
    oobFill: Any,
) -> Any:
    """Create a tensor map of an array, from which kernels copy boxes (cuTensorMapEncodeTiled)."""
    current()
    kind, axes = number(tensorDataType), number(tensorRank)
    _require(1 <= axes <= MOST_AXES)
    if interleave != CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE:
        _require(axes >= _LEAST_INTERLEAVED)
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    # Packed elements and the swizzles with larger units need compute capability 10.0.
    _require(kind < len(ELEMENTS) and swizzle in _SWIZZLES)
    element, bits = ELEMENTS[kind], _SWIZZLES[swizzle]
    _require(number(l2Promotion) in _PROMOTIONS and number(oobFill) in _FILLS)
    nan = oobFill != CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
    _require(not nan or element.is_float)
    address = _address(globalAddress)
    # One axis has no stride, but a null pointer is refused nevertheless, as on an H200.
    _require(bool(globalStrides))
    sizes, strides = _numbers(globalDim, axes), _numbers(globalStrides, axes - 1)
    box, steps = _numbers(boxDim, axes), _numbers(elementStrides, axes)
    _require(all(1 <= size <= _MOST_SIZE for size in sizes))
    _require(all(stride % UNIT == 0 and stride < _MOST_STRIDE for stride in strides))
    _require(all(1 <= size <= _MOST_BOX for size in box))
    _require(all(1 <= step <= _MOST_STEP for step in steps))
    _require(box[0] * element.size % UNIT == 0)
    _require(not bits or box[0] * element.size <= UNIT << bits)
    found = TensorMap(kind, address, sizes, strides, box, steps, bits, nan)
    _require(found.nbytes <= attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"))
    return _tensor_map(found)


@entry()
def cuTensorMapReplaceAddress(tensorMap: Any, globalAddress: Any) -> None:
    """Change the address of the array of a tensor map (cuTensorMapReplaceAddress)."""
    _require(tensorMap is not None)
    found = TensorMap.unpack(_bytes(tensorMap))
    address = _address(globalAddress)
    _require(found is not None and address != 0)
    assert found is not None
    tensorMap.opaque = _tensor_map(found.at(address)).opaque


@entry(values=1)
def cuTensorMapEncodeIm2col(
    tensorDataType: Any,
    tensorRank: Any,
    globalAddress: Any,
    globalDim: Any,
    globalStrides: Any,
    pixelBoxLowerCorner: Any,
    pixelBoxUpperCorner: Any,
    channelsPerPixel: Any,
    pixelsPerColumn: Any,
    elementStrides: Any,
    interleave: Any,
    swizzle: Any,
    l2Promotion: Any,
    oobFill: Any,
) -> Any:
    """Refuse to create a tensor map in im2col mode, whose copies are not simulated (cuTensorMapEncodeIm2col)."""
    raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)


def _address(value: Any) -> int:
    address = number(value)
    _require(address % UNIT == 0)
    return address


def _tensor_map(contents: TensorMap) -> Any:
    data, word = contents.pack(), 8
    found = CUtensorMap()
    found.opaque = [cuuint64_t(int.from_bytes(data[at : at + word], "little")) for at in range(0, BYTES, word)]
    return found


def _bytes(tensor_map: Any) -> bytes:
    return b"".join(int(word).to_bytes(8, "little") for word in tensor_map.opaque)
