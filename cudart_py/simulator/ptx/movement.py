"""Write moves, selections, comparisons and conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import comparisons
from .arithmetic import library_call
from .exact import flush_f32
from .instructions import Instruction, Vector
from .library import find, one
from .operands import DTYPES, Writer, dtype_of
from .spaces import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW

__all__ = ["EMITTERS"]

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}
_SIMPLE = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
# The unordered comparisons are what the ordered opposite isn't.
_UNORDERED = {"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}


def _mov(w: Writer, i: Instruction) -> None:
    destination, source = i.operands[0], i.operands[1]
    ptx_type = i.parts[-1]
    if i.parts[1] in ("v2", "v4"):
        assert isinstance(destination, Vector)
        assert isinstance(source, Vector)
        values = [w.value(item, ptx_type) for item in source.items]
        # All are read before any is written: the vectors may share registers.
        names = [w.temporary() for _ in values]
        for name, (expression, _) in zip(names, values, strict=True):
            w.emit(f"{name} = {expression}")
        for item, name, (_, uniform) in zip(destination.items, names, values, strict=True):
            w.write(item, name, dtype_of(ptx_type), uniform)
        w.emit(f"{' = '.join(names)} = None")
        return
    if ptx_type == "b128" and (isinstance(destination, Vector) or isinstance(source, Vector)):
        _mov_wide(w, destination, source)
        return
    if isinstance(destination, Vector):
        _unpack(w, destination, source, ptx_type)
        return
    if isinstance(source, Vector):
        _pack(w, destination, source, ptx_type)
        return
    expression, uniform = w.value(source, ptx_type)
    w.write(destination, expression, dtype_of(ptx_type), uniform)


def _mov_wide(w: Writer, destination: Any, source: Any) -> None:
    """Write ``mov.b128`` between a register and its two halves."""
    w.bind("join_halves", _join_halves)
    w.bind("halves", _halves)
    if isinstance(source, Vector):
        (low, low_same), (high, high_same) = (w.typed(item, "u8") for item in source.items)
        w.write(destination, f"join_halves({low}, {high})", "c16", low_same and high_same)
        return
    expression, same = w.value(source, "b128")
    for index, item in enumerate(destination.items):
        w.write(item, f"halves({expression})[{index}]", "u8", same)


def _join_halves(low: Any, high: Any) -> Any:
    """Put 64-bit halves together as 128-bit patterns."""
    low, high = np.broadcast_arrays(low, high)
    return np.ascontiguousarray(np.stack([low, high], axis=-1)).view(np.complex128)[..., 0][()]


def _halves(value: Any) -> tuple[Any, Any]:
    """Part 128-bit patterns into 64-bit halves."""
    pairs = np.ascontiguousarray(np.atleast_1d(value)).view(np.uint64).reshape(-1, 2)
    if isinstance(value, np.generic):
        return pairs[0, 0], pairs[0, 1]
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _unpack(w: Writer, destination: Vector, source: Any, ptx_type: str) -> None:
    expression, uniform = w.value(source, "b" + ptx_type[1:] if ptx_type[0] != "b" else ptx_type)
    bits = int(ptx_type[1:]) // len(destination.items)
    name = w.temporary()
    w.emit(f"{name} = {expression}")
    for index, item in enumerate(destination.items):
        shifted = f"({name} >> {w.constant(np.array(index * bits, dtype_of(ptx_type))[()])})" if index else name
        w.write(item, f"{shifted}.astype(u{bits // 8})", f"u{bits // 8}", uniform)
    w.emit(f"{name} = None")


def _pack(w: Writer, destination: Any, source: Vector, ptx_type: str) -> None:
    bits = int(ptx_type[1:]) // len(source.items)
    wide = dtype_of(ptx_type)
    terms = []
    uniform = True
    for index, item in enumerate(source.items):
        expression, same = w.typed(item, f"u{bits // 8}")
        uniform &= same
        term = f"{expression}.astype({wide})"
        terms.append(f"({term} << {w.constant(np.array(index * bits, wide)[()])})" if index else term)
    w.write(destination, " | ".join(terms), wide, uniform)


def _cvta(w: Writer, i: Instruction) -> None:
    parts = i.parts
    dtype = dtype_of(parts[-1])
    to = parts[1] == "to"
    window = _WINDOWS.get((parts[2] if to else parts[1]).split("::")[0])
    expression, uniform = w.value(i.operands[1], parts[-1])
    if window is not None:
        expression = f"{expression} {'-' if to else '+'} {w.constant(np.array(window, dtype)[()])}"
    w.write(i.operands[0], expression, dtype, uniform)


def _isspacep(w: Writer, i: Instruction) -> None:
    space = i.parts[1].split("::")[0]
    expression, uniform = w.value(i.operands[1], "u64")
    if space in _WINDOWS:
        low = w.constant(np.uint64(_WINDOWS[space]))
        w.write(i.operands[0], f"({expression} - {low}) < {w.constant(np.uint64(1 << 49))}", "?", uniform)
    else:
        w.write(i.operands[0], f"{expression} < {w.constant(np.uint64(1 << 50))}", "?", uniform)


def _selp(w: Writer, i: Instruction) -> None:
    ptx_type = i.parts[-1]
    (a, a_same), (b, b_same) = w.value(i.operands[1], ptx_type), w.value(i.operands[2], ptx_type)
    p, p_same = w.value(i.operands[3], "pred")
    if p_same and a_same and b_same:
        w.write(i.operands[0], f"{a} if {p} else {b}", dtype_of(ptx_type), True)
    else:
        w.write(i.operands[0], f"np.where({p}, {a}, {b})", dtype_of(ptx_type), False)


def _slct(w: Writer, i: Instruction) -> None:
    ptx_type, chooser = i.parts[-2], i.parts[-1]
    (a, a_same), (b, b_same) = w.value(i.operands[1], ptx_type), w.value(i.operands[2], ptx_type)
    c, c_same = w.value(i.operands[3], chooser)
    if "ftz" in i.parts:
        c = _flushed(w, c, c_same)
    same = a_same and b_same and c_same
    chosen = f"({a} if {c} >= 0 else {b})" if same else f"np.where({c} >= 0, {a}, {b})"
    w.write(i.operands[0], chosen, dtype_of(ptx_type), same)


def _comparison(w: Writer, i: Instruction, compare: str, ptx_type: str) -> tuple[str, bool]:
    """Give a comparison of the second and third operand as an expression of truth values."""
    if ptx_type in ("f16", "bf16", "f16x2", "bf16x2"):
        return _half_comparison(w, i, compare, ptx_type)
    if compare in ("lo", "ls", "hi", "hs"):
        ptx_type = "u" + ptx_type[1:]
    (a, a_same), (b, b_same) = w.value(i.operands[1], ptx_type), w.value(i.operands[2], ptx_type)
    same = a_same and b_same
    if "ftz" in i.parts:
        a, b = _flushed(w, a, a_same), _flushed(w, b, b_same)
    if ptx_type[0] == "f":
        if compare == "ne":
            return f"(({a} < {b}) | ({a} > {b}))", same
        if compare == "equ":
            return f"~(({a} < {b}) | ({a} > {b}))", same
        if compare == "neu":
            return f"({a} != {b})", same
        if compare == "num":
            return f"(({a} == {a}) & ({b} == {b}))", same
        if compare == "nan":
            return f"(({a} != {a}) | ({b} != {b}))", same
        if compare in _UNORDERED:
            return f"~({a} {_UNORDERED[compare]} {b})", same
    return f"({a} {_SIMPLE[compare]} {b})", same


def _flushed(w: Writer, expression: str, uniform: bool) -> str:
    """Give a single-precision expression with its subnormal numbers flushed."""
    w.bind("flush_f32", flush_f32)
    w.bind("one", one)
    return f"one(flush_f32, {expression})" if uniform else f"flush_f32({expression})"


def _flush_half(bits: Any) -> Any:
    """Replace the subnormal patterns of halves by zeros of their sign."""
    return np.where(bits & 0x7C00 == 0, bits & 0x8000, bits).astype(np.uint16)


def _half_comparison(w: Writer, i: Instruction, compare: str, ptx_type: str) -> tuple[str, bool]:
    """Compare halves as float32; packed halves give a pair of truth values."""
    w.bind(f"compare_{compare}", getattr(comparisons, compare))
    single = ptx_type.removesuffix("x2")
    widen = w.bind(f"widen_{single}", find(f"cvt.f32.{single}"))
    w.bind("one", one)
    (a, a_same), (b, b_same) = w.value(i.operands[1], ptx_type), w.value(i.operands[2], ptx_type)
    flush = w.bind("flush_half", _flush_half) if "ftz" in i.parts else ""

    def compared(part: str) -> str:
        left, right = (
            f"one({widen}, {flush}({part.format(x)})[()])" if same else f"{widen}({flush}({part.format(x)}))"
            for x, same in ((a, a_same), (b, b_same))
        )
        return f"compare_{compare}({left}, {right})"

    if single == ptx_type:
        return compared("{}"), a_same and b_same
    return f"({compared('({}).astype(u2)')}, {compared('(({}) >> 16).astype(u2)')})", a_same and b_same


def _setp(w: Writer, i: Instruction) -> None:
    parts = [part for part in i.parts[1:] if part != "ftz"]
    compare, ptx_type = parts[0], parts[-1]
    join = parts[1] if len(parts) == 3 else None
    expression, same = _comparison(w, i, compare, ptx_type)
    destination = i.operands[0]
    if ptx_type in ("f16x2", "bf16x2"):
        assert isinstance(destination, Vector)
        name = w.temporary()
        w.emit(f"{name} = {expression}")
        for index, item in enumerate(destination.items):
            w.write(item, f"{name}[{index}]", "?", same)
        return
    results = destination.items if isinstance(destination, Vector) else (destination,)
    if len(results) > 1 and join is None:
        # The comparison may read the register that it writes first.
        name = w.temporary()
        w.emit(f"{name} = {expression}")
        w.write(results[0], name, "?", same)
        w.write(results[1], f"~{name}", "?", same)
        w.emit(f"{name} = None")
        return
    if join is not None:
        c, c_same = w.value(i.operands[3], "pred")
        operator = {"and": "&", "or": "|", "xor": "^"}[join]
        name = w.temporary()
        w.emit(f"{name} = {expression}")
        w.emit(f"{name}_not = ~{name}")
        w.write(results[0], f"{name} {operator} {c}", "?", same and c_same)
        if len(results) > 1:
            w.write(results[1], f"{name}_not {operator} {c}", "?", same and c_same)
        return
    w.write(results[0], expression, "?", same)


_TRUE = {"f32": np.float32(1), "f16": np.uint16(0x3C00), "bf16": np.uint16(0x3F80)}


def _set(w: Writer, i: Instruction) -> None:
    """Write ``set``: one or all bits where the comparison holds, by the type of the result."""
    parts = [part for part in i.parts[1:] if part != "ftz"]
    result_type, ptx_type = parts[-2], parts[-1]
    expression, same = _comparison(w, i, parts[0], ptx_type)
    single = result_type.removesuffix("x2")
    width = "u2" if result_type in ("u16", "s16", "f16", "bf16", "f16x2", "bf16x2") else "u4"
    true = w.constant(
        _TRUE[single] if single in _TRUE else np.uint16(0xFFFF) if width == "u2" else np.uint32(0xFFFFFFFF)
    )
    name = w.temporary()
    w.emit(f"{name} = {expression}")
    if ptx_type.endswith("x2"):
        # Integer results of packed comparisons are packed all the same.
        true = w.constant(_TRUE.get(single, np.uint16(0xFFFF)))
        halves = [f"({name}[{half}] * {true}).astype(u4)" for half in range(2)]
        w.write(i.operands[0], f"{halves[0]} | {halves[1]} << 16", "u4", same)
        return
    if len(parts) == 4:
        c, c_same = w.value(i.operands[3], "pred")
        w.emit(f"{name} = {name} {({'and': '&', 'or': '|', 'xor': '^'})[parts[1]]} {c}")
        same = same and c_same
    w.write(i.operands[0], f"{name} * {true}", "f4" if result_type == "f32" else width, same)


_INTEGERS = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "b8", "b16", "b32", "b64"}


def _cvt(w: Writer, i: Instruction) -> None:
    parts = i.parts
    to, source = parts[-2], parts[-1]
    if parts[1] == "pack":
        _cvt_pack(w, i)
        return
    if to in _INTEGERS and source in _INTEGERS and "sat" not in parts:
        expression, uniform = w.value(i.operands[1], source)
        if DTYPES[to] != DTYPES[source]:
            how = "view" if to[1:] == source[1:] else "astype"
            expression = f"{expression}.{how}({DTYPES[to]})"
        w.write(i.operands[0], expression, DTYPES[to], uniform)
        return
    if (to, source) == ("f64", "f32") and len(parts) == 3:
        expression, uniform = w.value(i.operands[1], source)
        w.write(i.operands[0], f"{expression}.astype(f8)", "f8", uniform)
        return
    library_call(w, i, to, [source] * (len(i.operands) - 1))


def _packed(a: Any, b: Any, c: Any, low: int, high: int, bits: int) -> Any:
    """Saturate two numbers to a few bits and put them, the first above the second, behind what was packed before."""
    mask = (1 << bits) - 1
    upper, lower = (np.clip(x, low, high).astype(np.int64) & mask for x in (a, b))
    packed = upper << bits | lower
    if c is not None:
        packed |= np.asarray(c).astype(np.int64) << 2 * bits
    return (packed & 0xFFFFFFFF).astype(np.uint32)[()]


def _cvt_pack(w: Writer, i: Instruction) -> None:
    """Write ``cvt.pack.sat.type.s32``, with a third operand for types of up to 8 bits."""
    narrow = i.parts[3]
    bits = int(narrow[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if narrow[0] == "s" else (0, (1 << bits) - 1)
    (a, a_same), (b, b_same) = w.value(i.operands[1], "s32"), w.value(i.operands[2], "s32")
    c, c_same = w.value(i.operands[3], "b32") if len(i.operands) > 3 else ("None", True)
    w.bind("packed", _packed)
    w.write(i.operands[0], f"packed({a}, {b}, {c}, {low}, {high}, {bits})", "u4", a_same and b_same and c_same)


EMITTERS: dict[str, Callable[[Writer, Instruction], None]] = {
    "mov": _mov, "cvta": _cvta, "isspacep": _isspacep, "selp": _selp, "slct": _slct, "setp": _setp, "set": _set,
    "cvt": _cvt,
}  # fmt: skip  # rows of a table
