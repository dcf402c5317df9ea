"""C++ types, as a compiler describes them for debuggers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A number, a boolean or a character; `dtype` is NumPy's."""

    name: str
    dtype: np.dtype

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


CType: TypeAlias = Scalar | Pointer | Array | Structure

INT = Scalar("int", np.dtype(np.int32))
UNSIGNED = Scalar("unsigned int", np.dtype(np.uint32))
LONG = Scalar("long long", np.dtype(np.int64))
DOUBLE = Scalar("double", np.dtype(np.float64))
BOOL = Scalar("bool", np.dtype(np.bool_))
