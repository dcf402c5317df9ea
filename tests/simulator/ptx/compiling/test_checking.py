"""Loading a module checks its instructions: invalid PTX is an error, and unsupported instructions refuse launches."""

import contextlib
import itertools
import re

import pytest

from cudart_py.simulator.ptx import PtxError, UnsupportedError, load_module, refuse_unsupported
from cudart_py.simulator.ptx.syntax.operand_syntax import split
from tests.simulator.ptx.machine import HEAD, ptx_of

BODY = """.entry k(.param .u64 out, .param .u32 n) {{
.reg .b16 %h<4>; .reg .b32 %r<4>; .reg .u32 %u<4>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .f64 %e<4>; .reg .pred %p<4>;
{}
ret; }}"""

NO_PTX = {
    "bar.sync 16;": "16 is not a barrier number from 0 to 15",
    "bar.sync 1, 33;": "33 threads are not a positive multiple of 32",
    "bar.arrive 1, 33;": "33 threads are not a positive multiple of 32",
    "bar.red.popc.u32 %r1, 1, 33, %p1;": "33 threads are not a positive multiple of 32",
    "cp.async.cg.shared.global [%r1], [%d1], 8;": "8 isn.t 16",
    "lop3.b32 %r1, %r1, %r1, %r1, 256;": "256 isn't from 0 to 255",
    "frobnicate.u32 %r1, %r2;": "frobnicate.u32 is not a PTX instruction",
    "add.u33 %r1, %r2, %r3;": "add.u33 is not a PTX instruction",
    "add.u32 %r1, %r2;": "add.u32 has 3 operands, not 2",
    "add.u32 %d1, %r2, %r3;": "operand 1 is a register of .b64, not of .u32",
    "add.u32 5, %r2, %r3;": "operand 1 is not a register",
    "add.u32 %r1, [%r2], %r3;": "operand 2 is not a value",
    "add.u32 {%r1, %r2}, %r2, %r3;": "operand 1 is a vector",
    "add.u32 %r1, 0d3ff0000000000000, %r3;": "operand 2 is a floating-point literal",
    "add.u32 %r9, %r2, %r3;": "%r9 is neither declared nor a special register",
    "mov.u32 %r1, nobody;": "nobody isn't declared",
    "mov.u32 %r1, n+;": "operand 'n\\+' isn't understood",
    "mov.u32 %r1, 0x1ffffffffffffffff;": "operand '0x1ffffffffffffffff' isn't",
    "mov.b32 {%r1, %r2}, %d1;": "is a register of .b32, not of .b16",
    "ld.global.u32 %r1, %d1;": "operand 2 is not an address in brackets",
    "ld.global.u32 %r1, [%f1];": "an address is in a register of .f32",
    "ld.global.u32 %r1, [_];": "_ cannot be used as an address",
    "ld.global.f32 %e1, [%d1];": "operand 1 is a register of .f64, not of .f32",
    "ld.global.v2.u32 %r1, [%d1];": "operand 1 has 1 elements, not 2",
    "ld.global.v8.b64 {%d1, %d1, %d1, %d1, %d1, %d1, %d1, %d1}, [%d1];": "operand 1 has 64 bytes, more than 32",
    "st.global.v8.b64 [%d1], {%d1, %d1, %d1, %d1, %d1, %d1, %d1, %d1};": "operand 2 has 64 bytes, more than 32",
    "ld.param.u64 %d1, [n];": "bytes 0 to 7 aren't within n, which has 4",
    "st.param.u32 [n], %r1;": "n is not a parameter that can be written here",
    "st.param.u32 [%d1], %r1;": "a function's parameter has no address in a register",
    "setp.lt.u32 %r1, %r1, %r2;": "operand 1 is a register of .b32, not of .pred",
    "@%r1 bra end; end:": "the guard %r1 of .* is not a predicate",
    "bra nowhere;": "label nowhere is missing",
    "brx.idx %r1, here; here:": "here is not a list of branch targets",
    "call nobody;": "function nobody isn't declared",
    "call f, (%r1);": "function f returns 0 results and takes 0 arguments",
    "call g;": r"function g is declared but not defined; .* cuda\.link\(",
    "tex.a1d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%d1, {%f1, %f2}];": "operand 2 is a register of .f32, not of .u32",
    "suld.b.1d.b32.trap {%r1}, [%d1];": "operand 2 is not a texture or surface with coordinates",
    "add.u32 %r1.b0, %r2, %r3;": "operand 1 has the selector .b0",
    "add.u32 %r1, -%r2, %r3;": "operand 2 is negated",
    "vadd4.u32.u32.u32 %r1.b01, %r1, %r2, %r3;": "operand 1 has the selector .b01",
    "vadd2.u32.u32.u32 %r1, %r1.b3210, %r2, %r3;": "operand 2 has the selector .b3210",
    "vadd.u32.u32.u32 %r1.h0, %r1, %r2;": "operand 1 has the selector .h0",
    "vabsdiff4.u32.u32.u32 %r1.b9, %r2, %r3, %r3;": "%r1.b9 is neither declared nor a special register",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f1}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f1};": (
        "operand 1 has 2 elements, not 4"
    ),
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];": "operand 1 has 1 elements, not 2",
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r1}], [%r1];": "operand 1 has 1 coordinates, not 2",
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1], [%r1];": (
        "operand 1 is not the address of a tensor map with coordinates"
    ),
}

