"""Both engines load, store and multiply matrices alike, bit for bit: every form, with infinities, NaNs and zeros."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.forms import Form
from cudart_py.simulator.ptx.compiling.fragments import fragment_of, fragments_of, type_of_registers
from cudart_py.simulator.ptx.compiling.opcode_table.matrix_opcodes import MATRIX_ROWS
from cudart_py.simulator.ptx.operations.matrices import ELEMENTS
from cudart_py.simulator.ptx.syntax.types import type_size
from tests.simulator.ptx.machine import HEAD, Kernels
from tests.simulator.ptx.spellings import spellings

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

THREADS = 64
# The patterns of each format's infinity, NaN, negative zero, one, and a subnormal number.
SPECIAL = {
    "f16": [0x7C00, 0xFC00, 0x7E01, 0x8000, 0x3C00, 1], "bf16": [0x7F80, 0xFF80, 0x7FC1, 0x8000, 0x3F80, 1],
    "tf32": [0x7F800000, 0xFFC00000, 0x80000000, 0x3F800000, 1 << 13], "e4m3": [0x7F, 0x80, 0x38, 1],
    "e5m2": [0x7C, 0xFC, 0x7D, 0x80, 0x3C, 1], "f32": [0x7F800000, 0x7FC00000, 0x80000000, 0x3F800000, 1],
    "f64": [0x7FF << 52, 0xFFF << 52, 1 << 63, 0x3FF << 52, 1],
}  # fmt: skip  # rows of a table
FORMS = {
    form.opcode: form
    for row in MATRIX_ROWS
    if row.name in ("mma", "wmma")
    for _, form in spellings(row)
    if form is not None
}
PRODUCTS = [opcode for opcode, form in FORMS.items() if "load" not in form.words and "store" not in form.words]
# Accumulators are never bf16, although the pattern of the row allows it.
MOVES = [opcode for opcode, form in FORMS.items() if opcode not in PRODUCTS and fragment_of(form).count]
# One form for each type of the accumulator and of the left matrix in each row, with another type of the right matrix if
# there is one. Of the rest, the exhaustive level runs a quarter, chosen at random.
BY_TYPES = sorted(PRODUCTS, key=lambda opcode: len({*FORMS[opcode].types}))
FEW = {(FORMS[opcode].row, FORMS[opcode].types[:2]): opcode for opcode in BY_TYPES}.values()
REST = [opcode for opcode in PRODUCTS if opcode not in FEW]


def words(rng: np.random.Generator, kind: str, number: int) -> NDArray[Any]:
    """Draw the bytes of elements: random ones, small ones, special ones, and in some trials only zeros."""
    dtype = np.dtype(ELEMENTS[kind])
    bits = np.dtype(f"u{dtype.itemsize}")
    drawn = rng.integers(0, 1 << 8 * dtype.itemsize, number, np.uint64, endpoint=False).astype(bits)
    if kind in SPECIAL:
        special = np.array(SPECIAL[kind], np.uint64).astype(bits)
        share = rng.choice([0, 0, 0.02, 1])
        # Exponents around 1, so that most sums have several terms of a similar size.
        if rng.random() < 0.7:
            one = special[-2]
            drawn = (one & ~bits.type(7)) ^ (drawn & bits.type((1 << 8 * dtype.itemsize - 1) | int(one) >> 3))
        drawn = np.where(
            rng.random(number) < share, rng.choice(special[-4:-1] if share == 1 else special, number), drawn
        )
    return drawn.view(np.uint8)


def kernel(form: Form) -> str:
    """Return a kernel that loads the registers of a, b and c from arrays, multiplies and stores the result."""
    fragments = fragments_of(form)
    names, text = [], ""
    for letter, fragment in zip("dabc", fragments, strict=True):
        kind, number = type_of_registers(fragment.kind), fragment.registers
        size = type_size(kind)
        text += f".reg .{kind} {letter}<{number}>; .reg .b64 p{letter}; ld.param.u64 p{letter}, [p+{8 * len(names)}];"
        text += f"mad.wide.u32 p{letter}, t, {size * number}, p{letter};"
        if letter != "d":
            text += "".join(f"ld.global.{kind} {letter}{n}, [p{letter}+{size * n}];" for n in range(number))
        names.append("{" + ", ".join(f"{letter}{n}" for n in range(number)) + "}")
    text += f"{form.opcode} {', '.join(names)};"
    kind, number = type_of_registers(fragments[0].kind), fragments[0].registers
    size = type_size(kind)
    text += "".join(f"st.global.{kind} [pd+{size * n}], d{n};" for n in range(number))
    return f"{HEAD}.visible .entry k(.param .align 8 .b8 p[32]) {{ .reg .b32 t; mov.u32 t, %tid.x; {text} }}"


def both(kernels: Kernels, address: int, nbytes: int, *arguments: Any, **options: Any) -> list[NDArray[np.uint8]]:
    """Return the bytes that a kernel leaves at an address with each engine."""
    found = []
    for kernels.engine in ("numpy", "native"):
        kernels.memory.view(address, nbytes, np.uint8)[:] = 0xAA
        kernels.launch("k", 1, THREADS, *arguments, **options)
        found.append(kernels.get(address, nbytes, np.uint8))
    assert kernels.ran_natively("k")
    return found


@pytest.mark.parametrize("opcode", [*FEW, pytest.param("the rest", marks=pytest.mark.exhaustive)])
def test_products_agree(opcode, rng):
    for one in rng.choice(REST, len(REST) // 4, replace=False) if opcode == "the rest" else [opcode]:
        compare_products(one, rng)


def compare_products(opcode: str, rng: np.random.Generator) -> None:
    form = FORMS[opcode]
    kernels = Kernels(load_module(kernel(form)))
    fragments = fragments_of(form)
    sizes = [THREADS * one.registers * max(one.size, 4) for one in fragments]
    out = kernels.zeros(sizes[0], np.uint8)
    for _ in range(6):
        given = [
            kernels.put(words(rng, one.kind, size // one.size))
            for one, size in zip(fragments[1:], sizes[1:], strict=True)
        ]
        expected, found = both(kernels, out, sizes[0], np.array([out, *given], np.uint64))
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32), opcode)


@pytest.mark.parametrize("opcode", MOVES)
def test_loads_and_stores_agree(opcode, rng):
    """Each form accesses a random state space at a random stride."""
    form, space = FORMS[opcode], str(rng.choice(["global", "shared"]))
    fragment = fragment_of(form)
    kind, number = type_of_registers(fragment.kind), fragment.registers
    stages = {"global", "shared", "shared::cta"}
    each = type_size(kind)
    opcode = opcode.replace(next(iter(stages.intersection(form.words)), "?"), space)
    registers = "{" + ", ".join(f"r{n}" for n in range(number)) + "}"
    moves = "".join(
        f"{'st' if 'load' in form.words else 'ld'}.global.{kind} "
        + (f"[out+{each * n}], r{n};" if "load" in form.words else f"r{n}, [in+{each * n}];")
        for n in range(number)
    )
    # Rows of bytes must begin at multiples of four bytes.
    stride = int(rng.choice([32, 40, 36 if fragment.size == 1 else 34]))
    size = 64 * stride * 4
    shared = f".shared .align 16 .b8 room[{size}];"
    copy = "".join(
        f"ld.global.b64 w, [from+{8 * n}]; st.shared.b64 [to+{8 * n}], w;" for n in range(size // THREADS // 8)
    )
    fill = (
        f".reg .b64 w; .reg .b32 to; .reg .b64 from; mov.u32 to, room; mad.lo.u32 to, t, {size // THREADS}, to;"
        f"mad.wide.u32 from, t, {size // THREADS}, in; {copy} bar.sync 0;"
    )
    back = copy.replace("ld.global.b64 w, [from", "ld.shared.b64 w, [to")
    back = back.replace("st.shared.b64 [to", "st.global.b64 [from")
    base = "in" if space == "global" and "load" in form.words else "out" if space == "global" else "room"
    text = f".reg .b32 t; .reg .{kind} r<{number}>; .reg .b64 in, out, row; mov.u32 t, %tid.x;"
    text += "ld.param.u64 in, [p]; ld.param.u64 out, [p+8];"
    if space == "shared":
        text += fill
    if "load" in form.words:
        text += f"{opcode} {registers}, [{base}], {stride}; mad.wide.u32 out, t, {each * number}, out; {moves}"
    else:
        text += f"mad.wide.u32 row, t, {each * number}, in; {moves.replace('[in', '[row')} bar.sync 0;"
        text += f"{opcode} [{base}], {registers}, {stride};"
        if space == "shared":
            text += f"bar.sync 0; mad.wide.u32 from, t, {size // THREADS}, out; {back}"
    module = f"{HEAD}{shared}.visible .entry k(.param .align 8 .b8 p[16]) {{ {text} }}"
    kernels = Kernels(load_module(module))
    given = kernels.put(words(rng, "f32", size // 4))
    out = kernels.zeros(size, np.uint8)
    expected, found = both(kernels, out, size, np.array([given, out], np.uint64))
    np.testing.assert_array_equal(found, expected)
    assert (found != 0xAA).any()
