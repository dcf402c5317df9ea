"""Report the faults of a kernel in machine code as the NumPy engine does, by checking the faulting lanes again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiling.fragments import matrix_bytes
from ...compiling.opcodes import form_of
from ...faults import Fault
from ...running.groups import Frame, Group
from ...running.matrices import check_warps
from ...running.memory.addresses import Address, Mixed
from ...running.memory.spaces import Space, shared_space
from ...running.scheduler import Chunk
from ...syntax.instructions import Access, Immediate, Instruction, Register, Symbol
from ...syntax.types import type_size
from ..instances import WAITING, Instance
from ..layout import LANES, Context
from ..layout import Fault as Kind

if TYPE_CHECKING:
    from ..sites import Site
    from .launch import NativeLaunch


def group_of(launch: NativeLaunch, instance: Instance, mask: int) -> tuple[Group, Any]:
    """Return lanes of the current warp as a group of the NumPy engine, and their indices in the warp."""
    state = launch.state
    block, warp = int(launch.context[Context.BLOCK]), int(launch.context[Context.WARP_AT_HAND])
    rank = block % launch.unit
    chunk = Chunk(state, block - rank, launch.unit)
    # The chunk's first group, which never runs, refers back to it and would keep it alive.
    chunk.let_go()
    places = np.flatnonzero(mask >> np.arange(LANES) & 1)
    group = Group(chunk, instance.code, places + (rank * state.threads + LANES * warp), len(places))
    frames, prefix = [], []
    inner = instance
    while inner.caller is not None:
        assert inner.call is not None
        frames.append(Frame(inner.caller.code, 0, [], (), []))
        prefix.append(inner.caller.code.base + inner.call.index)
        inner = inner.caller
    group.frames, group.prefix = tuple(reversed(frames)), tuple(reversed(prefix))
    return group, places


def point_at(launch: NativeLaunch, number: int) -> None:
    """Make the warp with a number, counted through all blocks of the cluster, the current one."""
    context = launch.context
    block = int(context[Context.BLOCK])
    context[Context.BLOCK] = block - block % launch.unit + number // launch.warps
    context[Context.WARP_AT_HAND] = number % launch.warps


def with_memory(launch: NativeLaunch, group: Group) -> Group:
    """Let a group access the current block's own memory instead of its chunk's."""
    chunk, state = group.chunk, launch.state
    chunk.shared = shared_space(state, launch.resident.shared)
    chunk.local = Space("local", launch.resident.local, state.local_size)
    return group


def fault_of(launch: NativeLaunch) -> Fault:
    """Return the fault that machine code has recorded."""
    context, state = launch.context, launch.state
    kind = Kind(int(context[Context.FAULT]))
    site = launch.kernel.sites.sites[int(context[Context.FAULT_SITE])]
    group, places = group_of(launch, site.instance, int(context[Context.FAULT_MASK]))
    if kind == Kind.TRAP:
        return state.trapped(site.instruction, group)
    values = launch.fault_addresses[places]
    if kind == Kind.BRANCH:
        index = values & 0xFFFFFFFF
        count = len(_targets(site.instance, site.instruction))
        what = f"branch to index {int(index.max())} of {count} targets"
        return Fault("CUDA_ERROR_LAUNCH_FAILED", state.located(what, site.instruction, group, int(np.argmax(index))))
    try:
        if kind == Kind.PARTIAL:
            check_warps(group, site.instruction)
        if kind == Kind.ARRIVALS:
            arrivals = launch.exchange[0].view(np.uint64)[places]
            operate(launch, "arrive", with_memory(launch, group), site, values, arrivals)
        _access_again(launch, group, site, values)
    except Fault as fault:
        return fault
    raise AssertionError(f"machine code refused an access that is right: {site.instruction.text}")


def _targets(instance: Instance, instruction: Instruction) -> tuple[str, ...]:
    target = instruction.operands[-1]
    assert isinstance(target, Symbol)
    return instance.code.function.branch_targets[target.name]


def _access_again(launch: NativeLaunch, group: Group, site: Site, addresses: Any) -> None:
    """Check an access as the NumPy engine does; `addresses` already include the offset."""
    instruction = site.instruction
    form = form_of(instruction)
    if form.row.access == "mbarrier" or "mbarrier" in form.words:
        size = 8
    elif form.row.access == "cp":
        copied = instruction.operands[2]
        assert isinstance(copied, Immediate)
        size = copied.value
    else:
        size = matrix_bytes(form) if form.row.converges else form.vector * type_size(form.type)
    memory = launch.state.memory_access
    placed, offset = placed_again(launch, group, site, addresses)
    for positions, part in placed.parts if isinstance(placed, Mixed) else [(None, placed)]:
        memory.check(part, offset, size, instruction, positions)


def placed_again(launch: NativeLaunch, group: Group, site: Site, addresses: Any) -> tuple[Address | Mixed, int]:
    """Resolve the addresses of an access, which include its offset; return them without the offset, and the offset."""
    form, access = form_of(site.instruction), site.instruction.operands[site.operand]
    assert isinstance(access, Access)
    space = form.spaces[site.operand] if site.operand < len(form.spaces) > 1 else form.space
    base = access.base
    space = group.code.space_of(access, space, launch.state.launch.entry.shared_offsets)
    values = addresses - access.offset
    narrow = isinstance(base, Register) and group.code.types[group.code.slot(base.name)] == "b32"
    if space == "shared" or narrow:
        values = values.astype(np.uint32)
    return (
        launch.state.memory_access.place(group, space, values.view(np.uint64) if values.itemsize == 8 else values),
        access.offset,
    )


def operate(launch: NativeLaunch, verb: str, group: Group, site: Site, addresses: Any, operands: Any) -> None:
    """Perform an operation on barriers in memory as the NumPy engine does."""
    placed, offset = placed_again(launch, group, site, addresses)
    parity = "parity" in form_of(site.instruction).words
    launch.state.memory_access.mbarrier(verb, placed, offset, (operands,), site.instruction, parity)


def timeout_of(launch: NativeLaunch, what: str) -> Fault:
    """Return the fault for a launch that has reached a limit, located where lanes wait."""
    state, kernel = launch.state, launch.kernel
    waiting = launch.words(WAITING)
    first = int(launch.context[Context.WARP]) % len(waiting)
    for warp in [*range(first, len(waiting)), *range(first)]:
        for number in np.flatnonzero(waiting[warp]):
            place = kernel.layout.places[number]
            block = place.block
            site = block.instructions[0] if block.instructions else block.terminator.instruction
            if site is not None:
                point_at(launch, int(launch.context[Context.WARP]) if kernel.alone else warp)
                group, _ = group_of(launch, place.instance, int(waiting[warp, number]))
                return Fault("CUDA_ERROR_LAUNCH_TIMEOUT", state.located(what, site, group, 0))
    return Fault("CUDA_ERROR_LAUNCH_TIMEOUT", f"kernel {state.launch.entry.name}: {what}")
