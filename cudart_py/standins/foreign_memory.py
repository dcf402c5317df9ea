"""Memory of the program: reads and writes through its pointers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from .c_types import ADDRESS

# Strings that a function has returned stay valid for the life of the process, as the driver's do.
_strings: dict[bytes, ctypes.Array[ctypes.c_char]] = {}


def read(address: int, kind: Any = ADDRESS) -> Any:
    """Return the number of a ctypes type at an address."""
    return kind.from_address(address).value


def read_array(address: int, count: int, kind: Any = ADDRESS) -> list[Any]:
    """Return the numbers of an array; a null pointer is an empty one."""
    return list((kind * count).from_address(address)) if address else []


def read_string(address: int) -> bytes | None:
    """Return a string that ends with a zero; None for a null pointer."""
    return ctypes.string_at(address) if address else None


def write(address: int, value: Any, kind: Any = ADDRESS) -> None:
    """Write a number or a handle, but not through a null pointer, which means that the caller needs no result."""
    if address:
        kind.from_address(address).value = value if isinstance(value, float) else int(value)


def write_array(address: int, values: Iterable[Any], kind: Any = ADDRESS) -> None:
    """Write numbers or handles one after another."""
    if address:
        for index, value in enumerate(values):
            write(address + index * ctypes.sizeof(kind), value, kind)


def write_structure(address: int, value: ctypes.Structure) -> None:
    """Write a structure, unless the pointer is null."""
    if address:
        ctypes.memmove(address, ctypes.addressof(value), ctypes.sizeof(value))


def write_bytes(address: int, content: bytes) -> None:
    """Write bytes, unless the pointer is null."""
    if address:
        ctypes.memmove(address, content, len(content))


def string_address(text: bytes) -> int:
    """Return the address of a copy of a string that stays valid for the life of the process."""
    if text not in _strings:
        _strings[text] = ctypes.create_string_buffer(text)
    return ctypes.addressof(_strings[text])
