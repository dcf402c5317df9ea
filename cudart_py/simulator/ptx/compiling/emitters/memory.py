"""Emit loads, stores, atomics, fences, accesses to textures and surfaces, and system calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...syntax.instructions import Access, Instruction, Operand, Register, Symbol, Vector, items_of
from ...syntax.types import TYPE_SIZES, dtype_of
from ..forms import Form
from ..writer import Writer, spread

# The size of the words of which structures consist that such functions take.
_WORD = 4
# The functions of the runtime that kernels call to launch kernels, and so on: the number of arguments of each, and the
# method of RuntimeCalls that executes it.
_RUNTIME_FUNCTIONS = {
    "GetParameterBufferV2": (4, "parameter_buffer"),
    "LaunchDeviceV2": (2, "launch"),
    "GetLastError": (0, "last_error"),
    "PeekAtLastError": (0, "peek_at_last_error"),
    "GetErrorName": (1, "error_name"),
    "GetErrorString": (1, "error_string"),
    "GetDevice": (1, "device"),
    "GetDeviceCount": (1, "device_count"),
    "DeviceGetAttribute": (3, "attribute"),
    "RuntimeGetVersion": (1, "version"),
    "StreamCreateWithFlags": (2, "create_stream"),
    "StreamDestroy": (1, "nothing"),
    "StreamWaitEvent": (3, "nothing"),
    "EventCreateWithFlags": (2, "create_event"),
    "EventRecord": (2, "nothing"),
    "EventRecordWithFlags": (3, "nothing"),
    "EventDestroy": (1, "nothing"),
    "Malloc": (2, "malloc"),
    "Free": (1, "free"),
    "MemcpyAsync": (5, "copy"),
    "MemsetAsync": (4, "fill"),
}
# The functions of the system: the number of arguments of each, and the method of System that executes it.
SYSTEM_FUNCTIONS = {
    "vprintf": (2, "vprintf"),
    "malloc": (1, "malloc"),
    "free": (1, "free"),
    "__assertfail": (5, "assertfail"),
    "cudaGraphSetConditional": (2, "set_condition"),
    # Programs that the compilers translate name the functions of CUDA's second version of dynamic parallelism.
    **{
        f"{prefix}{name}": (count, f"runtime.{method}")
        for prefix in ("cuda", "__cudaCDP2")
        for name, (count, method) in _RUNTIME_FUNCTIONS.items()
    },
}


def is_runtime_function(name: str) -> bool:
    """Return whether a system function belongs to the runtime that launches kernels from kernels."""
    return SYSTEM_FUNCTIONS[name][1].startswith("runtime.")


def address(w: Writer, access: Operand, space: str) -> tuple[str, int, bool]:
    """Return the variable that holds an access's Address, the offset in bytes, and whether all lanes share one address.

    One Address of a register serves all accesses until the register changes.
    """
    assert isinstance(access, Access)
    base = access.base
    space = w.code.space_of(access, space, w.environment.shared_addresses)
    method = "global_" if space == "global" else space
    if isinstance(base, Register):
        slot = w.code.slot(base.name)
        name = w.known(slot, method)
        if name is None:
            expression, _ = w.value(base, w.word_type(base))
            name = f"a{slot}_{method}"
            w.emit(f"{name} = g.chunk.memory.{method}(g, {expression})")
            w.remember(slot, method, name)
        return name, access.offset, w.uniform[slot] and method in ("global_", "param")
    if isinstance(base, Symbol):
        expression, _ = w.typed(Symbol(base.name, base.offset), "u8")
    else:
        expression = w.constant(np.uint64(base.value & (1 << 64) - 1))
    name = w.temporary()
    w.emit(f"{name} = g.chunk.memory.{method}(g, {expression})")
    return name, access.offset, method in ("global_", "param")


def place(w: Writer, access: Operand, space: str) -> str:
    """Return source code for a pair of an access's Address and its offset in bytes."""
    name, offset, _ = address(w, access, space)
    return f"({name}, {offset})"


