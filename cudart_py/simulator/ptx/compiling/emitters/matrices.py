"""Write operations on the matrices of whole warps (``wmma``)."""

from __future__ import annotations

from ...syntax.instructions import Access, Immediate, Instruction, Operand, Register, Vector
from ..forms import Form
from ..fragments import extent_of, kinds_of
from ..writer import Writer

__all__ = ["load_matrix", "multiply_matrices", "store_matrix"]

_HALVES = ("f16", "bf16")


def load_matrix(w: Writer, i: Instruction, form: Form) -> None:
    """Write ``wmma.load``."""
    destination, access, *stride = i.operands
    assert isinstance(destination, Vector)
    place = _place(w, form, access, stride, len(destination.items))
    result = w.temporary()
    w.emit(f"{result} = g.chunk.matrices.load(g, {place}, {form.type!r}, {w.site()})")
    _write_fragment(w, destination, result, form.type)


def store_matrix(w: Writer, i: Instruction, form: Form) -> None:
    """Write ``wmma.store``."""
    access, source, *stride = i.operands
    assert isinstance(source, Vector)
    place = _place(w, form, access, stride, len(source.items))
    w.emit(f"g.chunk.matrices.store(g, {place}, {form.type!r}, {_arrays(w, source, form.type)}, {w.site()})")


def multiply_matrices(w: Writer, i: Instruction, form: Form) -> None:
    """Write ``wmma.mma``."""
    destination = i.operands[0]
    assert isinstance(destination, Vector)
    kinds = kinds_of(form)
    fragments = []
    for operand, kind in zip(i.operands[1:], kinds[1:], strict=True):
        assert isinstance(operand, Vector)
        fragments.append(_arrays(w, operand, kind))
    result = w.temporary()
    extents = tuple(extent_of(form, matrix) for matrix in "abc")
    w.emit(f"{result} = g.chunk.matrices.multiply(g, {extents}, {kinds!r}, [{', '.join(fragments)}])")
    _write_fragment(w, destination, result, kinds[0])


def _place(w: Writer, form: Form, access: Operand, stride: list[Operand], registers: int) -> str:
    """Return the space, the first address, and the layout of a matrix in memory as source."""
    # An address in another form is refused when a module is loaded.
    assert isinstance(access, Access)
    assert isinstance(access.base, Register)
    extent = extent_of(form, form.words[1])
    column_major = "col" in form.words
    steps = str(extent[0] if column_major else extent[1])
    if stride:
        steps = str(stride[0].value) if isinstance(stride[0], Immediate) else w.value(stride[0], "u32")[0]
    wide = "u64" if w.code.types[w.code.slot(access.base.name)] == "b64" else "u32"
    base, uniform = w.value(access.base, wide)
    if uniform:
        base = f"np.full(g.n, {base})"
    if access.offset:
        base = f"({base} + {access.offset})"
    count = registers * (2 if form.type in _HALVES else 1)
    return f"{form.space!r}, {base}, ({extent}, {count}, {column_major}, {steps})"


def _arrays(w: Writer, vector: Vector, kind: str) -> str:
    """Return the registers of a fragment as a list of arrays."""
    items = []
    for item in vector.items:
        expression, uniform = w.typed(item, _register_dtype(kind))
        items.append(f"np.full(g.n, {expression})" if uniform else expression)
    return f"[{', '.join(items)}]"


def _write_fragment(w: Writer, destination: Vector, result: str, kind: str) -> None:
    for index, item in enumerate(destination.items):
        w.write(item, f"{result}[{index}]", _register_dtype(kind), False)
    w.emit(f"{result} = None")


def _register_dtype(kind: str) -> str:
    """Return the type of a register of a fragment: two halves, or a single number."""
    return "u4" if kind in _HALVES else "f4"
