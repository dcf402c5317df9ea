"""Matrix rules: the elements of operands on which each element of a product depends, across the lanes of a warp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ptx.compiling.forms import Form
from ...ptx.compiling.fragments import fragments_of
from ...ptx.operations.matrices import ELEMENTS, HALVES, Fragment, arranged, divided
from ...ptx.syntax.instructions import Instruction, Operand, Register, items_of

if TYPE_CHECKING:
    from ...ptx.compiling.analysis.control_flow import Code

Array = NDArray[Any]


class MatrixRule(NamedTuple):
    """The origin of the elements in one register of a product or of a transposed matrix.

    `number` is the index of the register among the registers of the result. `operands` has the slots of a, b and c, or
    of the single matrix that is transposed; an operand that is not a register has the slot -1. `fragments` has the
    fragment of the result, followed by the fragments of the operands.
    """

    slot: int
    number: int
    fragments: tuple[Fragment, ...]
    operands: tuple[tuple[int, ...], ...]

    def marks(self, known: Mapping[int, Array]) -> Array:
        """Return the marks of the register: an element is undefined if it depends on any undefined element."""
        lanes = len(next(iter(known.values())))
        matrices = [
            _undefined(known, slots, fragment, lanes)
            for slots, fragment in zip(self.operands, self.fragments[1:], strict=True)
        ]
        if len(matrices) == 1:
            result = matrices[0].swapaxes(1, 2)
        else:
            a, b, c = matrices
            result = a.any(axis=2, keepdims=True) | b.any(axis=1, keepdims=True) | c
        elements = divided(result, self.fragments[0])
        found = np.zeros(lanes, np.uint16)
        for item, number, bits in _element_bits(self.fragments[0]):
            if number == self.number:
                found |= elements[:, item] * np.uint16(bits)
        return found


def _element_bits(fragment: Fragment) -> list[tuple[int, int, int]]:
    """Return the index of each element of a lane, the index of its register, and a mask of its bytes there."""
    size = np.dtype(ELEMENTS[fragment.kind]).itemsize
    each = max(4 // size, 1)
    whole = (1 << size) - 1
    return [(item, item // each, whole << item % each * size) for item in range(fragment.count)]


def _undefined(known: Mapping[int, Array], slots: Sequence[int], fragment: Fragment, lanes: int) -> Array:
    """Return a mask of the undefined elements of the matrices."""
    defined = np.zeros(lanes, np.uint16)
    columns = [known.get(slots[number], defined) & np.uint16(bits) != 0 for _, number, bits in _element_bits(fragment)]
    return arranged(np.stack(columns, axis=1), fragment)


def matrix_rules(code: Code, instruction: Instruction, form: Form) -> tuple[MatrixRule, ...]:
    """Return the rules for the registers of a product, or of a transposed matrix."""
    result, *operands = (_slots(code, operand) for operand in instruction.operands)
    fragments = fragments_of(form) if len(operands) == 3 else (HALVES, HALVES)
    return tuple(
        MatrixRule(slot, number, fragments, tuple(operands)) for number, slot in enumerate(result) if slot >= 0
    )


def _slots(code: Code, operand: Operand) -> tuple[int, ...]:
    items = items_of(operand)
    return tuple(code.slot(item.name) if isinstance(item, Register) else -1 for item in items)
