"""The parameters of kernels, in the forms that the bindings accept."""

from __future__ import annotations

import ctypes
import enum
from typing import Any

from cuda.bindings.driver import (
    CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT,
    CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT,
    CU_LAUNCH_PARAM_END_AS_INT,
    CUresult,
)

from ...state.arguments import host_address, number
from ...state.errors import StatusError
from ..modules.functions import LoadedFunction


def packed_parameters(function: LoadedFunction, parameters: Any, extra: Any) -> bytes:
    """Return the bytes of a kernel's parameters, copied from the caller's memory."""
    layout = function.layout
    address = number(extra)
    if address:
        if parameters is not None and parameters != 0:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return _from_extra(address, function.entry.parameter_bytes)
    if not layout:
        return b""
    if type(parameters) is int:
        start = parameters
        held = None
    elif isinstance(parameters, tuple):
        held = _values_to_pointers(parameters)
        start = ctypes.addressof(held[0])
        if len(held[0]) < len(layout):
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    else:
        held = None
        start = host_address(parameters)
    if not start:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    pointers = function.pointers.unpack(ctypes.string_at(start, function.pointers.size))
    if 0 in pointers:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    first = pointers[0]
    if [pointer - first for pointer in pointers] == function.offsets:
        # Callers often pack the parameters into one buffer with the kernel's own layout, which then takes one copy.
        return ctypes.string_at(first, function.entry.parameter_bytes)
    packed = bytearray(function.entry.parameter_bytes)
    for pointer, (offset, size) in zip(pointers, layout, strict=True):
        packed[offset : offset + size] = ctypes.string_at(pointer, size)
    return bytes(packed)


def _from_extra(address: int, expected: int) -> bytes:
    buffer = size = 0
    while (kind := _word(address)) != CU_LAUNCH_PARAM_END_AS_INT:
        value = _word(address + 8)
        if kind == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT:
            buffer = value
        elif kind == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT:
            size = _word(value)
        else:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        address += 16
    if size < expected or (expected and not buffer):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return ctypes.string_at(buffer, expected) if expected else b""


def _word(address: int) -> int:
    """Return the 64-bit word at an address of the host."""
    return ctypes.c_size_t.from_address(address).value


def _values_to_pointers(parameters: tuple[Any, ...]) -> tuple[ctypes.Array[ctypes.c_size_t], list[Any]]:
    """Create the array of pointers for a tuple of values and a tuple of their ctypes, as the bindings do.

    Also return the objects that keep the memory that the pointers refer to alive.
    """
    if len(parameters) != 2 or len(parameters[0]) != len(parameters[1]):
        raise TypeError("kernelParams is not a tuple of values and a tuple of as many types")
    held: list[Any] = []
    addresses = []
    for value, kind in zip(*parameters, strict=True):
        if kind is None:
            if callable(getattr(value, "getPtr", None)):
                addresses.append(value.getPtr())
                held.append(value)
                continue
            cell = ctypes.c_int(value.value) if isinstance(value, enum.Enum) else value
        elif kind is ctypes.c_void_p:
            cell = ctypes.c_size_t(value.value or 0 if isinstance(value, ctypes.c_void_p) else number(value))
        else:
            cell = value if isinstance(value, kind) else kind(getattr(value, "value", value))
        held.append(cell)
        addresses.append(ctypes.addressof(cell))
    return (ctypes.c_size_t * len(addresses))(*addresses), held
