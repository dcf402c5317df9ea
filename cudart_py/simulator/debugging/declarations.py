"""The types of shared variables by their declarations in the source, since NVRTC does not describe them."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from ...debugging.expression_syntax import ExpressionError, Node, parse
from .cpp_types import NUMBERS, VECTORS, Array, CType, Member, Structure

if TYPE_CHECKING:
    from .dwarf import DebugInformation

_EXTENTS = r"((?:\[[^\]]*\]\s*)*)"
_ALIGNED = r"(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?"
_SHARED = r"__shared__\s+" + _ALIGNED + r"(?:struct\s+|volatile\s+)?([A-Za-z_][\w:]*(?:\s+[a-z]+)*)\s+%s\s*" + _EXTENTS
_EXTENT = re.compile(r"\[([^\]]*)\]")
_STRUCTURE = r"\bstruct\s+%s\s*\{([^{}]*)\}"
_MEMBERS = re.compile(r"\s*((?:\w+\s+)*?\w+)\s+(\w+\s*(?:\[[^\]]*\]\s*)*(?:,\s*\w+\s*(?:\[[^\]]*\]\s*)*)*)$")
_MEMBER = re.compile(r"(\w+)\s*" + _EXTENTS)
_CONSTANT = r"(?:#define\s+%s\s+|\bconst(?:expr)?\b[\w\s]*\b%s\s*=\s*)([^;\n/]+)"
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEEPEST = 8


class Declarations:
    """The declarations in a source file, beside the types that debug information describes."""

    def __init__(self, source: str, information: DebugInformation) -> None:
        self._source = _COMMENTS.sub("", source)
        self._information = information

    def shared_type(self, name: str, size: int, function: str) -> CType | None:
        """Return the type of a shared variable that is declared in the text of a function, if its size agrees.

        The size gives one extent that the source does not, such as a template's argument, or an empty one that the
        launch sets. An array with several of them is shown with one dimension.
        """
        match = re.search(_SHARED % re.escape(name), function)
        element = None if match is None else self._named(" ".join(match[1].split()))
        if match is None or element is None or size % element.size:
            return None
        counts = [self._integer_in(extent) or 0 for extent in _EXTENT.findall(match[2])]
        known = element.size * prod(count for count in counts if count)
        if counts.count(0) == 1 and size % known == 0:
            counts[counts.index(0)] = size // known
        elif 0 in counts:
            counts = [size // element.size]
        elif known != size:
            return None
        return _array(element, counts)

    def _named(self, name: str) -> CType | None:
        plain = name.rpartition("::")[2]
        return NUMBERS.get(name) or VECTORS.get(name) or self._information.named(plain) or self._structure(plain)

    def _structure(self, name: str) -> Structure | None:
        """Return a structure of numbers, vectors and arrays by its declaration, or None if it has other members."""
        match = re.search(_STRUCTURE % re.escape(name), self._source)
        if match is None:
            return None
        members: list[Member] = []
        offset, most = 0, 1
        for text in filter(str.strip, match[1].split(";")):
            declared = _MEMBERS.match(text)
            element = None if declared is None else self._named(" ".join(declared[1].split()))
            if declared is None or element is None:
                return None
            alignment = _alignment(element)
            most = max(most, alignment)
            for one in _MEMBER.finditer(declared[2]):
                counts = [self._integer_in(extent) or 0 for extent in _EXTENT.findall(one[2])]
                if 0 in counts:
                    return None
                type_ = _array(element, counts)
                offset = -(-offset // alignment) * alignment
                members.append(Member(one[1], offset, type_))
                offset += type_.size
        return Structure(name, -(-offset // most) * most, tuple(members)) if members else None

    def _integer_in(self, text: str, depth: int = 0) -> int | None:
        """Return the value of a constant expression, or None if the source alone does not give it."""
        try:
            return self._integer(parse(text), depth)
        except ExpressionError:
            return None

    def _integer(self, node: Node, depth: int) -> int | None:
        if node[0] == "number":
            return int(node[1], 0) if node[1].isdigit() else None
        if node[0] == "name":
            match = re.search(_CONSTANT % (node[1], node[1]), self._source)
            return self._integer_in(match[1], depth + 1) if match is not None and depth < _DEEPEST else None
        if node[0] != "binary":
            return None
        one, other = self._integer(node[2], depth), self._integer(node[3], depth)
        if one is None or other is None or (node[1] == "/" and not other):
            return None
        results = {"+": one + other, "-": one - other, "*": one * other}
        return one // other if node[1] == "/" else results.get(node[1])


def _array(element: CType, counts: list[int]) -> CType:
    for count in reversed(counts):
        element = Array(element, count)
    return element


def _alignment(type_: CType) -> int:
    """Return the alignment of a type in bytes; a vector type of two or four numbers is aligned to its size."""
    if isinstance(type_, Array):
        return _alignment(type_.element)
    if not isinstance(type_, Structure):
        return type_.size
    if type_.name in VECTORS and type_.size in (2, 4, 8, 16):
        return type_.size
    return max(_alignment(member.type) for member in type_.members)
