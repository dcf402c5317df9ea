"""The native engine supports all opcodes on registers except those listed, with the NumPy engine's exact results."""

import platform
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.emitters.lowered import Lowers
from cudart_py.simulator.ptx.compiling.forms import Form
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import ROWS
from cudart_py.simulator.ptx.compiling.program import program_of
from cudart_py.simulator.ptx.syntax.types import type_size
from tests.simulator.ptx.machine import HEAD, Kernels
from tests.simulator.ptx.spellings import spellings

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native.errors import UnsupportedInstruction
from cudart_py.simulator.ptx.native.instances import lay_out
from cudart_py.simulator.ptx.native.lowering.table import lowering
from cudart_py.simulator.ptx.native.machine import build
from cudart_py.simulator.ptx.native.writing.flushing import processor_flushes

X86 = platform.machine() == "x86_64"
LANES = 1024
PLACES = 4
# The C library computes these. The last bit of a double may differ from NumPy's, which very rarely changes the result.
APPROXIMATE = {"sin", "cos", "ex2", "lg2", "tanh"}
MATRICES = {"wmma", "mma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"}
WITHOUT = {*MATRICES, "clusterid", "getctarank", "nanosleep", "activemask", "isspacep"}

# The opcodes that machine code leaves to the NumPy engine, as patterns for full spellings, with the reasons.
WAITING = "nobody has written it yet"
NOT_NATIVE = {
    r"wgmma\.mma_async\..*": WAITING,
    r"tex\.(base\.)?a?cube\..*|tex\.(level|grad)\..*|tld4\..*": WAITING,
}

REGISTERS = ".reg .b32 lane; .reg .b64 in, out, at; .reg .pred p0, p1, p2, p3, q; .reg .b128 unused;"


def words() -> np.ndarray[Any, Any]:
    """Return operands: random bits, small numbers, and the limits of integer and floating-point formats."""
    generator = np.random.default_rng(7)
    random = generator.integers(0, 1 << 64, (PLACES, LANES), np.uint64, endpoint=False)
    singles = [
        0x7F800000, 0xFF800000, 0x7FC00001, 0xFFA00000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0,
        0x80000000, 0x3F800000, 0x3F7FFFFF, 0x7F7FFFFF, 0x4F000000, 0x5F000000, 0x3F000000, 0x40200000,
    ]  # fmt: skip  # numbers
    doubles = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 5e-324, 2.0**31, -(2.0**63), 2.0**-1022, 0.5])
    special = [*singles, *(bits << 32 | 0x7FFF for bits in singles), *doubles.view(np.uint64).tolist()]
    special += [*range(40), 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, (1 << 64) - 1, 1 << 63, 0x7C00, 0xFC01, 0x0400, 0x8001]
    chosen = generator.choice(np.array(special, np.uint64), (PLACES, LANES))
    near = (generator.normal(0, 1, (PLACES, LANES)).astype(np.float32).view(np.uint32)).astype(np.uint64)
    kind = generator.integers(0, 3, (PLACES, LANES))
    return np.where(kind == 0, random, np.where(kind == 1, chosen, near))


def prologue() -> str:
    text = REGISTERS + "ld.param.u64 in, [params]; ld.param.u64 out, [params+8];"
    text += ".reg .b32 block, size; mov.u32 lane, %tid.x; mov.u32 block, %ctaid.x; mov.u32 size, %ntid.x;"
    text += "mad.lo.u32 lane, block, size, lane; mul.wide.u32 at, lane, 8; add.u64 in, in, at; add.u64 out, out, at;"
    for place in range(PLACES):
        offset = 8 * LANES * place
        for bits in (8, 16, 32, 64):
            text += f".reg .b{bits} r{bits}_{place}; ld.global.b{bits} r{bits}_{place}, [in+{offset}];"
        for bits in (32, 64):
            text += f".reg .f{bits} f{bits}_{place}; ld.global.f{bits} f{bits}_{place}, [in+{offset}];"
        text += f"setp.lt.s32 p{place}, r32_{place}, 17;"
    return text


