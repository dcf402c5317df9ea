"""Two defects of LLVM's never get into machine code.

One is in AVX-512. A choice of bits, `(x & c) | (y & ~c)`, in a selection by a mask becomes one ternary instruction,
whose immediate operand is its table of results. These tests evaluate the instructions, so that no processor with
AVX-512 is needed. The other one is in truncated upper bits of products.
"""

from __future__ import annotations

import functools
import itertools
import platform
import re
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests import processors
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

import llvmlite.binding as llvm

from cudart_py.simulator.ptx.native import defects, machine
from cudart_py.simulator.ptx.native.instances import lay_out

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86-64")

AVX512 = processors.Level("x86-64-v4", 2)

# --- one choice in one selection, in all forms


def reduced(count: int, bits: int, in_memory: str, otherwise: str, inverted: bool) -> str:
    """Return LLVM's IR for `mask ? (x & c) | (y & ~c) : otherwise`, some of x and y in memory, c the sign."""
    vector, sign = f"<{count} x i{bits}>", 1 << bits - 1
    real = f"<{count} x {'float' if bits == 32 else 'double'}>"
    arguments = [f"{'ptr' if name in in_memory else vector} %{name}0" for name in "xyz"]
    loads = [
        f"%{name} = load {vector}, ptr %{name}0, align 64"
        if name in in_memory
        else f"%{name} = or {vector} %{name}0, zeroinitializer"
        for name in "xyz"
    ]
    chosen = (otherwise, "choice") if inverted else ("choice", otherwise)
    lines = [
        f"define {vector} @f({', '.join(arguments)}, {real} %k) {{",
        *loads,
        f"%one = and {vector} %x, splat (i{bits} {-sign})",
        f"%other = and {vector} %y, splat (i{bits} {sign - 1})",
        f"%choice = or {vector} %one, %other",
        f"%mask = fcmp uno {real} %k, zeroinitializer",
        f"%result = select <{count} x i1> %mask, {vector} %{chosen[0]}, {vector} %{chosen[1]}",
        f"ret {vector} %result",
        "}",
    ]
    return "\n".join(lines)


