"""Multiply small matrices held by whole warps (``wmma``).

Which element a lane's register holds is opaque to programs. Here element number ``lane * per_lane + i`` of the matrix
in rows lies in place i of a lane, counted round again where the fragments hold every element twice. Products are
summed in double precision and rounded once; the hardware rounds in between, in ways that NVIDIA doesn't document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .instructions import Access, Immediate, Instruction, Register, Vector
from .library import find
from .memory_access import space_of
from .operands import Writer

if TYPE_CHECKING:
    from .groups import Group

__all__ = ["EMITTERS", "Tensor"]

Array = NDArray[Any]

_SHAPES = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16)}
_HALVES = ("f16", "bf16")


def _extent(shape: str, part: str) -> tuple[int, int]:
    """Give rows and columns of matrix a, b, or c and d."""
    m, n, k = _SHAPES[shape]
    return {"a": (m, k), "b": (k, n)}.get(part, (m, n))


class Tensor:
    """Load, multiply and store fragments for the groups of a chunk."""

    def places(self, group: Group, extent: tuple[int, int], count: int, column_major: bool, stride: Any) -> list[Array]:
        """Give, for each of a lane's `count` elements, its distance from the matrix's start in elements."""
        lane = group.special("%laneid").astype(np.int64)
        steps = np.asarray(stride).astype(np.int64)
        found = []
        for item in range(count):
            row, column = np.divmod((lane * count + item) % (extent[0] * extent[1]), extent[1])
            found.append(column * steps + row if column_major else row * steps + column)
        return found

    def load(
        self,
        group: Group,
        space: str,
        base: Any,
        layout: tuple[tuple[int, int], int, bool, Any],
        kind: str,
        site: Instruction,
    ) -> list[Array]:
        """Give the registers of a fragment: packed halves, or one register for each f32."""
        memory = group.chunk.memory
        size, name = (2, "u2") if kind in _HALVES else (4, "f4")
        values = []
        for place in self.places(group, *layout):
            address = getattr(memory, space)(group, _moved(base, place * size))
            values.append(memory.load(address, 0, name, size >> 1, site))
        return _packed(values) if kind in _HALVES else values

    def store(
        self,
        group: Group,
        space: str,
        base: Any,
        layout: tuple[tuple[int, int], int, bool, Any],
        kind: str,
        registers: list[Array],
        site: Instruction,
    ) -> None:
        """Store a fragment's elements."""
        memory = group.chunk.memory
        size, name = (2, "u2") if kind in _HALVES else (4, "f4")
        values = _unpacked(registers) if kind in _HALVES else registers
        for place, value in zip(self.places(group, *layout), values, strict=True):
            address = getattr(memory, space)(group, _moved(base, place * size))
            memory.store(address, 0, name, size >> 1, value, site)

    def multiply(
        self, group: Group, shape: str, kinds: tuple[str, str, str, str], parts: list[list[Array]]
    ) -> list[Array]:
        """Give the registers of ``a * b + c`` for each warp; `kinds` are the types of d, a, b and c."""
        matrices = [
            _matrix(registers, kind, _extent(shape, part), group.n)
            for registers, kind, part in zip(parts, kinds[1:], "abc", strict=True)
        ]
        product = np.matmul(matrices[0], matrices[1]) + matrices[2]
        count = product.shape[1] * product.shape[2] // 32
        lanes = product.reshape(-1, count)
        if kinds[0] == "f32":
            return [lanes[:, item].astype(np.float32) for item in range(count)]
        narrow = find(f"cvt.rn.{kinds[0]}.f64")
        assert narrow is not None
        return _packed([narrow(np.ascontiguousarray(lanes[:, item])) for item in range(count)])


def _moved(base: Any, distance: Array) -> Array:
    return np.asarray(base + distance.astype(base.dtype))


def _packed(values: list[Array]) -> list[Array]:
    """Pack halves two by two."""
    return [
        low.astype(np.uint32) | high.astype(np.uint32) << 16
        for low, high in zip(values[::2], values[1::2], strict=True)
    ]


def _unpacked(registers: list[Array]) -> list[Array]:
    """Part packed halves."""
    values = []
    for register in registers:
        values += [register.astype(np.uint16), (register >> 16).astype(np.uint16)]
    return values


