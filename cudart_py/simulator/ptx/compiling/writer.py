"""Generate the Python source of one block: read operands and assign results, viewed as the opcodes' types.

The source depends on the environment for which the block is compiled.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from ..arrays.source import Source
from ..faults import UnsupportedError
from ..syntax import special_names
from ..syntax.instructions import Immediate, Instruction, Operand, Register, Symbol, items_of
from ..syntax.parser import Entry
from ..syntax.types import dtype_of
from ..windows import RESERVED_SHARED

if TYPE_CHECKING:
    from .analysis.control_flow import Block, Code

# An expression and whether it is a scalar: the same value for all lanes.
Value = tuple[str, bool]


def _size(dtype: str) -> int:
    return 1 if dtype == "?" else int(dtype[1:])


def _as_integer(expression: str, dtype: str) -> str:
    """Return an expression unchanged, or viewed as an integer if it is a float."""
    return f"{expression}.view(u{_size(dtype)})" if dtype[0] == "f" else expression


def _cut(expression: str, storage: str, dtype: str) -> str:
    """Return a register's low bits as a NumPy type; the register may be wider than that type."""
    if _size(storage) == _size(dtype):
        return f"{expression}.view({dtype})"
    bits = _as_integer(expression, storage)
    return f"{bits}.astype(u{_size(dtype)}).view({dtype})" if dtype[0] == "f" else f"{bits}.astype({dtype})"


def _extended(expression: str, dtype: str, storage: str) -> str:
    """Return a value in a register's storage type, sign-extended if it is signed, else zero-extended."""
    if _size(storage) == _size(dtype):
        return f"{expression}.view({storage})"
    kind = "i" if dtype[0] == "i" and _size(dtype) < _size(storage) else "u"
    wide = f"{kind}{_size(storage)}"
    bits = f"{_as_integer(expression, dtype)}.astype({wide})"
    return bits if wide == storage else f"{bits}.view({storage})"


def spread(value: Value, dtype: str) -> str:
    """Return a value as an array over the lanes of a group."""
    expression, uniform = value
    return f"np.full(g.n, {expression}, {'np.bool_' if dtype == '?' else dtype})" if uniform else expression


