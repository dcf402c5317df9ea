"""C types: how the parameters of the driver's and the runtime's functions are passed.

Pointers and handles are passed as addresses. The few structures that are passed by value are described here, because
C needs their size and members to pass them.
"""

from __future__ import annotations

import ctypes
from types import ModuleType
from typing import Any

_Type = type[Any]

ADDRESS: _Type = ctypes.c_size_t
_NUMBERS: dict[str, _Type] = {
    "char": ctypes.c_char,
    "unsigned char": ctypes.c_ubyte,
    "unsigned short": ctypes.c_ushort,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "unsigned": ctypes.c_uint,
    "size_t": ctypes.c_size_t,
    "long long": ctypes.c_longlong,
    "unsigned long long": ctypes.c_ulonglong,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "uint32_t": ctypes.c_uint32,
    "cuuint32_t": ctypes.c_uint32,
    "cuuint64_t": ctypes.c_uint64,
    "CUdevice": ctypes.c_int,
    "CUlogIterator": ctypes.c_uint,
    "CUlogicalEndpointId": ctypes.c_uint,
    "cudaLogIterator": ctypes.c_uint,
    "GLenum": ctypes.c_uint,
    "GLuint": ctypes.c_uint,
    "EGLint": ctypes.c_uint,
    "VdpDevice": ctypes.c_uint,
    "VdpVideoSurface": ctypes.c_uint,
    "VdpOutputSurface": ctypes.c_uint,
}


class Dim3(ctypes.Structure):
    """The extents of a grid or a block."""

    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Extent(ctypes.Structure):
    """The size of a box of memory: its width in bytes or elements, its height and its depth."""

    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class PitchedPointer(ctypes.Structure):
    """Pitched memory: its address, the pitch in bytes, and the width and height of the allocation."""

    _fields_ = [
        ("ptr", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t),
        ("xsize", ctypes.c_size_t),
        ("ysize", ctypes.c_size_t),
    ]


class MemoryLocation(ctypes.Structure):
    """A device or the host, as a type and an ordinal."""

    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class IpcHandle(ctypes.Structure):
    """A handle for another process."""

    _fields_ = [("reserved", ctypes.c_char * 64)]


_BY_VALUE: dict[str, _Type] = {
    "dim3": Dim3,
    "cudaExtent": Extent,
    "cudaPitchedPtr": PitchedPointer,
    "CUmemLocation": MemoryLocation,
    "cudaMemLocation": MemoryLocation,
    "CUipcMemHandle": IpcHandle,
    "CUipcEventHandle": IpcHandle,
    "cudaIpcMemHandle_t": IpcHandle,
    "cudaIpcEventHandle_t": IpcHandle,
}

_SPELLINGS: dict[_Type, str] = {
    ctypes.c_char: "char",
    ctypes.c_ubyte: "unsigned char",
    ctypes.c_ushort: "unsigned short",
    ctypes.c_int: "int",
    ctypes.c_uint: "unsigned int",
    ctypes.c_ulong: "unsigned long",
    ctypes.c_longlong: "long long",
    ctypes.c_ulonglong: "unsigned long long",
    ctypes.c_float: "float",
    ctypes.c_double: "double",
    Dim3: "struct { unsigned x, y, z; }",
    Extent: "struct { size_t width, height, depth; }",
    PitchedPointer: "struct { size_t address, pitch, width, height; }",
    MemoryLocation: "struct { int type, id; }",
    IpcHandle: "struct { char reserved[64]; }",
}


def c_type(name: str, bindings: ModuleType) -> _Type | None:
    """Return the ctypes type for a C type by name, None for void.

    Enumerations are the classes of `bindings` by that name, or have a name that ends in Result.
    """
    if name.endswith("*"):
        return ADDRESS
    if name == "void":
        return None
    known = _NUMBERS.get(name) or _BY_VALUE.get(name)
    if known is not None:
        return known
    found = getattr(bindings, name, None)
    # The bindings' enumerations are integers, but those of version 13.5 are not derived from Enum.
    if name.endswith("Result") or (isinstance(found, type) and hasattr(found, "__members__")):
        return ctypes.c_int
    # The others are pointers to opaque structures and to functions, and 64-bit numbers such as CUdeviceptr.
    return ADDRESS


def definitions() -> str:
    """Return C definitions of the structures that are passed by value, under the names that `spelling` returns."""
    lines = [f"typedef {text} {kind.__name__};" for kind, text in _SPELLINGS.items() if text.startswith("struct")]
    return "\n".join(lines)


def spelling(kind: _Type | None) -> str:
    """Return the C spelling of a ctypes type; None is void."""
    if kind is None:
        return "void"
    return kind.__name__ if issubclass(kind, ctypes.Structure) else _SPELLINGS[kind]
