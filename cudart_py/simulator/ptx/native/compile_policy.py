"""Estimate whether a launch is worth compiling to machine code, for launches whose engine is chosen automatically.

The estimate depends on how often each instruction runs, and so on the bounds of loops. A bound is a constant with which
a loop's counter begins or is compared, or a parameter that the condition of the loop depends on. If the condition also
depends on the thread's index, the threads of a block are assumed to share the iterations, and if it depends on the
number of blocks, those of the whole grid. A loop without such bounds, or with only a small constant, is assumed to have
ten iterations.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ..compiling.opcode_table.opcodes import form_of
from ..syntax.instructions import Access, Call, Function, Immediate, Instruction, Operand, Register, Symbol, items_of
from ..syntax.types import type_size

if TYPE_CHECKING:
    from ..compiling.forms import Form
    from ..compiling.program import Program
    from ..running.launch import LaunchState
    from ..syntax.parser import Entry, Module
    from .machine import CodeCache

_REGISTER = re.compile(r"%\w+")

# LLVM's time per PTX instruction, in seconds: for a plain launch, and for one whose accesses are checked or counted.
_COMPILE_SECONDS, _WATCHED_COMPILE_SECONDS = 0.8e-3, 1.6e-3
# The number of thread instructions that NumPy executes per second in a wide launch.
_NUMPY_RATE = 4e8
# The least time, in seconds, in which NumPy executes an instruction, however few threads execute it.
_STEP_SECONDS = 4e-6
_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}
# The time per instruction, in seconds, to generate the NumPy engine's functions at the kernel's first launch.
_PREPARE_SECONDS = 0.15e-3
# The time, in seconds, to load machine code from the cache at the kernel's first launch.
_LOAD_SECONDS = 3e-3
# A kernel's time with NumPy is stored whenever it reaches another quarter of the time to compile it. Each store writes
# a file, so it must be rare.
_PARTS = 4
# An upper bound on the number of instructions: more than anybody would compile, and safe to convert to a float.
_MOST_COPIED = 1 << 60
# The assumed number of iterations of all loops without known bounds around an instruction together.
_MOST_ITERATIONS = 1000
# The assumed number of launches of a kernel whose results depend on the order of lanes.
_LAUNCHES = 8
# The assumed number of iterations of a loop without a known bound. Smaller constants count as unknown, too: a loop is
# often left when a value becomes 0.
ITERATIONS = 10
# Larger 64-bit parameters are addresses.
_LEAST_ADDRESS = 1 << 40
# This constant and larger ones are sentinels and masks.
_LEAST_SENTINEL = (1 << 31) - 1
_PLACES = frozenset({"%tid", "%ctaid", "%ntid", "%nctaid", "%laneid", "%warpid"})
# The size of the largest numbers that are bounds.
_LARGEST_BOUND = 8
# The instructions whose constants are bounds; those of others are steps, masks and so on.
_BOUNDING = ("mov", "setp")


class CompilePolicy(Enum):
    """The effort that a launch is worth: none, loading machine code from the cache, or compiling."""

    NOTHING = 0
    LOADING = 1
    COMPILING = 2


class Estimate:
    """Facts about a kernel that need no compiling: its size, and whether its results depend on the order of lanes.

    Machine code contains one copy of a function per call path that leads to it. `copied` is the number of instructions
    in all these copies, and `executed` the number that a thread executes if each loop has ten iterations. `inside` is
    the part of `executed` that belongs to the called functions; `loops` knows the bounds of some of the kernel's own
    loops in a launch.
    """

    def __init__(self, program: Program) -> None:
        bodies = [program.entry.body, *program.entry.called]
        # An empty body still has its implicit return.
        self.instructions = max(1, sum(len(body.instructions) for body in bodies))
        # Functions that are called through pointers are not copied.
        module, body = program.entry.module, program.entry.body
        self.copied = max(self.instructions, _total(module, body, lambda function: [1] * len(function.instructions)))
        self.executed = max(self.copied, _total(module, body, _iterations))
        self.inside = max(0, self.executed - sum(_iterations(body)))
        self.loops = _Loops(program.entry)
        self.ordered = any(map(_depends_on_order, bodies))
        # Whether the time of launches in earlier processes is known.
        self.is_told = False
        # The time that the kernel's launches had taken with NumPy when it was last stored, in quarters of the time to
        # compile the kernel.
        self.noted = 0


def _total(module: Module, function: Function, weights: Callable[[Function], list[int]]) -> int:
    """Return the sum of the weights of a function's instructions and of all its callees, counting a callee per call.

    `weights` returns the weight of each instruction of a function, with which a call multiplies the sum of its callee.
    A call back to a function that is being counted adds nothing: machine code has one copy of a recursive function.
    The count itself isn't recursive, because calls may be nested deeper than Python's stack.
    """
    counts: dict[str, int] = {}
    begun = {function.name}
    waiting = [(function, iter(_callees(module, function)))]
    while waiting:
        current, callees = waiting[-1]
        callee = next((callee for _, callee in callees if callee.name not in begun), None)
        if callee is not None:
            begun.add(callee.name)
            waiting.append((callee, iter(_callees(module, callee))))
            continue
        waiting.pop()
        own = weights(current)
        inside = sum(own[index] * counts.get(callee.name, 0) for index, callee in _callees(module, current))
        # If each function of a chain calls the next one twice, the number doubles with every function.
        counts[current.name] = min(sum(own) + inside, _MOST_COPIED)
    return counts[function.name]


def _callees(module: Module, function: Function) -> list[tuple[int, Function]]:
    """Return the functions with bodies that a function calls by name, each with the index of the call."""
    found = []
    for index, one in enumerate(function.instructions):
        call = one.operands[0] if one.operands else None
        callee = (
            module.function(call.target.name) if isinstance(call, Call) and isinstance(call.target, Symbol) else None
        )
        if callee is not None:
            found.append((index, callee))
    return found


def _iterations(function: Function) -> list[int]:
    """Return how often each instruction of a function is assumed to be executed, given the loops around it."""
    found = [1] * len(function.instructions)
    for start, end in loops_of(function).items():
        found[start : end + 1] = [min(_MOST_ITERATIONS, ITERATIONS * times) for times in found[start : end + 1]]
    return found


def _depends_on_order(body: Function) -> bool:
    """Return whether a function's results may depend on the order in which lanes access shared data.

    Atomic sums of integers, minima and maxima are the same in any order, provided that no lane uses the previous value
    that its operation returns. An instruction that observes the progress of other lanes always depends on the order.
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


