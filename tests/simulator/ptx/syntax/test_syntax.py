"""PTX as people write it by hand: forms that NVIDIA's compiler does not generate behave as the PTX manual says."""

import contextlib
import operator

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, PtxError, load_module
from tests.simulator.ptx.machine import HEAD, Kernels, ptx_of, storing

# The eight bytes of an address, each selected by a mask.
MASKED_BYTES = ", ".join(f"{0xFF << 8 * i:#x}(x+4)" for i in range(8))


def run(body: str, before: str = "") -> list[int]:
    """Return the values of %r0 in 32 threads at the end."""
    registers = ".reg .b32 %r<4>; .reg .pred %p<3>;"
    kernels = Kernels(storing("%r0", f"{registers} {body}", before))
    out = kernels.zeros(32)
    kernels.launch("k", 1, 32, out)
    return kernels.get(out, 32, np.uint32).tolist()


BODIES = {
    "a vector of registers": "\
        .reg .v4 .b32 v; mov.u32 v.x, 1; mov.u32 v.y, 20; mov.b32 v.b, 300; mov.b32 v.w, 4000;\
        add.u32 %r0, v.r, v.g; add.u32 %r0, %r0, v.z; add.u32 %r0, %r0, v.a;",
    "a vector of registers as an operand": "\
        .reg .v4 .b32 v; .reg .v2 .b32 w; .shared .align 16 .b32 s[4]; st.shared.v4.b32 [s], {1, 20, 300, 4000};\
        ld.shared.v4.b32 v, [s]; ld.shared.v2.b32 w, [s+8]; add.u32 %r0, v.x, v.y; add.u32 %r0, %r0, w.x;\
        add.u32 %r0, %r0, w.y;",
    "a shared variable behind another statement": "\
        mov.u32 %r1, 4321; .shared .b32 s[4]; st.shared.u32 [s+4], %r1; ld.shared.u32 %r0, [s+4];",
    "several statements of declarations in a line": "\
        .local .b32 a; .local .align 8 .b32 b[3]; st.local.u32 [a], 4000; st.local.u32 [b+8], 321;\
        ld.local.u32 %r1, [a]; ld.local.u32 %r2, [b + 8]; add.u32 %r0, %r1, %r2;",
    "a variable of a function": "\
        .global .u32 g = 4000; .const .u32 c[2] = {1, 321}; ld.global.u32 %r1, [g]; ld.const.u32 %r2, [c+4];\
        add.u32 %r0, %r1, %r2;",
    "a register or a symbol and a number": "\
        .shared .b32 s[4]; mov.u32 %r1, s; mov.u32 %r2, %r1+4; st.shared.u32 [%r2], 4000; ld.shared.u32 %r0, [%r1+4];\
        st.shared.u32 [s+8], 300; mov.u32 %r1, s+8; ld.shared.u32 %r2, [%r1]; add.u32 %r0, %r0, %r2;\
        mov.u32 %r3, 20; st.shared.u32 [s], %r3 + 1; ld.shared.u32 %r3, [%r1-8]; add.u32 %r0, %r0, %r3;",
    "numbers of all bases": "mov.u32 %r1, 0x1000; add.u32 %r0, %r1, 0b11100000; add.u32 %r0, %r0, 01U;",
    "a decimal fraction": "\
        .reg .f64 x; mov.f64 x, 4321.0; cvt.rzi.u32.f64 %r0, x;",
    "the same names in two scopes": "\
        { .reg .b32 q; .shared .b32 s; mov.u32 q, 4000; st.shared.u32 [s], q; ld.shared.u32 %r1, [s]; }\
        { .reg .b32 q; .shared .b32 s; mov.u32 q, 321; st.shared.u32 [s], q; ld.shared.u32 %r2, [s]; }\
        add.u32 %r0, %r1, %r2;",
    "labels of two scopes": "\
        mov.u32 %r0, 4320; { bra.uni L; mov.u32 %r0, 1; L: } { bra.uni L; mov.u32 %r0, 1; L: } add.u32 %r0, %r0, 1;",
    "modifiers behind the type": "mov.u32 %r1, 4321; mov.u32 %r2, 5; max.s32.relu %r0, %r1, %r2;",
    "a guard apart from its predicate": "\
        setp.eq.u32 %p1, 1, 1; mov.u32 %r0, 4321; @ ! %p1 mov.u32 %r0, 1;",
}


@pytest.mark.parametrize("form", BODIES)
def test_a_form_is_understood(form: str) -> None:
    assert set(run(BODIES[form])) == {4321}


