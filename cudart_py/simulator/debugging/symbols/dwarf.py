"""The variables of functions, from the DWARF sections that NVRTC writes into the PTX text with -G.

The sections are lists of bytes, in which addresses are labels of the code. A register is the number whose bytes are the
characters of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ....compilation.names.demangling import function_name
from .cpp_types import HALF, INT, Array, CType, Member, Pointer, Scalar, Structure
from .lines import Place

_SECTION = re.compile(r"\.section\s+(\.\w+)\s*\{([^}]*)\}")
_ITEMS = re.compile(r"\.b(8|16|32|64)\s+([^\n]*)")
_SYMBOL = re.compile(r"([.$%A-Za-z_][\w$.]*)\s*(?:\+\s*(\d+))?$")
# Tags, attributes, forms and operations of DWARF.
_SUBPROGRAM, _PARAMETER, _LEXICAL_BLOCK, _VARIABLE, _MEMBER, _INHERITANCE = 0x2E, 0x05, 0x0B, 0x34, 0x0D, 0x1C
_BASE, _ARRAY, _SUBRANGE, _ENUMERATION, _ENUMERATOR, _INLINED = 0x24, 0x01, 0x21, 0x04, 0x28, 0x1D
_POINTER, _REFERENCES, _STRUCTURES = 0x0F, (0x10, 0x42), (0x13, 0x02, 0x17)
_ALIASES = (0x26, 0x35, 0x16, 0x37)  # const, volatile, typedef, restrict
_NAME, _LINKAGE_NAME, _SIZE, _ENCODING, _TYPE, _LOCATION = 0x03, 0x2007, 0x0B, 0x3E, 0x49, 0x02
_LOW, _HIGH, _UPPER_BOUND, _COUNT, _OFFSET, _CONSTANT = 0x11, 0x12, 0x2F, 0x37, 0x38, 0x1C
_ORIGIN, _CALL_FILE, _CALL_LINE = 0x31, 0x58, 0x59
_SIZES = {0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x13: 4, 0x17: 4}
_BLOCKS = {0x03: 2, 0x04: 4, 0x0A: 1}
_STRING, _BLOCK, _SIGNED, _UNSIGNED, _EXPRESSION, _PRESENT = 0x08, 0x09, 0x0D, 0x0F, 0x18, 0x19
_OP_ADDRESS, _OP_PLUS, _OP_REGISTER = 0x03, 0x23, 0x90
_KINDS = {0x02: "b", 0x04: "f", 0x05: "i", 0x06: "i", 0x07: "u", 0x08: "u"}


class Symbol(NamedTuple):
    """An address: a label or a variable, and a distance in bytes."""

    name: str
    offset: int


class InRegister(NamedTuple):
    """A variable's register, from one label of the function to another; None is the start or the end."""

    register: str
    low: str | None
    high: str | None


@dataclass(frozen=True)
class Variable:
    """A variable of a function: its scope, from label to label, and where it is: in memory, or in registers."""

    name: str
    type: CType
    low: str | None
    high: str | None
    memory: Symbol | None
    registers: tuple[InRegister, ...]
    is_parameter: bool = False


@dataclass(frozen=True)
class Inlined:
    """A function that was inlined into another one: its code, from label to label, and the place of the call."""

    name: str
    low: str
    high: str
    call: Place
    variables: tuple[Variable, ...]
    inlined: tuple[Inlined, ...]


@dataclass
class _Entry:
    """An entry of .debug_info, with the entries inside it."""

    tag: int
    attributes: dict[int, Any]
    children: list[_Entry] = field(default_factory=list)