def estimate_of(program: Program) -> Estimate:
    """Return the facts about a kernel, which are kept with it."""
    if program.estimate is None:
        program.estimate = Estimate(program)
    estimate: Estimate = program.estimate
    return estimate


def compile_policy(state: LaunchState, store: CodeCache | None) -> CompilePolicy:
    """Return the effort that a launch is worth, given its size and the time its kernel has taken with NumPy so far.

    `store` contains the time from earlier processes. Machine code that exists already runs every launch. But for a
    kernel whose results depend on the order of lanes, only the size counts: equal launches must have equal results, and
    the two engines run lanes in different orders.
    """
    program = state.program
    estimate = estimate_of(program)
    if not estimate.ordered and _has_machine_code(state):
        return CompilePolicy.LOADING
    if not estimate.is_told:
        estimate.is_told = True
        program.seconds += _seconds_before(program, store)
    expected = numpy_seconds(state)
    cost = _compile_seconds(estimate, state.observer is not None)
    if estimate.ordered:
        return CompilePolicy.COMPILING if _LAUNCHES * expected >= cost else CompilePolicy.NOTHING
    taken = max(expected, program.seconds)
    if taken >= cost:
        return CompilePolicy.COMPILING
    return (
        CompilePolicy.LOADING
        if max(taken, _PREPARE_SECONDS * estimate.instructions) >= _LOAD_SECONDS
        else CompilePolicy.NOTHING
    )


def _has_machine_code(state: LaunchState) -> bool:
    """Return whether the machine code for a launch is in the process's memory."""
    watch = frozenset() if state.observer is None else state.observer.watch
    return any(
        kernel is not None and size == state.local_size and watched == watch
        for (size, watched, _), kernel in state.program.native.items()
    )


def numpy_seconds(state: LaunchState) -> float:
    """Return an estimate of the time, in seconds, that a launch takes with NumPy."""
    estimate = estimate_of(state.program)
    executed = estimate.inside + estimate.loops.executed(state)
    return executed * max(_STEP_SECONDS, state.blocks * state.threads / _NUMPY_RATE)


def note_seconds(state: LaunchState, store: CodeCache | None) -> None:
    """Store, for later processes, the time that a kernel's launches have taken with NumPy.

    It is stored only when it has reached another quarter of the time to compile the kernel.
    """
    program = state.program
    estimate: Estimate = program.estimate
    parts = min(_PARTS, int(_PARTS * program.seconds / _compile_seconds(estimate, state.observer is not None)))
    if store is not None and not estimate.ordered and parts > estimate.noted:
        estimate.noted = parts
        store.store(_key(program, store), program.seconds, [])


def _compile_seconds(estimate: Estimate, watched: bool) -> float:
    return estimate.copied * (_WATCHED_COMPILE_SECONDS if watched else _COMPILE_SECONDS)


def _seconds_before(program: Program, store: CodeCache | None) -> float:
    """Return the stored time, in seconds, of the kernel's launches with NumPy in earlier processes; 0 if none."""
    found = store.load(_key(program, store), lambda seconds, _: seconds) if store is not None else None
    return float(found or 0.0)


def _key(program: Program, store: CodeCache) -> str:
    return store.make_key(["seconds with NumPy", program.entry.name, program.entry.module.text])


