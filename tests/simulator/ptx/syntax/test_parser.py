"""The parser finds entries, variables and their layout in a module's text."""

from __future__ import annotations

import pytest

from cudart_py.simulator.ptx import PtxError, load_module
from cudart_py.simulator.ptx.syntax.body import parse_body
from cudart_py.simulator.ptx.syntax.instructions import Access, Immediate, Register, Vector
from cudart_py.simulator.ptx.syntax.source import Source
from tests.simulator.ptx.machine import HEAD, ptx_of


def test_parameters_lie_at_their_own_alignment_and_launch_bounds_are_known() -> None:
    bounded = "__launch_bounds__(128, 2)"
    module = load_module(ptx_of(f'extern "C" __global__ void {bounded} k(char a, double b, char c, float3 d) {{}}'))
    entry = module.entries["k"]
    assert [(p.offset, p.size) for p in entry.params] == [(0, 1), (8, 8), (16, 1), (20, 12)]
    assert (entry.parameter_bytes, entry.max_threads, entry.required_block) == (32, (128, 1, 1), None)


def test_shared_variables_are_laid_out_one_after_the_other() -> None:
    source = 'extern "C" __global__ void k(int* o) { __shared__ char a[5]; __shared__ double b[2];'
    source += " extern __shared__ int c[];"
    source += " a[threadIdx.x] = 1; b[threadIdx.x] = 2; c[0] = 3; __syncthreads(); *o = a[0] + b[0] + c[threadIdx.x]; }"
    entry = load_module(ptx_of(source)).entries["k"]
    assert entry.static_shared_bytes in (21, 24)
    assert entry.shared_offsets["c"] >= entry.static_shared_bytes


def test_variables_have_initial_bytes_and_relocations() -> None:
    source = "__device__ int a[3] = {1, 2}; __device__ int* p = &a[1]; __constant__ float c = 1.5f;"
    variables = load_module(ptx_of(source + ' extern "C" __global__ void k(int* o) { o[0] = *p + c; }')).variables
    assert variables["a"].initial == bytes([1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0])
    assert variables["p"].relocations == ((0, "a", 4),)
    assert (variables["c"].space, variables["c"].initial) == ("const", b"\0\0\xc0\x3f")


def test_masked_bytes_of_an_address_are_one_relocation() -> None:
    parts = ", ".join(f"{0xFF << 8 * i:#x}(x+4)" for i in range(8))
    module = load_module(
        f"{HEAD}.global .u32 x[2];\n.global .align 8 .b8 y[16] = {{1, 2, 3, 4, 5, 6, 7, 8, {parts}}};\n"
    )
    assert module.variables["y"].relocations == ((8, "x", 4),)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (".global .u8 y[2] = {1, 2, 3}", "y has 2 bytes"),
        (".global .u32 y = {1, 2}", "y has 4 bytes"),
        (".const .v2 .f32 y = {0f3F800000, 0f3F800000, 0f3F800000}", "y has 8 bytes"),
        (".global .u64 y[1] = {x, x}", "y has 8 bytes"),
        (".global .u32 y[2] = {1, x}", "in elements of .u32"),
        (".global .u8 y[2] = {0xff(x), 0xff00(x)}", "isn't followed by"),
        (f".global .u8 y[12] = {{{', '.join(f'{0xFF << 8 * (i % 8):#x}(x)' for i in range(16))}}}", "y has 12 bytes"),
    ],
)
def test_what_does_not_fit_into_its_variable_is_refused(declaration: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        load_module(f"{HEAD}.global .u32 x;\n{declaration};\n")


def test_functions_have_addresses() -> None:
    module = load_module(ptx_of("__device__ __noinline__ int f(int x) { return x; } __device__ int (*p)(int) = f;"
                           'extern "C" __global__ void k(int* o) { o[0] = p(1); }'))  # fmt: skip  # grouped by meaning
    ((_, name, _),) = module.variables["p"].relocations
    assert module.function_at(module.function_addresses[name]) == name


def test_operands_of_every_form() -> None:
    text = ".reg .b32 %r<9>; .reg .pred p; .reg .f32 %f<2>; @!p ld.global.v2.u32 {%r1, %r2}, [%r3+-8];"
    text += " mov.f32 %f1, 0f3F800000;"
    load, move = parse_body("k", Source(text)).instructions
    assert load.guard == Register("p", negated=True)
    assert load.operands == (Vector((Register("%r1"), Register("%r2"))), Access(Register("%r3"), -8))
    assert move.operands[1] == Immediate(0x3F800000, 32)


def test_registers_of_inner_scopes_are_their_own() -> None:
    text = "{ .reg .pred p; setp.eq.u32 p, 1, 1; } { .reg .pred p; L: @p bra L; }"
    function = parse_body("k", Source(text))
    assert len(function.registers) == 2
    assert len(function.labels) == 1
