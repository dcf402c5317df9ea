"""The variables of a kernel in shared memory: their names, their types and their shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .cpp_types import Array, CType, Scalar

if TYPE_CHECKING:
    from ..ptx.syntax.instructions import Variable
    from .dwarf import DebugInformation
    from .lines import Lines

_MANGLED = re.compile(r"(\d+)([A-Za-z_]\w*?)(?:_\d+)?(?:@.*)?$")
# The declaration of an array in the source: NVRTC describes no types of shared variables.
_DECLARATION = (
    r"__shared__\s+(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?([A-Za-z_][\w:]*(?:\s+[a-z]+)*)\s+%s\s*((?:\[[^\]]*\])*)"
)
_EXTENT = re.compile(r"\[\s*(\w*)\s*\]")
_TYPES = {
    "float": "f4", "double": "f8", "int": "i4", "unsigned": "u4", "unsigned int": "u4", "bool": "?", "char": "i1",
    "unsigned char": "u1", "short": "i2", "unsigned short": "u2", "long long": "i8", "unsigned long long": "u8",
    "long": "i8", "unsigned long": "u8", "size_t": "u8", "__half": "f2", "half": "f2", "int8_t": "i1", "uint8_t": "u1",
    "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4", "uint32_t": "u4", "int64_t": "i8", "uint64_t": "u8",
}  # fmt: skip  # rows of a table
_PTX = {
    "f32": "f4",
    "f64": "f8",
    "u64": "u8",
    "s64": "i8",
    "u16": "u2",
    "s16": "i2",
    "s32": "i4",
    "u8": "u1",
    "s8": "i1",
}
_WORD = 4


@dataclass(frozen=True)
class SharedVariable:
    """A variable at an offset in bytes in its block's shared memory."""

    name: str
    offset: int
    type: CType


def shared_variables(lines: Lines, size: int, information: DebugInformation) -> dict[str, SharedVariable]:
    """Return the kernel's shared variables by name; `size` is that of all shared memory of a block."""
    entry = lines.entry
    described = {one.memory.name: one.type for one in information.globals if one.memory is not None}
    declared: dict[str, tuple[Variable, str]] = {}
    for body in (entry.body, *entry.called):
        declared |= {name: (one, lines.source(body)) for name, one in body.shared.items()}
    whole = "\n".join(lines.text(entry.home))
    declared |= {name: (one, whole) for name, one in entry.module.shared.items()}
    found: dict[str, SharedVariable] = {}
    for mangled, offset in entry.shared_offsets.items():
        name = plain_name(mangled)
        variable, source = declared[mangled]
        bytes_ = variable.size or size - offset
        if bytes_ > 0:
            type_ = (
                described.get(mangled.partition("@")[0])
                or _declared(name, bytes_, source)
                or _of_ptx(variable.element_type, bytes_)
            )
            found.setdefault(name, SharedVariable(name, offset, type_))
    return found


def plain_name(mangled: str) -> str:
    """Return the last part of a variable's name: ``tile`` of ``_ZZ3sumPfE4tile``."""
    if not mangled.startswith("_Z"):
        return mangled.partition("@")[0]
    for start in range(len(mangled)):
        match = _MANGLED.match(mangled, start)
        if match and int(match[1]) == len(match[2]):
            return match[2]
    return mangled


def _declared(name: str, size: int, source: str) -> CType | None:
    """Return the type of a variable by its declaration in the source, if its size agrees."""
    match = re.search(_DECLARATION % re.escape(name), source)
    dtype = None if match is None else _TYPES.get(" ".join(match[1].split()))
    if match is None or dtype is None:
        return None
    element: CType = Scalar(match[1], np.dtype(dtype))
    extents = _EXTENT.findall(match[2])
    counts = [int(extent) if extent.isdigit() else 0 for extent in extents]
    if counts.count(0) == 1:
        # The size gives the extent that is a macro or a constant, or that the launch sets.
        known = element.size * prod(count for count in counts if count)
        counts = [count or size // known for count in counts]
    if element.size * prod(counts) != size and "" not in extents:
        return None
    for count in reversed(counts):
        element = Array(element, count)
    return element


def _of_ptx(kind: str, size: int) -> CType:
    """Return the type of a variable by its type in PTX, which for an array is bytes; they are shown as words."""
    element = Scalar(kind, np.dtype(_PTX.get(kind, "u4" if size % _WORD == 0 else "u1")))
    return element if element.size == size else Array(element, size // element.size)