class _Bounds(NamedTuple):
    """The greatest constant, the parameters (offset and type), and the indices and sizes of the launch."""

    constant: int
    parameters: frozenset[tuple[int, str]]
    places: frozenset[str]

    def joined(self, other: _Bounds) -> _Bounds:
        """Return the bounds of a value that depends on both."""
        if other is _NONE or other == self:
            return self
        constant = max(self.constant, other.constant)
        return _Bounds(constant, self.parameters | other.parameters, self.places | other.places)


_NONE = _Bounds(0, frozenset(), frozenset())


class _Loops:
    """The loops of a kernel's own code; functions that it calls count as if their loops had no known bounds."""

    def __init__(self, entry: Entry) -> None:
        body = entry.body
        ends = loops_of(body)
        # The number of instructions by the loops around them.
        self._counts = Counter(
            tuple(start for start, end in ends.items() if start <= index <= end)
            for index in range(len(body.instructions))
        )
        bounds = _bounds_of_registers(entry) if ends else {}
        self._bounds = {start: _bounds_of_loop(body, start, end, bounds) for start, end in ends.items()}

    def executed(self, state: LaunchState) -> int:
        """Return the number of the kernel's own instructions that a thread of a launch is assumed to execute."""
        times = {start: _bounded(found, state) for start, found in self._bounds.items()}
        return sum(count * math.prod(times[start] for start in around) for around, count in self._counts.items())


def _bounded(found: _Bounds, state: LaunchState) -> int:
    values = (abs(int(state.parameters[key])) for key in found.parameters)
    limits = [value for value in values if value < _LEAST_ADDRESS]
    bound = max([found.constant, *limits])
    sharing = 1
    if found.places:
        sharing = state.threads * (state.blocks if "%nctaid" in found.places else 1)
    return max(1 if limits else ITERATIONS, -(-bound // sharing))


def loops_of(function: Function) -> dict[int, int]:
    """Return the index of the last branch back to each instruction that a later one branches to."""
    ends: dict[int, int] = {}
    for index, one in enumerate(function.instructions):
        target = _target(function, one)
        if target is not None and target <= index:
            ends[target] = index
    return ends


def _target(function: Function, one: Instruction) -> int | None:
    if form_of(one).row.ends != "branch" or not isinstance(one.operands[0], Symbol):
        return None
    return function.labels[one.operands[0].name]


def _bounds_of_loop(function: Function, start: int, end: int, bounds: dict[str, _Bounds]) -> _Bounds:
    """Return the bounds of the conditions on which branches leave a loop or repeat it."""
    found = _NONE
    for one in function.instructions[start : end + 1]:
        target = _target(function, one)
        if one.guard is not None and target is not None and (target == start or not start <= target <= end):
            found = found.joined(bounds.get(one.guard.name, _NONE))
    return found


def _bounds_of_registers(entry: Entry) -> dict[str, _Bounds]:
    """Return the bounds that the value of each register depends on, wherever it is set."""
    known: defaultdict[str, _Bounds] = defaultdict(lambda: _NONE)
    places = {param.name: param.offset for param in entry.params}
    # For each instruction: the registers that it writes and reads, and the bounds that its other operands add.
    steps = []
    for one in entry.body.instructions:
        form = form_of(one)
        if not form.writes_first or (form.row.access and form.space != "param"):
            continue
        items = [item for operand in one.operands[1:] for item in items_of(operand)]
        reads = [item.name for item in items if isinstance(item, Register)]
        found = _NONE
        for item in items:
            if not isinstance(item, Register):
                found = found.joined(_bounds_of(form, item, places))
        writes = [item.name for item in items_of(one.operands[0]) if isinstance(item, Register)]
        steps.append((writes, reads, found))
    changed = True
    while changed:
        changed = False
        for writes, reads, found in steps:
            for name in reads:
                found = found.joined(known[name])
            for name in writes:
                if (joined := known[name].joined(found)) != known[name]:
                    known[name] = joined
                    changed = True
    return known


def _bounds_of(form: Form, operand: Operand, places: dict[str, int]) -> _Bounds:
    """Return the bounds that an operand of an instruction adds, other than a register."""
    if isinstance(operand, Immediate) and form.row.name in _BOUNDING and not operand.float_bits:
        size = abs(operand.value)
        return _Bounds(size if size < _LEAST_SENTINEL else 0, frozenset(), frozenset())
    if isinstance(operand, Symbol):
        return _Bounds(0, frozenset(), frozenset({operand.name.split(".")[0]}) & _PLACES)
    if isinstance(operand, Access) and isinstance(operand.base, Symbol) and operand.base.name in places:
        offset, size = places[operand.base.name] + operand.base.offset + operand.offset, type_size(form.type)
        # No bound has 16 bytes.
        parameters = {(offset, f"i{size}")} if size <= _LARGEST_BOUND else set()
        return _Bounds(0, frozenset(parameters), frozenset())
    return _NONE
