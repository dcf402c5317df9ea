"""A register may be wider than the type of a load, store or conversion that uses it; the value's bits are kept."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import HEAD, Kernels

PATTERN = 0x89ABCDEF
AS_DOUBLE = int(np.array(PATTERN, np.uint32).view(np.float32).astype(np.float64).view(np.uint64))
# By code that moves the pattern at [in] through a wider register: the 8 bytes at [out]. wide is .b64, and real .f64.
MOVES = {
    "ld.global.f32 wide, [in]; st.global.b64 [out], wide;": PATTERN,
    "ld.global.u32 wide, [in]; st.global.b64 [out], wide;": PATTERN,
    "ld.global.b32 wide, [in]; st.global.b64 [out], wide;": PATTERN,
    "ld.global.s32 wide, [in]; st.global.b64 [out], wide;": PATTERN | 0xFFFFFFFF << 32,
    "ld.global.s8 wide, [in]; st.global.b64 [out], wide;": 0xFFFFFFFFFFFFFFEF,
    "ld.global.b32 real, [in]; st.global.f64 [out], real;": PATTERN,
    "ld.global.b64 wide, [in]; st.global.f32 [out], wide;": PATTERN,
    "ld.global.b64 wide, [in]; st.global.u16 [out], wide;": PATTERN & 0xFFFF,
    "ld.global.f64 real, [in]; st.global.b32 [out], real;": PATTERN,
    "ld.global.f32 wide, [in]; cvt.f64.f32 real, wide; st.global.f64 [out], real;": AS_DOUBLE,
    "ld.global.b64 wide, [in]; cvt.s16.s8 word, wide; st.global.b32 [out], word;": 0xFFFFFFEF,
    "ld.global.v2.f32 {wide, other}, [in]; st.global.b64 [out], wide;": PATTERN,
}
KERNEL = """.visible .entry k(.param .u64 results, .param .u64 data) {
    .reg .b64 in, out, wide, other; .reg .f64 real; .reg .b32 word;
    ld.param.u64 out, [results]; ld.param.u64 in, [data];
"""


@pytest.mark.parametrize("active", [1, 33])
def test_the_bits_are_kept(active: int) -> None:
    kernels = Kernels(load_module(HEAD + KERNEL + " add.u64 out, out, 8;\n".join(MOVES) + "}"))
    out = kernels.zeros(len(MOVES), np.uint64)
    kernels.launch("k", 1, active, out, kernels.put(np.array([PATTERN, 0x01234567], np.uint32)))
    assert dict(zip(MOVES, kernels.get(out, len(MOVES), np.uint64).tolist(), strict=True)) == MOVES
