"""Write loads, stores, atomics, fences, copies and the calls that the system answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .declarations import TYPE_SIZES
from .instructions import Access, Call, Immediate, Instruction, Operand, Register, Symbol, Vector
from .operands import Writer, dtype_of

__all__ = ["EMITTERS", "space_of"]

Emitter = Callable[[Writer, Instruction], None]
_SPACES = {"global", "shared", "local", "const", "param"}


def space_of(parts: list[str]) -> str:
    """Give the state space that an opcode names, or generic."""
    for part in parts[1:]:
        name = part.split("::")[0]
        if name in _SPACES:
            if part == "shared::cluster":
                return "shared"
            return name
    return "generic"


def address(w: Writer, access: Access, space: str) -> tuple[str, int, bool]:
    """Give the variable that holds an access's Address, the byte offset from it, and whether it is one for all lanes.

    The same register's Address serves all accesses until the register changes.
    """
    base = access.base
    method = {"const": "global_", "global": "global_"}.get(space, space)
    if isinstance(base, Register):
        slot = w.code.slot(base.name)
        name = w.known(slot, method)
        if name is None:
            ptx_type = "u64" if w.code.types[slot] == "b64" else "u32"
            expression, _ = w.value(base, ptx_type)
            name = f"a{slot}_{method}"
            w.emit(f"{name} = g.chunk.memory.{method}(g, {expression})")
            w.remember(slot, method, name)
        return name, access.offset, w.uniform[slot] and method in ("global_", "param")
    if isinstance(base, Symbol):
        if space == "generic" and base.name in w.context.shared_addresses:
            method = "shared"
        expression, _ = w.typed(Symbol(base.name, base.offset), "u8")
    else:
        expression = w.constant(np.uint64(base.value & (1 << 64) - 1))
    name = w.temporary()
    w.emit(f"{name} = g.chunk.memory.{method}(g, {expression})")
    return name, access.offset, method in ("global_", "param")


def _observe(w: Writer, kind: str, name: str, offset: int, size: int, values: Sequence[str] = ()) -> None:
    """Tell an observer of an access just before it happens, with what a store is about to store."""
    if w.context.observed:
        stored = "".join(f"{value}, " for value in values)
        w.emit(f"g.chunk.launched.observer.access(g, {kind!r}, {name}, {offset}, {size}, {w.site()}, ({stored}))")


def _shift(ptx_type: str) -> int:
    return TYPE_SIZES[ptx_type].bit_length() - 1


def _ld(w: Writer, i: Instruction) -> None:
    parts = i.parts
    ptx_type = parts[-1]
    destination, access = i.operands[0], i.operands[1]
    assert isinstance(access, Access)
    space = space_of(parts)
    items = destination.items if isinstance(destination, Vector) else (destination,)
    if space == "param":
        if w.code.is_parameter(access):
            for item, slot in zip(items, w.code.parameter_slots(i), strict=True):
                dtype = dtype_of(ptx_type)
                w.write(item, w.read(slot, dtype), dtype, w.uniform[slot])
            return
        if isinstance(access.base, Symbol) and access.base.name in w.context.parameters:
            start = w.context.parameters[access.base.name] + access.base.offset + access.offset
            dtype = dtype_of(ptx_type)
            for index, item in enumerate(items):
                offset = start + index * TYPE_SIZES[ptx_type]
                w.write(item, f"g.chunk.launched.parameters[{offset}, {dtype!r}]", dtype, True)
            return
    dtype, shift = dtype_of(ptx_type), _shift(ptx_type)
    name, offset, same = address(w, access, space)
    _observe(w, "ld", name, offset, len(items) << shift)
    if len(items) == 1:
        w.write(items[0], f"g.chunk.memory.load({name}, {offset}, {dtype!r}, {shift}, {w.site()})", dtype, same)
        return
    result = w.temporary()
    w.emit(f"{result} = g.chunk.memory.load_vector({name}, {offset}, {dtype!r}, {shift}, {len(items)}, {w.site()})")
    for index, item in enumerate(items):
        w.write(item, f"{result}[{index}]", dtype, same)
    w.emit(f"{result} = None")


def _st(w: Writer, i: Instruction) -> None:
    parts = i.parts
    ptx_type = parts[-1]
    access, source = i.operands[0], i.operands[1]
    assert isinstance(access, Access)
    items = source.items if isinstance(source, Vector) else (source,)
    space = space_of(parts)
    dtype = dtype_of(ptx_type)
    if space == "param" and w.code.is_parameter(access):
        for item, slot in zip(items, w.code.parameter_slots(i), strict=True):
            expression, same = w.typed(item, dtype)
            w.write_slot(slot, expression, dtype, same)
        return
    shift = _shift(ptx_type)
    name, offset, _ = address(w, access, space)
    values = [w.typed(item, dtype)[0] for item in items]
    _observe(w, "st", name, offset, len(items) << shift, values)
    if len(items) == 1:
        w.emit(f"g.chunk.memory.store({name}, {offset}, {dtype!r}, {shift}, {values[0]}, {w.site()})")
    else:
        w.emit(f"g.chunk.memory.store_vector({name}, {offset}, {dtype!r}, {shift}, ({', '.join(values)},), {w.site()})")


_ATOMIC_OPERATIONS = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"}


def _atom(w: Writer, i: Instruction) -> None:
    """Write ``atom`` and ``red``, whose operands differ by the destination."""
    parts = i.parts
    ptx_type = parts[-1]
    returns = parts[0] == "atom"
    operands = i.operands[1:] if returns else i.operands
    access = operands[0]
    assert isinstance(access, Access)
    operation = next((part for part in parts[1:] if part in _ATOMIC_OPERATIONS), None)
    if operation is None:
        raise w.unsupported()
    if isinstance(operands[1], Vector):
        _atom_vector(w, i, operation, access, operands[1])
        return
    count = 3 if operation == "cas" else 2
    values = [w.value(operand, ptx_type)[0] for operand in operands[1:count]]
    name, offset, _ = address(w, access, space_of(parts))
    size = TYPE_SIZES[ptx_type]
    _observe(w, parts[0], name, offset, size)
    call = f"g.chunk.memory.atomic({operation!r}, {ptx_type!r}, {name}, {offset}, ({', '.join(values)},), {w.site()}"
    if returns and not (isinstance(i.operands[0], Symbol) and i.operands[0].name == "_"):
        w.write(i.operands[0], call + ")", dtype_of(ptx_type), False)
    else:
        w.emit(call + ", False)")


def _atom_vector(w: Writer, i: Instruction, operation: str, access: Access, source: Vector) -> None:
    """Write an atomic on several neighbours, each atomic by itself."""
    ptx_type = i.parts[-1]
    size = TYPE_SIZES[ptx_type]
    name, offset, _ = address(w, access, space_of(i.parts))
    _observe(w, i.parts[0], name, offset, size * len(source.items))
    destination = i.operands[0]
    for index, item in enumerate(source.items):
        value, _ = w.value(item, ptx_type)
        place = f"{name}, {offset + index * size}"
        call = f"g.chunk.memory.atomic({operation!r}, {ptx_type!r}, {place}, ({value},), {w.site()})"
        if i.parts[0] == "atom" and isinstance(destination, Vector):
            w.write(destination.items[index], call, dtype_of(ptx_type), False)
        else:
            w.emit(call)


def _nanosleep(w: Writer, i: Instruction) -> None:
    """Write a nap, which only lets the time pass."""
    w.emit(f"g.nap({w.value(i.operands[0], 'u32')[0]})")


def _nothing(w: Writer, i: Instruction) -> None:
    """Write nothing: prefetches change nothing."""


def _fence(w: Writer, i: Instruction) -> None:
    """Write nothing but the observer's call: all accesses happen in order."""
    if w.context.observed:
        w.emit(f"g.chunk.launched.observer.fence(g, {w.site()})")