FORMS = [
    (count, bits, in_memory, otherwise, inverted)
    for bits in (32, 64)
    for count in (512 // bits, 256 // bits, 128 // bits)
    for in_memory, otherwise, inverted in itertools.product(("", "x", "y", "xy"), "xyz", (False, True))
]
# A bit of each input is given as the column of a table of truth: of x, y, z, the mask and c.
X, Y, Z, MASK, CHOICE = (sum(1 << row for row in range(32) if row >> place & 1) for place in range(5))
ALL = (1 << 32) - 1


def expected(otherwise: str, inverted: bool) -> int:
    """Return the column of the result."""
    choice = X & CHOICE | Y & ~CHOICE & ALL
    mask = MASK ^ ALL if inverted else MASK
    return mask & choice | (mask ^ ALL) & {"x": X, "y": Y, "z": Z}[otherwise]


def ternary(table: int, a: int, b: int, c: int) -> int:
    """Return what `vpternlog` makes of three columns."""
    products = (
        (a if index & 4 else a ^ ALL) & (b if index & 2 else b ^ ALL) & (c if index & 1 else c ^ ALL)
        for index in range(8)
        if table >> index & 1
    )
    return sum(products)


LOGIC = {"and": lambda a, b: a & b, "andn": lambda a, b: (a ^ ALL) & b, "or": lambda a, b: a | b}


def evaluate(assembly: str, in_memory: str) -> int:
    """Return the column that the function's instructions compute."""
    pointers = dict(zip(("rdi", "rsi", "rdx"), in_memory, strict=False))
    inputs = {"x": X, "y": Y, "z": Z}
    names = [name for name in "xyz" if name not in in_memory]
    values = {number: inputs[name] for number, name in enumerate(names)}
    values[len(names)] = -1  # the numbers that the mask is found from
    masks: dict[str, int] = {}
    stack: dict[str, int] = {}

    def read(operand: str) -> int:
        if found := re.fullmatch(r"%[xyz]mm(\d+)", operand):
            return values[int(found[1])]
        if operand.endswith("(%rsp)"):
            return stack[operand]
        base = re.match(r"\(%(\w+)\)", operand)
        return inputs[pointers[base[1]]] if base and base[1] in pointers else CHOICE

    for line in re.findall(r"^\t(v\w+|k\w+)\t([^#\n]*)", assembly, re.MULTILINE):
        name, operands = line[0], re.findall(r"(?:\([^)]*\)|[^,()])+", line[1].replace(" ", ""))
        condition = re.search(r"\{%(k\d)\}(\{z\})?", operands[-1])
        operands = [re.sub(r"\{.*", "", operand) for operand in operands]
        if name.startswith("vcmp"):
            masks[operands[-1][1:]] = MASK if "unord" in name else MASK ^ ALL
            continue
        if name in ("vzeroupper", "vxorps", "vxorpd", "vpxor"):
            continue
        if operands[-1].endswith("(%rsp)"):
            stack[operands[-1]] = read(operands[0])
            continue
        target = int(re.sub(r"\D", "", operands[-1].replace("mm", "")))
        if name.startswith("vpternlog"):
            result = ternary(int(operands[0][1:]), values[target], read(operands[2]), read(operands[1]))
        elif found := re.fullmatch(r"vp?(andn|and|or)(?:[dq]|p[sd])?", name):
            result = LOGIC[found[1]](read(operands[1]), read(operands[0]))
        elif found := re.fullmatch(r"vp?blendm(?:[dq]|p[sd])", name):
            assert condition
            mask = masks[condition[1]]
            result, condition = mask & read(operands[0]) | (mask ^ ALL) & read(operands[1]), None
        else:
            assert re.match(r"vmov[au]p|vmovdq|vp?broadcast|vmovddup", name), line
            result = read(operands[0])
        if condition:
            mask = masks[condition[1]]
            result = mask & result | (0 if condition[2] else (mask ^ ALL) & values[target])
        values[target] = result
    return values[0]


@functools.cache
def compiled(form: tuple[int, int, str, str, bool], optimisation: int) -> tuple[int, bool]:
    """Return the column that a form's machine code computes, and whether the code is taken for wrong."""
    with processors.compiled_for(AVX512):
        target = machine._target(optimisation)
        module = machine.simplified(reduced(*form), target)
        # The module is lowered as it is written out, so the second time it must be another one.
        assembly, again = target.emit_assembly(module), machine.simplified(reduced(*form), target)
        return evaluate(assembly, form[2]), defects.may_be_wrong(target.emit_object(again))


@pytest.mark.parametrize("optimisation", [0, 1, 2, 3])
def test_a_wrong_choice_of_bits_is_recognised(optimisation: int, rng: np.random.Generator) -> None:
    # The next test asks for all of the level that the engine uses.
    for form in FORMS if optimisation == 2 else [FORMS[place] for place in rng.integers(len(FORMS), size=16)]:
        column, suspected = compiled(form, optimisation)
        assert suspected or column == expected(*form[3:]), form
        # The way out for code that is taken for wrong.
        assert optimisation or not suspected, form


def test_llvm_reorders_the_table_of_results_as_its_operands() -> None:
    """This passes with the first LLVM that needs no `defects`."""
    wrong = [form for form in FORMS if compiled(form, 2)[0] != expected(*form[3:])]
    if wrong:
        version = ".".join(map(str, llvm.llvm_version_info))
        pytest.skip(f"LLVM {version} has the defect in {len(wrong)} of {len(FORMS)} forms, {wrong[0]} for example")


# --- kernels

TEXT = (
    HEAD
    + """.visible .entry k(.param .u64 given, .param .u64 found) {{
    .reg .b64 in, out, at; .reg .b32 lane, word, other; .reg .f32 f<7>; .reg .pred p<3>;
    ld.param.u64 in, [given]; ld.param.u64 out, [found]; mov.u32 lane, %laneid; mul.wide.u32 at, lane, 8;
    add.u64 in, in, at; add.u64 out, out, at; ld.global.f32 f1, [in]; ld.global.f32 f2, [in+4];
    setp.lt.f32 p1, f2, 0f3F800000; abs.f32 f4, f1;
    @p1 bra A;
    mul.f32 f4, f4, 0f3F000000;
A:  abs.f32 f6, f4; setp.gtu.f32 p2, f6, 0f7F800000;
    {body}
    selp.f32 f3, f4, f5, p2;
    st.global.f32 [out], f3; st.global.f32 [out+4], f6;
}}"""
)
BODIES = {
    "copysign": "copysign.f32 f5, f1, f4;",
    "known bits": "mov.b32 word, f1; mov.b32 other, f4; and.b32 word, word, 0x80000000;"
    " and.b32 other, other, 0x7FFFFFFF; or.b32 word, word, other; mov.b32 f5, word;",
    "lop3": "mov.b32 word, f1; mov.b32 other, f4; lop3.b32 word, word, 0x80000000, other, 0xE2; mov.b32 f5, word;",
}


def code_of(body: str) -> tuple[bytes, bytes]:
    """Return a kernel's machine code for AVX-512, as LLVM optimises it and as it is used."""
    program = program_of(load_module(TEXT.format(body=body)).entries["k"])
    with processors.compiled_for(AVX512):
        module, _, _ = machine.build(program, lay_out(program, 0))
        return machine._object(module, 2), machine._compiled(module)


def test_a_kernels_code_is_never_taken_for_wrong_and_a_copied_sign_costs_no_optimisation() -> None:
    for name, body in BODIES.items():
        first, used = code_of(body)
        assert not defects.may_be_wrong(used)
        assert name != "copysign" or used == first


def test_code_that_stays_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "may_be_wrong", lambda code: True)
    module = load_module(TEXT.format(body=BODIES["copysign"]))
    kernels = Kernels(module)
    kernels.engine = "native"
    kernels.launch("k", 1, 32, kernels.zeros(64), kernels.zeros(64))
    program = program_of(module.entries["k"])
    assert not any(program.native.values())
    assert "LLVM" in program.native_lack


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_chosen_sign_has_the_same_bits_at_each_level(body: str, processor_level: processors.Level) -> None:
    given = np.random.default_rng(7).integers(0, 1 << 32, 64, np.uint32)
    given[:8] = [0, 0x80000000, 0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000, 1, 0x80000001]
    results = []
    for engine in ("numpy", "native"):
        kernels = Kernels(load_module(TEXT.format(body=body)))
        kernels.engine = engine
        out = kernels.zeros(64, np.uint32)
        kernels.launch("k", 1, 32, kernels.put(given), out)
        results.append(kernels.get(out, 64, np.uint32))
    np.testing.assert_array_equal(*results)


