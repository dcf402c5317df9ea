"""Two defects of LLVM never reach the machine code that is used.

One is in the code for AVX-512. LLVM turns a bitwise choice, `(x & c) | (y & ~c)`, inside a selection by a mask into one
ternary-logic instruction, with a wrong truth table as its immediate operand. The other is in truncated upper bits of
products.
"""

import ctypes
import itertools
import platform
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import Module, load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests import processors
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native import defects, machine
from cudart_py.simulator.ptx.native.instances import lay_out

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86-64")

AVX512 = processors.Level("x86-64-v4", 2)
# By default, machine code is made for the level of most processors in use and for the one with AVX-512.
DEFAULT = (processors.Level("x86-64-v3", 2), AVX512)
at_each_level = pytest.mark.parametrize(
    "processor_level",
    [pytest.param(level, marks=() if level in DEFAULT else pytest.mark.exhaustive) for level in processors.LEVELS],
    ids=str,
    indirect=True,
)

# --- one choice in one selection, in all forms

FORMS = [
    (count, bits, in_memory, otherwise, inverted)
    for bits in (32, 64)
    for count in (512 // bits, 256 // bits, 128 // bits)
    for in_memory, otherwise, inverted in itertools.product(("", "x", "y", "xy"), "xyz", (False, True))
]


def reduced(count: int, bits: int, in_memory: str, otherwise: str, inverted: bool) -> str:
    """Return LLVM IR for `mask ? (x & c) | (y & ~c) : otherwise`, where c is the sign bit; x or y may be in memory."""
    vector, sign, chosen = f"<{count} x i{bits}>", 1 << bits - 1, ["choice", otherwise]
    real = f"<{count} x {'float' if bits == 32 else 'double'}>"
    first, second = reversed(chosen) if inverted else chosen
    # Adding zero keeps a value in a register.
    values = "\n".join(
        f"%{name} = load {vector}, ptr %at_{name}, align 4"
        if name in in_memory
        else f"%in_{name} = load {vector}, ptr %at_{name}, align 4\n%{name} = add {vector} %in_{name}, %zeros"
        for name in "xyz"
    )
    return f"""define void @f(ptr %at_x, ptr %at_y, ptr %at_z, ptr %at_k, ptr %at_zeros, ptr %out) {{
    %k = load {real}, ptr %at_k, align 4
    %zeros = load {vector}, ptr %at_zeros, align 4
    {values}
    %one = and {vector} %x, splat (i{bits} {-sign})
    %other = and {vector} %y, splat (i{bits} {sign - 1})
    %choice = or {vector} %one, %other
    %mask = fcmp uno {real} %k, zeroinitializer
    %result = select <{count} x i1> %mask, {vector} %{first}, {vector} %{second}
    store {vector} %result, ptr %out, align 4
    ret void
    }}"""


def is_right(code: bytes, count: int, bits: int, _: str, otherwise: str, inverted: bool) -> bool:
    """Return whether the machine code of a form gives the right results for random bits."""
    engine = machine._linked(code)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 6)(engine.get_function_address("f"))
    sign = 1 << bits - 1
    for _ in range(20):
        x, y, z, k, zeros, out = np.random.default_rng().integers(0, 1 << bits, (6, count), f"u{bits // 8}")
        mask = k % 2 == 1
        k[:] = np.where(mask, np.nan, 1.0).astype(f"f{bits // 8}").view(k.dtype)
        zeros[:] = 0
        function(*(array.ctypes.data for array in (x, y, z, k, zeros, out)))
        expected = np.where(mask ^ inverted, x & sign | y & (sign - 1), {"x": x, "y": y, "z": z}[otherwise])
        if (out != expected).any():
            return False
    return True


@pytest.mark.skipif(not processors.runs_here(AVX512), reason="the processor has no AVX-512")
@pytest.mark.parametrize("optimisation", [0, 1, 2, 3])
def test_a_wrong_choice_of_bits_is_recognised(optimisation, rng):
    """LLVM up to version 22 miscompiles a third of the 144 forms at the engine's level, of which 48 are drawn."""
    for form in [FORMS[place] for place in rng.permutation(len(FORMS))[: 48 if optimisation == 2 else 16]]:
        with processors.compiled_for(AVX512):
            target = machine._target(optimisation)
            code = target.emit_object(machine.simplified(reduced(*form), target))
        suspected = defects.may_be_wrong(code)
        assert suspected or is_right(code, *form), form
        # The fallback for suspected code is to compile it without optimisation, so that must never be suspected.
        assert optimisation or not suspected, form


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


def test_a_copied_sign_costs_no_optimisation():
    program = program_of(load_module(TEXT.format(body=BODIES["copysign"])).entries["k"])
    with processors.compiled_for(AVX512):
        module, _ = machine.build(program, lay_out(program, 0), 0)
        assert machine._compiled(module) == machine._object(module, 2)


def test_code_that_stays_wrong_is_not_used(monkeypatch):
    monkeypatch.setattr(machine, "may_be_wrong", lambda code: True)
    kernels = Kernels(Module(TEXT.format(body=BODIES["copysign"])), engine="native")
    kernels.launch("k", 1, 32, kernels.zeros(64), kernels.zeros(64))
    assert not kernels.ran_natively("k")
    assert "LLVM" in kernels.program("k").unsupported_reason


@at_each_level
def test_a_chosen_sign_has_the_same_bits_at_each_level(processor_level):
    given = np.random.default_rng(7).integers(0, 1 << 32, 64, np.uint32)
    given[:8] = [0, 0x80000000, 0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000, 1, 0x80000001]
    for body in BODIES.values():
        Kernels(load_module(TEXT.format(body=body))).agree("k", 1, 32, given, np.zeros(64, np.uint32))


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
    """Return PTX that stores truncated upper bits of products of narrow integers, two values per shift and lane."""
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
    return (words.astype(f"i{bits // 8}") if signed else words & 2047).astype(object)


@at_each_level
@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.exhaustive)])
def test_truncated_upper_bits_of_products_are_right_at_each_level(count, processor_level, rng):
    given = rng.integers(0, 1 << 32, (32, 2), np.uint32)
    for product, first, second in rng.permutation(list(itertools.product(PRODUCTS, NARROW, NARROW)))[:count]:
        one, other = narrowed(given[:, 0], first), narrowed(given[:, 1], second)
        if "unsigned" in product:
            one, other = one & 0xFFFFFFFF, other & 0xFFFFFFFF
        exact = one * (-127 if product == "by a constant" else other)
        if "upper half" in product:
            exact = exact >> 64 if "long" in product else exact >> 32 << 32
        kernels = Kernels(load_module(product_kernel(product, first, second)), engine="native")
        out = kernels.zeros(32 * len(SHIFTS), np.uint32)
        kernels.launch("k", 1, 32, kernels.put(given), out)
        found = kernels.get(out, 64 * len(SHIFTS), np.uint16).reshape(32, len(SHIFTS), 2)
        unsigned, signed = exact % (1 << 64), (exact + (1 << 63)) % (1 << 64) - (1 << 63)
        for place, shift in enumerate(SHIFTS):
            expected = np.stack([unsigned >> shift & 0xFFFF, signed >> shift & 0xFF], axis=1).astype(np.uint16)
            np.testing.assert_array_equal(found[:, place], expected, f"{product}, {first}, {second}, {shift}")