class Writer(Source):
    """The writer of one block's function, which tracks which registers are scalars."""

    def __init__(self, code: Code, block: Block, uniform: dict[int, bool], environment: Environment) -> None:
        super().__init__()
        self.code = code
        self.block = block
        self.uniform = dict(uniform)
        self.environment = environment
        # The variables that were derived from slots, keyed by the slot and by what they hold.
        self._derived: defaultdict[int, dict[str, str]] = defaultdict(dict)
        self.instruction: Instruction | None = None

    def unsupported(self, why: str) -> UnsupportedError:
        """Return the error that names the current instruction."""
        assert self.instruction is not None
        return self.environment.unsupported(self.instruction, why)

    def site(self) -> str:
        """Return the name of the current instruction in the generated source."""
        name = f"X{id(self.instruction)}"
        self.namespace[name] = self.instruction
        return name

    # --- reading

    def immediate(self, operand: Immediate, dtype: str) -> str:
        """Return the name of a constant that holds a literal as a NumPy scalar of a type."""
        if dtype == "?":
            return self.constant(np.bool_(operand.value))
        size = _size(dtype)
        bits = operand.bits_as(f"{'f' if dtype[0] == 'f' else 'b'}{8 * size}")
        return self.constant(np.array(bits, f"u{size}").view(dtype)[()])

    def value(self, operand: Operand, ptx_type: str) -> Value:
        """Return an operand as an expression of a PTX type."""
        return self.typed(operand, dtype_of(ptx_type))

    def typed(self, operand: Operand, dtype: str) -> Value:
        """Return an operand as an expression of a NumPy type."""
        if isinstance(operand, Register):
            slot = self.code.slot(operand.name)
            name = self.read(slot, dtype)
            return (f"~{name}" if operand.negated else name), self.uniform[slot]
        if isinstance(operand, Immediate):
            return self.immediate(operand, dtype), True
        assert isinstance(operand, Symbol)
        return self._symbol(operand, dtype)

    def read(self, slot: int, dtype: str) -> str:
        """Return the name of a variable with a slot's value, viewed as a NumPy type or truncated to it."""
        storage = dtype_of(self.code.types[slot])
        name = f"v{slot}"
        if storage == dtype:
            return name
        known = self.known(slot, dtype)
        if known is None:
            known = f"v{slot}_{dtype}"
            if (_size(storage) < _size(dtype) and dtype[0] == "f") or "?" in (storage, dtype):
                raise self.unsupported(f"a {storage} register read as {dtype}")
            self.emit(f"{known} = {_cut(name, storage, dtype)}")
            self.remember(slot, dtype, known)
        return known

    def known(self, slot: int, key: str) -> str | None:
        """Return the variable derived from a slot under `key` since the slot's last change."""
        return self._derived[slot].get(key)

    def remember(self, slot: int, key: str, name: str) -> None:
        """Record, under `key`, a variable derived from a slot: valid until the slot changes, and dropped with it."""
        self._derived[slot][key] = name

    def _symbol(self, symbol: Symbol, dtype: str) -> Value:
        name = symbol.name
        if name.startswith("%"):
            return self._special(name, dtype)
        constant = self.environment.constant_of(symbol)
        if constant is not None:
            return self.immediate(constant, dtype), True
        place = None
        if name in self.code.local_offsets:
            place = f"g.stack + {self.code.local_offsets[name] + symbol.offset}"
        elif name in self.environment.variables:
            place = f"g.chunk.state.symbols[{name!r}] + {symbol.offset}"
        if place is not None:
            mask = (1 << 8 * _size(dtype)) - 1
            return f"u{_size(dtype)}.type(({place}) & {mask}).view({dtype})", True
        raise self.unsupported(f"symbol {name}")

    def _special(self, name: str, dtype: str) -> Value:
        kind = special_names.dtype(name)
        if special_names.is_clock(name):
            instructions = self.block.instructions
            place = next((n for n, other in enumerate(instructions) if other is self.instruction), len(instructions))
            loop = self.code.clock_loops[self.block.index]
            expression = f"{kind}.type(g.clock({name!r}, {len(instructions) - place}, {loop}))"
            uniform = True
        else:
            expression = f"g.special({name!r})"
            uniform = name in self.environment.uniform_specials
        return (expression if kind == dtype else f"{expression}.astype({dtype})"), uniform

    # --- writing

    def write(self, operand: Operand, expression: str, dtype: str, uniform: bool) -> None:
        """Assign an expression of a NumPy type to a register, widened or viewed as the register's own type."""
        if isinstance(operand, Symbol) and operand.name == "_":
            self.emit(expression)
            return
        if not isinstance(operand, Register):
            raise self.unsupported("destination form")
        self.write_slot(self.code.slot(operand.name), expression, dtype, uniform)

    def write_slot(self, slot: int, expression: str, dtype: str, uniform: bool) -> None:
        """Assign an expression of a NumPy type to a slot."""
        storage = dtype_of(self.code.types[slot])
        if storage != dtype:
            if "?" in (storage, dtype):
                raise self.unsupported(f"a {dtype} value for a {storage} register")
            expression = _extended(f"({expression})", dtype, storage)
        self.emit(f"v{slot} = {expression}")
        self.uniform[slot] = uniform
        self._derived[slot].clear()

    def write_all(self, destination: Operand, call: str, *dtypes: str, uniform: bool = False) -> None:
        """Assign the elements of a call's result, a sequence, to the registers of a vector, or the first to a register.

        `dtypes` are the types of the elements; further elements have the last type.
        """
        result = self.temporary()
        self.emit(f"{result} = {call}")
        for index, item in enumerate(items_of(destination)):
            self.write(item, f"{result}[{index}]", dtypes[min(index, len(dtypes) - 1)], uniform)
        self.emit(f"{result} = None")

    def word_type(self, operand: Operand, other: str = "u32") -> str:
        """Return the unsigned type of a register that holds 32 or 64 bits, and `other` for all other operands."""
        if not isinstance(operand, Register):
            return other
        return "u64" if self.code.types[self.code.slot(operand.name)] == "b64" else "u32"

    def drop(self, slot: int) -> None:
        """Drop a slot's array and its derived variables early, to reuse their memory while it is still in the cache."""
        self.emit(" = ".join([f"v{slot}", *self._derived.pop(slot, {}).values()]) + " = None")


class Environment:
    """A kernel's symbols, the special registers that all lanes of a chunk share, and whether launches are observed."""

    def __init__(self, entry: Entry, uniform_specials: frozenset[str], observed: bool) -> None:
        self._module = entry.module
        self.uniform_specials = uniform_specials
        self.observed = observed
        self.shared_addresses = {name: RESERVED_SHARED + offset for name, offset in entry.shared_offsets.items()}
        self.parameters = {parameter.name: parameter.offset for parameter in entry.params}
        self.variables = entry.module.variables
        self._constants = {"WARP_SZ": 32} | entry.module.code_addresses | self.parameters | self.shared_addresses

    def constant_of(self, symbol: Symbol) -> Immediate | None:
        """Return the value of a symbol that is the same in every launch; addresses wrap at the width of their type."""
        value = self._constants.get(symbol.name)
        return None if value is None else Immediate(value + symbol.offset)

    def unsupported(self, instruction: Instruction, why: str) -> UnsupportedError:
        """Return the error for an instruction that isn't simulated."""
        where = self._module.places.of(instruction)
        return UnsupportedError(
            f"the simulator doesn't support the instruction '{instruction.text}' ({why}) at {where}, "
            f"in {instruction.function}"
        )