class _Section:
    """The bytes of a section, and the symbols among them."""

    def __init__(self, text: str) -> None:
        data = bytearray()
        self.symbols: dict[int, Symbol] = {}
        for match in _ITEMS.finditer(text):
            size = int(match[1]) // 8
            for item in match[2].split(","):
                word = item.strip()
                named = _SYMBOL.match(word)
                if named:
                    self.symbols[len(data)] = Symbol(named[1], int(named[2] or 0))
                data += (0 if named else int(word, 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        self.data = bytes(data)


class _Reader:
    """A position in a section."""

    def __init__(self, section: _Section, position: int = 0, end: int | None = None) -> None:
        self.section = section
        self.position = position
        self.end = len(section.data) if end is None else end

    def number(self, size: int) -> int:
        """Read an unsigned number of so many bytes."""
        value = int.from_bytes(self.section.data[self.position : self.position + size], "little")
        self.position += size
        return value

    def leb(self, signed: bool = False) -> int:
        """Read a number of variable length."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value

    def string(self) -> str:
        """Read text that ends with a zero."""
        end = self.section.data.index(0, self.position)
        text = self.section.data[self.position : end].decode(errors="replace")
        self.position = end + 1
        return text

    def symbol(self, size: int) -> Symbol | None:
        """Read an address: a symbol, or None for a plain number."""
        found = self.section.symbols.get(self.position)
        self.position += size
        return found


class DebugInformation:
    """The variables of a module's functions; a module that was not compiled with -G has none."""

    def __init__(self, text: str) -> None:
        sections = {match[1]: _Section(match[2]) for match in _SECTION.finditer(text)}
        self._strings = "\n".join(match[2] for match in _SECTION.finditer(text) if match[1] == ".debug_str")
        self._texts: dict[str, str] = {}
        self._functions: dict[str, list[Variable]] = {}
        self._inlined: dict[str, tuple[Inlined, ...]] = {}
        self.globals: list[Variable] = []
        self._types: dict[int, CType | None] = {}
        self._entries: dict[int, _Entry] = {}
        if ".debug_info" not in sections or ".debug_abbrev" not in sections:
            return
        self._info = sections[".debug_info"]
        self._locations = sections.get(".debug_loc")
        abbreviations = _abbreviations(sections[".debug_abbrev"])
        for entry in self._read_entries(abbreviations):
            if entry.tag == _SUBPROGRAM:
                name = entry.attributes.get(_LINKAGE_NAME) or entry.attributes.get(_NAME, "")
                self._functions[name] = list(self._variables(entry, None, None))
                self._inlined[name] = tuple(self._inlined_in(entry))
            elif entry.tag == _VARIABLE:
                self.globals += self._variable(entry, None, None)

    def variables(self, function: str) -> list[Variable]:
        """Return the variables of a function, by its name in PTX, outer scopes first."""
        return self._functions.get(function, [])

    def text_at(self, label: str) -> str:
        """Return the text at a label of the section of strings, or ""."""
        if label not in self._texts:
            match = re.search(rf"^{re.escape(label)}:\s*((?:\.b8\s[^\n]*\n)+)", self._strings, re.MULTILINE)
            self._texts[label] = "" if match is None else _Reader(_Section(match[1])).string()
        return self._texts[label]

    def inlined(self, function: str) -> tuple[Inlined, ...]:
        """Return the functions that were inlined into a function, by its name in PTX."""
        return self._inlined.get(function, ())

    def named(self, name: str) -> CType | None:
        """Return the structure, class or enumeration with a name, or None if none is described."""
        for reference, entry in self._entries.items():
            is_type = entry.tag in _STRUCTURES or entry.tag == _ENUMERATION
            known = _name_of(entry) if is_type else ""
            # The names of structures have no namespaces.
            if known and (is_named(known, name) or is_named(name, known)) and entry.attributes.get(_SIZE):
                return self._type(reference)
        return None

    def enumerator(self, name: str) -> tuple[CType, int] | None:
        """Return the enumeration that has an enumerator with a name, and its value, or None if there is none."""
        for reference, entry in self._entries.items():
            for one in entry.children if entry.tag == _ENUMERATION else ():
                if is_named(_name_of(one), name) and (type_ := self._type(reference)) is not None:
                    return type_, one.attributes.get(_CONSTANT, 0)
        return None

    def __bool__(self) -> bool:
        return bool(self._functions)

    def _read_entries(self, abbreviations: dict[int, tuple[int, bool, list[tuple[int, int]]]]) -> list[_Entry]:
        reader = _Reader(self._info)
        top: list[_Entry] = []
        while reader.position < reader.end:
            unit = reader.position
            length = reader.number(4)
            end = min(unit + 4 + length, reader.end)
            reader.position += 7  # the version, the abbreviations, and the size of addresses
            stack: list[_Entry] = []
            while reader.position < end:
                place = reader.position
                code = reader.leb()
                if not code:
                    if stack:
                        stack.pop()
                    continue
                tag, has_children, attributes = abbreviations[code]
                entry = _Entry(tag, {name: self._attribute(reader, form) for name, form in attributes})
                self._entries[place - unit] = entry
                if len(stack) == 1:
                    top.append(entry)
                if stack:
                    stack[-1].children.append(entry)
                if has_children:
                    stack.append(entry)
            reader.position = max(end, unit + 4)
        return top

    def _attribute(self, reader: _Reader, form: int) -> Any:
        if form == _STRING:
            return reader.string()
        if form == _PRESENT:
            return 1
        if form == _SIGNED:
            return reader.leb(signed=True)
        if form == _UNSIGNED:
            return reader.leb()
        if form in (_BLOCK, _EXPRESSION) or form in _BLOCKS:
            size = reader.number(_BLOCKS[form]) if form in _BLOCKS else reader.leb()
            block = _Reader(reader.section, reader.position, reader.position + size)
            reader.position += size
            return block
        size = _SIZES[form]
        found = reader.section.symbols.get(reader.position)
        value = reader.number(size)
        return value if found is None else found

    # --- variables

    def _variables(self, scope: _Entry, low: str | None, high: str | None) -> Iterator[Variable]:
        for entry in scope.children:
            if entry.tag in (_PARAMETER, _VARIABLE):
                yield from self._variable(entry, low, high)
            elif entry.tag == _LEXICAL_BLOCK:
                begin, end = entry.attributes.get(_LOW), entry.attributes.get(_HIGH)
                yield from self._variables(entry, _label(begin), _label(end))

    def _inlined_in(self, scope: _Entry) -> Iterator[Inlined]:
        for entry in scope.children:
            if entry.tag == _LEXICAL_BLOCK:
                yield from self._inlined_in(entry)
            low, high = _label(entry.attributes.get(_LOW)), _label(entry.attributes.get(_HIGH))
            if entry.tag == _INLINED and low and high:
                call = Place(entry.attributes.get(_CALL_FILE, 0), entry.attributes.get(_CALL_LINE, 0))
                variables = tuple(self._variables(entry, low, high))
                name = self._described(entry).get(_NAME, "")
                yield Inlined(name, low, high, call, variables, tuple(self._inlined_in(entry)))

    def _described(self, entry: _Entry) -> dict[int, Any]:
        """Return the attributes of an entry, with those of the function or variable that it is an instance of."""
        origin = self._entries.get(entry.attributes.get(_ORIGIN, -1))
        return entry.attributes if origin is None else origin.attributes | entry.attributes

    def _variable(self, entry: _Entry, low: str | None, high: str | None) -> Iterator[Variable]:
        attributes = self._described(entry)
        kind = self._type(attributes.get(_TYPE))
        if kind is None or not attributes.get(_NAME):
            return
        name = function_name(attributes[_NAME])
        location = entry.attributes.get(_LOCATION)
        memory: Symbol | None = None
        registers: tuple[InRegister, ...] = ()
        if isinstance(location, _Reader):
            memory, register = _place(location)
            registers = (InRegister(register, None, None),) if register else ()
        elif isinstance(location, Symbol) and self._locations is not None:
            registers = tuple(self._location_list(location.offset))
        yield Variable(name, kind, low, high, memory, registers, entry.tag == _PARAMETER)

    def _location_list(self, offset: int) -> Iterator[InRegister]:
        assert self._locations is not None
        reader = _Reader(self._locations, offset)
        while reader.position < reader.end:
            low, high = reader.symbol(8), reader.symbol(8)
            if low is None or high is None:
                return
            size = reader.number(2)
            _, register = _place(_Reader(self._locations, reader.position, reader.position + size))
            reader.position += size
            if register:
                yield InRegister(register, low.name, high.name)

    # --- types

    def _type(self, reference: object) -> CType | None:
        if not isinstance(reference, int):
            return None
        if reference not in self._types:
            entry = self._entries[reference]
            # A structure may contain a pointer to itself, which then points to a structure without members.
            name, size = entry.attributes.get(_NAME, ""), entry.attributes.get(_SIZE, 0)
            self._types[reference] = Structure(name, size, ()) if entry.tag in _STRUCTURES else None
            self._types[reference] = self._made_type(entry)
        return self._types[reference]

    def _made_type(self, entry: _Entry) -> CType | None:
        attributes = entry.attributes
        name, size = _name_of(entry), attributes.get(_SIZE, 0)
        target = attributes.get(_TYPE)
        if entry.tag == _BASE:
            kind = _KINDS.get(attributes.get(_ENCODING, 0))
            return Scalar(name, np.dtype("?" if kind == "b" else f"{kind}{size}")) if kind and size <= 8 else None
        if entry.tag == _POINTER or entry.tag in _REFERENCES:
            return Pointer(self._type(target), entry.tag in _REFERENCES)
        if entry.tag in _ALIASES:
            return self._type(target)
        if entry.tag == _ENUMERATION:
            names = tuple(
                (one.attributes.get(_CONSTANT, 0), _name_of(one)) for one in entry.children if one.tag == _ENUMERATOR
            )
            return Scalar(name, np.dtype(f"i{size if size in (1, 2, 4, 8) else INT.size}"), names)
        if entry.tag == _ARRAY:
            return self._array(entry, self._type(target))
        if entry.tag in _STRUCTURES and name == "__half" and size == HALF.size:
            return HALF
        if entry.tag in _STRUCTURES:
            return Structure(name, size, tuple(self._members(entry)))
        return None

    def _array(self, entry: _Entry, element: CType | None) -> CType | None:
        for extent in reversed([child for child in entry.children if child.tag == _SUBRANGE]):
            count = extent.attributes.get(_COUNT, extent.attributes.get(_UPPER_BOUND, -1) + 1)
            element = None if element is None else Array(element, count)
        return element

    def _members(self, entry: _Entry) -> Iterator[Member]:
        for child in entry.children:
            kind = self._type(child.attributes.get(_TYPE))
            if child.tag not in (_MEMBER, _INHERITANCE) or kind is None:
                continue
            location = child.attributes.get(_OFFSET, 0)
            offset = _offset(location) if isinstance(location, _Reader) else location
            if child.tag == _INHERITANCE and isinstance(kind, Structure):
                yield from (Member(one.name, offset + one.offset, one.type) for one in kind.members)
            elif child.tag == _MEMBER:
                yield Member(child.attributes.get(_NAME, ""), offset, kind)


def _abbreviations(section: _Section) -> dict[int, tuple[int, bool, list[tuple[int, int]]]]:
    """Return, by code, the tag of an entry, whether it has children, and its attributes with their forms."""
    reader, found = _Reader(section), {}
    while reader.position < reader.end and (code := reader.leb()):
        tag, has_children = reader.leb(), bool(reader.number(1))
        attributes = []
        while any(pair := (reader.leb(), reader.leb())):
            attributes.append(pair)
        found[code] = tag, has_children, attributes
    return found


def is_named(whole: str, name: str) -> bool:
    """Return whether a qualified name is a name, or ends with it; namespaces and classes may be left out."""
    return f"::{whole}".endswith(f"::{name.removeprefix('::')}")


def _name_of(entry: _Entry) -> str:
    """Return the C++ name of an entry; NVRTC gives variables and enumerations inside namespaces mangled names."""
    return function_name(entry.attributes.get(_NAME, ""))


def _label(address: object) -> str | None:
    return address.name if isinstance(address, Symbol) else None


def _offset(reader: _Reader) -> int:
    """Return the offset of a member from its expression."""
    return reader.leb() if reader.number(1) == _OP_PLUS else 0


def _place(reader: _Reader) -> tuple[Symbol | None, str]:
    """Return the address in memory, or the register, that an expression names."""
    memory: Symbol | None = None
    while reader.position < reader.end:
        operation = reader.number(1)
        if operation == _OP_ADDRESS:
            memory = reader.symbol(8)
        elif operation == _OP_PLUS and memory is not None:
            memory = Symbol(memory.name, memory.offset + reader.leb())
        elif operation == _OP_REGISTER:
            number = reader.leb()
            return None, number.to_bytes((number.bit_length() + 7) // 8, "big").decode(errors="replace")
        else:
            return None, ""
    return memory, ""