# PTX that ptxas accepts for sm_90, in forms that are not simulated, although other forms of the same opcodes are.
NOT_RUN = {
    "vavrg4.u32.u32.u32.sat %r1, %r1, %r2, %r3;": "write it with shifts, min and max; vavrg2 and vavrg4 are the only",
    "tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}|%p1, [%d1, {%f1, %f1}];": "leave out the second result: sparse textures",
    "red.global.add.noftz.v2.f16x2 [%d1], {%r1, %r2};": "write one atomic per element; only vectors of f32 are",
    "fma.rn.oob.f16 %h1, %h2, %h3, %h1;": "write another form of fma: none with .oob is simulated",
    "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%r1, %r1}, "
    "{%r1, %r1, %r1, %r1};": "write wgmma, or mma.sync with a shape such as m16n8k16, on f16, bf16, tf32, f64",
    "mbarrier.arrive.noComplete.relaxed.cta.b64 %d1, [%r1], 1;": "write another form of mbarrier: none with all",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1], [%d1], %r1, %r1, %r1, [%r1];": (
        "write cp.async.bulk with addresses"
    ),
    "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
    "[%r1], [%d1, {%r1, %r1, %r1}], [%r1], {%h1};": (
        "write cp.async.bulk with addresses, cp.async.bulk.tensor in tiled mode"
    ),
}


@pytest.mark.parametrize("line", NO_PTX)
def test_what_is_no_ptx_is_refused_with_its_line(line: str) -> None:
    """The error names the line of the PTX, not of a CUDA C++ source, because NVRTC never generates such text."""
    functions = ".func f() { ret; }\n.func g();\n"
    with pytest.raises(PtxError, match=NO_PTX[line]) as error:
        load_module(HEAD + functions + BODY.format(line))
    assert error.value.line == 8
    assert str(error.value).startswith("PTX line 8: ")


# An instruction for each list of operand kinds, and odd operands to put in place of each of its operands.
SHAPES = (
    "add.u32 %r1, %r2, %r3", "mov.b64 %d1, {%r1, %r2}", "ld.global.u32 %r1, [%d1]",
    "ld.global.v2.u32 {%r1, %r2}, [%d1]", "st.shared.f32 [%r1+4], %f1", "atom.global.add.u32 %r1, [%d1], %r2",
    "ld.param.u64 %d1, [out]", "setp.lt.u32 %p1|%p2, %r1, %r2", "shfl.sync.idx.b32 %r1|%p1, %r1, 0, 31, -1",
    "bar.sync 1, 32", "cp.async.ca.shared.global [%r1], [%d1], 8",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, {%r1}], [%r1]",
    "tex.1d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%d1, {%f1}]", "mbarrier.init.shared.b64 [%r1], 32",
    "cvt.rn.f32.u32 %f1, %r1", "prefetch.global.L2 [%d1]", "selp.f32 %f1, %f2, %f3, %p1",
)  # fmt: skip  # rows of a table
ODD = (
    "_", "%tid.x", "%clock64", "%is_explicit_cluster", "WARP_SZ", "k", "f", "out", "n", "%p1", "!%p1", "%h1", "%d1",
    "%e1", "-1", "0f3f800000", "0d3ff0000000000000", "1.5", "0", "[_]", "[%tid.x]", "[%p1]", "[%f1]", "[WARP_SZ]",
    "[f]", "[0]", "[1.5]", "[out+4]", "[%d1, %r1]", "[%d1, [%d1, %r1]]", "[%d1, {_, _}]", "{_}", "{%tid.x, %r1}",
    "{}", "{{%r1}}", "{[%d1]}", "%r1|%p1", "_|_", "%r1|%r2|%r3", "%r1+4", "%tid.x+4", "_+4", "%d1.x",
)  # fmt: skip  # rows of a table


@pytest.mark.parametrize("shape", SHAPES)
def test_odd_operands_in_any_place_are_accepted_or_refused(shape: str) -> None:
    """No operand may raise an exception other than PtxError."""
    opcode, _, rest = shape.partition(" ")
    operands = split(rest)
    for place, odd in itertools.product(range(len(operands)), ODD):
        changed = ", ".join([*operands[:place], odd, *operands[place + 1 :]])
        with contextlib.suppress(PtxError):  # the error that refuses it
            load_module(HEAD + ".func f() { ret; }\n" + BODY.format(f"{opcode} {changed};"))


