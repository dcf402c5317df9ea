"""C++ types, as a compiler describes them for debuggers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A number, a boolean or a character; `dtype` is NumPy's. An enumeration has `enumerators`: values and names."""

    name: str
    dtype: np.dtype
    enumerators: tuple[tuple[int, str], ...] = field(default=(), repr=False)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.dtype.itemsize


@dataclass(frozen=True)
class Pointer:
    """A pointer or a reference; `target` is None for ``void*`` and for types that are not described."""

    target: CType | None
    is_reference: bool = False
    size: int = 8

    @property
    def name(self) -> str:
        """The type as C++ spells it."""
        return f"{'void' if self.target is None else self.target.name}{'&' if self.is_reference else '*'}"


@dataclass(frozen=True)
class Array:
    """An array of `count` elements; an array with several dimensions is an array of arrays."""

    element: CType
    count: int

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.element.size * self.count

    @property
    def name(self) -> str:
        """The type as C++ spells it."""
        extents, element = f"[{self.count}]", self.element
        while isinstance(element, Array):
            extents, element = f"{extents}[{element.count}]", element.element
        return f"{element.name}{extents}"


@dataclass(frozen=True)
class Member:
    """A member of a structure, at an offset in bytes."""

    name: str
    offset: int
    type: CType


@dataclass(frozen=True)
class Structure:
    """A structure, a class or a union."""

    name: str
    size: int
    members: tuple[Member, ...] = field(repr=False)


@dataclass(frozen=True)
class Unknown:
    """The type of a variable if only its size in bytes is known."""

    variable: str
    size: int

    @property
    def name(self) -> str:
        """The text that is shown instead of a type."""
        return f"<unknown type, {self.size} bytes>"


CType: TypeAlias = Scalar | Pointer | Array | Structure | Unknown

BOOL = Scalar("bool", np.dtype(np.bool_))
CHAR = Scalar("char", np.dtype(np.int8))
INT = Scalar("int", np.dtype(np.int32))
UNSIGNED = Scalar("unsigned int", np.dtype(np.uint32))
LONG = Scalar("long long", np.dtype(np.int64))
UNSIGNED_LONG = Scalar("unsigned long long", np.dtype(np.uint64))
HALF = Scalar("__half", np.dtype(np.float16))
FLOAT = Scalar("float", np.dtype(np.float32))
DOUBLE = Scalar("double", np.dtype(np.float64))
_DTYPES = {
    "float": "f4", "double": "f8", "int": "i4", "signed": "i4", "unsigned": "u4", "unsigned int": "u4", "bool": "?",
    "char": "i1", "signed char": "i1", "unsigned char": "u1", "short": "i2", "unsigned short": "u2", "long long": "i8",
    "unsigned long long": "u8", "long": "i8", "unsigned long": "u8", "size_t": "u8", "__half": "f2", "half": "f2",
    "int8_t": "i1", "uint8_t": "u1", "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4", "uint32_t": "u4",
    "int64_t": "i8", "uint64_t": "u8",
}  # fmt: skip  # rows of a table
# The number types by the names that C++ and CUDA give them.
NUMBERS = {name: Scalar(name, np.dtype(dtype)) for name, dtype in _DTYPES.items()}
# The words of the names of integers, in the order in which `NUMBERS` has them; it leaves "int" and "signed" out.
_INTEGER_WORDS = ("signed", "unsigned", "long", "short", "char", "int")
_VECTOR_ELEMENTS = {
    "char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short", "int": "int",
    "uint": "unsigned int", "long": "long", "ulong": "unsigned long", "longlong": "long long",
    "ulonglong": "unsigned long long", "float": "float", "double": "double",
}  # fmt: skip  # rows of a table


def number_named(name: str) -> Scalar | None:
    """Return the number type with a name, whose words may have any order: ``long unsigned int``."""
    words = name.split()
    if name in NUMBERS or not words or not set(words) <= set(_INTEGER_WORDS):
        return NUMBERS.get(name)
    kept = sorted(set(words) - {"int", "signed"}, key=_INTEGER_WORDS.index)
    if words.count("long") > 1:
        kept.append("long")
    return NUMBERS.get(" ".join(kept) or "int")


def vector_type(name: str, element: CType, count: int) -> Structure:
    """Return a structure of up to four numbers, such as `float4`."""
    members = (Member(axis, number * element.size, element) for number, axis in enumerate("xyzw"[:count]))
    return Structure(name, count * element.size, tuple(members))


# CUDA's vector types, by name.
VECTORS = {
    f"{prefix}{count}": vector_type(f"{prefix}{count}", NUMBERS[element], count)
    for prefix, element in _VECTOR_ELEMENTS.items()
    for count in (1, 2, 3, 4)
}
INDEX = vector_type("uint3", UNSIGNED, 3)