def _call(w: Writer, i: Instruction) -> None:
    """Write a call of the system: printf, the heap or a failed assertion."""
    call = i.operands[0]
    assert isinstance(call, Call)
    assert isinstance(call.target, Symbol)
    site = w.code.call_sites[id(i)]
    arguments = []
    for pieces in site.arguments:
        if len(pieces) != 1:
            raise w.unsupported("a call of the system with a structure")
        (((_, size), slot),) = pieces.items()
        arguments.append(w.read(slot, f"u{size}"))
    name = call.target.name.lstrip("_")
    expression = f"g.chunk.system.{name}(g, {', '.join(arguments)}, site={w.site()})"
    if site.results and site.results[0]:
        (((_, size), slot),) = site.results[0].items()
        w.write_slot(slot, expression, f"u{size}", False)
    else:
        w.emit(expression)


def _cp(w: Writer, i: Instruction) -> None:
    """Write ``cp.async``: the bytes move at once, and waiting for them does nothing."""
    parts = i.parts
    if parts[1] != "async" or "bulk" in parts:
        if parts[:3] == ["cp", "async", "bulk"] and parts[3] in ("commit_group", "wait_group"):
            return
        raise w.unsupported()
    if parts[2] in ("commit_group", "wait_group", "wait_all"):
        if w.context.observed:
            allowed = i.operands[0].value if i.operands and isinstance(i.operands[0], Immediate) else 0
            event = parts[2].removesuffix("_group")
            w.emit(f"g.chunk.launched.observer.copies(g, {w.site()}, {event!r}, {allowed})")
        return
    if parts[2] == "mbarrier":
        _mbarrier(w, i)
        return
    to, source, size = i.operands[0], i.operands[1], i.operands[2]
    if not (isinstance(to, Access) and isinstance(source, Access) and isinstance(size, Immediate)):
        raise w.unsupported()
    to_name, to_offset, _ = address(w, to, "shared")
    from_name, from_offset, _ = address(w, source, "global")
    _observe(w, "ld", from_name, from_offset, size.value)
    _observe(w, "st", to_name, to_offset, size.value)
    read = "None"
    if len(i.operands) > 3:
        operand = i.operands[3]
        if isinstance(operand, Register) and w.code.types[w.code.slot(operand.name)] == "pred":
            ignored, _ = w.value(operand, "pred")
            zero, whole = w.constant(np.uint32(0)), w.constant(np.uint32(size.value))
            read = f"np.where({ignored}, {zero}, {whole})[()]"
        elif "cache_hint" not in i.opcode or len(i.operands) > 4:
            read, _ = w.value(operand, "u32")
    w.emit(f"g.chunk.memory.copy({to_name}, {to_offset}, {from_name}, {from_offset}, {size.value}, {read}, {w.site()})")


