"""The names at a level of the call stack: variables, registers, and CUDA's built-in ones."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...debugging.expression_syntax import ExpressionError
from ..ptx.windows import LOCAL_WINDOW, RESERVED_SHARED, SHARED_WINDOW
from .frames import is_between
from .moments import WARP
from .symbols.cpp_types import INT, VECTORS, CType, Pointer, Scalar, Structure, number_named
from .symbols.dwarf import is_named
from .values import MemoryView, Value, extents_value, index_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .frames import Frame
    from .moments import LaneGroup, Moment
    from .recorder import Recorder
    from .symbols.dwarf import DebugInformation, Variable
    from .symbols.lines import Lines

Array = NDArray[Any]
_BITS = {"b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_}
_FLOATS = {"f32": np.float32, "f64": np.float64}


class ShownValue(NamedTuple):
    """A value that `print` has shown: its type, its number, and its address; either of the latter two may be None."""

    type: CType
    data: Any
    address: int | None


class Scope:
    """The names that are visible to a group of lanes in one frame of their call stack."""

    def __init__(self, recorder: Recorder, moment: Moment, group: LaneGroup, frame: Frame) -> None:
        self._recorder = recorder
        self._moment = moment
        self.group = group
        # The values that `print` has shown, for $, $$ and $1: their types, and their numbers or addresses.
        self.shown: Sequence[ShownValue] = ()
        self._inlined = frame.inlined
        self.level = frame.level
        self.code, _, self.site = group.levels[frame.level]
        self.memory = MemoryView(recorder, moment, group.lanes)
        self._information: DebugInformation = recorder.information
        self._lines: Lines = recorder.lines

    @property
    def variables(self) -> list[Variable]:
        """The C++ variables in scope, outer ones first; an inner one hides an outer one of the same name."""
        known = self._information.variables(self.code.name) if self._inlined is None else self._inlined.variables
        return list({one.name: one for one in known if self._is_between(one)}.values())

    @property
    def registers(self) -> list[str]:
        """The names of the function's registers in PTX."""
        return list(self.code.slots)

    def name_at(self, address: int) -> str:
        """Return the variable of a block or of the module at an address as ``tile+4``, or ""."""
        offset = address - SHARED_WINDOW - RESERVED_SHARED
        for one in self._recorder.shared_variables.values():
            if one.offset <= offset < one.offset + one.type.size:
                return f"{one.name}+{offset - one.offset}" if offset > one.offset else one.name
        for variable in self._information.globals:
            if variable.memory is None or variable.memory.name not in self._lines.entry.module.variables:
                continue
            distance = address - self._moment.chunk.state.symbols[variable.memory.name] - variable.memory.offset
            if 0 <= distance < variable.type.size:
                return f"{variable.name}+{distance}" if distance else variable.name
        return ""

    def type_named(self, name: str) -> CType | None:
        """Return the type with a name: a number, a vector, or a structure that is described; None for another name."""
        return number_named(name) or VECTORS.get(name) or self._information.named(name)

    def whole(self, type_: CType) -> CType:
        """Return a type; a structure that only a pointer inside it names gets its members."""
        known = self.type_named(type_.name) if isinstance(type_, Structure) and not type_.members else None
        return type_ if known is None else known

    def value(self, name: str) -> Value:
        """Return the value of a name; raises ExpressionError for one that is not known, or that has no value here."""
        if name.startswith("%"):
            return self._register(name)
        if name.startswith("$"):
            return self._shown(name)
        variable = next((one for one in self.variables if one.name == name), None)
        if variable is not None:
            return self._variable(variable)
        shared = self._recorder.shared_variables.get(name)
        if shared is not None:
            return self._in_memory(shared.type, SHARED_WINDOW + RESERVED_SHARED + shared.offset)
        variable = self._global(name)
        if variable is not None:
            return self._variable(variable)
        builtin = self._builtin(name)
        if builtin is not None:
            return builtin
        enumerator = self._information.enumerator(name)
        type_, number = enumerator or (None, 0)
        if isinstance(type_, Scalar):
            return Value(type_, np.full(len(self.group.lanes), number, type_.dtype))
        outer, _, inner = name.rpartition("::")
        if outer and is_named(self._lines.called(self.code.name), outer):
            return self.value(inner)  # as in gdb, a variable of the function
        raise ExpressionError(self._unknown(name))

    def _global(self, name: str) -> Variable | None:
        """Return the variable of the module with a name, or None. Namespaces and classes may be left out.

        Raises ExpressionError if several variables may be meant.
        """
        whole = name.removeprefix("::")
        known = {one.name: one for one in self._information.globals}
        found = [whole] if whole in known else [one for one in known if is_named(one, name)]
        if len(found) > 1:
            raise ExpressionError(f"{name!r} may be {' or '.join(found)}")
        return known[found[0]] if found else None

    def _shown(self, name: str) -> Value:
        """Return a value that `print` has shown: the last one is $, the one before it $$, and $1 the first one."""
        digits = name[1:].removeprefix("$")
        if digits and not digits.isdigit():
            raise ExpressionError(f"{name} is not known: $, $$ and $1 are values that print has shown")
        number = int(digits) if digits else len(self.shown) - (name == "$$")
        if not 0 < number <= len(self.shown):
            raise ExpressionError(f"print has not shown a value {name}")
        type_, data, address = self.shown[number - 1]
        lanes = len(self.group.lanes)
        addresses = None if address is None else np.full(lanes, address, np.uint64)
        return Value(type_, None if data is None else np.full(lanes, data), addresses)

    def _builtin(self, name: str) -> Value | None:
        """Return threadIdx, warpSize or a similar built-in variable, or None for another name."""
        launch, lanes = self._moment.chunk.state.launch, self.group.lanes
        if name == "warpSize":
            return Value(INT, np.full(len(lanes), WARP, np.int32))
        if name in ("threadIdx", "blockIdx"):
            index = self._moment.thread_index if name == "threadIdx" else self._moment.block_index
            return index_value(np.array([index(int(lane)) for lane in lanes], np.uint32))
        if name in ("blockDim", "gridDim"):
            return extents_value(launch.block if name == "blockDim" else launch.grid, len(lanes))
        return None

    def _unknown(self, name: str) -> str:
        if self._information:
            return f"no variable is named {name!r} here"
        return (
            f"no variable is named {name!r}: the kernel was compiled without -G, so that only its registers have names"
        )

    @cached_property
    def _index(self) -> int:
        """The index of the instruction in its function."""
        return 0 if self.site is None else self._lines.index(self.site)

    def _is_between(self, span: Any) -> bool:
        """Return whether the instruction is between two labels."""
        return is_between(self.code.function, span, self._index)

    def _variable(self, variable: Variable) -> Value:
        if variable.memory is not None:
            name, offset = variable.memory
            # The parser adds the function to the names of its own variables.
            own = f"{name}@{self.code.name}"
            local = self.code.local_offsets.get(own)
            if local is not None:
                return self._in_memory(variable.type, LOCAL_WINDOW + self.group.stacks[self.level] + local + offset)
            module = self._recorder.lines.entry.module
            if name in module.variables:
                return self._in_memory(variable.type, self._moment.chunk.state.symbols[name] + offset)
            places = self._recorder.lines.entry.shared_offsets
            shared = places.get(name, places.get(own))
            if shared is not None:
                # Debug information gives dynamic shared memory no size.
                known = self._recorder.shared_variables.get(variable.name)
                type_ = known.type if known is not None and known.offset == shared + offset else variable.type
                return self._in_memory(type_, SHARED_WINDOW + RESERVED_SHARED + shared + offset)
        place = next((one for one in variable.registers if self._is_between(one)), None)
        if place is None or place.register not in self.code.slots:
            raise ExpressionError(f"{variable.name} has no value here")
        value = self._register(place.register)
        return self._as_type(value, variable.type)

    def _in_memory(self, type_: CType, address: int) -> Value:
        lanes = len(self.group.lanes)
        addresses = np.full(lanes, address, np.uint64)
        return self.memory.load(type_, addresses, np.ones(lanes, np.bool_))

    def _as_type(self, value: Value, type_: CType) -> Value:
        """Return a register's value as a variable's type: its low bits, since a register may be wider."""
        if isinstance(type_, Pointer):
            pointer = Value(type_, value.data.astype(np.uint64), None, value.known)
            if type_.is_reference and type_.target is not None:
                return self.memory.load(type_.target, pointer.data, value.known)
            return pointer
        data = value.data
        if not isinstance(type_, Scalar) or data.dtype.itemsize < type_.size:
            raise ExpressionError(f"a {type_.name} is not kept in one register")
        bits = np.ascontiguousarray(data).view(f"u{data.dtype.itemsize}").astype(f"u{type_.size}")
        if type_.dtype == np.bool_:
            return Value(type_, bits != 0, None, value.known)
        return Value(type_, bits.view(type_.dtype), None, value.known)

    def _register(self, name: str) -> Value:
        slot = self.code.slots.get(name)
        if slot is None:
            raise ExpressionError(f"{self.code.name} has no register {name}")
        kind = self.code.function.registers.get(name, "pred")
        storage = self.code.types[slot]
        data = self.group.register(slot, self.level)
        if data is None:
            zeros = np.zeros(len(self.group.lanes), _dtype(kind, storage))
            return Value(_scalar(kind, storage), zeros, None, zeros.astype(np.bool_))
        dtype = _dtype(kind, storage)
        return Value(_scalar(kind, storage), data if dtype == np.bool_ else np.ascontiguousarray(data).view(dtype))

    def values(self, names: list[str]) -> Iterator[tuple[str, Value | None]]:
        """Yield each name with its value, or None if it has none here."""
        for name in names:
            try:
                yield name, self.value(name)
            except ExpressionError:
                yield name, None


def _dtype(kind: str, storage: str) -> np.dtype:
    """Return the type in which a register is shown: untyped bits as unsigned numbers."""
    size = np.dtype(_BITS.get(storage, _FLOATS.get(storage, np.uint32))).itemsize
    if storage in _FLOATS:
        return np.dtype(_FLOATS[storage])
    if kind == "pred":
        return np.dtype(np.bool_)
    return np.dtype(f"{'i' if kind[0] == 's' else 'u'}{size}")


def _scalar(kind: str, storage: str) -> Scalar:
    return INT if kind == "s32" else Scalar(f".{kind}", _dtype(kind, storage))
