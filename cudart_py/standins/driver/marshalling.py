"""Marshalling: C arguments to the arguments that the bindings' functions take, and results back to C's pointers.

The parameters of a function of `cuda.bindings.driver` are those of the C function without the pointers that it writes
through, in the same order. The values that it returns after the status are stored through these pointers. So one rule
serves most functions; `special.py` has the others.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver as bindings

from ..c_types import ADDRESS, c_type
from ..declarations import Parameter
from ..foreign_memory import read_array, read_string, string_address, write, write_array, write_bytes
from ..functions import Function

Implementation = Callable[..., int]
# The structures that are nothing but bytes: the bindings do not let every version write them.
_OPAQUE = ("CUipcEventHandle", "CUipcMemHandle", "CUmemPoolPtrExportData", "CUuuid")
# The sizes of these, and of the structures of which functions take arrays.
STRUCTURE_BYTES = {
    "CUDA_MEMCPY3D_BATCH_OP": 112,
    "CUgraphEdgeData": 8,
    "CUipcEventHandle": 64,
    "CUipcMemHandle": 64,
    "CUlaunchAttribute": 72,
    "CUmemAccessDesc": 12,
    "CUmemLocation": 8,
    "CUmemPoolPtrExportData": 64,
    "CUmemcpyAttributes": 24,
    "CUuuid": 16,
}

# The counts that come before their arrays, and a part of the names of the arrays.
_PRECEDING = {"numOptions": "option", "numOps": "opList"}

Reader = Callable[[tuple[Any, ...]], Any]
Writer = Callable[[int, Any], None]


def structure(name: str) -> type[Any] | None:
    """Return the bindings' class for a C structure by name, or None if the type is not a structure."""
    found = getattr(bindings, name, None)
    return found if isinstance(found, type) and hasattr(found, "getPtr") and not hasattr(found, "__int__") else None


def marshal(function: Function, target: Callable[..., tuple[Any, ...]]) -> Implementation | None:
    """Return a C function that calls a function with the bindings' parameters; None if they do not match."""
    expected = list(inspect.signature(target).parameters)
    readers: list[Reader] = []
    writers: list[tuple[int, Writer]] = []
    parameters = function.declaration.parameters
    for index, parameter in enumerate(parameters):
        if parameter.is_pointer and not parameter.constant and parameter.name not in expected:
            writers.append((index, _writer(parameter)))
        else:
            readers.append(_reader(parameters, index))
    if len(readers) != len(expected):
        return None

    def call(*arguments: int) -> int:
        status, *values = target(*[reader(arguments) for reader in readers])
        if not status:
            for (index, writer), value in zip(writers, values, strict=True):
                writer(arguments[index], value)
        return int(status)

    return call


def _reader(parameters: tuple[Parameter, ...], index: int) -> Reader:
    """Return a function of all C arguments that converts one of them for the bindings."""
    parameter = parameters[index]
    counted = _count_index(parameters, index)
    passed = structure(parameter.type)
    if passed is not None:  # by value
        return lambda arguments: passed(_ptr=ctypes.addressof(arguments[index]))
    if not parameter.is_pointer or parameter.pointee == "void" or (parameter.pointee == "void*" and counted is None):
        return lambda arguments: arguments[index]
    if parameter.type == "char*":
        return lambda arguments: read_string(arguments[index])
    found = structure(parameter.pointee)
    if found is None:
        if counted is None:
            return lambda arguments: arguments[index]
        kind = c_type(parameter.pointee, bindings)
        return lambda arguments: read_array(arguments[index], arguments[counted], kind)
    if counted is None:
        return lambda arguments: found(_ptr=arguments[index]) if arguments[index] else None
    return lambda arguments: structures(parameter.pointee, arguments[index], arguments[counted])


def _count_index(parameters: tuple[Parameter, ...], index: int) -> int | None:
    """Return the index of the parameter that counts the elements of an array, or None if it is one element.

    The count follows the arrays that it is for, except for options and operations, which it precedes.
    """
    following = next((place for place in range(index + 1, len(parameters)) if not parameters[place].is_pointer), None)
    if following is not None and _counts(parameters[following]):
        return following
    preceding = [
        place
        for place in range(index)
        if parameters[place].name in _PRECEDING and _PRECEDING[parameters[place].name] in parameters[index].name
    ]
    return preceding[0] if preceding else None


def _counts(parameter: Parameter) -> bool:
    return parameter.name == "count" or (parameter.name.startswith("num") and parameter.name != "numMipmapLevels")


def structures(name: str, address: int, count: int) -> list[Any] | None:
    """Return the bindings' objects for an array of structures; None for a null pointer."""
    found = getattr(bindings, name)
    if not address:
        return None
    return [found(_ptr=address + index * STRUCTURE_BYTES[name]) for index in range(count)]


def _writer(parameter: Parameter) -> Writer:
    """Return a function that writes a result to the pointer that the program has passed for it."""
    pointee = parameter.pointee
    found = structure(pointee)
    if pointee == "char":
        return write_bytes
    if parameter.type == "char**":
        return lambda address, text: write(address, string_address(text))
    if found is not None:
        return lambda address, value: copy_structure(found(_ptr=address), value) if address else None
    # A void pointer receives 64 bits, unless `special` says otherwise.
    kind = c_type(pointee, bindings) or ADDRESS

    def store(address: int, value: Any) -> None:
        if isinstance(value, list):
            write_array(address, value, kind)
        else:
            write(address, value, kind)

    return store


def copy_structure(target: Any, source: Any) -> None:
    """Copy all members of a structure of the bindings to another."""
    for name in _OPAQUE:
        if isinstance(source, getattr(bindings, name)):
            ctypes.memmove(target.getPtr(), source.getPtr(), STRUCTURE_BYTES[name])
            return
    for name in dir(type(source)):
        if not name.startswith("_") and name != "getPtr":
            setattr(target, name, getattr(source, name))
