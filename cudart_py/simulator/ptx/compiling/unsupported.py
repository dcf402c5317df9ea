"""Refuse the launch of a kernel that may execute an instruction that isn't simulated."""

from __future__ import annotations

from dataclasses import replace

from ..faults import UnsupportedError
from ..syntax.instructions import Call, Function, Instruction, Symbol
from ..syntax.parser import Entry

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
