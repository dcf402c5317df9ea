"""The packing of a launch's arguments into the kernel's parameter buffer.

A packing function is generated for each kernel from its signature, because a loop over the parameters would take
several times as long as the driver call. The function packs arguments of the most common types directly. If an argument
has another type, or if struct finds an integer out of range, `convert_all` converts all arguments or raises an error.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compilation.names.signatures import Parameter, Signature
from ..context.device import Device
from ..memory.allocation import PitchedAllocation
from ..streams.stream import Stream
from .conversion import convert_all

_FLOAT32_MAX = float(np.finfo(np.float32).max)

# Called with a buffer of the signature's size, the arguments, and the stream of the launch.
Packer = Callable[[Any, tuple[Any, ...], Stream], None]

# Native formats: packing a native unsigned long takes half the time of a Q.
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
# The values to pack for arguments that are not packed as they are.
_VALUES = {
    "pointer": "{0}._address",
    "array": "{0}.size, {0}.itemsize, {0}._address, *{0}._shape, *{0}.strides",
}
_SOURCE = """
def pack(buffer, arguments, stream):
    try:
        {names} = arguments
        if {tests}:
            pack_into(buffer, 0, {values})
            return
    except (AttributeError, ValueError, error):  # no array, another number of arguments, an integer out of range
        pass
    pack_into(buffer, 0, *convert(arguments, stream))
"""


def make_packer(name: str, device: Device, signature: Signature) -> Packer:
    """Return a function that checks and packs a launch's arguments; the function raises TypeError and ValueError.

    `name` is the kernel's name for the error messages, and `device` is the device that the kernel runs on.
    """
    parameters = signature.parameters
    source = _SOURCE.format(
        names="".join(f"a{i}, " for i in range(len(parameters))) or "()",
        tests=" and ".join(_plain(i, parameter) for i, parameter in enumerate(parameters)) or "True",
        values=", ".join(_VALUES.get(parameter.kind, "{0}").format(f"a{i}") for i, parameter in enumerate(parameters)),
    )

    def convert(arguments: tuple[Any, ...], stream: Stream) -> tuple[Any, ...]:
        return convert_all(name, device, stream, signature, arguments)

    space: dict[str, Any] = {
        "PitchedAllocation": PitchedAllocation,
        "convert": convert,
        "device": device,
        "error": struct.error,
        "pack_into": _layout(signature).pack_into,
        **{f"dtype{i}": _dtype(parameter) for i, parameter in enumerate(parameters)},
    }
    # A path inside this package, so that warnings about a launch skip this frame when they look for the caller.
    file = os.path.join(os.path.dirname(__file__), f"<packing for {name}>")
    exec(compile(source, file, "exec"), space)  # the source is ours
    packer: Packer = space["pack"]
    return packer


def _plain(index: int, parameter: Parameter) -> str:
    """Return the source of an expression that is true if an argument can be packed directly."""
    name, kind = f"a{index}", parameter.kind
    dtype = f" and {name}._dtype is dtype{index}" if parameter.dtype is not None else ""
    # Only a DeviceArray has `_ready_on`. For views and others in which it is None, the full test follows.
    is_open = f"{name}._value is not None and not {name}._base.closed"
    if kind == "array" and parameter.layout != "F":
        in_order = f" and {name}._is_contiguous" if parameter.layout == "C" else ""
        shape = f" and len({name}._shape) == {parameter.dimensions}{in_order}"
        return f"({name}._ready_on is device or {name}._device is device and {is_open}){dtype}{shape}"
    if kind == "pointer" and parameter.dtype != "bfloat16":
        in_order = f"({name}._is_contiguous or type({name}._base) is PitchedAllocation)"
        aligned = f" and {name}._address % {parameter.divisor} == 0" if parameter.divisor > 1 else ""
        return f"({name}._ready_on is device or {name}._device is device and {is_open} and {in_order}){dtype}{aligned}"
    if kind == "integer":
        return f"type({name}) is int" + (f" and {name} % {parameter.divisor} == 0" if parameter.divisor > 1 else "")
    if parameter.dtype == "float32":  # the range is tested because struct's native "f" packs an overflow as infinity
        return f"type({name}) is float and -{_FLOAT32_MAX} <= {name} <= {_FLOAT32_MAX}"
    if parameter.dtype == "float64":
        return f"type({name}) is float"
    return f"type({name}) is bool" if kind == "bool" else "False"


def _dtype(parameter: Parameter) -> np.dtype[Any] | None:
    """Return the dtype that an array must have; None if any is accepted or if NumPy has no such dtype."""
    return None if parameter.dtype in (None, "bfloat16") else np.dtype(parameter.dtype)


def _layout(signature: Signature) -> struct.Struct:
    """Return the layout of the parameters."""
    form, position = "@", 0
    for parameter in signature.parameters:
        form += "x" * (parameter.offset - position) + _format(parameter)
        position = parameter.offset + parameter.size
    return struct.Struct(form)


def _format(parameter: Parameter) -> str:
    if parameter.kind == "pointer":
        return "N"
    if parameter.kind == "array":
        # Two null pointers for objects of the host, the number of elements, the size of an element in bytes, the
        # address, the shape, and the strides in bytes.
        return f"16xqqN{2 * parameter.dimensions}q"
    # Values of all other types are packed as bytes.
    return _FORMATS.get(parameter.dtype or "", f"{parameter.size}s")
