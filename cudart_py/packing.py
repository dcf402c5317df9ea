"""Kernel arguments: checked against the C++ signature and packed into the bytes that a launch takes.

Per kernel the function that launches is generated. It takes the commonest types as they are; whatever it
does not know goes, with all other arguments, through `convert`, which checks by name and position and
either converts or says what is wrong.
"""

from __future__ import annotations

import ctypes
import math
import operator
import os
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .arguments import describe
from .array import DeviceArray
from .foreign_array import read_interface
from .host_memory import device_pointer, pinned_owner
from .pointer import Pointer
from .signature import Parameter, Signature
from .texture import Texture

if TYPE_CHECKING:
    from .device import Device
    from .kernel import Kernel

__all__ = ["MAX_PARAMETER_BYTES", "MISSING", "convert", "make_packer", "specialized"]

Packer = Callable[[Any, tuple[Any, ...]], None]

# Stands for an argument that was not given.
MISSING: Any = object()

# The limit since CUDA 12.1 on devices of compute capability 7.0 and later.
MAX_PARAMETER_BYTES = 32764

_FLOAT32_MAX = float(np.finfo(np.float32).max)
# Native formats: a native unsigned long is packed in half of a Q's time.
_FORMATS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "l",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "L",
    "float32": "f",
    "float64": "d",
    "bool": "?",
}


def make_packer(kernel: Kernel, offset: int) -> Packer:
    """Return the function that checks the arguments of one launch, of any types, and packs them into a buffer.

    It takes the buffer and the arguments; the parameters begin at `offset`.
    """
    pack_into = _struct(kernel.signature).pack_into

    def pack(buffer: Any, arguments: tuple[Any, ...]) -> None:
        pack_into(buffer, offset, *_convert_all(kernel, arguments))

    return pack


def specialized(template: str, kernel: Kernel, offset: int, namespace: dict[str, Any]) -> Callable[..., None]:
    """Define the function `launch` of a template, which takes the kernel's own arguments, and return it.

    In the template stand `{parameters}`, `{arguments}` for all of them behind each other, `{plain}` for the
    expression that they are of the commonest types and can be packed as they are, and `{packing}` for the
    arguments of the `pack_into` that does that, which raises AttributeError, ValueError, OverflowError or
    `struct_error` where only a value is not plain. An argument that is not given is `missing`.
    """
    parameters = kernel.signature.parameters
    names = [f"a{i}" for i in range(len(parameters))]
    values = [f"a{i}._pointer" if p.kind == "pointer" else f"a{i}" for i, p in enumerate(parameters)]
    source = template.format(
        parameters="".join(f"{name}=missing, " for name in names),
        arguments="".join(f"{name}, " for name in names),
        plain=" and ".join(_plain_test(i, p) for i, p in enumerate(parameters)) or "True",
        packing=", ".join([str(offset), *values]),
    )
    types = {f"t{i}": _numpy_dtype(p) for i, p in enumerate(parameters)}
    pack_into = _struct(kernel.signature).pack_into
    space = {
        **namespace,
        **types,
        "device": kernel.device,
        "missing": MISSING,
        "pack_into": pack_into,
        "struct_error": struct.error,
    }
    # Named as a file of this package, in which nobody looks for the caller of a launch.
    file = os.path.join(os.path.dirname(__file__), f"<launch of {kernel.name}>")
    exec(compile(source, file, "exec"), space)  # the source is ours
    return space["launch"]  # type: ignore[no-any-return]  # defined by the template


def _struct(signature: Signature) -> struct.Struct:
    """Return the layout of the parameters."""
    form, position = "@", 0
    for parameter in signature.parameters:
        form += "x" * (parameter.offset - position) + _format(parameter)
        position = parameter.offset + parameter.size
    return struct.Struct(form)


def _format(parameter: Parameter) -> str:
    if parameter.kind == "pointer":
        return "N"
    # Everything else is packed as its bytes.
    return _FORMATS.get(parameter.dtype or "", f"{parameter.size}s")


