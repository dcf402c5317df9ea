"""The variables of a kernel in shared memory: their names, their types and their shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....compilation.names.demangling import function_name
from .cpp_types import Array, CType, Scalar, Unknown
from .declarations import Declarations

if TYPE_CHECKING:
    from ...ptx.syntax.instructions import Variable
    from .dwarf import DebugInformation
    from .lines import Lines

_MANGLED = re.compile(r"(\d+)([A-Za-z_]\w*?)(?:_\d+)?(?:@.*)?$")
_PTX = {
    "f32": "f4",
    "f64": "f8",
    "u64": "u8",
    "s64": "i8",
    "u32": "u4",
    "s32": "i4",
    "u16": "u2",
    "s16": "i2",
    "u8": "u1",
    "s8": "i1",
}


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
    whole = "\n".join(lines.text(entry.home))
    declared: dict[str, tuple[Variable, str, Declarations]] = {}
    for body in (entry.body, *entry.called):
        declarations = Declarations(whole, information, function_name(body.name))
        declared |= {name: (one, lines.source(body), declarations) for name, one in body.shared.items()}
    declarations = Declarations(whole, information)
    declared |= {name: (one, whole, declarations) for name, one in entry.module.shared.items()}
    found: dict[str, SharedVariable] = {}
    for mangled, offset in entry.shared_offsets.items():
        name = plain_name(mangled)
        variable, source, declarations = declared[mangled]
        bytes_ = variable.size or size - offset
        if bytes_ > 0:
            type_ = (
                _with_size(described.get(mangled.partition("@")[0]), bytes_)
                or declarations.shared_type(name, bytes_, source)
                or _of_ptx(mangled, variable.element_type, bytes_)
                or Unknown(name, bytes_)
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


def _with_size(type_: CType | None, size: int) -> CType | None:
    """Return a type if it has a size; debug information gives the array in dynamic shared memory no elements."""
    if isinstance(type_, Array) and not type_.count and type_.element.size and size % type_.element.size == 0:
        return Array(type_.element, size // type_.element.size)
    return type_ if type_ is not None and type_.size == size else None


def _of_ptx(mangled: str, kind: str, size: int) -> CType | None:
    """Return the type of a variable by its type in PTX, or None if that does not determine it.

    NVRTC declares arrays and structures as bytes, and pointers and signed integers as unsigned integers.
    """
    if kind not in _PTX or (mangled.startswith("_Z") and kind[0] != "f"):
        return None
    element = Scalar(kind, np.dtype(_PTX[kind]))
    return element if element.size == size else Array(element, size // element.size)
