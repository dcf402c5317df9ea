"""The machine instructions of compute capability 9.0 that the assembler makes of one instruction of PTX.

Most instructions of PTX are one machine instruction. Divisions, roots and approximate functions are sequences around
the special-function unit. The numbers are those of ptxas 13, counted in its machine code by
`tests/simulator/counters/record_machine_code.py`. They leave out the subroutines for rare operands, such as subnormal
numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from ..ptx.compiling.forms import Form


class MachineCode(NamedTuple):
    """The number of machine instructions: all, those of the pipe XU (special functions), and those of the pipe FP64."""

    issued: int = 1
    special: int = 0
    double: int = 0


ONE = MachineCode()
_ONE_DOUBLE = MachineCode(double=1)
# Keyed by the opcode's name and type. A division in single precision also checks its operands in the pipe XU (FCHK).
# One of 64-bit integers is a subroutine.
_SEQUENCES = {
    ("div", "f32"): MachineCode(10, 2),
    ("rcp", "f32"): MachineCode(10, 1),
    ("sqrt", "f32"): MachineCode(10, 1),
    ("div", "f64"): MachineCode(16, 1, 8),
    ("rcp", "f64"): MachineCode(11, 1, 5),
    ("sqrt", "f64"): MachineCode(18, 1, 8),
    ("div", "s32"): MachineCode(24, 3),
    ("div", "u32"): MachineCode(18, 3),
    ("rem", "s32"): MachineCode(22, 3),
    ("rem", "u32"): MachineCode(17, 3),
    ("div", "s64"): MachineCode(88, 3),
    ("div", "u64"): MachineCode(72, 3),
    ("rem", "s64"): MachineCode(82, 3),
    ("rem", "u64"): MachineCode(68, 3),
}
# Approximate functions: with .ftz, and without, where subnormal numbers are scaled before and after.
_APPROXIMATE = {
    "rcp": (1, 8),
    "sqrt": (1, 4),
    "rsqrt": (1, 4),
    "lg2": (1, 4),
    "ex2": (1, 4),
    "div": (2, 5),
    "sin": (2, 2),
    "cos": (2, 2),
    "tanh": (1, 1),
}


def machine_code(form: Form) -> MachineCode:
    """Return the machine instructions that the assembler generates for an instruction of this form."""
    name, kind = form.row.name, form.types[-1] if form.types else ""
    if "full" in form.words:
        return MachineCode(8, 1)
    if "approx" in form.words and kind == "f32":
        flushed, scaled = _APPROXIMATE[name]
        return MachineCode(flushed if "ftz" in form.words else scaled, 1)
    if (name, kind) in _SEQUENCES:
        return _SEQUENCES[name, kind]
    return _ONE_DOUBLE if form.row.arithmetic and kind == "f64" else ONE
