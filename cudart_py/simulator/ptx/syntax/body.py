"""Parse the body of a function: declarations, labels and instructions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..faults import PtxError
from .declarations import declared_variable
from .instructions import (
    Access,
    Function,
    Immediate,
    InlinedCall,
    Instruction,
    Operand,
    Param,
    Register,
    Symbol,
    Variable,
    Vector,
)
from .operand_syntax import read_call, read_operand, split
from .scopes import Scopes
from .source import Source
from .types import TYPE_SIZES

_LOC = re.compile(
    r"\.loc\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?"
    r"(?:[^\n;]*?\binlined_at\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?)?[^\n;]*;?"
)
_FUNCTION_NAME = re.compile(r"\bfunction_name\s+([\w$.]+)")
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_REGISTERS = re.compile(r"\.reg\s*(?:\.v([24])\s*)?\.(\w+)\s+(.*)$", re.DOTALL)
_REGISTER_TYPES = TYPE_SIZES.keys() - {"texref", "samplerref", "surfref"}
_INSTRUCTION = re.compile(
    r"(?:@\s*(!?)\s*([A-Za-z_$%][\w$.]*)\s+)?([a-z]\w*(?:(?:\.|::)\w+)*)(?:\s+(.*)|(?=[\[{(])(.*))?$", re.DOTALL
)
_KEYWORD = re.compile(r"\.(\w+)")
_BRANCH_TARGETS = ".branchtargets"
_LABELLED = (_BRANCH_TARGETS, ".calltargets", ".callprototype")
_VARIABLES = ("shared", "local", "global", "const")
# Limited, because in faulty text the locations of inlined functions may form a cycle.
_DEEPEST_INLINING = 64

Place = tuple[int, int, int]


@dataclass(slots=True)
class _Item:
    """One item of a body: its start, a brace, a label, a source location or a statement."""

    kind: str
    position: int
    text: str = ""
    labels: list[_Item] = field(default_factory=list)
    location: re.Match[str] | None = None


def _items(source: Source, start: int, end: int) -> Iterator[_Item]:
    """Split a body into items; an item that begins a scope contains the labels of the scope."""
    text = source.text
    scopes = [_Item("body", start)]
    yield scopes[0]
    position = source.skip_blanks(start)
    while position < end:
        first = text[position]
        if first == "{":
            item = _Item("open", position)
            scopes.append(item)
            yield item
            position += 1
        elif first == "}":
            if len(scopes) == 1:
                raise source.error(position, "a brace is closed that was never opened")
            scopes.pop()
            yield _Item("close", position)
            position += 1
        elif (label := _LABEL.match(text, position)) is not None:
            item = _Item("label", position, label[1])
            scopes[-1].labels.append(item)
            yield item
            position = label.end()
        elif (location := _LOC.match(text, position)) is not None:
            yield _Item("location", position, location=location)
            position = location.end()
        else:
            stop = source.statement_end(position)
            yield _Item("statement", position, text[position:stop].strip())
            position = stop + 1
        position = source.skip_blanks(position)
    if len(scopes) > 1:
        raise source.error(scopes[-1].position, "the brace that opens here is never closed")


class _Lines:
    """The source location that the latest ``.loc`` of a body names, and the call sites of inlined functions."""

    def __init__(self) -> None:
        self.here: Place = (0, 0, 0)
        self._callers: dict[Place, Place] = {}
        self._functions: dict[Place, str] = {}

    def move(self, match: re.Match[str]) -> None:
        """Apply a ``.loc``; line 0 means that the code has no line of its own, so the previous line stays in effect."""
        file, line, column, *caller = (int(group or 0) for group in match.groups())
        if not line and not match[4] and self.here[1]:
            return
        self.here = (file, line or self.here[1], column)
        if match[4]:
            self._callers[self.here] = (caller[0], caller[1], caller[2])
            named = _FUNCTION_NAME.search(match[0])
            self._functions[self.here] = "" if named is None else named[1]
        else:
            self._callers.pop(self.here, None)

    def calls(self) -> tuple[InlinedCall, ...]:
        """Return the calls of the functions that code was inlined into, innermost first."""
        found: list[InlinedCall] = []
        place = self.here
        while place in self._callers and len(found) < _DEEPEST_INLINING:
            file, line, _ = caller = self._callers[place]
            found.append(InlinedCall(self._functions[place], file, line))
            place = caller
        return tuple(found)


class _Body:
    """The reader of one body, which turns its items into a Function."""

    def __init__(
        self, name: str, source: Source, parameters: tuple[Param, ...], results: tuple[Param, ...], is_kernel: bool
    ) -> None:
        self.source = source
        self._is_kernel = is_kernel
        self.function = Function(name)
        self.function.parameters = tuple(parameter.name for parameter in parameters)
        self.function.results = tuple(result.name for result in results)
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self._copies: dict[str, Symbol] = {}
        self.scopes = Scopes(self.function.registers)
        self.lines = _Lines()
        self._made = 0
        for parameter in (*parameters, *results):
            if parameter.register_type:
                self.scopes.declare_registers(parameter.register_type, 0, parameter.name)

    def read(self, items: list[_Item]) -> Function:
        """Read all items; the labels of a scope are declared before its statements."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            try:
                self._read_item(item, following)
            except PtxError as error:
                if error.line:
                    raise
                raise self.source.error(item.position, f"{error}, in {self.function.name}") from None
        self._fill_copies()
        return self.function

    def _read_item(self, item: _Item, following: _Item | None) -> None:
        if item.kind == "statement":
            self._statement(item)
        elif item.kind == "location":
            assert item.location is not None
            self.lines.move(item.location)
        elif item.kind == "label":
            self._label(item.text, following)
        elif item.kind == "close":
            self.scopes.leave()
        else:
            if item.kind == "open":
                self.scopes.enter()
            for label in item.labels:
                self._declare_label(label)

    # --- labels

    def _declare_label(self, item: _Item) -> None:
        try:
            self.scopes.declare(f":{item.text}", Symbol(self.scopes.unique(item.text)))
        except PtxError as error:
            raise self.source.error(item.position, f"{error}, in {self.function.name}") from None

    def _target(self, name: str) -> str:
        """Return the unique name of a label in the function; raise PtxError if the label is missing."""
        label = self.scopes.find(f":{name}")
        if not isinstance(label, Symbol):
            raise PtxError(f"label {name} is missing")
        return label.name

    def _label(self, name: str, following: _Item | None) -> None:
        if following is None or not following.text.startswith(_LABELLED):
            self.function.labels[self._target(name)] = len(self.function.instructions)
        elif following.text.startswith(_BRANCH_TARGETS):
            targets = split(following.text.removeprefix(_BRANCH_TARGETS).strip())
            self.function.branch_targets[self._target(name)] = tuple(self._target(target) for target in targets)

    # --- declarations

    def _statement(self, item: _Item) -> None:
        text = item.text
        if text.startswith(_LABELLED):
            # A list after a label has been read together with the label.
            return
        if text.startswith("."):
            self._directive(text)
        elif text:
            self._instruction(text, self.source.line(item.position))

    def _directive(self, text: str) -> None:
        keyword = _KEYWORD.match(text)
        name = keyword[1] if keyword else ""
        if name == "reg":
            match = _REGISTERS.match(text)
            if match is None or match[2] not in _REGISTER_TYPES:
                raise PtxError(f"declaration {text!r} isn't understood")
            self.scopes.declare_registers(match[2], int(match[1] or 0), match[3])
        elif name == "param":
            # An argument or a result of a call. Its pieces are kept by name, whatever scope it is declared in.
            variable = declared_variable(text)
            self.scopes.declare(variable.name, Symbol(variable.name))
            sizes = self.function.parameter_sizes
            sizes[variable.name] = max(variable.size, sizes.get(variable.name, 0))
        elif name in _VARIABLES:
            self._variable(declared_variable(text))
        elif name != "pragma":
            raise PtxError(f"directive {text!r} isn't understood")

    def _variable(self, variable: Variable) -> None:
        """Declare a variable under a name that is unique among all functions' variables."""
        name = variable.name
        unique = f"{name}@{self.function.name}{self.scopes.unique('')}"
        self.scopes.declare(name, Symbol(unique))
        function = self.function
        tables = {"shared": function.shared, "local": function.local}
        tables.get(variable.space, function.variables)[unique] = replace(variable, name=unique)

    # --- instructions

    def _instruction(self, text: str, line: int) -> None:
        match = _INSTRUCTION.match(text)
        if match is None:
            raise PtxError(f"instruction {' '.join(text.split())!r} isn't understood")
        guard = None
        if match[2]:
            register = self.scopes.find(match[2])
            if not isinstance(register, Register) or self.function.registers[register.name] != "pred":
                raise PtxError(f"the guard {match[2]} of {text!r} is not a predicate")
            guard = Register(register.name, negated=bool(match[1]))
        opcode, rest = match[3], (match[4] or "").strip()
        base = opcode.partition(".")[0]
        operands: tuple[Operand, ...]
        if base == "call":
            call = read_call(rest, self.scopes)
            arguments = tuple(self._passed(argument, guard, text, line) for argument in call.arguments)
            operands = (replace(call, arguments=arguments),)
            if isinstance(call.target, Symbol):
                self.function.names.add(call.target.name)
            else:
                self.function.calls_pointers = True
        elif base == "bra":
            operands = (Symbol(self._target(rest)),)
        elif base == "brx":
            selector, _, table = rest.rpartition(",")
            operands = (read_operand(selector.strip(), self.scopes), Symbol(self._target(table.strip())))
        else:
            pieces = split(rest) if rest else []
            operands = tuple(self._value(piece, guard, text, line) for piece in pieces)
            if base not in ("ld", "st"):
                operands = tuple(self._address(operand) for operand in operands)
            for operand in operands:
                self._note(operand)
        self._add(opcode, operands, guard, text, line)

    def _value(self, piece: str, guard: Register | None, text: str, line: int) -> Operand:
        """Read an operand; for a register plus a number outside brackets, add an instruction that computes the sum."""
        operand = read_operand(piece, self.scopes)
        if not isinstance(operand, Access) or piece[0] == "[":
            return operand
        assert isinstance(operand.base, Register)
        register_type = self.function.registers[operand.base.name]
        total = self._fresh(register_type)
        operands = (total, operand.base, Immediate(operand.offset))
        self._add(f"add.u{register_type[1:]}", operands, guard, text, line)
        return total

    def _address(self, operand: Operand) -> Operand:
        """Return an operand in which the name of a parameter's copy replaces the parameter's name.

        The address of a device function's parameter is the address of a copy in local memory (PTX manual, `mov`).
        """
        if self._is_kernel or not isinstance(operand, Symbol) or operand.name not in self._parameters:
            return operand
        name = operand.name
        if name not in self._copies:
            parameter = self._parameters[name]
            unique = f"{name}@{self.function.name}"
            self.function.local[unique] = Variable(unique, "local", parameter.size, parameter.alignment)
            self._copies[name] = Symbol(unique)
        return replace(self._copies[name], offset=operand.offset)

    def _fill_copies(self) -> None:
        """Copy the parameters whose addresses are taken, before the first instruction."""
        function = self.function
        body, function.instructions = function.instructions, []
        for name, copy in self._copies.items():
            parameter = self._parameters[name]
            width = math.gcd(parameter.size, parameter.alignment, 8)
            piece = self._fresh(f"b{max(8 * width, 16)}")
            for offset in range(0, parameter.size, width):
                for opcode, operands in (
                    (f"ld.param.u{8 * width}", (piece, Access(Symbol(name), offset))),
                    (f"st.local.u{8 * width}", (Access(copy, offset), piece)),
                ):
                    function.instructions.append(replace(body[0], opcode=opcode, operands=operands, guard=None))
        for label in function.labels:
            function.labels[label] += len(function.instructions)
        function.instructions += body

    def _fresh(self, register_type: str) -> Register:
        """Return a new register, whose name can't occur in PTX text."""
        self._made += 1
        register = Register(f"made@{self._made}")
        self.function.registers[register.name] = register_type
        return register

    def _note(self, operand: Operand) -> None:
        """Record the symbols that an operand names."""
        if isinstance(operand, Symbol):
            self.function.names.add(operand.name)
            self.function.taken.add(operand.name)
        elif isinstance(operand, Access):
            self._note(operand.base)
        elif isinstance(operand, Vector):
            for item in operand.items:
                self._note(item)

    def _passed(self, argument: Operand, guard: Register | None, text: str, line: int) -> Operand:
        """Return an argument of a call; a literal is put into a register first."""
        if not isinstance(argument, Immediate):
            return argument
        bits = argument.float_bits or 64
        register = self._fresh(f"b{bits}")
        self._add(f"mov.b{bits}", (register, argument), guard, text, line)
        return register

    def _add(
        self, opcode: str, operands: tuple[Operand, ...], guard: Register | None, text: str, ptx_line: int
    ) -> None:
        file, line, _ = self.lines.here
        calls = self.lines.calls()
        user = (calls[-1].file, calls[-1].line) if calls else (file, line)
        if not line:
            # Without source lines, the lines of the PTX text itself are used.
            file, line, user = 0, ptx_line, (0, ptx_line)
        instruction = Instruction(
            opcode, operands, guard, file, line, " ".join(text.split()), self.function.name, user, ptx_line, calls
        )
        self.function.instructions.append(instruction)


def parse_body(
    name: str,
    source: Source,
    start: int,
    end: int,
    parameters: tuple[Param, ...],
    results: tuple[Param, ...],
    is_kernel: bool,
) -> Function:
    """Parse the text between a function's outer braces, from `start` to `end`."""
    return _Body(name, source, parameters, results, is_kernel).read(list(_items(source, start, end)))