DEEP = {
    "vectors": "mov.u32 %r1, " + "{" * 5000 + "%r2" + "}" * 5000,
    "addresses": "ld.global.u32 %r1, " + "[" * 5000 + "%d1" + "]" * 5000,
    "coordinates": "tex.1d.v4.f32.f32 {%f1, %f1, %f1, %f1}, " + "[%d1, " * 5000 + "%f1" + "]" * 5000,
    "vectors of addresses": "ld.global.u32 %r1, " + "[%d1, {" * 5000 + "%r2" + "}]" * 5000,
    "parentheses": "mov.u32 %r1, " + "(" * 5000 + "%r2" + ")" * 5000,
    "negations": "and.pred %p1, %p2, " + "!" * 5000 + "%p3",
}


@pytest.mark.parametrize("what", DEEP)
def test_deeply_nested_operands_are_refused(what: str) -> None:
    with pytest.raises(PtxError):
        load_module(HEAD + BODY.format(DEEP[what] + ";"))


def refused(text: str, kernel: str = "k") -> str:
    """Load a module, and return the error that refuses launches of one of its kernels."""
    entry = load_module(text).entries[kernel]
    with pytest.raises(UnsupportedError) as error:
        refuse_unsupported(entry)
    return str(error.value)


def test_all_that_is_not_run_is_reported_at_once() -> None:
    """Each unsupported opcode of a kernel is listed once, with its line and an alternative."""
    body = BODY.format(
        "stacksave.u64 %d1;\nbrkpt;\nbrkpt;\nsuq.width.b32 %r1, [out];\nvavrg2.u32.u32.u32 %r1, %r1, %r2, %r3;"
    )
    found = refused(HEAD + body)
    said = (
        "(?s)stacksave.* line 6, in k: use an array.*brkpt.* line 7, in k: leave it out"
        ".*suq.width.* in k: read and write elements.*vavrg2.* in k: write it with shifts"
    )
    assert re.search(said, found), found
    assert found.count("\n") == 4


REACHING = """
.func leaf() { brkpt; ret; }
.func middle() { call leaf; ret; }
.entry near() { brkpt; ret; }
.entry far() { call middle; ret; }
.entry apart() { ret; }
"""
POINTERS = """
.func leaf() { brkpt; ret; }
.func harmless() { ret; }
.global .u64 table[1] = {leaf};
.entry calling() { .reg .b64 %d; ld.global.u64 %d, [table]; t: .callprototype _ (); call %d, (), t; ret; }
.entry direct() { call harmless; ret; }
"""


def test_a_kernel_is_refused_for_what_it_may_reach_alone() -> None:
    """A call counts however deep it is, and an indirect call may reach each function whose address is taken."""
    module = load_module(HEAD + REACHING)
    refuse_unsupported(module.entries["apart"])
    for kernel in ("near", "far"):
        with pytest.raises(UnsupportedError, match=f"an instruction of kernel {kernel}:\n.*brkpt"):
            refuse_unsupported(module.entries[kernel])
    module = load_module(HEAD + POINTERS)
    refuse_unsupported(module.entries["direct"])
    with pytest.raises(UnsupportedError, match="'brkpt' at PTX line .*, in leaf: leave it out"):
        refuse_unsupported(module.entries["calling"])


@pytest.mark.parametrize("name", ["cudaFuncGetAttributes", "__cudaCDP2Memcpy2DAsync"])
def test_a_further_call_of_the_device_runtime_refuses_its_kernel_alone(name: str) -> None:
    text = f"{HEAD}.extern .func {name}();\n.entry k() {{ call {name}; ret; }}\n.entry other() {{ ret; }}\n"
    refuse_unsupported(load_module(text).entries["other"])
    assert "not simulated: of the runtime's functions for kernels" in refused(text)


@pytest.mark.parametrize("line", NOT_RUN)
def test_a_form_that_is_not_run_is_no_mistake_of_the_ptx(line: str) -> None:
    """The error says which alternative to write."""
    assert f", in k: {NOT_RUN[line]}" in refused(HEAD + BODY.format(line))


def test_the_users_line_is_named_not_the_headers() -> None:
    """For inlined code, the error names the line in the kernel that leads to it, however deep the calls are."""
    source = """
__device__ __forceinline__ void inner() { asm volatile("brkpt;"); }
__device__ __forceinline__ void outer() { inner(); }
extern "C" __global__ void k() {
    outer();
}
"""
    text = ptx_of(source)
    assert "inlined_at" in text
    assert re.search(r"'brkpt' at \S*test\.cu:5, in k: leave it out", refused(text))


def test_code_without_a_line_leaves_the_users_line_known() -> None:
    """A compiler gives line 0 to code moved out of an inlined function, and later lines no longer name the caller."""
    text = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k() {
    .loc 1 5 3
    .loc 2 68 5, function_name $L__info_string0, inlined_at 1 5 3
    .loc 2 0 5
    .loc 3 192 5, function_name $L__info_string1, inlined_at 2 68 5
    brkpt;
}
.file 1 "user.cu"
.file 2 "outer.h"
.file 3 "inner.h"
"""
    assert "'brkpt' at user.cu:5, in k" in refused(text)


def test_addresses_of_32_bits_are_not_run() -> None:
    with pytest.raises(UnsupportedError, match="only 64-bit addresses"):
        load_module(".version 8.0\n.target sm_90\n.address_size 32\n")
