"""An instruction has the same result with literals as with registers that hold the same values, in both engines.

The engines compute results of literals while they generate code.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from cudart_py.simulator.ptx import has_llvmlite, load_module
from cudart_py.simulator.ptx.compiling.emitters.lowered import Lowers
from cudart_py.simulator.ptx.compiling.forms import Form
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import ROWS
from cudart_py.simulator.ptx.syntax.types import type_size
from tests.simulator.ptx.machine import HEAD, Kernels
from tests.simulator.ptx.spellings import spellings

# These have addresses, or results that depend on the launch; and 16 bytes are too many for a literal.
WITHOUT = {"cvta", "isspacep", "mapa", "getctarank"}
FORMS = {
    opcode: form
    for row in ROWS
    if isinstance(row.emit, Lowers) and row.name not in WITHOUT
    for opcode, form in spellings(row)
    if form is not None and not {"V", "=V"} & {*form.operands} and "b128" not in form.types
}
OPERANDS = 5
SINGLES = [
    0,
    0x80000000,
    0x3F800000,
    0xBFC00000,
    0x7F800000,
    0xFF800000,
    0x7FC00001,
    1,
    0x807FFFFF,
    0x00800000,
    0x4B000001,
]
DOUBLES = [0, 1 << 63, 0x3FF << 52, 0xBFF8 << 48, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48 | 1, 1, 0x43E << 52]
INTEGERS = [
    0,
    1,
    2,
    5,
    7,
    31,
    32,
    33,
    0x7F,
    0x80,
    0xFF,
    0x3C00,
    0x7C00,
    0x7E00,
    0x8000,
    0xFFFF,
    1 << 31,
    (1 << 32) - 1,
    (1 << 63) + 9,
]


def value_of(rng: np.random.Generator, name: str) -> int:
    """Draw the bits of an operand: a special value, or any."""
    if name == "pred":
        return int(rng.integers(2))
    bits = 8 * type_size(name)
    special = {"f32": SINGLES, "f64": DOUBLES}.get(name, INTEGERS)
    drawn = int(rng.choice(np.array(special, np.uint64))) if rng.random() < 0.7 else int(rng.integers(1 << 63)) * 2 + 1
    return drawn & (1 << bits) - 1


def literal(name: str, value: int) -> str:
    if name in ("f32", "f64"):
        return f"0{'f' if name == 'f32' else 'd'}{value:0{2 * type_size(name)}X}"
    return str(value)


class Case:
    """An instruction with random operands: `values` are the bits of those that may be literals."""

    def __init__(self, opcode: str, form: Form, rng: np.random.Generator) -> None:
        self.opcode = opcode
        self.reads_carry = form.row.reads_carry
        self.patterns = [pattern for pattern in form.operands if not pattern.endswith("?")]
        self.types = [
            form.types[0] if pattern.strip("=") == "P" else form.type_of(pattern) for pattern in self.patterns
        ]
        self.values = [value_of(rng, "u8" if pattern[0] == "#" else name) for pattern, name in self.operands]
        self.constant = int(rng.integers(1, 1 << max(len(self.values), 1)))

    @property
    def operands(self) -> list[tuple[str, str]]:
        return list(zip(self.patterns, self.types, strict=True))[1:]

    def text(self, number: int, offset: int, *, literals: bool) -> str:
        """Return the instruction, loads of its operands, and the store of its result at a byte offset."""
        text, names = "", []
        for place, ((pattern, name), value) in enumerate(zip(self.operands, self.values, strict=True)):
            if pattern[0] == "#" or (literals and self.constant >> place & 1):
                names.append(literal(name if pattern[0] != "#" else "u8", value))
                continue
            loaded = "b8" if name == "pred" else f"b{8 * type_size(name)}"
            register = "x16" if name == "pred" else f"x{8 * type_size(name)}_{place}"
            text += f"ld.global.{loaded} {register}, [in+{8 * (OPERANDS * number + place)}]; "
            text += f"setp.ne.b16 p{place}, x16, 0; " if name == "pred" else ""
            names.append(f"p{place}" if name == "pred" else register)
        first = self.types[0]
        result = "q" if first == "pred" else f"y{8 * type_size(first)}"
        if self.reads_carry:
            text += f"add.cc.u32 y32, 4294967295, {self.constant & 1}; "
        text += f"{self.opcode} {result}{'|r' if '&' in self.patterns[0] else ''}, {', '.join(names)}; "
        if first == "pred":
            return f"{text} selp.b32 y32, 1, 0, q; st.global.b32 [out+{offset}], y32;\n"
        return f"{text} st.global.b{8 * type_size(first)} [out+{offset}], {result};\n"


def run(cases: list[Case], engine: str) -> NDArray[np.uint64]:
    """Return the results with registers and with literals, as the rows of an array."""
    body = ""
    for number, case in enumerate(cases):
        for column, literals in enumerate((False, True)):
            body += case.text(number, 8 * (len(cases) * column + number), literals=literals)
    registers = "".join(f".reg .b{bits} x{bits}_<{OPERANDS}>, y{bits};" for bits in (8, 16, 32, 64))
    kernels = Kernels(
        load_module(f"""{HEAD}.visible .entry k(.param .u64 given, .param .u64 results) {{
            {registers} .reg .b64 in, out; .reg .b16 x16; .reg .pred p<{OPERANDS}>, q, r;
            ld.param.u64 in, [given]; ld.param.u64 out, [results];
            {body}
        }}"""),
        engine=engine,
    )
    given = np.array([(case.values + [0] * OPERANDS)[:OPERANDS] for case in cases], np.uint64)
    out = kernels.zeros(2 * len(cases), np.uint64)
    kernels.launch("k", 1, 1, kernels.put(given), out)
    assert engine == "numpy" or kernels.ran_natively("k")
    return kernels.get(out, 2 * len(cases), np.uint64).reshape(2, -1)


# Of these parts, the default level runs five, among them quotients that are rounded up or down.
PARTS = 40


@pytest.mark.parametrize("part", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n % 8 != 2)) for n in range(PARTS)])
def test_literals_have_the_results_of_registers(part: int, rng: np.random.Generator) -> None:
    cases = [Case(opcode, FORMS[opcode], rng) for opcode in [*FORMS][part::PARTS]]
    for engine in ("numpy", *["native"] * has_llvmlite()):
        registers, literals = run(cases, engine)
        wrong = [
            f"{case.opcode} {[hex(value) for value in case.values]} {case.constant:b}: {int(one):#x}, {int(other):#x}"
            for case, one, other in zip(cases, registers, literals, strict=True)
            if one != other
        ]
        assert not wrong, engine