def test_functions_may_pass_registers() -> None:
    """Covers results and parameters in registers, a literal argument, and a result with a different name."""
    before = """
    .func (.reg .u32 sum) plus (.reg .u32 a, .reg .u32 b) { add.u32 sum, a, b; ret; }
    .func (.param .u32 product) times (.param.u32 a, .reg.u32 b)
    { .reg .u32 x; ld.param.u32 x, [a]; mul.lo.u32 x, x, b; st.param.u32 [product], x; ret; }
    """
    body = """
    mov.u32 %r1, %tid.x;
    call (%r2), plus, (%r1, 7);
    { .param .u32 given; .param .u32 made; st.param.u32 [given], %r2;
      call.uni (made), times, (given, %r1); ld.param.u32 %r0, [made]; }
    """
    assert run(body, before) == [(t + 7) * t for t in range(32)]


def test_lanes_that_call_apart_keep_registers_apart() -> None:
    before = ".func (.reg .u32 r) twice (.reg .u32 a) { add.u32 r, a, a; ret; }"
    body = "mov.u32 %r1, %tid.x; mov.u32 %r0, %r1; setp.gt.u32 %p1, %r1, 9; @%p1 call (%r0), twice, (%r1);"
    assert run(body, before) == [2 * t if t > 9 else t for t in range(32)]


@pytest.mark.parametrize("results", ["%p1|%p2", "%p2|%p1"])
@pytest.mark.parametrize("join", ["and", "or", "xor"])
def test_a_comparison_and_its_opposite_are_joined_with_what_the_predicate_was(join: str, results: str) -> None:
    body = f"""
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;
    setp.lt.{join}.u32 {results}, %r1, 20, %p1;
    selp.u32 %r0, 1, 0, {results[:3]}; selp.u32 %r2, 2, 0, {results[4:]}; or.b32 %r0, %r0, %r2;
    """
    joined = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[join]
    assert run(body) == [joined(t < 20, t % 2 == 1) + 2 * joined(t >= 20, t % 2 == 1) for t in range(32)]


def test_two_functions_may_give_their_shared_variables_one_name() -> None:
    before = "".join(
        f".func (.reg .u32 r) f{size} () {{ .shared .b32 tile[{size}]; st.shared.u32 [tile], {size};"
        " bar.sync 0; ld.shared.u32 r, [tile]; ret; }\n"
        for size in (8, 2)
    )
    body = "call (%r1), f8, (); call (%r2), f2, (); mul.lo.u32 %r1, %r1, 10; add.u32 %r0, %r1, %r2;"
    assert set(run(body, before)) == {82}


def test_text_without_source_lines_has_its_own() -> None:
    text = HEAD + "\n.entry k() {\n  .reg .b64 a;\n  mov.u64 a, 8;\n  st.global.u32 [a], 1;\n}\n"
    with pytest.raises(Fault, match=r"kernel k at PTX line 8: .*'st\.global\.u32 \[a\], 1'"):
        Kernels(load_module(text)).launch("k", 1, 1)


def test_the_lines_of_an_inline_assembly_statement_are_all_the_line_of_the_statement() -> None:
    asm = "// begin inline asm\n.loc 1 5 3\nmov.u64 a, 8;\n.loc 1 6 3\nst.global.u32 [a], 1;\n// end inline asm\n"
    text = (
        f'{HEAD}\n.file 1 "k.py"\n.entry k() {{\n.reg .b64 a;\n.loc 1 5 3\n{asm}.loc 1 7 3\nst.global.u32 [0], 1;\n}}\n'
    )
    places = [load_module(text).places.of(one) for one in load_module(text).entries["k"].body.instructions]
    assert places == ["k.py:5", "k.py:5", "k.py:7"]


def test_what_is_announced_may_be_defined_later() -> None:
    module = load_module(
        HEAD
        + ".extern .func f(.param .u32 x);\n.extern .global .u32 v;\n.global .u32 v = 3;\n.func f(.param .u32 x) {ret;}"
    )
    assert module.variables["v"].initial == b"\3\0\0\0"
    assert not module.variables["v"].external
    assert module.function("f") is not None


