"""Refuse the launch of a kernel that may execute instructions that aren't simulated, and say what it can do instead."""

from __future__ import annotations

from dataclasses import replace

from ..faults import UnsupportedError
from ..syntax.instructions import Call, Function, Instruction, Symbol
from ..syntax.parser import Entry
from .opcode_table.opcodes import TABLE

# The maximum number of unsupported instructions that a report lists.
_MOST_LISTED = 20


def refuse_unsupported(entry: Entry) -> None:
    """Raise UnsupportedError if a kernel, or a function that it may call, has an instruction that isn't simulated.

    The error lists the first 20 such instructions with their locations. Each opcode is listed only once.
    """
    unsupported = entry.module.unsupported
    if not unsupported:
        return
    bodies = [entry.body, *entry.called]
    found: dict[str, str] = {}
    for body in bodies:
        for use in unsupported.get(body.name, ()):
            if use.key not in found:
                found[use.key] = _sentence(entry, bodies, use.instruction, use.why)
    if not found:
        return
    more = f"\n  and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    listing = "".join(f"\n  {text}" for text in list(found.values())[:_MOST_LISTED])
    count = "an instruction" if len(found) == 1 else f"{len(found)} instructions"
    raise UnsupportedError(
        f"the simulator doesn't run {count} of kernel {entry.name}:{listing}{more}{entry.module.places.origin}"
    )


def _sentence(entry: Entry, bodies: list[Function], instruction: Instruction, why: str) -> str:
    user = replace(instruction, file=instruction.user[0], line=instruction.user[1])
    calls = _calls_to(instruction.function, bodies)
    where, quoted = entry.module.places.reached(user, calls, entry.home)
    return f"'{instruction.text}' at {where}, in {instruction.function}: {why}{quoted}"


def _calls_to(function: str, bodies: list[Function]) -> tuple[Instruction, ...]:
    """Return a chain of calls from the first body to a function, innermost first; empty without direct calls."""
    waiting: list[tuple[str, tuple[Instruction, ...]]] = [(function, ())]
    seen = {function}
    for name, calls in waiting:
        if name == bodies[0].name:
            return calls
        for body in bodies:
            for site in body.instructions:
                call = site.operands[0] if site.operands else None
                if isinstance(call, Call) and call.target == Symbol(name) and body.name not in seen:
                    seen.add(body.name)
                    waiting.append((body.name, (*calls, site)))
    return ()


# --- hints

_MATRIX = (
    "write wgmma, or mma.sync with a shape such as m16n8k16, on f16, bf16, tf32, f64, s8, u8, e4m3 or e5m2, or wmma on "
    "one of the first six; other matrix instructions are not simulated"
)
_BULK = (
    "write cp.async.bulk with addresses, cp.async.bulk.tensor in tiled mode, cp.async, or plain copies; the im2col and "
    "gather modes of tensor copies are not simulated"
)
_SURFACE = "read and write elements with surf2Dread, surf2Dwrite and so on; other surface operations are not simulated"
_VIDEO = "write it with shifts, min and max; vavrg2 and vavrg4 are the only video instructions that are not simulated"
_VECTOR = "write one atomic per element; only vectors of f32 are simulated"
_HINTS = {
    "mma": _MATRIX, "wgmma": _MATRIX, "wmma": _MATRIX,
    "tcgen05": f"compile for compute_90; {_MATRIX}", "cp": _BULK,
    "suld": _SURFACE, "sust": _SURFACE, "sured": _SURFACE, "suq": _SURFACE,
    "txq": "pass the texture's size as a parameter; queries are not simulated", "istypep": _SURFACE,
    "multimem": "write to each device's memory; multicast is not simulated",
    "alloca": "use an array of fixed size; stack memory of variable size is not simulated",
    "stacksave": "use an array of fixed size; stack memory of variable size is not simulated",
    "stackrestore": "use an array of fixed size; stack memory of variable size is not simulated",
    "brkpt": "leave it out: breakpoints are not simulated",
    "clusterlaunchcontrol": "compile for compute_90; cancelling clusters is not simulated",
    "vavrg2": _VIDEO, "vavrg4": _VIDEO,
    "atom": _VECTOR, "red": _VECTOR,
}  # fmt: skip  # rows of a table
# Modifiers and types of PTX that no row has, for opcodes that do have rows.
_FURTHER_WORDS = {
    "multicast", "oob", "rs", "unified", "2dms",
    "f32x2", "u8x4", "s8x4", "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2", "XORSIGN",
    "mode", "gather4", "mxf4", "block_scale", "sp", "b1", "m8n8k32", "m8n8k128", "m16n8k64", "m16n8k128", "m16n8k256",
    "m16n16k8", "ordered_metadata", "m8n16", "m16n16", "b8x16", "b6x16_p32", "b4x16_p64", "unordered", "h0",
    "im2col", "tile::gather4", "tile::scatter4", "im2col::w", "im2col::w::128", "im2col_no_offs", "ignore_oob",
    "h1", "b0", "b2", "b3", "po", "p", "both",
}  # fmt: skip  # a list of words

_KNOWN_WORDS = {
    word for rows in TABLE.values() for row in rows for pattern in row.patterns for slot in pattern.slots
    for word in slot.words
}  # fmt: skip  # one comprehension


def is_ptx(opcode: str) -> bool:
    """Return whether an opcode that isn't in the table appears to be PTX, because all its words are PTX's."""
    name, *parts = opcode.split(".")
    if name not in TABLE:
        return name in _HINTS
    return bool(parts) and all(part in _KNOWN_WORDS or part in _FURTHER_WORDS for part in parts)


def hint(opcode: str) -> str:
    """Return a hint on what to write instead of an opcode that isn't simulated."""
    name, *parts = opcode.split(".")
    if "async" in parts and name in ("st", "red"):
        return _BULK
    return _HINTS.get(name) or _other_form(name, parts)


def _other_form(name: str, parts: list[str]) -> str:
    """Return a hint that lists the modifiers that no form of the opcode has, or says that no form has all of them."""
    slots = (slot for row in TABLE[name] for pattern in row.patterns for slot in pattern.slots)
    had = {word for slot in slots for word in slot.words}
    lacking = " or ".join(f".{part}" for part in parts if part not in had)
    return f"write another form of {name}: none with {lacking or 'all of these modifiers and types'} is simulated"