def _plain_test(index: int, parameter: Parameter) -> str:
    """Return the expression that is true when an argument can be packed as it is.

    Ranges of integers are left to the struct. What passes for a pointer is a DeviceArray: nothing else has all of
    these attributes.
    """
    name = f"a{index}"
    if parameter.kind == "pointer":
        if parameter.dtype == "bfloat16":
            return "False"
        dtype = f"{name}.dtype is t{index} and " if parameter.dtype is not None else ""
        return f"{dtype}{name}.home is device"
    if parameter.dtype == "float64":
        return f"type({name}) is float"
    if parameter.dtype == "float32":
        # The struct would make infinities of larger ones.
        return f"type({name}) is float and {name} >= {-_FLOAT32_MAX} and {name} <= {_FLOAT32_MAX}"
    if parameter.kind == "bool":
        return f"type({name}) is bool"
    return f"type({name}) is int" if parameter.kind == "integer" else "False"


def _integer_range(parameter: Parameter) -> tuple[int, int]:
    bits = parameter.bits
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if parameter.signed else (0, 2**bits - 1)


def _numpy_dtype(parameter: Parameter) -> np.dtype[Any] | None:
    """Return the dtype that an array or scalar must have; None for those that NumPy has not."""
    return None if parameter.dtype in (None, "bfloat16") else np.dtype(parameter.dtype)


