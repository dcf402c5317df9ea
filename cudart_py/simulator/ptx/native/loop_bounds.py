"""Estimate how often each instruction of a kernel runs, from the bounds of its loops.

A bound is a constant with which a loop's counter begins or is compared, or a parameter that the condition of the loop
depends on. If the condition also depends on the thread's index, the threads of a block are assumed to share the
iterations, and if it depends on the number of blocks, those of the whole grid. A loop without such bounds is assumed to
have ten iterations.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from ..compiling.opcode_table.opcodes import form_of
from ..syntax.instructions import Access, Function, Immediate, Instruction, Operand, Register, Symbol, items_of
from ..syntax.types import type_size

if TYPE_CHECKING:
    from ..compiling.forms import Form
    from ..running.launch import LaunchState
    from ..syntax.parser import Entry

# The assumed number of iterations of a loop without a known bound. Smaller bounds count as unknown, too.
ITERATIONS = 10
# Larger 64-bit parameters are addresses.
_LEAST_ADDRESS = 1 << 40
# This constant and larger ones are sentinels and masks.
_LEAST_SENTINEL = (1 << 31) - 1
_PLACES = frozenset({"%tid", "%ctaid", "%ntid", "%nctaid", "%laneid", "%warpid"})
# The instructions whose constants are bounds; those of others are steps, masks and so on.
_BOUNDING = ("mov", "setp")


class _Bounds(NamedTuple):
    """The greatest constant, the parameters (offset and type), and the indices and sizes of the launch."""

    constant: int
    parameters: frozenset[tuple[int, str]]
    places: frozenset[str]

    def joined(self, other: _Bounds) -> _Bounds:
        """Return the bounds of a value that depends on both."""
        constant = max(self.constant, other.constant)
        return _Bounds(constant, self.parameters | other.parameters, self.places | other.places)


_NONE = _Bounds(0, frozenset(), frozenset())


class Loops:
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
        times = {start: _iterations(found, state) for start, found in self._bounds.items()}
        return sum(count * math.prod(times[start] for start in around) for around, count in self._counts.items())


def _iterations(found: _Bounds, state: LaunchState) -> int:
    values = (abs(int(state.parameters[key])) for key in found.parameters)
    bound = max([found.constant, *(value for value in values if value < _LEAST_ADDRESS)])
    sharing = 1
    if found.places:
        sharing = state.threads * (state.blocks if "%nctaid" in found.places else 1)
    return max(ITERATIONS, bound // sharing)


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
    changed = True
    while changed:
        changed = False
        for one in entry.body.instructions:
            form = form_of(one)
            if not form.writes_first or (form.row.access and form.space != "param"):
                continue
            found = _NONE
            for item in (item for operand in one.operands[1:] for item in items_of(operand)):
                found = found.joined(known[item.name] if isinstance(item, Register) else _bounds_of(form, item, places))
            for item in items_of(one.operands[0]):
                if isinstance(item, Register) and (joined := known[item.name].joined(found)) != known[item.name]:
                    known[item.name] = joined
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
        offset = places[operand.base.name] + operand.base.offset + operand.offset
        return _Bounds(0, frozenset({(offset, f"i{type_size(form.type)}")}), frozenset())
    return _NONE