def _mbarrier(w: Writer, i: Instruction) -> None:
    """Write the operations on barriers that are kept in shared memory."""
    parts = i.parts
    accesses = [operand for operand in i.operands if isinstance(operand, Access)]
    name, offset, _ = address(w, accesses[0], "generic" if space_of(parts) == "generic" else "shared")
    _observe(w, "mbarrier", name, offset, 8)
    others: list[Operand] = [o for o in i.operands if not isinstance(o, Access)]
    verb = parts[1] if parts[0] == "mbarrier" else "arrive"
    has_result = verb in ("test_wait", "try_wait", "pending_count") or (
        verb in ("arrive", "arrive_drop") and parts[0] == "mbarrier"
    )
    destination = others.pop(0) if has_result else None
    values = []
    for operand in others:
        ptx_type = "u32"
        if isinstance(operand, Register):
            ptx_type = "u64" if w.code.types[w.code.slot(operand.name)] == "b64" else "u32"
        values.append(w.value(operand, ptx_type)[0])
    if parts[0] == "cp":
        verb = "arrive" if "noinc" in parts else "arrive_extra"
    if "expect_tx" in parts:
        verb = "arrive_expect" if verb == "arrive" else "expect"
    parity = ", parity=True" if "parity" in parts else ""
    arguments = " ".join(f"{value}," for value in values)
    call = f"g.chunk.memory.mbarrier({verb!r}, {name}, {offset}, ({arguments}), {w.site()}{parity})"
    if destination is None:
        w.emit(call)
    else:
        waits = verb in ("test_wait", "try_wait")
        w.write(destination, call, "?" if waits else "u8", False)


EMITTERS: dict[str, Emitter] = {
    "ld": _ld, "ldu": _ld, "st": _st, "atom": _atom, "red": _atom, "call": _call, "cp": _cp, "mbarrier": _mbarrier,
    "membar": _fence, "fence": _fence, "prefetch": _nothing, "prefetchu": _nothing, "nanosleep": _nanosleep,
    "discard": _nothing, "applypriority": _nothing, "griddepcontrol": _nothing, "pmevent": _nothing,
}  # fmt: skip  # rows of a table