def _convert_all(kernel: Kernel, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    parameters = kernel.signature.parameters
    if len(arguments) != len(parameters):
        raise TypeError(f"{kernel.signature} takes {len(parameters)} arguments, and {len(arguments)} were given")
    return tuple(convert(kernel, i, p, a) for i, (p, a) in enumerate(zip(parameters, arguments, strict=True)))


def convert(kernel: Kernel, position: int, parameter: Parameter, argument: Any) -> Any:
    """Check one argument and return the value to pack; TypeError or ValueError naming kernel and position."""
    where = f"argument {position} of {kernel.name} ({parameter.type or f'{parameter.size} bytes'})"
    if parameter.kind == "pointer":
        return _pointer(kernel, where, parameter, argument)
    if parameter.kind == "unknown" and isinstance(argument, DeviceArray | Pointer):
        return _by_value(where, parameter, np.uint64(_pointer(kernel, where, parameter, argument)))
    if isinstance(argument, DeviceArray):
        raise TypeError(f"{where} is no pointer, and a DeviceArray was given")
    if parameter.kind == "bool":
        if isinstance(argument, bool | np.bool_):
            return bool(argument)
        raise TypeError(f"{where} takes a bool, not {_what(argument)}")
    if isinstance(argument, Texture):
        return _texture(kernel, where, parameter, argument)
    if parameter.kind == "integer":
        return _integer(where, argument, *_integer_range(parameter))
    if parameter.kind == "enum" and hasattr(argument, "__index__"):
        bits = parameter.bits
        value = _integer(where, argument, -(2 ** (bits - 1)), 2**bits - 1)
        return (value % 2**bits).to_bytes(parameter.size, "little")
    if parameter.kind == "float":
        return _floating(where, parameter, argument)
    return _by_value(where, parameter, argument)


def _what(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return f"a host array of {argument.dtype} and shape {argument.shape}"
    return describe(argument)


def _integer(where: str, argument: Any, low: int, high: int) -> int:
    if isinstance(argument, np.ndarray) or not hasattr(argument, "__index__"):
        raise TypeError(f"{where} takes an integer, not {_what(argument)}")
    value = operator.index(argument)
    if not low <= value <= high:
        raise ValueError(f"{where} takes integers from {low} to {high}, not {describe(value)}")
    return value


def _texture(kernel: Kernel, where: str, parameter: Parameter, texture: Texture) -> Any:
    if parameter.dtype != "uint64" and (parameter.kind != "unknown" or parameter.size != 8):
        raise TypeError(f"{where} takes no texture; that would be a cudaTextureObject_t (unsigned long long)")
    if texture.closed:
        raise ValueError(f"{where}: the texture or its array is closed")
    if texture.device is not kernel.device:
        raise ValueError(
            f"{where}: the texture is on device {texture.device.ordinal}, and the kernel on {kernel.device.ordinal}"
        )
    return texture.handle if parameter.dtype == "uint64" else texture.handle.to_bytes(8, "little")


def _floating(where: str, parameter: Parameter, argument: Any) -> Any:
    if isinstance(argument, np.generic) and argument.dtype.name == parameter.dtype == "bfloat16":
        return argument.tobytes()
    if isinstance(argument, bool | np.bool_) or not isinstance(argument, int | float | np.integer | np.floating):
        raise TypeError(f"{where} takes a number, not {_what(argument)}")
    try:
        rounded, packed = _round(parameter.dtype or "float64", argument)
    except OverflowError:
        raise ValueError(f"{where} cannot hold {describe(argument)}: it is too large") from None
    if isinstance(argument, int | np.integer) and not (math.isfinite(rounded) and int(argument) == int(rounded)):
        raise ValueError(f"{where} cannot hold {describe(argument)} exactly; pass a float to have it rounded")
    if math.isfinite(argument) and not math.isfinite(rounded):
        raise ValueError(f"{where} cannot hold {argument!r}: it is too large")
    return packed


def _round(dtype: str, value: Any) -> tuple[float, float | bytes]:
    """Round to a floating type; return the value it has then and what a struct packs."""
    with np.errstate(over="ignore"):
        if dtype == "bfloat16":
            # NumPy has no bfloat16: the upper half of a float32, rounded to nearest, ties to even.
            bits = int(np.float32(value).view(np.uint32))
            upper = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if math.isfinite(value) else bits >> 16
            return float(np.uint32(upper << 16).view(np.float32)), upper.to_bytes(2, "little")
        rounded = np.dtype(dtype).type(value)
    return float(rounded), rounded.tobytes() if dtype == "float16" else float(rounded)


def _by_value(where: str, parameter: Parameter, argument: Any) -> bytes:
    if isinstance(argument, np.void | np.generic) or (isinstance(argument, np.ndarray) and argument.shape == ()):
        raw = argument.tobytes()
    elif isinstance(argument, ctypes.Structure | ctypes.Union | ctypes.Array | ctypes._SimpleCData):
        raw = bytes(argument)
    else:
        raise TypeError(
            f"{where} is passed by value: give a NumPy scalar (np.void of a structured dtype) or a ctypes structure "
            f"of {parameter.size} bytes, not {_what(argument)}"
        )
    if len(raw) != parameter.size:
        raise ValueError(f"{where} has {parameter.size} bytes, and {_what(argument)} has {len(raw)}")
    return raw


def _pointer(kernel: Kernel, where: str, parameter: Parameter, argument: Any) -> int:
    if argument is None:
        return 0
    if isinstance(argument, Pointer):
        return argument.value
    if isinstance(argument, DeviceArray):
        if argument.closed:
            raise ValueError(f"{where}: the array is closed")
        _check_dtype(where, parameter, argument.dtype)
        _check_access(kernel.device, where, argument.device)
        return argument.pointer
    if isinstance(argument, np.ndarray):
        owner = pinned_owner(argument)
        if owner is not None and owner.mapped:
            _check_dtype(where, parameter, argument.dtype)
            return int(device_pointer(argument))
        hint = (
            "make it with pinned_empty(..., mapped=True)" if owner is not None else "copy it with cudart_py.to_device"
        )
        raise TypeError(f"{where} takes a device pointer, not {_what(argument)}; {hint}")
    interface = None if isinstance(argument, type) else getattr(argument, "__cuda_array_interface__", None)
    if interface is not None:
        found = read_interface(kernel.name, where, interface)
        _check_dtype(where, parameter, found.dtype)
        return found.pointer
    if isinstance(argument, int | np.integer) and not isinstance(argument, bool):
        raise TypeError(
            f"{where} takes an array, not {_what(argument)}; for a raw address write "
            f"cudart_py.Pointer({int(argument):#x})"
        )
    raise TypeError(f"{where} takes a device array, not {_what(argument)}")


def _check_access(device: Device, where: str, home: Device) -> None:
    if device is not home and not device.peer_enabled(home):
        raise ValueError(
            f"{where}: the array is on device {home.ordinal}, and device {device.ordinal} has no access; "
            f"call Device({device.ordinal}).enable_peer(Device({home.ordinal})), or copy the array"
        )


def _check_dtype(where: str, parameter: Parameter, dtype: np.dtype[Any]) -> None:
    if parameter.dtype == "bfloat16":
        # Without a dtype of NumPy's, the bit patterns do as well.
        fits = dtype.name == "bfloat16" or dtype == np.uint16
    else:
        fits = parameter.dtype is None or dtype == parameter.dtype
    if not fits:
        raise TypeError(f"{where} takes an array of {parameter.dtype}, not of {dtype}")
