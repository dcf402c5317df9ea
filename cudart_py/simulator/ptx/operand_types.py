"""Say which registers serve which types of instructions: PTX's rules of agreement and of sizes."""

from __future__ import annotations

from .declarations import TYPE_SIZES

__all__ = ["doubled", "fragment_length", "register_fits", "type_size"]

# Types of instructions that no register or variable is declared with.
_SIZES = {**TYPE_SIZES, "u16x2": 4, "s16x2": 4, "tf32": 4, "e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2, "f32x2": 8}
_NARROW_FLOATS = {"f16", "bf16", "f16x2", "bf16x2", "tf32", "e4m3", "e5m2", "e4m3x2", "e5m2x2"}
_HALVES = {"f16", "bf16"}


def type_size(name: str) -> int:
    """Return the bytes of a type."""
    return _SIZES[name]


def doubled(name: str) -> str:
    """Return the integer type of twice the width."""
    return f"{name[0]}{2 * int(name[1:])}"


def _family(name: str) -> str:
    if name in ("f32", "f64"):
        return "float"
    return "bits" if name[0] == "b" or name in _NARROW_FLOATS else "integer"


def register_fits(register: str, wanted: str, wider: bool = False) -> bool:
    """Tell whether a register of a type can be an operand of a type; `wider` ones keep the operand in their low bits.

    Sizes must agree, and integers aren't floats; untyped bits agree with both. Narrow floats live in registers of
    bits, which some declare as integers. Floats aren't kept in wider float registers.
    """
    if "pred" in (register, wanted):
        return register == wanted
    size, least = _SIZES[register], _SIZES[wanted]
    if size < least or (size > least and not wider):
        return False
    families = {_family(register), _family(wanted)}
    return families != {"float", "integer"} and not (size > least and families == {"float"})


def fragment_length(opcode: str, place: int) -> int:
    """Return how many registers of 32 bits an operand of ``wmma`` has, 0 for a matrix that there isn't."""
    parts = opcode.split(".")
    rows, columns, depth = next(map(_extents, (part for part in parts if part[0] == "m" and part[1:2].isdigit())))
    types = [part for part in parts if part in ("f16", "bf16", "f32")]
    if parts[1] == "mma":
        matrix = "dabc"[place]
        kind = types["dabc".index(matrix)] if len(types) == 4 else {"d": types[0], "c": types[1]}.get(matrix, "f16")
    else:
        matrix, kind = parts[2], types[0]
    if matrix in "cd":
        return {"f32": 8, "f16": 4}.get(kind, 0)
    # Of halves every element is in two threads, of the wider range in one.
    elements = (rows if matrix == "a" else columns) * depth
    return {"f16": 8, "bf16": elements // 64}.get(kind, 0)


def _extents(shape: str) -> tuple[int, int, int]:
    rows, rest = shape[1:].split("n")
    columns, depth = rest.split("k")
    return int(rows), int(columns), int(depth)