# --- upper bits of products of small integers, truncated

SHIFTS = (16, 17, 20, 24, 30, 31, 32, 33, 40, 47, 48, 56, 63)
PRODUCTS = {
    "wide": "mul.wide.s32 long, one, other;",
    "wide unsigned": "mul.wide.u32 long, one, other;",
    "long": "cvt.s64.s32 a, one; cvt.s64.s32 b, other; mul.lo.s64 long, a, b;",
    "by a constant": "cvt.s64.s32 a, one; mul.lo.s64 long, a, -127;",
    "word": "mul.lo.s32 one, one, other; cvt.s64.s32 long, one;",
    "upper half": "mul.hi.s32 one, one, other; cvt.u64.u32 long, one; shl.b64 long, long, 32;",
    "long upper half": "cvt.s64.s32 a, one; cvt.s64.s32 b, other; mul.hi.s64 long, a, b;",
}
NARROW = {"cvt.s32.s8": (8, True), "cvt.s32.s16": (16, True), "and.b32": (11, False)}


def product_kernel(product: str, first: str, second: str) -> str:
    """Return PTX that stores truncated upper bits of products of narrow integers, two numbers of each shift a lane."""
    lines = [
        f"{opcode} {name}, {name}{', 2047' if opcode == 'and.b32' else ''};"
        for name, opcode in (("one", first), ("other", second))
    ]
    lines.append(PRODUCTS[product])
    for place, count in enumerate(SHIFTS):
        lines += [f"shr.u64 a, long, {count}; cvt.u16.u64 half, a; st.global.u16 [out+{4 * place}], half;"]
        lines += [f"shr.s64 a, long, {count}; cvt.u8.u64 half, a; st.global.u16 [out+{4 * place + 2}], half;"]
    return f"""{HEAD}.visible .entry k(.param .u64 given, .param .u64 found) {{
    .reg .b64 in, out, at, a, b, long; .reg .b32 lane, one, other; .reg .b16 half;
    ld.param.u64 in, [given]; ld.param.u64 out, [found]; mov.u32 lane, %laneid; mul.wide.u32 at, lane, 8;
    add.u64 in, in, at; mul.wide.u32 at, lane, {4 * len(SHIFTS)}; add.u64 out, out, at;
    ld.global.u32 one, [in]; ld.global.u32 other, [in+4];
    {" ".join(lines)}
}}"""


