"""Report what machine code finds as the NumPy engine does; the lanes of a fault are checked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...compiling.opcode_table.opcodes import form_of
from ...faults import Fault
from ...running.calls import name_at, overflow
from ...running.groups import Frame, Group
from ...running.matrices import check_warps, rows_at
from ...running.memory.addresses import Address, Mixed
from ...running.memory.spaces import Space, shared_space
from ...running.scheduler import Chunk
from ...syntax.instructions import Access, Register, Symbol
from ..instances import WAITING, Instance
from ..layout import LANES, Context, HostCall
from ..layout import Fault as Kind
from .speculation import SpeculationFailed

if TYPE_CHECKING:
    from ...compiling.analysis.control_flow import Block
    from ...running.observer import Observer
    from ..sites import Site
    from .launch import NativeLaunch


_WORD = 0xFFFFFFFF


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
    for caller, call in _callers(launch, instance, warp, int(places[0])):
        frames.append(Frame(caller.code, 0, [], (), []))
        prefix.append(caller.code.base + call.index)
    group.frames, group.prefix = tuple(reversed(frames)), tuple(reversed(prefix))
    return group, places


def asked(launch: NativeLaunch, number: int) -> tuple[Site, Group, Any]:
    """Return the site that machine code asks about, and its lanes as `group_of` does.

    The number contains the site in its lower half, and in its upper half the mask of the lanes.
    """
    site = launch.kernel.sites.sites[number & _WORD]
    return site, *group_of(launch, site.instance, number >> LANES & _WORD)


class Finding(NamedTuple):
    """A mistake that machine code has found itself, in a launch that goes on.

    The NumPy engine finds mistakes in the order of `order` and, with equal orders, of their blocks. `tell` tells an
    observer of the mistake.
    """

    order: tuple[int, ...]
    block: int
    tell: Callable[[Observer], None]


def is_new(launch: NativeLaunch, key: tuple[str, int], order: tuple[int, ...]) -> bool:
    """Return whether a launch has no mistake yet with this kind and instruction, or only one with a later order."""
    known = launch.findings.get(key)
    return known is None or order < known.order


def note_mask(launch: NativeLaunch, number: int) -> None:
    """Keep the mistake that machine code has found in a member mask; the number is as in `asked`."""
    context, key, order = launch.context, _mask_key(launch, number), (0, number & _WORD)
    if is_new(launch, key, order):
        site, group, _ = asked(launch, number)
        method = "outside" if context[Context.HOST_CALL] == HostCall.OUTSIDE else "deserted"
        tell = methodcaller(method, group, site.instruction, 0)
        launch.findings[key] = Finding(order, int(context[Context.BLOCK]), tell)


def _mask_key(launch: NativeLaunch, number: int) -> tuple[str, int]:
    return "mask", id(launch.kernel.sites.sites[number & _WORD].instruction)


def allow_absent(launch: NativeLaunch, number: int) -> None:
    """Raise SpeculationFailed for lanes that shuffle from inactive ones, unless their member mask has been reported.

    The values are undefined, and only code that is made for that follows them, in the kernel itself. The number is as
    in `asked`.
    """
    if _mask_key(launch, number) not in launch.findings:
        raise SpeculationFailed(counts=bool(launch.context[Context.FOLLOWS]), unwritten=True)


def report_findings(launches: Sequence[NativeLaunch]) -> None:
    """Tell the observer the mistakes found in a launch, which ran in one host thread per item.

    It ignores a mistake of an instruction that it knows already.
    """
    observer = launches[0].state.observer
    assert observer is not None
    found = [finding for launch in launches for finding in launch.findings.values()]
    for finding in sorted(found, key=lambda one: (one.order, one.block)):
        finding.tell(observer)


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


def _callers(launch: NativeLaunch, instance: Instance, warp: int, lane: int) -> Iterator[tuple[Instance, Block]]:
    """Yield the calls that have led a lane to a copy of a function, innermost first: the callers and their blocks."""
    layout = launch.kernel.layout
    state = launch.resident.states.reshape(-1, launch.kernel.state_bytes)[0 if launch.kernel.sites.alone else warp]
    size = layout.save_bytes
    saved = launch.resident.saves[size * (LANES * warp + lane) :][:size]

    def word(data: Any, place: int) -> int:
        return int(data[place : place + 4].view(np.uint32)[0])

    top = word(state, layout.saves_at + 4 * lane) if layout.calls else 0
    number = -1
    while True:
        yield from instance.callers
        instance = instance.root
        if not instance.shared:
            return
        if number < 0:
            number = word(state, instance.return_at + 4 * lane)
        call = layout.calls[number]
        yield call.caller, call.block
        instance = call.caller
        if instance.root.shared:
            # The caller's own return address is the first register that the call has saved.
            top -= call.size
            number = word(saved, top)


def fault_of(launch: NativeLaunch) -> Exception:
    """Return the exception for the fault that machine code has recorded."""
    context, state = launch.context, launch.state
    kind = Kind(int(context[Context.FAULT]))
    site = launch.kernel.sites.sites[int(context[Context.FAULT_SITE])]
    group, places = group_of(launch, site.instance, int(context[Context.FAULT_MASK]))
    if kind == Kind.TRAP:
        return state.launch.trapped(site.instruction, group)
    values = launch.fault_addresses[places]
    if kind == Kind.STACK:
        return overflow(group, site.instruction)
    if kind == Kind.CALL:
        return _call_fault(launch, group, site, values)
    if kind == Kind.BRANCH:
        index = values & 0xFFFFFFFF
        target = site.instruction.operands[-1]
        assert isinstance(target, Symbol)
        count = len(site.instance.code.function.branch_targets[target.name])
        what = f"branch to index {int(index.max())} of {count} targets"
        return group.fault("CUDA_ERROR_LAUNCH_FAILED", what, site.instruction, int(np.argmax(index)))
    try:
        if kind == Kind.PARTIAL:
            check_warps(group, site.instruction)
        if kind == Kind.WINDOW:
            rows_at(group, "generic", values.view(np.uint64), site.instruction)
        if kind == Kind.ARRIVALS:
            arrivals = launch.exchange[0].view(np.uint64)[places]
            operate(launch, "arrive", with_memory(launch, group), site, values, arrivals)
        _access_again(launch, group, site, values)
    except Fault as fault:
        return fault
    raise AssertionError(f"machine code refused an access that is right: {site.instruction.text}")


def _call_fault(launch: NativeLaunch, group: Group, site: Site, pointers: Any) -> Exception:
    """Return the exception for a call through a pointer to no function, or to one without a body."""
    values = pointers.view(np.uint64)
    for pointer in np.unique(values):
        try:
            name = name_at(group, site.instruction, int(pointer), int(np.argmax(values == pointer)))
        except Fault as fault:
            return fault
        if launch.state.program.code(name) is None:
            return launch.state.environment.unsupported(site.instruction, f"function {name} has no body")
    raise AssertionError(f"machine code refused a call that is right: {site.instruction.text}")


def _access_again(launch: NativeLaunch, group: Group, site: Site, addresses: Any) -> None:
    """Check an access as the NumPy engine does; `addresses` already include the offset."""
    memory, size = launch.state.memory_access, int(launch.context[Context.FAULT_SIZE])
    placed, offset = placed_again(launch, group, site, addresses)
    for positions, part in placed.parts:
        memory.check(part, offset, size, site.instruction, positions)


def placed_again(launch: NativeLaunch, group: Group, site: Site, addresses: Any) -> tuple[Address | Mixed, int]:
    """Resolve the addresses of an access, which include its offset; return them without the offset, and the offset."""
    form, access = form_of(site.instruction), site.instruction.operands[site.operand]
    assert isinstance(access, Access)
    space = form.spaces[site.operand] if site.operand < len(form.spaces) > 1 else form.space
    if form.row.name in ("ldmatrix", "stmatrix"):
        # Machine code has turned the addresses of `ldmatrix` and `stmatrix` into addresses in shared memory.
        space = "shared"
    base = access.base
    space = group.code.space_of(access, space, launch.state.environment.shared_addresses)
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
            site = place.block.first
            if site is not None:
                point_at(launch, int(launch.context[Context.WARP]) if kernel.sites.alone else warp)
                group, _ = group_of(launch, place.instance, int(waiting[warp, number]))
                return group.fault("CUDA_ERROR_LAUNCH_TIMEOUT", what, site)
    return Fault("CUDA_ERROR_LAUNCH_TIMEOUT", f"kernel {state.launch.entry.name}: {what}")
