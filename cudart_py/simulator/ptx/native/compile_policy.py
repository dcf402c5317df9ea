"""Estimate whether a launch is worth machine code, where the engine is chosen by itself."""

from __future__ import annotations

import re
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING

from ..compiling.opcodes import form_of
from ..syntax.instructions import Call, Function, Register, Symbol

if TYPE_CHECKING:
    from ..compiling.program import Program
    from ..running.launch import LaunchState
    from ..syntax.parser import Module
    from .machine import CodeCache

_REGISTER = re.compile(r"%\w+")

# LLVM takes about so long for an instruction of PTX, and for one whose accesses are checked or counted.
_COMPILE_SECONDS, _WATCHED_COMPILE_SECONDS = 0.8e-3, 1.6e-3
# NumPy executes about so many instructions of threads a second where a launch is wide, and so many that are watched.
_NUMPY_RATE, _WATCHED_NUMPY_RATE = 4e8, 1e8
_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}
# NumPy's functions for an instruction are made in about so long, at the kernel's first launch.
_PREPARE_SECONDS = 0.15e-3
# Machine code from the cache costs about as much as this with its kernel's first launch.
_LOAD_SECONDS = 3e-3
# What a kernel has cost is kept when it reaches another quarter of the price of compiling: rarely, since it is a file.
_PARTS = 4
# More instructions than anybody would compile; a float holds the seconds that they would take.
_MOST_COPIED = 1 << 60


class CompilePolicy(Enum):
    """What a launch is worth: nothing, machine code that the cache has, or compiling."""

    NOTHING = 0
    LOADING = 1
    COMPILING = 2


class Estimate:
    """What is known of a kernel without compiling it: its instructions, and whether the order of lanes shows.

    Machine code has a copy of a function for each way that leads to it by calls: `copied` are the instructions of all.
    """

    def __init__(self, program: Program) -> None:
        bodies = [program.entry.body, *program.entry.called]
        # An empty body counts as its return.
        self.instructions = max(1, sum(len(body.instructions) for body in bodies))
        self.copied = max(1, _copied(program.entry.module, program.entry.body))
        self.ordered = any(map(_depends_on_order, bodies))
        # How many parts of the price of compiling its launches had cost with NumPy when that was kept.
        self.noted = 0


def _copied(module: Module, function: Function) -> int:
    """Return how many instructions a function has with those of all that it calls, once for each call.

    A call that leads back to a function that is being counted adds nothing: machine code has no functions that call
    themselves. Functions are counted without recursion, since their calls may nest deeper than Python's stack.
    """
    counts: dict[str, int] = {}
    begun = {function.name}
    waiting = [(function, iter(_callees(module, function)))]
    while waiting:
        current, callees = waiting[-1]
        callee = next((callee for callee in callees if callee.name not in begun), None)
        if callee is not None:
            begun.add(callee.name)
            waiting.append((callee, iter(_callees(module, callee))))
            continue
        waiting.pop()
        inside = sum(counts.get(callee.name, 0) for callee in _callees(module, current))
        # Two calls in each function of a chain double the number with every function.
        counts[current.name] = min(len(current.instructions) + inside, _MOST_COPIED)
    return counts[function.name]


def _callees(module: Module, function: Function) -> list[Function]:
    """Return the functions with bodies that a function calls by name, once for each call."""
    calls = (operand for one in function.instructions for operand in one.operands[:1] if isinstance(operand, Call))
    names = (call.target.name for call in calls if isinstance(call.target, Symbol))
    return [callee for callee in map(module.function, names) if callee is not None]


def _depends_on_order(body: Function) -> bool:
    """Return whether a function's results may depend on the order in which lanes come to what they share.

    Sums of integers and extremes come out the same in any order, if nobody asks for what was there before. What lanes
    see that look at others' progress depends on it.
    """
    named = Counter(name for one in body.instructions for name in _REGISTER.findall(one.text))
    for one in body.instructions:
        form = form_of(one)
        if form.row.spins:
            return True
        if form.row.access not in ("atom", "red"):
            continue
        result = one.operands[0]
        used = form.row.access == "atom" and not (isinstance(result, Register) and named[result.name] == 1)
        if used or form.type in _FLOATS or form.operation in ("inc", "dec", "exch"):
            return True
    return False


def compile_policy(state: LaunchState, store: CodeCache | None) -> CompilePolicy:
    """Return what a launch is worth by its size, and by what the kernel's launches have cost with NumPy.

    `store` has what they cost in earlier processes. Where the order of lanes shows, the size alone decides, so that
    launches which are alike give the same results.
    """
    program = state.program
    if program.estimate is None:
        program.estimate = Estimate(program)
        program.seconds += _seconds_before(program, store)
    estimate: Estimate = program.estimate
    watched = state.observer is not None
    executed = state.blocks * state.threads * estimate.copied
    expected = executed / (_WATCHED_NUMPY_RATE if watched else _NUMPY_RATE)
    cost = _compile_seconds(estimate, watched)
    if estimate.ordered:
        return CompilePolicy.COMPILING if expected >= cost else CompilePolicy.NOTHING
    taken = max(expected, program.seconds)
    if taken >= cost:
        return CompilePolicy.COMPILING
    return (
        CompilePolicy.LOADING
        if max(taken, _PREPARE_SECONDS * estimate.instructions) >= _LOAD_SECONDS
        else CompilePolicy.NOTHING
    )


def note_seconds(state: LaunchState, store: CodeCache | None) -> None:
    """Keep for later processes what a kernel's launches have cost with NumPy, when that is a good part of compiling."""
    program = state.program
    estimate: Estimate = program.estimate
    parts = min(_PARTS, int(_PARTS * program.seconds / _compile_seconds(estimate, state.observer is not None)))
    if store is not None and not estimate.ordered and parts > estimate.noted:
        estimate.noted = parts
        store.store(_key(program, store), program.seconds, [])


def _compile_seconds(estimate: Estimate, watched: bool) -> float:
    return estimate.copied * (_WATCHED_COMPILE_SECONDS if watched else _COMPILE_SECONDS)


def _seconds_before(program: Program, store: CodeCache | None) -> float:
    """Return how long launches of the kernel have taken with NumPy in earlier processes, as far as that was kept."""
    found = store.load(_key(program, store), lambda seconds, _: seconds) if store is not None else None
    return float(found or 0.0)


def _key(program: Program, store: CodeCache) -> str:
    return store.make_key(["seconds with NumPy", program.entry.name, program.entry.module.text])