def instruction(form: Form, opcode: str, number: int) -> str | None:
    """Return an instruction and the store of its result, or None for a form with operands that are not registers."""
    patterns = [pattern for pattern in form.operands if not pattern.endswith("?")]
    if len(patterns) < 2 or patterns[0][0] != "=" or form.row.ends or form.row.access or form.row.converges:
        return None
    operands = []
    for pattern in patterns[1:]:
        if pattern[0] == "#":
            operands.append("150")
            continue
        place = len(operands) - operands.count("150")
        name = form.types[0] if pattern == "P" else "u64" if pattern == "A" else form.type_of(pattern)
        if name == "b128" or pattern in ("V", "F", "M"):
            return None
        letter = "f" if name in ("f32", "f64") else "r"
        operands.append(f"p{place}" if name == "pred" else f"{letter}{8 * type_size(name)}_{place}")
    head = patterns[0]
    name = form.types[0] if head == "=P" else form.type_of(head)
    if name == "b128" or head in ("=V", "=F"):
        return None
    first = f"d{number}"
    kind = "pred" if name == "pred" else f"{'f' if name in ('f32', 'f64') else 'b'}{8 * type_size(name)}"
    text = f".reg .{kind} {first}; {opcode} {first}{'|q' if '&' in head else ''}, {', '.join(operands)};"
    offset = 8 * LANES * number
    if name == "pred":
        return f"{text} selp.u32 lane, 1, 0, {first}; st.global.u32 [out+{offset}], lane;"
    return f"{text} st.global.{kind} [out+{offset}], {first};"


def module(before: str, body: str) -> Any:
    return load_module(f"{HEAD}.visible .entry k(.param .align 8 .b8 params[16]) {{ {before}\n{body}\n}}")


def text_of(opcodes: Iterable[str]) -> str:
    return "\n".join(str(instruction(FORMS[opcode], opcode, number)) for number, opcode in enumerate(opcodes))


def works(function: Callable[..., object], *arguments: Any) -> bool:
    try:
        function(*arguments)
    except UnsupportedInstruction:
        return False
    return True


def build_together(*opcodes: str) -> None:
    declarations = "".join(re.findall(r"\.reg [^;]*;", prologue()))
    program = program_of(module(declarations, text_of(opcodes)).entries["k"])
    build(program, lay_out(program, 0), 0)


# Forms by opcode. Rows without `emit`, such as those that end a basic block, are left out.
ALL: dict[str, Form] = {
    opcode: form for row in ROWS if row.emit is not None for opcode, form in spellings(row) if form is not None
}
FORMS = {opcode: form for opcode, form in ALL.items() if form.row.name not in WITHOUT and instruction(form, opcode, 0)}
LISTED = {opcode for opcode in ALL if re.fullmatch("|".join(f"(?:{pattern})" for pattern in NOT_NATIVE), opcode)}
NATIVE = [opcode for opcode in FORMS if opcode not in LISTED]
# Both engines generate code for the other opcodes with the same lowering, and test_integers.py compares each of those
# with Python's integers.
COMPARED = [
    opcode
    for opcode in NATIVE
    if not isinstance(FORMS[opcode].row.emit, Lowers) or any("f" in name for name in FORMS[opcode].types)
]
PARTS = 20


def test_all_is_native_but_what_is_listed():
    """For instructions that do not only use registers, only the lowering is looked up, because other tests run them."""
    assert [pattern for pattern in NOT_NATIVE if not any(re.fullmatch(pattern, opcode) for opcode in ALL)] == []
    lowered = {opcode for opcode, form in ALL.items() if works(lowering, form)}
    wrong = [opcode for opcode in ALL.keys() - FORMS.keys() if (opcode in lowered) == (opcode in LISTED)]
    for start in range(0, len(NATIVE), 40):
        if not works(build_together, *NATIVE[start : start + 40]):
            wrong += [opcode for opcode in NATIVE[start : start + 40] if not works(build_together, opcode)]
    wrong += [opcode for opcode in LISTED & FORMS.keys() & lowered if works(build_together, opcode)]
    assert not wrong, f"{wrong}: let lowering/table.py have what is not native, or list it in NOT_NATIVE"


# Every second part runs only at the exhaustive level.
@pytest.mark.parametrize("part", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n % 2)) for n in range(PARTS)])
def test_results_agree(part):
    compare(COMPARED[part::PARTS], words())