def observe(w: Writer, kind: str, name: str, offset: int, size: int, values: Sequence[str] = ()) -> None:
    """Emit the observer's call for an access, immediately before it happens, with the values of a store."""
    if w.environment.observed:
        stored = "".join(f"{value}, " for value in values)
        w.emit(f"g.chunk.state.observer.access(g, {kind!r}, {name}, {offset}, {size}, {w.site()}, ({stored}))")


def _shift(ptx_type: str) -> int:
    return TYPE_SIZES[ptx_type].bit_length() - 1


def load(w: Writer, i: Instruction, form: Form) -> None:
    """Emit a load; a load of a parameter at a known offset needs no access to memory."""
    ptx_type, dtype = form.type, dtype_of(form.type)
    destination, access = i.operands[0], i.access
    items = items_of(destination)
    if form.space == "param":
        if w.code.is_parameter(access):
            for item, slot in zip(items, w.code.parameter_slots(i), strict=True):
                w.write(item, w.read(slot, dtype), dtype, w.uniform[slot])
            return
        if isinstance(access.base, Symbol) and access.base.name in w.environment.parameters:
            start = w.environment.parameters[access.base.name] + access.base.offset + access.offset
            for index, item in enumerate(items):
                offset = start + index * TYPE_SIZES[ptx_type]
                w.write(item, f"g.chunk.state.parameters[{offset}, {dtype!r}]", dtype, True)
            return
    shift = _shift(ptx_type)
    name, offset, same = address(w, access, form.space)
    observe(w, "ld", name, offset, len(items) << shift)
    if len(items) == 1:
        w.write(items[0], f"g.chunk.memory.load({name}, {offset}, {dtype!r}, {shift}, {w.site()})", dtype, same)
        return
    call = f"g.chunk.memory.load_vector({name}, {offset}, {dtype!r}, {shift}, {len(items)}, {w.site()})"
    w.write_all(destination, call, dtype, uniform=same)


def store(w: Writer, i: Instruction, form: Form) -> None:
    """Emit a store; the parameters of a call are kept in slots instead of memory."""
    dtype = dtype_of(form.type)
    access, source = i.access, i.operands[1]
    items = items_of(source)
    if form.space == "param" and w.code.is_parameter(access):
        for item, slot in zip(items, w.code.parameter_slots(i), strict=True):
            expression, same = w.typed(item, dtype)
            w.write_slot(slot, expression, dtype, same)
        return
    shift = _shift(form.type)
    name, offset, _ = address(w, access, form.space)
    values = [w.typed(item, dtype)[0] for item in items]
    observe(w, "st", name, offset, len(items) << shift, values)
    w.emit(f"g.chunk.memory.store({name}, {offset}, {dtype!r}, {shift}, ({', '.join(values)},), {w.site()})")


