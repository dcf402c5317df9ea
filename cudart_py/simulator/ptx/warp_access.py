"""Write what lanes of a warp do together, and texture fetches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .instructions import Access, Instruction, Symbol, Vector
from .operands import Writer, dtype_of

__all__ = ["EMITTERS"]

Emitter = Callable[[Writer, Instruction], None]


def _spread(w: Writer, value: tuple[str, bool], dtype: str) -> str:
    """Give a value as an array over the group."""
    expression, uniform = value
    return f"np.full(g.n, {expression}, {dtype})" if uniform else expression


def _shfl(w: Writer, i: Instruction) -> None:
    """Write ``shfl.sync.mode.b32 d|p, a, b, c, mask``."""
    mode = i.parts[2] if i.parts[1] == "sync" else i.parts[1]
    a = _spread(w, w.value(i.operands[1], "b32"), "u4")
    b, c = (w.value(operand, "u32")[0] for operand in i.operands[2:4])
    if w.context.observed:
        w.emit(f"g.chunk.launched.observer.shuffle(g, {w.site()}, {mode!r}, {b}, {c})")
    result = w.temporary()
    w.emit(f"{result} = g.chunk.warps.shuffle(g, {mode!r}, {a}, {b}, {c})")
    destination = i.operands[0]
    if isinstance(destination, Vector):
        w.write(destination.items[0], f"{result}[0]", "u4", False)
        w.write(destination.items[1], f"{result}[1]", "?", False)
    else:
        w.write(destination, f"{result}[0]", "u4", False)
    w.emit(f"{result} = None")


def _vote(w: Writer, i: Instruction) -> None:
    parts = i.parts
    mode = parts[2] if parts[1] == "sync" else parts[1]
    predicate = _spread(w, w.value(i.operands[1], "pred"), "np.bool_")
    mask = w.value(i.operands[2], "b32")[0] if parts[1] == "sync" else w.constant(np.uint32(0xFFFFFFFF))
    dtype = "u4" if mode == "ballot" else "?"
    w.write(i.operands[0], f"g.chunk.warps.vote(g, {mode!r}, {predicate}, {mask})", dtype, False)


def _match(w: Writer, i: Instruction) -> None:
    parts = i.parts
    ptx_type = parts[-1]
    value = _spread(w, w.value(i.operands[1], ptx_type), dtype_of(ptx_type))
    mask, _ = w.value(i.operands[2], "b32")
    result = w.temporary()
    w.emit(f"{result} = g.chunk.warps.match(g, {parts[1]!r}, {value}, {mask})")
    destination = i.operands[0]
    items = destination.items if isinstance(destination, Vector) else (destination,)
    w.write(items[0], f"{result}[0]", "u4", False)
    if len(items) > 1:
        w.write(items[1], f"{result}[1]", "?", False)
    w.emit(f"{result} = None")


def _redux(w: Writer, i: Instruction) -> None:
    ptx_type = i.parts[-1]
    value = _spread(w, w.value(i.operands[1], ptx_type), dtype_of(ptx_type))
    mask, _ = w.value(i.operands[2], "b32")
    options = [part for part in i.parts[3:-1] if part in ("abs", "NaN")]
    if options:
        raise w.unsupported()
    call = f"g.chunk.warps.reduce(g, {i.parts[2]!r}, {value}, {mask})"
    w.write(i.operands[0], call, dtype_of(ptx_type), False)


def _activemask(w: Writer, i: Instruction) -> None:
    w.write(i.operands[0], "g.chunk.warps.active(g)", "u4", False)


def _elect(w: Writer, i: Instruction) -> None:
    mask, _ = w.value(i.operands[1], "b32")
    result = w.temporary()
    w.emit(f"{result} = g.chunk.warps.elect(g, {mask})")
    destination = i.operands[0]
    items = destination.items if isinstance(destination, Vector) else (Symbol("_"), destination)
    w.write(items[0], f"{result}[0]", "u4", False)
    w.write(items[1], f"{result}[1]", "?", False)


def _bar(w: Writer, i: Instruction) -> None:
    """Write nothing for ``bar.warp.sync``: the block began when the warp's lanes were together."""
    if "warp" not in i.parts:
        raise w.unsupported()


def _tex(w: Writer, i: Instruction) -> None:
    """Write ``tex{.level}.{1d,2d}.v4.dtype.ctype {r, g, b, a}, [texture, {x, y}]``."""
    parts = i.parts
    geometry = next((part for part in parts if part in ("1d", "2d")), None)
    access = i.operands[1]
    if geometry is None or "grad" in parts or not isinstance(access, Access) or access.coordinates is None:
        raise w.unsupported()
    result_type, coordinate_type = parts[-2], parts[-1]
    handle, _ = w.value(access.base, "u64")
    items = access.coordinates.items[: 1 if geometry == "1d" else 2]
    coordinates = [_spread(w, w.value(item, coordinate_type), dtype_of(coordinate_type)) for item in items]
    result = w.temporary()
    arguments = f"{handle}, ({', '.join(coordinates)},), {dtype_of(result_type)!r}, {w.site()}"
    w.emit(f"{result} = g.chunk.system.texture(g, {arguments})")
    destination = i.operands[0]
    assert isinstance(destination, Vector)
    for index, item in enumerate(destination.items):
        w.write(item, f"{result}[{index}]", dtype_of(result_type), False)
    w.emit(f"{result} = None")


EMITTERS: dict[str, Emitter] = {
    "shfl": _shfl, "vote": _vote, "match": _match, "redux": _redux, "activemask": _activemask, "elect": _elect,
    "bar": _bar, "tex": _tex,
}  # fmt: skip  # rows of a table
