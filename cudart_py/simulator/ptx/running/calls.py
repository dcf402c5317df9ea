"""Call device functions: pass parameters in pieces, save the caller's registers, follow function pointers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..faults import Fault
from ..syntax.instructions import Instruction, Symbol
from .groups import Frame, Group, split

if TYPE_CHECKING:
    from ..compiling.analysis.control_flow import Block, Code
    from .scheduler import Chunk

ndarray = np.ndarray
Pieces = dict[tuple[int, int], Any]

# The size in bytes of a stack frame without its local variables.
FRAME_BYTES = 16


def call(chunk: Chunk, group: Group, block: Block) -> Group | None:
    """Enter a function; split the group if its lanes call different functions through a pointer."""
    instruction = block.terminator.ending
    call_ = instruction.call
    if isinstance(call_.target, Symbol):
        return _enter(chunk, group, block, instruction, call_.target.name)
    pointers = group.value(group.code.slot(call_.target.name))
    if pointers.__class__ is not ndarray:
        return _enter(chunk, group, block, instruction, name_at(group, instruction, int(pointers)))
    values = np.unique(pointers)
    names = [name_at(group, instruction, int(value), int(np.argmax(pointers == value))) for value in values]
    if len(values) == 1:
        return _enter(chunk, group, block, instruction, names[0])
    # The parts also need the registers that hold the call's arguments. `split` keeps only the registers that are live
    # in the block after the call.
    site = group.code.call_sites[id(instruction)]
    passed = [slot for pieces in site.arguments for slot in pieces.values()]
    kept = {slot: group.value(slot) for slot in passed}
    picks = [np.flatnonzero(pointers == value) for value in values]
    resume = block.terminator.targets[0]
    for pick, name, part in zip(picks, names, split(group, picks, [resume] * len(picks)), strict=True):
        for slot, value in kept.items():
            part.registers[slot] = value[pick] if value.__class__ is ndarray else value
        part.pc = block.index
        chunk.push(_enter(chunk, part, block, instruction, name))
    return None


def name_at(group: Group, instruction: Instruction, address: int, position: int = 0) -> str:
    """Return the name of the function that a call through a pointer enters; raise Fault if there is none.

    `position` is that of the first lane of the group with this pointer.
    """
    state = group.chunk.state
    module, call_ = state.launch.entry.module, instruction.call
    name = module.function_at(address)
    if name is None or not module.accepts(name, call_):
        reason = "is not a function" if name is None else f"is {name}, a function with other parameters"
        what = f"call through {address:#x}, which {reason}"
        raise group.fault("CUDA_ERROR_INVALID_PC", what, instruction, position)
    return name


def overflow(group: Group, instruction: Instruction) -> Fault:
    """Return the fault for a call that exceeds the stack."""
    state, depth = group.chunk.state, len(group.frames) + 1
    what = f"stack overflow: {depth} nested calls exceed the stack of {state.local_size} bytes per thread"
    what += " (device.limits.stack_size and cudaLimitStackSize set the size)"
    return group.fault("CUDA_ERROR_LAUNCH_FAILED", what, instruction)


def frame_bytes(caller: Code, *, is_outermost: bool) -> int:
    """Return the size in bytes of a caller's stack frame; a kernel's consists of its local variables alone."""
    return -(-caller.local_bytes // 16) * 16 + (0 if is_outermost else FRAME_BYTES)


def _enter(chunk: Chunk, group: Group, block: Block, instruction: Instruction, name: str) -> Group:
    state = chunk.state
    code = chunk.program.code(name)
    if code is None:
        raise state.environment.unsupported(instruction, f"function {name} has no body")
    caller = group.code
    site = caller.call_sites[id(instruction)]
    resume = block.terminator.targets[0]
    returned = {slot for pieces in site.results for slot in pieces.values()}
    live = tuple(slot for slot in caller.blocks[resume].live_slots if slot not in returned)
    passed = [{key: group.value(slot) for key, slot in pieces.items()} for pieces in site.arguments]
    frame = Frame(caller, resume, group.registers, live, site.results)
    group.stack += frame_bytes(caller, is_outermost=not group.frames)
    if group.stack + code.local_bytes > state.local_size:
        raise overflow(group, instruction)
    group.prefix = (*group.prefix, caller.base + block.index)
    group.frames = (*group.frames, frame)
    group.code = code
    group.pc = 0
    group.registers = [None] * len(code.types)
    for parameter, pieces in zip(state.launch.entry.module.function_parameters[name], passed, strict=False):
        for key, slot in code.parameter_pieces.get(parameter.name, {}).items():
            group.registers[slot] = _assemble(pieces, key, code, slot)
    return group


def leave(group: Group) -> Group:
    """Return to the caller, and pass it the pieces of the results."""
    code = group.code
    frame = group.frames[-1]
    module = group.chunk.state.launch.entry.module
    names = [parameter.name for parameter in module.function_results[code.name]]
    results = [{k: group.value(slot) for k, slot in code.parameter_pieces.get(n, {}).items()} for n in names]
    group.frames = group.frames[:-1]
    group.prefix = group.prefix[:-1]
    group.code = frame.code
    group.registers = frame.registers
    group.pc = frame.resume
    group.stack -= frame_bytes(frame.code, is_outermost=not group.frames)
    for pieces, wanted in zip(results, frame.results, strict=False):
        for key, slot in wanted.items():
            group.registers[slot] = _assemble(pieces, key, frame.code, slot)
    return group


def _assemble(pieces: Pieces, key: tuple[int, int], code: Code, slot: int) -> Any:
    """Return a piece of a parameter, assembled from the pieces that overlap it if it was stored differently."""
    if key in pieces:
        return pieces[key]
    offset, size = key
    total: Any = None
    dtype = code.zeros[slot].dtype
    for (start, length), value in pieces.items():
        if start + length <= offset or start >= offset + size:
            continue
        wide = value.astype(np.uint64)
        shift = 8 * (start - offset)
        part = wide << np.uint64(shift) if shift >= 0 else wide >> np.uint64(-shift)
        total = part if total is None else total | part
    return code.zeros[slot] if total is None else total.astype(dtype)
