"""Where the processor flushes subnormal numbers, LLVM leaves to it arithmetic with constants too."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native.instances import lay_out
from cudart_py.simulator.ptx.native.writing.flushing import processor_flushes

BITS = np.array([1, 0x80000001, 0x00400000, 0x3F800000, 0x7FA00000, 0, 0x80000000, 0x00800000] * 4, np.uint32)
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
    # A selection of what is compared keeps subnormal numbers.
    "shl.b32 word, lane, 21; mov.b32 c, word; setp.lt.ftz.f32 p, x, c; selp.f32 y, x, c, p;",
    "shl.b32 word, lane, 21; mov.b32 c, word; setp.gt.ftz.f32 p, x, c; selp.f32 y, c, x, p;",
]


@pytest.mark.parametrize("body", BODIES)
def test_results_agree(body: str) -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 given, .param .u64 found) {{
    .reg .b64 in, out, at; .reg .b32 lane, word; .reg .f32 x, y, c; .reg .pred p;
    ld.param.u64 in, [given]; ld.param.u64 out, [found]; mov.u32 lane, %laneid; mul.wide.u32 at, lane, 4;
    add.u64 in, in, at; add.u64 out, out, at; ld.global.f32 x, [in];
    {body}
    st.global.f32 [out], y;
}}"""
    module = load_module(text)
    program = program_of(module.entries["k"])
    assert processor_flushes(lay_out(program, 0)) == (platform.machine() == "x86_64")
    kernels = Kernels(module)
    results = []
    for kernels.engine in ("numpy", "native"):
        out = kernels.zeros(32, np.uint32)
        kernels.launch("k", 1, 32, kernels.put(BITS), out)
        results.append([hex(word) for word in kernels.get(out, 32, np.uint32)])
    assert any(program.native.values())
    assert results[0] == results[1]
