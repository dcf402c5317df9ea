"""Resolve names through the nested braces of a function's body: registers, variables, labels."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

from ..faults import PtxError
from .instructions import Operand, Register, Vector

_NAME = re.compile(r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)$")
_RANGE = re.compile(r"([A-Za-z_$%][\w$]*)\s*<\s*(\d{1,9})\s*>$")
_MOST_VECTORS = 1 << 16
# The four components of a vector register, and their alternative names.
_COMPONENTS = ("xr", "yg", "zb", "wa")


_Table: TypeAlias = "dict[str, list[tuple[int, Any]]]"


class _Range(NamedTuple):
    """Registers declared as ``%r<5>``: their number, their type, and the suffix of their unique names."""

    number: int
    type: str
    suffix: str


class Scopes:
    """The meanings of names at the current position of the parser.

    Every name has a stack of meanings, the innermost last, so the cost of a look-up doesn't depend on how deeply the
    braces are nested. Each scope knows which names it declared. `registers` receives the type of every register that is
    used, under a name that is unique in the function.
    """

    def __init__(self, registers: dict[str, str]) -> None:
        self._registers = registers
        self._meanings: _Table = {}
        self._ranges: _Table = {}
        self._declared: list[list[tuple[_Table, str]]] = [[]]
        # Caches, which are cleared at every declaration: the results of look-ups, and the operands that were read.
        self._kept: dict[str, Operand | None] = {}
        self.operands: dict[str, Operand] = {}
        self._numbers = [0]
        self._count = 0

    def enter(self) -> None:
        """Begin a scope."""
        self._count += 1
        self._numbers.append(self._count)
        self._declared.append([])

    def leave(self) -> None:
        """End a scope and forget its declarations."""
        for table, name in self._declared.pop():
            table[name].pop()
            if not table[name]:
                del table[name]
            self._forget()
        self._numbers.pop()

    def _forget(self) -> None:
        if self._kept or self.operands:
            self._kept.clear()
            self.operands.clear()

    @property
    def depth(self) -> int:
        """Return how many scopes are open within the body."""
        return len(self._numbers) - 1

    def unique(self, name: str) -> str:
        """Return a unique form of a name, which differs from the forms in other scopes of the function."""
        return f"{name}@{self._numbers[-1]}" if self.depth else name

    def declare(self, name: str, meaning: Operand) -> None:
        """Declare the meaning of a name in the current scope; raise PtxError if it already has one there."""
        if not _NAME.match(name.removeprefix(":")):
            raise PtxError(f"{name!r} isn't a name")
        self._put(self._meanings, name, meaning)

    def declare_registers(self, register_type: str, vector: int, names: str) -> None:
        """Declare registers, as ``%r<5>`` or by name, with `vector` components each (0: scalars)."""
        for item in names.split(","):
            name = item.strip()
            match = _RANGE.match(name)
            if match is None:
                self.declare(name, self._register(self.unique(name), register_type, vector))
                continue
            if vector:
                if int(match[2]) > _MOST_VECTORS:
                    raise PtxError(f"{name} declares more than {_MOST_VECTORS} vector registers")
                for number in range(int(match[2])):
                    each = f"{match[1]}{number}"
                    self.declare(each, self._register(self.unique(each), register_type, vector))
                continue
            suffix = f"@{self._numbers[-1]}" if self.depth else ""
            self._put(self._ranges, match[1], _Range(int(match[2]), register_type, suffix))

    def _register(self, name: str, register_type: str, vector: int) -> Operand:
        if not vector:
            self._registers[name] = register_type
            return Register(name)
        items = tuple(Register(f"{name}.{_COMPONENTS[place][0]}") for place in range(vector))
        for register in items:
            self._registers[register.name] = register_type
        return Vector(items)

    def _put(self, table: _Table, name: str, meaning: Any) -> None:
        stack = table.setdefault(name, [])
        if stack and stack[-1][0] == self.depth:
            raise PtxError(f"{name.removeprefix(':')} is declared twice")
        stack.append((self.depth, meaning))
        self._declared[-1].append((table, name))
        self._forget()

    def find(self, name: str) -> Operand | None:
        """Return the meaning of a name, or None if the function doesn't declare it."""
        if name in self._kept:
            return self._kept[name]
        found = self._kept[name] = self._search(name)
        return found

    def _search(self, name: str) -> Operand | None:
        depth, found = self._meanings[name][-1] if name in self._meanings else (-1, None)
        prefix = name.rstrip("0123456789")
        number = name[len(prefix) :]
        if number and prefix in self._ranges:
            range_depth, registers = self._ranges[prefix][-1]
            canonical = number == "0" or (number[0] != "0" and len(number) < 10)
            if range_depth > depth and canonical and int(number) < registers.number:
                full = name + registers.suffix
                self._registers[full] = registers.type
                return Register(full)
        if found is None and "." in name:
            return self._component(*name.rsplit(".", 1))
        return found

    def _component(self, name: str, component: str) -> Operand | None:
        """Return a component of a vector register, such as ``pixel.x`` or ``pixel.r``."""
        vector = self.find(name)
        if isinstance(vector, Vector):
            for item, letters in zip(vector.items, _COMPONENTS, strict=False):
                if component in tuple(letters):
                    return item
        return None