REFUSED = {
    ".version 8.0\n.target sm_9x\n": "line 2: target 'sm_9x'",
    ".version 8.0\n.entry k() {}": "line 2: .* isn't followed by .target",
    ".target sm_90\n": "line 1: .* no .version",
    ".version 8\n.target sm_90\n": "no .version",
}
# Texts that follow the three lines of HEAD.
BODIES_REFUSED = {
    "\n/* and so on": "line 5: the comment .* never closed",
    ".entry k() { {": "line 4: the brace .* never closed",
    ".entry k() {\nret\n}": "line 5: 'ret' .* semicolon",
    ".entry k() {\n.reg .b32 %r<2>;\n@%p1 bra L;\nL: }": "line 6: the guard %p1",
    ".entry k() {\nbra L;\n{L:} }": "line 5: label L is missing",
    ".global .align 3 .u32 x;": "line 4: .* a power of two",
    ".global .u33 x;": "line 4: .* a .u33 ",
    ".global .u32 x[y];": "line 4: .* not a number",
    ".entry k() .maxthreads 5 { ret; }": "line 4: .*maxthreads",
    ".entry k() .maxntid 0, 1, 1 { ret; }": "line 4: .* positive extents",
    ".entry k() { ret; }\n\u00e9": "line 5: the character 'é'",
    ".entry k() { .shared .b8 x[50000]; ret; }": "50000 bytes of static",
    ".const .b8 x[70000];": "70000 bytes of constant",
    ".global .u64 x = y;": "line 4: .* address of y",
    " nonsense here": "nonsense",
    ".entry a() {ret;}\n.entry a() {ret;}": "line 5: .*a is declared twice",
    ".func a() {ret;}\n.func a() {ret;}": "line 5: .*a is declared twice",
    ".global .u32 a;\n.global .u32 a;": "line 5: .*a is declared twice",
    ".global .u32 a;\n.func a() {ret;}": "line 5: .*a is declared twice",
    ".entry k() {.reg .b32 a;\n.reg .b64 a;}": "line 5: .*a is declared twice",
    ".entry k() {.reg .b32 a<4>;\n.reg .b64 a<4>;}": "line 5: .*a is declared twice",
    ".entry k() {a:\na:\nret;}": "line [45]: .*a is declared twice",
    ".entry k() {.shared .b32 a;\n.local .b32 a;}": "line 5: .*a is declared twice",
    ".entry k(.param .u32 b,\n.param .u32 b) {ret;}": "line [45]: .*b is declared twice",
    ".global .u8 y[2] = {1, 2, 3};": "y has 2 bytes",
    ".global .u32 y = {1, 2};": "y has 4 bytes",
    ".const .v2 .f32 y = {0f3F800000, 0f3F800000, 0f3F800000};": "y has 8 bytes",
    ".global .u32 x;\n.global .u64 y[1] = {x, x};": "y has 8 bytes",
    ".global .u32 x;\n.global .u32 y[2] = {1, x};": "in elements of .u32",
    ".global .u32 x;\n.global .u8 y[2] = {0xff(x), 0xff00(x)};": "isn't followed by",
    f".global .u32 x;\n.global .u8 y[12] = {{{MASKED_BYTES}, {MASKED_BYTES}}};": "y has 12 bytes",
}
REFUSED |= {HEAD + body: message for body, message in BODIES_REFUSED.items()}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_ptx_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(PtxError, match=REFUSED[text]):
        load_module(text)


def test_parameters_lie_at_their_own_alignment_and_launch_bounds_are_known() -> None:
    bounded = "__launch_bounds__(128, 2)"
    module = load_module(ptx_of(f'extern "C" __global__ void {bounded} k(char a, double b, char c, float3 d) {{}}'))
    entry = module.entries["k"]
    assert [(p.offset, p.size) for p in entry.params] == [(0, 1), (8, 8), (16, 1), (20, 12)]
    assert (entry.parameter_bytes, entry.max_threads, entry.required_block) == (32, (128, 1, 1), None)


def test_masked_bytes_of_an_address_are_one_relocation() -> None:
    module = load_module(
        f"{HEAD}.global .u32 x[2];\n.global .align 8 .b8 y[16] = {{1, 2, 3, 4, 5, 6, 7, 8, {MASKED_BYTES}}};\n"
    )
    assert module.variables["y"].relocations == ((8, "x", 4),)


LONG = {
    "blank lines": lambda n: "\n" * n + ".entry k() {" + "\n" * n + "}",
    "braces in braces": lambda n: ".entry k() {" + "{" * n + "}" * n + "}",
    "braces": lambda n: ".entry k() {" + "{}" * n + "}",
    "a comment": lambda n: "/*" + "* " * n + "*/",
    "comments": lambda n: "// a comment\n" * n,
    "variables": lambda n: "".join(f".global .u32 v{i};\n" for i in range(n)),
    "labels": lambda n: ".entry k() {" + "".join(f"L{i}: " for i in range(n)) + "}",
    "registers": lambda n: ".entry k() {" + "".join(f".reg .b32 r{i}; mov.u32 r{i}, 1; " for i in range(n)) + "}",
    "one line": lambda n: ".entry k() { .reg .b32 r; " + "mov.u32 r, 1; " * n + "}",
    "parameters": lambda n: ".func f(" + ",".join(f".param .u8 p{i}" for i in range(n)) + ") { ret; }",
    "functions": lambda n: "".join(f".func f{i}() {{ ret; }}\n" for i in range(n)),
    "initial values": lambda n: ".global .u8 x[] = {" + "1," * n + "1};",
}  # fmt: skip  # rows of a table


@pytest.mark.parametrize("what", LONG)
def test_long_texts_are_read(what: str) -> None:
    """If the time were quadratic in the length, a test would exceed its limit of processor time."""
    with contextlib.suppress(PtxError):  # some of the texts have an error at their end
        for entry in load_module(HEAD + LONG[what](30_000)).entries.values():
            assert entry.body.name == "k"
