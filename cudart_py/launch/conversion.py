"""Conversion of launch arguments, checked one by one against the C++ signature.

A launch's packer comes here if it cannot pack an argument directly: a number of another type, an array of another
library, a structure, or an invalid argument. Errors name the kernel, the argument's index and its C++ type.
"""

from __future__ import annotations

import ctypes
import math
import operator
from typing import Any, NamedTuple

import numpy as np

from ..base.arguments import describe
from ..base.pointer import Pointer
from ..base.shapes import is_contiguous
from ..base.wording import counted
from ..compilation.names.signatures import Parameter, Signature
from ..context.device import Device
from ..driver import enums
from ..foreign.wrapping import is_foreign, wrap
from ..memory.allocation import PitchedAllocation
from ..memory.array import KEEP_OPEN, DeviceArray
from ..memory.host_memory import device_pointer, pinned_owner
from ..streams.graphs.conditionals import Condition
from ..streams.stream import Stream
from ..tensor_maps import TensorMap
from ..textures.cuda_array import CudaArray
from ..textures.surface import Surface
from ..textures.texture import Texture

# The complex dtypes that match structures of two floats or doubles, keyed by size in bytes.
_COMPLEX = {8: np.complex64, 16: np.complex128}

_TENSOR_MAP_BYTES = 128
# No process has memory below this address, so that a smaller integer is probably another argument.
_LOWEST_ADDRESS = 65536

# Accepted arguments for a parameter of type unsigned long long, the C++ type of the handles.
_HANDLES = (
    "a cudart_py.textures.Texture (as a cudaTextureObject_t), a cudart_py.textures.Surface (as a cudaSurfaceObject_t), "
    "a cudart_py.graphs.Condition (as a cudaGraphConditionalHandle) or an integer"
)

# Accepted arguments for parameters that are not pointers, keyed by parameter kind.
_WANTED = {"bool": "a bool", "integer": "an integer", "enum": "an integer", "float": "a number"}


class _Place(NamedTuple):
    """One parameter of one kernel. Its string is the start of an error message about an argument."""

    kernel: str
    device: Device
    stream: Stream
    position: int
    parameter: Parameter

    def __str__(self) -> str:
        kind = self.parameter.type or f"{self.parameter.size} bytes"
        return f"argument {self.position} of {self.kernel} ({kind})"


def integer_range(parameter: Parameter) -> tuple[int, int]:
    """Return the minimum and the maximum value of an integer parameter."""
    bits = parameter.bits
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if parameter.signed else (0, 2**bits - 1)