def narrowed(words: Any, opcode: str) -> Any:
    bits, signed = NARROW[opcode]
    return words.astype(np.uint32).astype(f"i{bits // 8}").astype(object) if signed else (words & 2047).astype(object)


def as_signed(x: int) -> int:
    return (x + (1 << 63)) % (1 << 64) - (1 << 63)


@pytest.mark.parametrize("count", [2, pytest.param(63, marks=pytest.mark.exhaustive)])
def test_truncated_upper_bits_of_products_are_right_at_each_level(
    count: int, processor_level: processors.Level, rng: np.random.Generator
) -> None:
    given = rng.integers(0, 1 << 32, (32, 2), np.uint32)
    for product, first, second in rng.permutation(list(itertools.product(PRODUCTS, NARROW, NARROW)))[:count]:
        one, other = narrowed(given[:, 0], first), narrowed(given[:, 1], second)
        if "unsigned" in product:
            one, other = one & 0xFFFFFFFF, other & 0xFFFFFFFF
        exact = one * (-127 if product == "by a constant" else other)
        if "upper half" in product:
            exact = exact >> 64 if "long" in product else exact >> 32 << 32
        kernels = Kernels(load_module(product_kernel(product, first, second)))
        kernels.engine = "native"
        out = kernels.zeros(32 * len(SHIFTS), np.uint32)
        kernels.launch("k", 1, 32, kernels.put(given), out)
        found = kernels.get(out, 64 * len(SHIFTS), np.uint16).reshape(32, len(SHIFTS), 2)
        for place, shift in enumerate(SHIFTS):
            expected = [[(x % (1 << 64)) >> shift & 0xFFFF, as_signed(x) >> shift & 0xFF] for x in exact.tolist()]
            np.testing.assert_array_equal(found[:, place], expected, f"{product}, {first}, {second}, {shift}")


def test_llvm_shifts_products_of_small_integers() -> None:
    """This passes with the first LLVM that needs no hidden shifts."""
    text = """define <8 x i16> @f(<8 x i16> %x, <8 x i16> %y) {
    %a = sext <8 x i16> %x to <8 x i64>
    %b = sext <8 x i16> %y to <8 x i64>
    %product = mul <8 x i64> %a, %b
    %upper = lshr <8 x i64> %product, splat (i64 32)
    %result = trunc <8 x i64> %upper to <8 x i16>
    ret <8 x i16> %result
    }"""
    target = machine._target()
    assert defects.with_hidden_shifts(text) != text
    if "pmul" not in target.emit_assembly(llvm.parse_assembly(text)):
        pytest.skip(f"LLVM {'.'.join(map(str, llvm.llvm_version_info))} makes nothing of the product")
