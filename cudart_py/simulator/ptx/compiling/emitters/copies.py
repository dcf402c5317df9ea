"""Emit asynchronous copies, and the barriers in shared memory by which kernels wait for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...operations import tensor_maps
from ...syntax.instructions import Access, Immediate, Instruction, Operand, Register
from ...syntax.types import TYPE_SIZES, dtype_of
from ..forms import Form
from ..writer import Writer
from .memory import address, atomic, coordinate_tuple, observe, place, store

# The events that are reported to observers, keyed by the word of an opcode.
_EVENTS = {"commit_group": "commit", "wait_group": "wait", "wait_all": "wait_all"}


def copy(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``cp.async``: the bytes are copied immediately, so waiting for them does nothing."""
    to, source, size = i.operands[:3]
    assert isinstance(size, Immediate)
    to_name, to_offset, _ = address(w, to, "shared")
    from_name, from_offset, _ = address(w, source, "global")
    # The cache policy is the last operand.
    rest = i.operands[3:-1] if "L2::cache_hint" in form.words else i.operands[3:]
    read = _bytes_read(w, rest[0], size.value) if rest else "None"
    observe(w, "ld", f"{from_name}.where({read})" if rest else from_name, from_offset, size.value)
    observe(w, "st", to_name, to_offset, size.value)
    w.emit(f"g.chunk.memory.copy({to_name}, {to_offset}, {from_name}, {from_offset}, {size.value}, {read}, {w.site()})")


def _bytes_read(w: Writer, operand: Operand, size: int) -> str:
    """Return how many bytes a copy reads: the operand, or 0 if the operand is a predicate that is true."""
    if isinstance(operand, Register) and w.code.types[w.code.slot(operand.name)] == "pred":
        ignored, _ = w.value(operand, "pred")
        return f"np.where({ignored}, {w.constant(np.uint32(0))}, {w.constant(np.uint32(size))})[()]"
    return w.value(operand, "u32")[0]


def bulk_copy(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``cp.async.bulk`` and ``cp.reduce.async.bulk`` between global and shared memory."""
    to, source, size, *rest = i.operands
    to_place, from_place = place(w, to, form.spaces[0]), place(w, source, form.spaces[1])
    arguments = [to_place, from_place, w.value(size, "u32")[0], w.site()]
    if form.types:
        arguments.append(f"operation={(form.operation, form.type)}")
    w.emit(f"g.chunk.bulk_copies.copy(g, {', '.join([*arguments, *_receivers(w, form, rest)])})")


def _receivers(w: Writer, form: Form, operands: Sequence[Operand]) -> Iterator[str]:
    """Yield the arguments for the barrier that counts the bytes, the blocks that receive them, and the observer."""
    if "mbarrier::complete_tx::bytes" in form.words:
        yield f"barrier={place(w, operands[0], 'shared')}"
    if "multicast::cluster" in form.words:
        yield f"ranks={w.value(operands[1], 'u16')[0]}"
    if w.environment.observed:
        yield "observer=g.chunk.state.observer"


def tensor_copy(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk.tensor``."""
    loads = form.spaces[0] == "shared"
    shared, tensor = i.operands[:2] if loads else i.operands[1::-1]
    map_place = place(w, tensor, "generic")
    arguments = [map_place, coordinate_tuple(w, tensor, form, "s32"), place(w, shared, "shared"), w.site()]
    if "reduce" in form.words:
        arguments.append(f"operation={form.operation!r}")
    w.emit(f"g.chunk.tensor_copies.copy(g, {', '.join([*arguments, *_receivers(w, form, i.operands[2:])])})")


def tensor_map_change(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``tensormap.replace``."""
    access, *ordinals, value = i.operands
    field = next(word for word in form.words if word in tensor_maps.FIELDS)
    ordinal = ordinals[0].value if ordinals and isinstance(ordinals[0], Immediate) else 0
    if isinstance(value, Immediate) and field in tensor_maps.ENUMERATIONS:
        known = tensor_maps.ENUMERATIONS[field]
        expression = str(known[value.value] if value.value < len(known) else tensor_maps.NOT_SIMULATED)
    else:
        expression = w.value(value, "u64" if form.type == "b64" else "u32")[0]
    arguments = f"{place(w, access, form.space)}, {field!r}, {ordinal}, {expression}, {w.site()}"
    w.emit(f"g.chunk.tensor_copies.replace(g, {arguments})")


def tensor_map_copy(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``tensormap.cp_fenceproxy``."""
    places = []
    for access in i.operands[:2]:
        assert isinstance(access, Access)
        expression, _ = w.value(access.base, w.word_type(access.base, "u64"))
        places.append(f"{expression} + {access.offset}" if access.offset else expression)
    w.emit(f"g.chunk.tensor_copies.copy_map(g, ('global', 'shared'), ({', '.join(places)}), {w.site()})")


def copy_group(w: Writer, i: Instruction, form: Form) -> None:
    """Emit only the observer's call, for the end of a group of copies or a wait for groups."""
    if w.environment.observed:
        event, allowed = group_event(i, form)
        w.emit(f"g.chunk.state.observer.copies(g, {w.site()}, {event!r}, {allowed})")


def group_event(i: Instruction, form: Form) -> tuple[str, int]:
    """Return an event of groups of copies (commit, wait or wait_all), and how many groups a wait leaves out."""
    allowed = i.operands[0].value if i.operands and isinstance(i.operands[0], Immediate) else 0
    return next(_EVENTS[word] for word in form.words if word in _EVENTS), allowed


def counted(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``st.async`` and ``red.async``: an immediate store or atomic operation whose bytes a barrier counts."""
    (store if form.row.access == "st" else atomic)(w, i, form)
    name, offset, _ = address(w, i.operands[-1], form.space)
    observe(w, "mbarrier", name, offset, 8)
    count = w.constant(np.uint32(TYPE_SIZES[form.type] * form.vector))
    w.emit(f"g.chunk.memory.mbarrier('complete_tx', {name}, {offset}, ({count},), {w.site()})")


def mbarrier(w: Writer, i: Instruction, form: Form) -> None:
    """Emit an operation on a barrier in shared memory, or the arrival of asynchronous copies there."""
    access = i.access
    others = [operand for operand in i.operands[form.writes_first :] if operand is not access]
    name, offset, _ = address(w, access, form.space)
    values = [w.value(operand, w.word_type(operand))[0] for operand in others]
    observe(w, "mbarrier", name, offset, 8, values)
    parity = ", parity=True" if "parity" in form.words else ""
    arguments = " ".join(f"{value}," for value in values)
    call = f"g.chunk.memory.mbarrier({verb_of(form)!r}, {name}, {offset}, ({arguments}), {w.site()}{parity})"
    if form.writes_first:
        w.write(i.operands[0], call, dtype_of(form.type_of(form.operands[0])), False)
    else:
        w.emit(call)


def verb_of(form: Form) -> str:
    """Return the operation of `operations.mbarriers` that an instruction performs on its barrier.

    Without ``.noinc``, the arrival of copies is in addition to the expected ones.
    """
    if form.row.name == "cp":
        return "arrive" if "noinc" in form.words else "arrive_extra"
    if "expect_tx" in form.words[1:]:
        return f"{form.words[0]}_expect"
    return f"{form.words[0]}_nocomplete" if "noComplete" in form.words else form.words[0]