def convert_all(
    name: str, device: Device, stream: Stream, signature: Signature, arguments: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Check all arguments of a launch and return the values for the `struct.Struct` of the signature.

    `name` is the kernel's name, `device` its device, and `stream` the launch's stream, which waits for the streams that
    arrays of other libraries name. Raises TypeError and ValueError.
    """
    parameters = signature.parameters
    takes_structure = len(parameters) == 1 and parameters[0].kind == "structure"
    if len(arguments) == 1 and isinstance(arguments[0], tuple) and not takes_structure:
        raise TypeError(f"{signature} takes separate arguments, not a tuple: write {name}[grid, block](*arguments)")
    if len(arguments) != len(parameters):
        has_stream = any(isinstance(argument, Stream) for argument in arguments)
        remedy = f"; write the stream as {name}[grid, block, shared_bytes, stream](...)" if has_stream else ""
        given = f"{len(arguments)} {'was' if len(arguments) == 1 else 'were'} given"
        raise TypeError(f"{signature} takes {counted(len(parameters), 'argument')}, but {given}{remedy}")
    places = (_Place(name, device, stream, position, parameter) for position, parameter in enumerate(parameters))
    values: list[Any] = []
    for place, argument in zip(places, arguments, strict=True):
        if place.parameter.kind == "array":
            array, address = _accessible_array(place, argument)
            values += (array.size, array.itemsize, address, *array.shape, *array.strides)
        else:
            values.append(_convert(place, argument))
    return tuple(values)


def _convert(place: _Place, argument: Any) -> Any:
    """Check one argument and return the value to pack."""
    parameter = place.parameter
    if parameter.kind == "pointer":
        return _pointer(place, argument)
    if parameter.kind != "unknown" and isinstance(argument, ctypes._SimpleCData):
        argument = argument.value
    if "(*)" in parameter.type and isinstance(argument, DeviceArray):
        remedy = "if an array of pointers contains it, pass array.view(np.uint64).to_host()[0]"
        raise TypeError(f"{place} takes the address of a function as an np.uint64, not a DeviceArray: {remedy}")
    if parameter.kind == "unknown" and isinstance(argument, DeviceArray | Pointer):
        return _by_value(place, np.uint64(_pointer(place, argument)))
    if isinstance(argument, DeviceArray):
        raise TypeError(f"{place} takes {_wanted(place, argument)}, not a DeviceArray")
    if parameter.kind == "bool":
        if isinstance(argument, bool | np.bool_):
            return bool(argument)
        raise TypeError(f"{place} takes a bool, not {_what(argument)}")
    if isinstance(argument, Texture | Surface):
        return _object(place, argument)
    if isinstance(argument, Condition):
        return _condition(place, argument)
    if isinstance(argument, TensorMap):
        return _tensor_map(place, argument)
    if parameter.kind == "integer":
        return _integer(place, argument, *integer_range(parameter))
    if parameter.kind == "enum" and hasattr(type(argument), "__index__"):
        bits = parameter.bits
        value = _integer(place, argument, -(2 ** (bits - 1)), 2**bits - 1)
        return (value % 2**bits).to_bytes(parameter.size, "little")
    if parameter.kind == "float":
        return _floating(place, argument)
    return _by_value(place, argument)


def _what(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return f"a host array of dtype {argument.dtype} and shape {argument.shape}"
    return describe(argument)


def _wanted(place: _Place, argument: Any) -> str:
    """Return a phrase for the accepted arguments of a non-pointer parameter, for the message about a wrong type."""
    # In C++ the handles are numbers. A caller who passes a number meant a number, so the message then does not list
    # handles.
    if place.parameter.type == "unsigned long long" and not isinstance(argument, int | float | np.number):
        return _HANDLES
    return _WANTED.get(place.parameter.kind, "a value")


def _remedy(argument: Any) -> str:
    """Return the end of the message about a wrong type: what to write instead of a CUDA array, else nothing."""
    if not isinstance(argument, CudaArray):
        return ""
    return (
        "; pass cudart_py.textures.Texture(array) for a cudaTextureObject_t, or cudart_py.textures.Surface(array) for "
        "a cudaSurfaceObject_t"
    )


def _integer(place: _Place, argument: Any, low: int, high: int) -> int:
    if isinstance(argument, np.bool_):
        argument = bool(argument)  # unlike NumPy's, Python's bool is an integer
    if isinstance(argument, np.ndarray) or not hasattr(type(argument), "__index__"):
        remedy = "; convert it with int()" if isinstance(argument, float | np.floating) else _remedy(argument)
        raise TypeError(f"{place} takes {_wanted(place, argument)}, not {_what(argument)}{remedy}")
    value = operator.index(argument)
    if not low <= value <= high:
        raise ValueError(f"{place} takes integers from {low} to {high}, not {describe(value)}")
    if value % place.parameter.divisor:
        raise ValueError(f"{place} takes multiples of {place.parameter.divisor}, not {describe(value)}")
    return value


def _object(place: _Place, thing: Texture | Surface) -> Any:
    """Return the handle of a texture or surface object: an int, or bytes if the parameter's type is unknown."""
    parameter, device, kind = place.parameter, place.device, type(thing).__name__
    noun = kind.lower()
    if parameter.dtype != "uint64" and (parameter.kind != "unknown" or parameter.size != 8):
        raise TypeError(
            f"{place} does not take a {noun}; declare the parameter as cuda{kind}Object_t (unsigned long long)"
        )
    if thing.closed:
        raise ValueError(f"{place}: the {noun} or its array is closed")
    if thing.device is not device:
        raise ValueError(
            f"{place}: the {noun} is on device {thing.device.ordinal}, but the kernel is on {device.ordinal}"
        )
    return thing.handle if parameter.dtype == "uint64" else thing.handle.to_bytes(8, "little")


def _condition(place: _Place, condition: Condition) -> Any:
    parameter, device = place.parameter, place.device
    if parameter.dtype != "uint64" and (parameter.kind != "unknown" or parameter.size != 8):
        raise TypeError(
            f"{place} does not take a Condition; declare it as cudaGraphConditionalHandle (unsigned long long)"
        )
    if condition.device is not device:
        raise ValueError(
            f"{place}: the Condition is on device {condition.device.ordinal}, but the kernel is on {device.ordinal}"
        )
    return condition.handle if parameter.dtype == "uint64" else condition.handle.to_bytes(8, "little")


def _tensor_map(place: _Place, tensor_map: TensorMap) -> bytes:
    parameter = place.parameter
    if parameter.kind not in ("structure", "unknown") or parameter.size != _TENSOR_MAP_BYTES:
        raise TypeError(
            f"{place} does not take a TensorMap; declare the parameter as const __grid_constant__ CUtensorMap"
        )
    if tensor_map.closed:
        raise ValueError(f"{place}: the array of the TensorMap is closed")
    _check_access(place, tensor_map.device)
    return bytes(tensor_map)


def _floating(place: _Place, argument: Any) -> Any:
    parameter = place.parameter
    if isinstance(argument, np.generic) and argument.dtype.name == parameter.dtype == "bfloat16":
        return argument.tobytes()
    if isinstance(argument, bool | np.bool_) or not isinstance(argument, int | float | np.integer | np.floating):
        raise TypeError(f"{place} takes a number, not {_what(argument)}")
    try:
        rounded, packed = _round(parameter.dtype or "float64", argument)
    except OverflowError:
        raise ValueError(f"{place} cannot hold {describe(argument)}: it is too large") from None
    if isinstance(argument, int | np.integer) and not (math.isfinite(rounded) and int(argument) == int(rounded)):
        raise ValueError(f"{place} cannot hold {describe(argument)} exactly; pass a float to have it rounded")
    if math.isfinite(argument) and not math.isfinite(rounded):
        raise ValueError(f"{place} cannot hold {argument!r}: it is too large")
    return packed


def _round(dtype: str, value: Any) -> tuple[float, float | bytes]:
    """Round a number to a floating-point type; return the rounded value and the value to pack with `struct`."""
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            # NumPy has no bfloat16. It is the upper half of a float32, rounded to nearest, ties to even.
            bits = int(np.float32(value).view(np.uint32))
            upper = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if math.isfinite(value) else bits >> 16
            return float(np.uint32(upper << 16).view(np.float32)), upper.to_bytes(2, "little")
        rounded = np.dtype(dtype).type(value)
    return float(rounded), rounded.tobytes() if dtype == "float16" else float(rounded)


def _by_value(place: _Place, argument: Any) -> bytes:
    if isinstance(argument, complex) and place.parameter.size in _COMPLEX:
        argument = np.array(argument, _COMPLEX[place.parameter.size])
    if isinstance(argument, np.generic | np.ndarray) and not argument.dtype.hasobject:
        raw = argument.tobytes()
    elif isinstance(argument, ctypes.Structure | ctypes.Union | ctypes.Array | ctypes._SimpleCData):
        raw = bytes(argument)
    else:
        raise TypeError(
            f"{place} is passed by value: pass a NumPy scalar or array (of a structured dtype for a structure) or a "
            f"ctypes structure of {place.parameter.size} bytes, not {_what(argument)}{_remedy(argument)}"
        )
    if len(raw) != place.parameter.size:
        raise ValueError(f"{place} has {place.parameter.size} bytes, but {_what(argument)} has {len(raw)}")
    return raw


def _pointer(place: _Place, argument: Any) -> int:
    address = _address(place, argument)
    if address % place.parameter.divisor:
        raise ValueError(
            f"{place} takes an address that is a multiple of {place.parameter.divisor}, not {address:#x}; compile the "
            "kernel without this assumption, or pass a copy of the array"
        )
    return address


def _address(place: _Place, argument: Any) -> int:
    if argument is None:
        return 0
    if isinstance(argument, Pointer):
        return argument.value
    if isinstance(argument, ctypes.c_void_p):
        return argument.value or 0
    if isinstance(argument, enums.CUdeviceptr):
        return int(argument)
    return _accessible_array(place, argument)[1]


def _accessible_array(place: _Place, argument: Any) -> tuple[DeviceArray | np.ndarray[Any, Any], int]:
    """Check an array, and return it as an array that the kernel can access, with its address."""
    if isinstance(argument, DeviceArray):
        if argument.closed:
            raise ValueError(f"{place}: the array is closed{argument._closed_by() or KEEP_OPEN}")
        _check_order(place, argument, is_pitched=_has_pitch(argument))
        _check_dtype(place, argument.dtype)
        _check_access(place, argument.device)
        return argument, argument.pointer
    if isinstance(argument, np.ndarray):
        owner = pinned_owner(argument)
        if owner is not None and owner.mapped:
            _check_order(place, argument)
            _check_dtype(place, argument.dtype)
            return argument, int(device_pointer(argument))
        hint = (
            "make it with pinned_empty(..., mapped=True)" if owner is not None else "copy it with cudart_py.to_device"
        )
        raise TypeError(f"{place} takes a device pointer, not {_what(argument)}; {hint}")
    if is_foreign(argument):
        writes = None if place.parameter.constant else "declare the parameter as a pointer to const"
        array = wrap(place.kernel, f"arguments[{place.position}]", argument, place.stream, writes)
        _check_order(place, array)
        _check_dtype(place, array.dtype)
        _check_access(place, array.device)
        return array, array.pointer
    if isinstance(argument, int | np.integer) and not isinstance(argument, bool):
        remedy = f"; for a raw address write cudart_py.Pointer({int(argument):#x})"
        if abs(int(argument)) < _LOWEST_ADDRESS:
            remedy = "; check the order of the arguments"
        raise TypeError(
            f"{place} takes an array, not {_what(argument)}{'' if place.parameter.kind == 'array' else remedy}"
        )
    raise TypeError(f"{place} takes a device array, not {_what(argument)}{_remedy(argument)}")


def _has_pitch(array: DeviceArray) -> bool:
    """Return whether an array is a series of whole rows of a pitched allocation.

    Such an array need not be contiguous, because the caller passes the pitch to the kernel as another argument.
    """
    whole = array.base if isinstance(array.base, DeviceArray) else array
    return (
        isinstance(whole.base, PitchedAllocation)
        and array.strides == whole.strides
        and array.shape[1:] == whole.shape[1:]
    )


def _check_order(place: _Place, array: DeviceArray | np.ndarray[Any, Any], *, is_pitched: bool = False) -> None:
    """Refuse an array in another order than the kernel expects, because it would access the wrong elements."""
    parameter = place.parameter
    if parameter.kind == "array":
        _check_layout(place, array)
    # The kernel gets only the address.
    elif not (is_pitched or is_contiguous(array.shape, array.strides, array.itemsize)):
        copied = "" if parameter.constant else " and copy that back"
        on_host = isinstance(array, np.ndarray)
        raise ValueError(
            f"{place} takes an array in C order, not a view of shape {array.shape} with strides of {array.strides} "
            f"bytes, since a pointer has no strides; pass a copy of it{copied}, or its address: "
            f"{'cudart_py.device_pointer(view)' if on_host else 'cudart_py.Pointer(view.pointer, owner=view)'}"
        )


def _check_layout(place: _Place, array: DeviceArray | np.ndarray[Any, Any]) -> None:
    """Refuse an array that has another number of dimensions, or other strides, than the kernel was compiled for."""
    parameter = place.parameter
    if len(array.shape) != parameter.dimensions:
        noun = "dimension" if parameter.dimensions == 1 else "dimensions"
        raise TypeError(f"{place} takes an array with {parameter.dimensions} {noun}, not one of shape {array.shape}")
    axes = slice(None, None, -1 if parameter.layout == "F" else 1)
    if parameter.layout != "A" and not is_contiguous(array.shape[axes], array.strides[axes], array.itemsize):
        raise ValueError(
            f"{place} takes a contiguous array in {parameter.layout} order, not one of shape {array.shape} with "
            f"strides of {array.strides} bytes; pass a copy of it, or declare the parameter with any strides: "
            f"[{', '.join(':' * parameter.dimensions)}]"
        )


def _check_access(place: _Place, home: Device) -> None:
    device = place.device
    if device is not home and not device.peer_enabled(home):
        raise ValueError(
            f"{place}: the array is on device {home.ordinal}, and device {device.ordinal} has no access; "
            f"call Device({device.ordinal}).enable_peer(Device({home.ordinal})), or copy the array"
        )


def _check_dtype(place: _Place, dtype: np.dtype[Any]) -> None:
    parameter = place.parameter
    if parameter.dtype == "bfloat16":
        # NumPy itself has no bfloat16, so an array of its bit patterns is accepted too.
        fits = dtype.name == "bfloat16" or dtype == np.uint16
    else:
        fits = parameter.dtype is None or dtype == parameter.dtype
    if not fits:
        remedy = "" if parameter.dtype == "bfloat16" else f"; create it with dtype=np.{parameter.dtype}"
        raise TypeError(f"{place} takes an array of {parameter.dtype}, not of {dtype}{remedy}")
