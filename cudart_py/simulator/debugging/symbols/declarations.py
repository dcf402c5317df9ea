"""The types of shared variables by their declarations in the source, since NVRTC does not describe them."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from ....compilation.names.demangling import split_arguments
from ....debugging.expression_syntax import ExpressionError, Node, parse
from .cpp_types import VECTORS, Array, CType, Member, Pointer, Structure, number_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .dwarf import DebugInformation

_EXTENTS = r"((?:\[[^\]]*\]\s*)*)"
_EXTENT = re.compile(r"\[([^\]]*)\]")
_QUALIFIERS = re.compile(
    r"\b(?:extern|static|const|volatile|struct|class|union|enum|__restrict__)\b"
    r"|\b(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)"
)
_DIRECTIVES = re.compile(r"^\s*#(?:\\\n|[^\n])*", re.MULTILINE)
# The words before and after ``__shared__``, which together declare variables.
_SHARED = re.compile(r"([^;{}()]*)\b__shared__\b([^;{}]*);")
_DECLARATORS = re.compile(r",(?![^\[\]]*\])")
_FIRST = re.compile(r"\s*([A-Za-z_][\w:]*(?:\s+\w+)*?)([\s*]+)(\w+)\s*" + _EXTENTS)
_NEXT = re.compile(r"([\s*]*)(\w+)\s*" + _EXTENTS)
_STRUCTURE = r"\bstruct\s+%s\s*\{([^{}]*)\}"
# Specifiers that move a member, or that make it static.
_UNUSUAL = re.compile(r"\b(?:static|__align__|alignas)\b")
_ALIAS = r"\btypedef\s+([\w\s:*]+?[\s*])%s\s*;|\busing\s+%s\s*=([\w\s:*]+);|#define[ \t]+%s[ \t]+([^\n]+)"
_SPELLED = re.compile(r"\s*([A-Za-z_][\w:]*(?:\s+\w+)*?)([\s*]*)")
_TEMPLATE = r"\btemplate\s*<([^<>]*)>(?:(?!\btemplate\b)[^;{}])*?\b%s\s*\("
_PARAMETER = r"\b(?:typename|class)\s+%s\s*[,>=]"
_CONSTANT = r"(?:#define\s+%s\s+|\bconst(?:expr)?\b[\w\s]*\b%s\s*=\s*)([^;\n/]+)"
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEEPEST = 8


class Declarations:
    """The declarations in a source file, and the types that debug information describes.

    `function` is the name of the function whose variables are declared, with the arguments of its template.
    """

    def __init__(self, source: str, information: DebugInformation, function: str = "") -> None:
        self._source = _COMMENTS.sub("", source)
        self._information = information
        # The names whose types are being looked up, since a structure may contain a pointer to itself.
        self._pending: set[str] = set()
        self._arguments = self._arguments_of(function)

    def shared_type(self, name: str, size: int, function: str) -> CType | None:
        """Return the type of a shared variable that is declared in the text of a function, if its size agrees.

        The size gives one extent that the source does not, such as an empty one that the launch sets. An array with
        several of them is shown with one dimension. Declarations that disagree give no type.
        """
        text = _QUALIFIERS.sub(" ", _DIRECTIVES.sub("", _COMMENTS.sub("", function)))
        types = {
            type_
            for match in _SHARED.finditer(text)
            for declared, element, counts in self._declared(match[1] + " " + match[2])
            if declared == name and (type_ := _of_size(element, counts, size)) is not None
        }
        return types.pop() if len(types) == 1 else None

    def _declared(self, text: str) -> Iterator[tuple[str, CType | None, list[int]]]:
        """Yield the name, the type of the elements and the extents of each variable in a declaration.

        The type is None if it is not known. An extent that is not known is 0.
        """
        first, *others = _DECLARATORS.split(text)
        match = _FIRST.fullmatch(first)
        if match is None:
            return
        base = self._named(" ".join(match[1].split()))
        for one in (_NEXT.fullmatch("".join(match.groups()[1:])), *map(_NEXT.fullmatch, others)):
            if one is not None:
                counts = [self._integer_in(extent) or 0 for extent in _EXTENT.findall(one[3])]
                yield one[2], _pointer(base, one[1]), counts

    def _named(self, name: str) -> CType | None:
        plain = name.rpartition("::")[2]
        if plain in self._pending:
            return None
        if plain not in self._arguments and re.search(_PARAMETER % re.escape(plain), self._source):
            return None
        self._pending.add(plain)
        try:
            if plain in self._arguments:
                return self._spelled(self._arguments[plain])
            return (
                number_named(name)
                or VECTORS.get(name)
                or self._information.named(plain)
                or self._structure(plain)
                or self._aliased(plain)
            )
        finally:
            self._pending.discard(plain)

    def _spelled(self, text: str) -> CType | None:
        """Return the type that a text is, which may have qualifiers and ``*``."""
        match = _SPELLED.fullmatch(_QUALIFIERS.sub(" ", text).rstrip())
        return None if match is None else _pointer(self._named(" ".join(match[1].split())), match[2])

    def _arguments_of(self, function: str) -> dict[str, str]:
        """Return the template's arguments in a function's name by the names of its parameters, if these are clear."""
        name, _, arguments = function.partition("<")
        header = _TEMPLATE % re.escape(name.rpartition("::")[2])
        headers = set(re.findall(header, self._source)) if arguments.endswith(">") else set()
        if len(headers) != 1:
            return {}
        parameters = [one.partition("=")[0].split() for one in headers.pop().split(",")]
        values = split_arguments(arguments[:-1])
        if len(values) != len(parameters) or not all(parameters):
            return {}
        return {words[-1]: value for words, value in zip(parameters, values, strict=True)}

    def _aliased(self, name: str) -> CType | None:
        """Return the type that a name stands for by a ``typedef``, a ``using`` or a macro, if all of them agree."""
        found = re.findall(_ALIAS % ((re.escape(name),) * 3), self._source)
        types = {self._spelled("".join(texts)) for texts in found}
        return types.pop() if len(types) == 1 else None

    def _structure(self, name: str) -> Structure | None:
        """Return a structure by its declaration, or None if it has members of types that are not known."""
        match = re.search(_STRUCTURE % re.escape(name), self._source)
        if match is None:
            return None
        members: list[Member] = []
        offset, most = 0, 1
        for text in filter(str.strip, match[1].split(";")):
            declared = [] if _UNUSUAL.search(text) else list(self._declared(_QUALIFIERS.sub(" ", text)))
            if len(declared) != len(_DECLARATORS.split(text)):
                return None
            for member, element, counts in declared:
                if element is None or 0 in counts:
                    return None
                alignment = _alignment(element)
                most = max(most, alignment)
                type_ = _array(element, counts)
                offset = -(-offset // alignment) * alignment
                members.append(Member(member, offset, type_))
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
        if node[0] == "name" and node[1] in self._arguments:
            digits = self._arguments[node[1]].rstrip("ul")
            return int(digits) if digits.isdigit() else None
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


def _pointer(type_: CType | None, signs: str) -> CType | None:
    """Return a type with as many levels of pointers as there are ``*`` in a text."""
    for _ in range(signs.count("*")):
        type_ = Pointer(type_)
    return type_


def _of_size(element: CType | None, counts: list[int], size: int) -> CType | None:
    """Return an array type of `size` bytes, which determine the extents that are 0, or None if none fits."""
    if element is None or size % element.size:
        return None
    known = element.size * prod(count for count in counts if count)
    if counts.count(0) == 1 and size % known == 0:
        counts = [count or size // known for count in counts]
    elif 0 in counts:
        counts = [size // element.size]
    elif known != size:
        return None
    return _array(element, counts)


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