def results(body: str, operands: Any, count: int, *, flushes: bool = False) -> list[np.ndarray[Any, Any]]:
    """Return the values that the instructions of a body store with each engine, NumPy's first."""
    kernels = Kernels(module(prologue(), body))
    if flushes:
        assert processor_flushes(lay_out(kernels.program("k"), 0)) == X86
    given, found = kernels.put(operands), []
    for kernels.engine in ("numpy", "native"):
        out = kernels.zeros(count * LANES, np.uint64)
        kernels.launch("k", LANES // 256, 256, np.array([given, out], np.uint64))
        found.append(kernels.get(out, count * LANES, np.uint64).reshape(-1, LANES))
    return found


def compare(opcodes: list[str], operands: Any, *, flushes: bool = False) -> None:
    both = results(text_of(opcodes), operands, len(opcodes), flushes=flushes)
    for opcode, expected, got in zip(opcodes, *both, strict=True):
        wrong = np.flatnonzero(expected != got)
        allowed = LANES // 500 if FORMS[opcode].row.name in APPROXIMATE else 0
        assert len(wrong) <= allowed, (
            f"{opcode}: {len(wrong)} lanes, of {[hex(word) for word in operands[:, wrong[0]]]}: "
            f"{int(expected[wrong[0]]):#x}, got {int(got[wrong[0]]):#x}"
        )


def test_powers_of_two_are_those_of_the_c_library_once_they_are_rounded():
    generator = np.random.default_rng(3)
    exponents = generator.choice([-1, 1], (PLACES, LANES)) * 2.0 ** generator.uniform(-30, 8, (PLACES, LANES))
    exponents[0, :8] = [np.nan, np.inf, -np.inf, 0, 128, -126.5, -149.5, 3e38]
    operands = exponents.astype(np.float32).view(np.uint32).astype(np.uint64)
    text = ".reg .f32 y;" + "".join(
        f"ex2.approx.f32 y, f32_{place}; st.global.f32 [out+{8 * LANES * place}], y;" for place in range(PLACES)
    )
    numpy, native = results(text, operands, PLACES)
    assert np.array(numpy).tolist() == np.array(native).tolist()


def test_the_processor_flushes_as_a_gpu_does_near_the_least_normal_number():
    families = {"add", "sub", "mul", "fma", "div", "rcp", "sqrt", "min", "max", "abs", "neg", "setp", "set"}
    words = {opcode: set(FORMS[opcode].words) for opcode in NATIVE if FORMS[opcode].row.name in families}
    other = {"approx", "full", "rz", "rm", "rp", "f64", "f16"}
    opcodes = [opcode for opcode, has in words.items() if {"ftz", "f32"} <= has and not other & has]
    # Products, quotients and sums are around 2**-126, the least normal number.
    generator = np.random.default_rng(1)
    significands = generator.choice(np.array([0, 1, 2, 0x7FFFFF, 0x7FFFFE, 0x400000, 0x3FFFFF]), (PLACES, LANES))
    exponents = np.array([63, 64, 0, 1])[:, None] + generator.integers(0, 2, (PLACES, LANES))
    signs = generator.integers(0, 2, (PLACES, LANES)) << 31
    compare(opcodes, (signs | exponents << 23 | significands).astype(np.uint64), flushes=True)


BITS = np.array([1, 0x80000001, 0x00400000, 0x3F800000, 0x7FA00000, 0, 0x80000000, 0x00800000], np.uint64)
BODIES = [
    "mul.ftz.f32 y, x, 0f3F800000;",
    "mul.ftz.f32 y, x, 0fBF800000;",
    "div.rn.ftz.f32 y, x, 0f3F800000;",
    "div.approx.ftz.f32 y, x, 0f3F800000;",
    "add.ftz.f32 y, x, 0f80000000;",
    "sub.ftz.f32 y, x, 0f00000000;",
    "fma.rn.ftz.f32 y, x, 0f3F800000, 0f80000000;",
    "mov.b32 word, 0x3F800000; mov.b32 c, word; mul.ftz.f32 y, x, c;",
    "mov.u32 word, 1; cvt.rn.f32.u32 c, word; mul.ftz.f32 y, x, c;",
    "setp.lt.u32 p, lane, 16; selp.f32 c, 0f3F800000, 0fBF800000, p; mul.ftz.f32 y, x, c;",
    "add.ftz.f32 y, 0f00000001, 0f00000001;",
    "mul.ftz.f32 y, 0f00800000, 0f3F000000;",
    "sqrt.rn.ftz.f32 y, 0f00000001;",
    "rsqrt.approx.ftz.f32 y, 0f00000001;",
    "setp.eq.ftz.f32 p, x, 0f00000000; selp.f32 y, 0f3F800000, 0f40000000, p;",
    "setp.lt.ftz.f32 p, 0f00000001, 0f00000002; selp.f32 y, 0f3F800000, 0f40000000, p;",
    # A selection between the compared values must keep subnormal numbers.
    "shl.b32 word, lane, 21; mov.b32 c, word; setp.lt.ftz.f32 p, x, c; selp.f32 y, x, c, p;",
    "shl.b32 word, lane, 21; mov.b32 c, word; setp.gt.ftz.f32 p, x, c; selp.f32 y, c, x, p;",
]


def test_the_processor_flushes_arithmetic_with_constants_too():
    text = ".reg .b32 word; .reg .f32 x, y, c; .reg .pred p; mov.f32 x, f32_0;"
    text += "".join(f"{body} st.global.f32 [out+{8 * LANES * place}], y;" for place, body in enumerate(BODIES))
    operands = np.tile(BITS, PLACES * LANES // len(BITS)).reshape(PLACES, LANES)
    for body, expected, got in zip(BODIES, *results(text, operands, len(BODIES), flushes=True), strict=True):
        assert expected.tolist() == got.tolist(), body