def _matrix(registers: list[Array], kind: str, extent: tuple[int, int], lanes: int) -> Array:
    """Give the matrix of each warp in double precision."""
    values = registers
    if kind in _HALVES:
        widen = find(f"cvt.f32.{kind}")
        assert widen is not None
        values = [widen(value) for value in _unpacked(registers)]
    table = np.stack([np.broadcast_to(value, lanes).astype(np.float64) for value in values], axis=1)
    size = extent[0] * extent[1]
    return table.reshape(lanes // 32, -1)[:, :size].reshape(-1, *extent)


def _arrays(w: Writer, vector: Vector, kind: str) -> str:
    """Name a fragment's registers as a list of arrays."""
    dtype = "u4" if kind in _HALVES else "f4"
    items = []
    for item in vector.items:
        expression, uniform = w.typed(item, dtype)
        items.append(f"np.full(g.n, {expression})" if uniform else expression)
    return f"[{', '.join(items)}]"


def _memory_operands(w: Writer, i: Instruction, access: Access, stride: Any, count: int) -> tuple[str, str, str]:
    """Give the space, the first address, and the layout as source."""
    parts = i.parts
    shape = next((part for part in parts if part in _SHAPES), None)
    if shape is None or parts[-1] not in ("f16", "bf16", "f32") or not isinstance(access.base, Register):
        raise w.unsupported()
    extent = _extent(shape, parts[2])
    column_major = "col" in parts
    steps = str(extent[0] if column_major else extent[1])
    if stride is not None:
        steps = str(stride.value) if isinstance(stride, Immediate) else w.value(stride, "u32")[0]
    wide = "u64" if w.code.types[w.code.slot(access.base.name)] == "b64" else "u32"
    base, uniform = w.value(access.base, wide)
    if uniform:
        base = f"np.full(g.n, {base})"
    if access.offset:
        base = f"({base} + {access.offset})"
    space = space_of(parts)
    return ("global_" if space == "global" else space), base, f"({extent}, {count}, {column_major}, {steps})"


def _wmma(w: Writer, i: Instruction) -> None:
    """Write ``wmma.load``, ``wmma.mma`` and ``wmma.store``."""
    parts = i.parts
    kind = parts[-1]
    packing = 2 if kind in _HALVES else 1
    result = w.temporary()
    if parts[1] == "load":
        destination, access = i.operands[0], i.operands[1]
        assert isinstance(destination, Vector)
        assert isinstance(access, Access)
        stride = i.operands[2] if len(i.operands) > 2 else None
        space, base, layout = _memory_operands(w, i, access, stride, len(destination.items) * packing)
        w.emit(f"{result} = g.chunk.tensor.load(g, {space!r}, {base}, {layout}, {kind!r}, {w.site()})")
    elif parts[1] == "store":
        access, source = i.operands[0], i.operands[1]
        assert isinstance(source, Vector)
        assert isinstance(access, Access)
        stride = i.operands[2] if len(i.operands) > 2 else None
        space, base, layout = _memory_operands(w, i, access, stride, len(source.items) * packing)
        registers = _arrays(w, source, kind)
        w.emit(f"g.chunk.tensor.store(g, {space!r}, {base}, {layout}, {kind!r}, {registers}, {w.site()})")
        return
    else:
        destination = i.operands[0]
        assert isinstance(destination, Vector)
        shape = next((part for part in parts if part in _SHAPES), None)
        types = [part for part in parts if part in ("f16", "bf16", "f32")]
        kinds = (types[0], "f16", "f16", types[1]) if len(types) == 2 else tuple(types)
        if shape is None or len(kinds) != 4 or "f32" in kinds[1:3]:
            raise w.unsupported()
        fragments = []
        for operand, fragment_kind in zip(i.operands[1:4], kinds[1:], strict=True):
            assert isinstance(operand, Vector)
            fragments.append(_arrays(w, operand, fragment_kind))
        w.emit(f"{result} = g.chunk.tensor.multiply(g, {shape!r}, {kinds!r}, [{', '.join(fragments)}])")
        kind = kinds[0]
    for index, item in enumerate(destination.items):
        w.write(item, f"{result}[{index}]", "u4" if kind in _HALVES else "f4", False)
    w.emit(f"{result} = None")


EMITTERS: dict[str, Callable[[Writer, Instruction], None]] = {"wmma": _wmma}