def atomic(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``atom`` and ``red``, which lacks the destination; each element of a vector is a separate atomic."""
    returns = form.row.access == "atom"
    access, *sources = i.operands[1:] if returns else i.operands
    ptx_type, size = form.type, TYPE_SIZES[form.type]
    name, offset, _ = address(w, access, form.space)
    observe(w, form.row.access, name, offset, size * form.vector)
    sources = sources[:2] if form.operation == "cas" else sources[:1]
    for index in range(form.vector):
        values = [w.value(_element(source, index), ptx_type)[0] for source in sources]
        place = f"{name}, {offset + index * size}"
        call = f"g.chunk.memory.atomic({form.operation!r}, {ptx_type!r}, {place}, ({', '.join(values)},), {w.site()}"
        destination = _element(i.operands[0], index) if returns else Symbol("_")
        if destination == Symbol("_"):
            w.emit(f"{call}, False)")
        else:
            w.write(destination, f"{call})", dtype_of(ptx_type), False)


def _element(operand: Operand, index: int) -> Operand:
    return operand.items[index] if isinstance(operand, Vector) else operand


def nap(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``nanosleep``, which only advances the time."""
    w.emit(f"g.nap({w.value(i.operands[0], 'u32')[0]})")


def nothing(w: Writer, i: Instruction, form: Form) -> None:
    """Emit nothing for an instruction that changes no values, such as a prefetch."""


def policy(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``createpolicy``; its result is 0, because it is only a hint to caches."""
    w.write(i.operands[0], w.constant(np.uint64(0)), "u8", True)


def fence(w: Writer, i: Instruction, form: Form) -> None:
    """Emit only the observer's call: all accesses happen in program order anyway."""
    if w.environment.observed:
        w.emit(f"g.chunk.state.observer.fence(g, {w.site()})")


def coordinate_tuple(w: Writer, access: Operand, form: Form, ptx_type: str) -> str:
    """Return source code for a tuple of the coordinates' arrays, preceded by the layer's array if there is one."""
    assert isinstance(access, Access)
    assert access.coordinates is not None
    arrays = [
        spread(w.value(item, kind), dtype_of(kind))
        for item, kind in zip(access.coordinates.items, form.coordinate_types(ptx_type), strict=False)
    ]
    return f"({', '.join(arrays)},)"


def texture(w: Writer, i: Instruction, form: Form, given: str = "") -> None:
    """Emit ``tex.{1d,2d,3d,a1d,a2d}.v4.dtype.ctype {r, g, b, a}, [texture, {layer, x, y}]``.

    `given` is the source code of further arguments.
    """
    result_type, coordinate_type = form.types
    arguments = f"{_texel(w, i.operands[1], form, coordinate_type)}, {dtype_of(result_type)!r}, {w.site()}{given}"
    w.write_all(i.operands[0], f"g.chunk.system.texture(g, {arguments})", dtype_of(result_type))


def further_texture(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``tex`` of cube maps, ``tex.level``, ``tex.grad``, and ``tld4``, which returns a channel of four texels."""
    given = ""
    if "level" in form.words:
        given = f", level={spread(w.value(i.operands[2], 'f32'), 'f4')}"
    elif "grad" in form.words:
        gradients = []
        for operand in i.operands[2:]:
            assert isinstance(operand, Vector)
            gradients.append("".join(f"{spread(w.value(item, 'f32'), 'f4')}, " for item in operand.items))
        given = f", gradients=(({gradients[0]}), ({gradients[1]}))"
    elif form.row.name == "tld4":
        given = f", component={'rgba'.index(form.words[0])}"
    texture(w, i, form, given)


def surface(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``suld.b`` and ``sust.b``, which read or write one or more adjacent elements."""
    dtype, stores = dtype_of(form.type), form.row.name == "sust"
    values = "".join(f"{w.typed(item, dtype)[0]}, " for item in items_of(i.operands[1])) if stores else ""
    call = f"g.chunk.system.surface(g, {_texel(w, i.access, form, 's32')}, {dtype!r}, ({values}), {w.site()})"
    if stores:
        w.emit(call)
    else:
        w.write_all(i.operands[0], call, dtype)


def _texel(w: Writer, access: Operand, form: Form, coordinate_type: str) -> str:
    """Return source code for the handle of a texture or surface, and for the coordinates."""
    assert isinstance(access, Access)
    handle, _ = w.value(access.base, "u64")
    return f"{handle}, {coordinate_tuple(w, access, form, coordinate_type)}"


def system_call(w: Writer, i: Instruction, form: Form) -> None:
    """Emit a system call: printf, the heap's functions, a failed assertion, a graph's condition, or the runtime's.

    An argument that is a structure is passed as its words.
    """
    target = i.call.target
    assert isinstance(target, Symbol)
    site = w.code.call_sites[id(i)]
    arguments = []
    for pieces in site.arguments:
        if len(pieces) > 1 and any(size != _WORD for _, size in pieces):
            raise w.unsupported("a call of the system with a structure")
        arguments += [w.read(slot, f"u{size}") for (_, size), slot in sorted(pieces.items())]
    _, method = SYSTEM_FUNCTIONS[target.name]
    expression = f"g.chunk.system.{method}({', '.join(['g', *arguments])}, site={w.site()})"
    if site.results and site.results[0]:
        (((_, size), slot),) = site.results[0].items()
        w.write_slot(slot, expression, f"u{size}", False)
    else:
        w.emit(expression)
