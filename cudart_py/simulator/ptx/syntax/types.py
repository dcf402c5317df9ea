"""The types of PTX: their sizes, their types in NumPy, and which registers fit which operands."""

from __future__ import annotations

# The types that registers and variables are declared with, and their sizes in bytes.
TYPE_SIZES = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8,
    "f64": 8, "b128": 16, "texref": 8, "samplerref": 8, "surfref": 8, "pred": 1,
}  # fmt: skip  # rows of a table
# Types of instructions that no register or variable is declared with.
_SIZES = {**TYPE_SIZES, "u16x2": 4, "s16x2": 4, "tf32": 4, "e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2, "f32x2": 8}
# The NumPy types of PTX types; half precision and packed halves are kept as bit patterns.
DTYPES = {
    "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2", "f16": "u2", "bf16": "u2",
    "b32": "u4", "u32": "u4", "s32": "i4", "f32": "f4", "f16x2": "u4", "bf16x2": "u4", "tf32": "u4",
    "u16x2": "u4", "s16x2": "u4", "b64": "u8", "u64": "u8", "s64": "i8", "f64": "f8", "f32x2": "u8", "pred": "?",
    "e4m3": "u1", "e5m2": "u1", "e4m3x2": "u2", "e5m2x2": "u2",
    # NumPy has no 16-byte integers: complex numbers carry the bits, and nothing is ever computed with them.
    "b128": "c16",
}  # fmt: skip  # rows of a table
_NARROW_FLOATS = {"f16", "bf16", "f16x2", "bf16x2", "tf32", "e4m3", "e5m2", "e4m3x2", "e5m2x2"}


def type_size(name: str) -> int:
    """Return the size of a type in bytes."""
    return _SIZES[name]


def dtype_of(name: str) -> str:
    """Return the NumPy type that holds the values of a type."""
    return DTYPES[name]


def doubled(name: str) -> str:
    """Return the integer type of twice the width."""
    return f"{name[0]}{2 * int(name[1:])}"


def _family(name: str) -> str:
    if name in ("f32", "f64"):
        return "float"
    return "bits" if name[0] == "b" or name in _NARROW_FLOATS else "integer"


def register_fits(register: str, wanted: str, wider: bool = False) -> bool:
    """Return whether a register of a type can be an operand of the type `wanted`.

    With `wider`, a larger register may hold the operand in its low bits; otherwise the sizes must be equal. Integers
    and floats don't fit each other, but untyped bits fit both. Narrow floats are in registers of untyped bits, which
    some programs declare as integers. A float doesn't fit a wider float register.
    """
    if "pred" in (register, wanted):
        return register == wanted
    size, least = _SIZES[register], _SIZES[wanted]
    if size < least or (size > least and not wider):
        return False
    families = {_family(register), _family(wanted)}
    return families != {"float", "integer"} and not (size > least and families == {"float"})
