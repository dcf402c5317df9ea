"""Parse the body of a function: declarations, labels, instructions and their operands."""

from __future__ import annotations

import re

from .declarations import declared_variable
from .faults import PtxError
from .instructions import (
    Access,
    Call,
    Function,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)

__all__ = ["immediate", "parse_body"]

_ITEM = re.compile(
    r"""\s*(?:
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<loc>\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)[^\n;]*;?)
    | (?P<open>\{)
    | (?P<close>\})
    | (?P<label>[\w$%]+)\s*:(?!:)
    | (?P<statement>[^;{}]*(?:\{[^{}]*\}[^;{}]*)*);
    )""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_REGISTERS = re.compile(r"\.reg\s*\.(\w+)\s+(.*)", re.DOTALL)
_INSTRUCTION = re.compile(r"(?:@(!?)([\w$%]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_LABEL = re.compile(r"(?:^|[;{}\n])\s*([\w$%]+)\s*:(?!:)")
_BRACE = re.compile(r"[{}]")
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)U?$")
_CALL = re.compile(r"(?:\(([^)]*)\)\s*,\s*)?([\w$%]+)\s*(?:,\s*\(([^)]*)\))?", re.DOTALL)


class _Scopes:
    """Resolve register and label names through the nested braces of a body."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._exact: list[dict[str, str]] = [{}]
        self._ranges: list[dict[str, tuple[str, str]]] = [{}]
        self._cache: dict[str, str | None] = {}
        self._number = 0

    def enter(self) -> None:
        self._number += 1
        self._exact.append({})
        self._ranges.append({})

    def leave(self) -> None:
        if self._exact.pop() or self._ranges[-1]:
            self._cache.clear()
        self._ranges.pop()

    def declare(self, register_type: str, names: str) -> None:
        suffix = f"@{self._number}" if len(self._exact) > 1 else ""
        for name in names.split(","):
            name = name.strip()
            if "<" in name:
                prefix = name[: name.index("<")]
                self._ranges[-1][prefix] = (register_type, suffix)
            else:
                self._exact[-1][name] = name + suffix
                self._function.registers[name + suffix] = register_type
        if self._cache:
            self._cache.clear()

    def declare_labels(self, text: str) -> None:
        """Name the labels of an inner scope apart, since inlined assembly repeats its labels."""
        for name in _LABEL.findall(text):
            if not name.startswith("$L__BB"):
                self._exact[-1][":" + name] = f"{name}@{self._number}"

    def label(self, name: str) -> str:
        for scope in reversed(self._exact):
            if ":" + name in scope:
                return scope[":" + name]
        return name

    def find(self, name: str) -> str | None:
        """Give the unique name of a register, or None when `name` is no register."""
        if name in self._cache:
            return self._cache[name]
        found = self._search(name)
        self._cache[name] = found
        return found

    def _search(self, name: str) -> str | None:
        prefix = name.rstrip("0123456789")
        for exact, ranges in zip(reversed(self._exact), reversed(self._ranges), strict=True):
            if name in exact:
                return exact[name]
            if prefix in ranges and prefix != name:
                register_type, suffix = ranges[prefix]
                self._function.registers[name + suffix] = register_type
                return name + suffix
        return None


def immediate(text: str) -> Immediate | None:
    """Read an integer, ``0f`` or ``0d`` literal, or give None."""
    first = text[0]
    if first.isdigit() or first in "+-":
        head = text[:2].lower()
        if head == "0f":
            return Immediate(int(text[2:], 16), 32)
        if head == "0d":
            return Immediate(int(text[2:], 16), 64)
        if _INTEGER.match(text):
            digits = text.rstrip("U")
            if digits.lstrip("+-").startswith("0") and digits.lstrip("+-").isdigit():
                return Immediate(int(digits, 8) if digits.strip("+-0") else 0)
            return Immediate(int(digits, 0))
    return None


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets and braces."""
    if "{" not in text and "[" not in text and "(" not in text:
        return [piece.strip() for piece in text.split(",")]
    pieces = []
    depth = start = 0
    for position, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and not depth:
            pieces.append(text[start:position].strip())
            start = position + 1
    pieces.append(text[start:].strip())
    return pieces


def _plain(text: str, scopes: _Scopes) -> Register | Symbol | Immediate:
    """Read a register, a literal, or a symbol with an optional offset."""
    literal = immediate(text)
    if literal is not None:
        return literal
    name = scopes.find(text)
    if name is not None:
        return Register(name)
    if text[0] == "!":
        inner = scopes.find(text[1:].strip())
        if inner is not None:
            return Register(inner, negated=True)
    match = re.match(r"^([\w$%.]+)\s*([+-]\s*\w+)?$", text)
    if match is None:
        raise PtxError(f"operand {text!r} isn't understood")
    offset = int(match[2].replace(" ", ""), 0) if match[2] else 0
    return Symbol(scopes.label(match[1]), offset)


def _access(text: str, scopes: _Scopes) -> Access:
    pieces = _split(text)
    coordinates = None
    if len(pieces) > 1:
        vector = _operand(pieces[1], scopes)
        coordinates = vector if isinstance(vector, Vector) else Vector((vector,))
    base, offset = pieces[0], 0
    match = re.match(r"^([\w$%.]+)\s*\+\s*([+-]?\s*\w+)$", base) or re.match(r"^([\w$%.]+)\s*(-\s*\w+)$", base)
    if match:
        base, offset = match[1], int(match[2].replace(" ", ""), 0)
    plain = _plain(base, scopes)
    return Access(plain, offset, coordinates)


def _operand(text: str, scopes: _Scopes) -> Operand:
    name = scopes.find(text)
    if name is not None:
        return Register(name)
    first = text[0]
    if first == "[":
        return _access(text[1:-1].strip(), scopes)
    if first == "{":
        return Vector(tuple(_operand(piece, scopes) for piece in _split(text[1:-1])))
    if "|" in text:
        return Vector(tuple(_operand(piece.strip(), scopes) for piece in text.split("|")))
    return _plain(text, scopes)


def _call(text: str, scopes: _Scopes) -> Call:
    match = _CALL.match(text)
    if match is None:
        raise PtxError(f"call {text!r} isn't understood")

    def names(list_: str | None) -> tuple[str, ...]:
        return tuple(name.strip() for name in (list_ or "").split(",") if name.strip())

    register = scopes.find(match[2])
    target = Register(register) if register is not None else Symbol(match[2])
    return Call(names(match[1]), target, names(match[3]))


def parse_body(name: str, text: str) -> Function:
    """Parse `text`, what stands between a function's outer braces, into instructions."""
    function = Function(name)
    scopes = _Scopes(function)
    file = line = position = 0
    length = len(text.rstrip())
    while position < length:
        match = _ITEM.match(text, position)
        if match is None:
            raise PtxError(f"{name}: {text[position : position + 60].strip()!r} isn't understood")
        position = match.end()
        kind = match.lastgroup
        if kind == "statement":
            statement = match["statement"].strip()
            if "//" in statement or "/*" in statement:
                statement = _COMMENT.sub(" ", statement).strip()
            if statement.startswith("."):
                _directive(statement, function, scopes)
            elif statement:
                function.instructions.append(_instruction(statement, scopes, file, line, name))
        elif kind == "loc" or match["loc"]:
            file, line = int(match["file"]), int(match["line"]) or line
        elif kind == "open":
            scopes.enter()
            scopes.declare_labels(text[position : _scope_end(text, position)])
        elif kind == "close":
            scopes.leave()
        elif kind == "label":
            position = _label(match["label"], text, position, function, scopes)
    return function


def _scope_end(text: str, position: int) -> int:
    """Give where the scope that begins at `position` ends."""
    depth = 1
    for match in _BRACE.finditer(text, position):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.start()
    return len(text)


def _label(name: str, text: str, position: int, function: Function, scopes: _Scopes) -> int:
    """Note a label; a ``.branchtargets`` or ``.callprototype`` after it is read here."""
    following = re.compile(r"\s*\.(branchtargets|callprototype)\s*([^;]*);").match(text, position)
    if following is None:
        function.labels[scopes.label(name)] = len(function.instructions)
        return position
    if following[1] == "branchtargets":
        function.branch_targets[scopes.label(name)] = tuple(
            scopes.label(item.strip()) for item in following[2].split(",")
        )
    return following.end()


def _directive(statement: str, function: Function, scopes: _Scopes) -> None:
    match = _REGISTERS.match(statement)
    if match:
        scopes.declare(match[1], match[2])
        return
    keyword = statement[1:].split(None, 1)[0]
    if keyword in ("shared", "local"):
        variable = declared_variable(statement)
        (function.shared if keyword == "shared" else function.local)[variable.name] = variable
    elif keyword == "param":
        variable = declared_variable(statement)
        function.parameter_sizes[variable.name] = variable.size
    elif keyword not in ("pragma", "loc"):
        raise PtxError(f"{function.name}: directive {statement!r} isn't understood")


def _instruction(statement: str, scopes: _Scopes, file: int, line: int, name: str) -> Instruction:
    match = _INSTRUCTION.match(statement)
    if match is None:
        raise PtxError(f"{name}: instruction {statement!r} isn't understood")
    guard = None
    if match[2]:
        register = scopes.find(match[2])
        if register is None:
            raise PtxError(f"{name}: {statement!r} has an undeclared guard")
        guard = Register(register, negated=bool(match[1]))
    opcode, rest = match[3], match[4].strip()
    operands: tuple[Operand, ...]
    if opcode in ("call", "call.uni"):
        operands = (_call(rest, scopes),)
    else:
        operands = tuple(_operand(piece, scopes) for piece in _split(rest)) if rest else ()
    return Instruction(opcode, operands, guard, file, line, " ".join(statement.split()), name)
