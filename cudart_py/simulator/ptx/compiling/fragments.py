"""The division of the matrices of ``wmma`` into the registers of lanes."""

from __future__ import annotations

from .forms import Form

__all__ = ["extent_of", "fragment_length", "kinds_of"]

_SHAPES = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16)}
_REGISTERS = {"f32": 8, "f16": 4}


def extent_of(form: Form, matrix: str) -> tuple[int, int]:
    """Return the rows and columns of matrix a, b, c or d."""
    rows, columns, depth = next(_SHAPES[word] for word in form.words if word in _SHAPES)
    return {"a": (rows, depth), "b": (depth, columns)}.get(matrix, (rows, columns))


def kinds_of(form: Form) -> tuple[str, ...]:
    """Return the types of d, a, b and c of a multiplication; where two are named, a and b are halves."""
    types = form.types
    return types if len(types) == 4 else (types[0], "f16", "f16", types[1])


def fragment_length(form: Form, place: int) -> int:
    """Return how many registers of 32 bits an operand has, 0 for a matrix that there isn't."""
    if form.words[0] == "mma":
        matrix, kind = "dabc"[place], kinds_of(form)[place]
    else:
        matrix, kind = form.words[1], form.type
    if matrix in "cd":
        return _REGISTERS.get(kind, 0)
    rows, columns = extent_of(form, matrix)
    # Of halves every element is in two lanes, of the wider range in one.
    return {"f16": 8, "bf16": rows * columns // 64}.get(kind, 0)
