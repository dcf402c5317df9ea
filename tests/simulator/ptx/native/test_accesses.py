"""Words of 128 bits, matrices at generic addresses, and the faults of accesses agree in both engines."""

import re

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

THREADS = 96
WORDS = 1024
# Each thread reads a place, which is a multiple of 16 bytes, and four words. It accesses global memory at its place and
# shared memory, of which the block has as much, and stores four words.
PROLOGUE = """.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3) {
    .reg .b32 i, place, here, half, v<4>; .reg .b64 places, values, memory, out, at, x, y, g; .reg .b16 h, n;
    .reg .f32 f<4>; .reg .b128 wide, other, third; .reg .pred p;
    .shared .align 128 .b8 room[4096];
    ld.param.u64 places, [p0]; ld.param.u64 values, [p1]; ld.param.u64 memory, [p2]; ld.param.u64 out, [p3];
    mov.u32 i, %tid.x; mad.wide.u32 places, i, 4, places; ld.global.u32 place, [places];
    mad.wide.u32 values, i, 16, values; ld.global.v4.b32 {v0, v1, v2, v3}, [values];
    mad.wide.u32 out, i, 16, out; mov.u32 here, room; add.u32 here, here, place; cvt.u64.u32 at, place;
    add.u64 at, at, memory; mov.b32 {h, n}, v0; mov.b64 x, {v0, v1}; mov.b64 y, {v2, v3};
    mov.b32 f0, v0; mov.b32 f1, v1; mov.b32 f2, v2; mov.b32 f3, v3;
    shl.b32 v3, i, 4; mov.u32 half, room; add.u32 half, half, v3;
    // Fill shared memory: 96 threads write 2.5 times 16 bytes, and barriers separate them from the rest.
    cvta.shared.u64 g, room;
    fill: st.shared.v4.b32 [half], {v0, v1, v2, v0}; add.u32 half, half, 1536; add.u32 v3, v3, 1536;
    setp.lt.u32 p, v3, 4096; @p bra fill;
    bar.sync 0;
"""
EPILOGUE = "bar.sync 0; st.global.v4.b32 [out], {v0, v1, v2, v3}; ret; }"
BODIES = {
    "wide words": "mov.b128 wide, {x, y}; mov.b128 other, wide; mov.b128 {y, x}, other; st.shared.b128 [here], wide; "
    "ld.global.b128 third, [at]; setp.lt.u64 p, x, y; @p mov.b128 third, wide; bar.sync 0; "
    "ld.shared.b128 other, [here]; st.global.b128 [out], third; mov.b128 {x, y}, other; mov.b64 {v0, v1}, x; "
    "mov.b64 {v2, v3}, y;",
    "matrices": "and.b32 v3, i, 31; mul.wide.u32 x, v3, 32; add.u64 g, g, x; "
    "ldmatrix.sync.aligned.m8n8.x4.b16 {v0, v1, v2, v3}, [g+16]; bar.sync 0; setp.lt.u32 p, i, 32; @!p bra over; "
    "stmatrix.sync.aligned.m8n8.x2.trans.b16 [g], {v1, v3}; "
    "ldmatrix.sync.aligned.m8n8.x2.trans.b16 {v1, v2}, [g]; over:",
}


def kernel(body: str) -> Kernels:
    return Kernels(load_module(f"{HEAD}{PROLOGUE}{body}{EPILOGUE}"))


@pytest.mark.parametrize("observe", [None, LaunchChecks, LaunchCounters])
@pytest.mark.parametrize("name", BODIES)
def test_accesses_agree(name, observe):
    generator = np.random.default_rng(len(name))
    kernels = kernel(BODIES[name])
    places = generator.permutation(WORDS // 4)[:THREADS] * 16
    values, memory, out = (generator.integers(0, 1 << 32, n, np.uint32) for n in (4 * THREADS, WORDS, 4 * THREADS))
    kernels.agree("k", 1, THREADS, places.astype(np.uint32), values, memory, out, observe=observe)
    assert kernels.ran_natively("k")


SUMS = """.visible .entry sums(.param .u64 p0, .param .u64 p1, .param .u64 p2) {
    .reg .b32 i, here, odd; .reg .b64 memory, values, out, at; .reg .f32 x, y; .reg .pred p;
    .shared .align 4 .b8 room[384];
    ld.param.u64 memory, [p0]; ld.param.u64 values, [p1]; ld.param.u64 out, [p2];
    mov.u32 i, %tid.x; mad.wide.u32 memory, i, 4, memory; mad.wide.u32 values, i, 4, values;
    mad.wide.u32 out, i, 4, out; mov.u32 here, room; mad.lo.u32 here, i, 4, here;
    ld.f32 x, [memory]; st.shared.f32 [here], x;
    cvt.u64.u32 at, here; cvta.shared.u64 at, at; and.b32 odd, i, 1; setp.eq.u32 p, odd, 1; selp.b64 at, memory, at, p;
    ld.f32 y, [values]; atom.add.f32 x, [at], y; ld.f32 y, [at]; st.f32 [out], y; ret; }"""


def test_a_sum_keeps_subnormal_numbers_in_shared_memory_and_flushes_them_in_global_memory(engine):
    """One atomic at a generic address adds to both, as the PTX manual says for `atom.add.f32`."""
    generator = np.random.default_rng()
    memory, values = generator.integers(1, 1 << 22, (2, THREADS)).astype(np.uint32).view(np.float32)
    kernels = Kernels(load_module(HEAD + SUMS), engine=engine)
    out = kernels.zeros(THREADS, np.float32)
    kernels.launch("sums", 1, THREADS, kernels.put(memory), kernels.put(values), out)
    expected = np.where(np.arange(THREADS) % 2, np.float32(0), memory + values)
    assert np.array_equal(kernels.get(out, THREADS, np.float32), expected)


FAULTS = [
    ("add.u64 at, at, 1; red.add.noftz.f16 [at], h;", "is not a multiple of 2|aligned"),
    ("add.u64 at, at, 8; ld.global.b128 wide, [at];", "aligned|multiple"),
    ("mov.b128 wide, {x, y}; atom.global.exch.b128 other, [at+4096], wide;", "bytes"),
    ("ldmatrix.sync.aligned.m8n8.x4.b16 {v0, v1, v2, v3}, [memory];", "needs addresses in shared memory, not global"),
    ("ldmatrix.sync.aligned.m8n8.x4.b16 {v0, v1, v2, v3}, [0];", "memory"),
    ("ldmatrix.sync.aligned.m8n8.x1.b16 {v0}, [g+8192];", "shared memory"),
    ("ldmatrix.sync.aligned.m8n8.x1.b16 {v0}, [g+8];", "aligned|multiple"),
    ("setp.lt.u32 p, i, 40; @p ldmatrix.sync.aligned.m8n8.x1.b16 {v0}, [g];", "not all 32 lanes"),
    ("red.global.add.v4.f32 [at+4084], {f0, f1, f2, f3};", "bytes"),
]


@pytest.mark.parametrize(("body", "message"), FAULTS)
def test_faults_agree(body, message):
    kernels = kernel(body)
    arrays = map(kernels.zeros, (THREADS, 4 * THREADS, WORDS, 4 * THREADS))
    assert re.search(message, kernels.fault("k", 1, THREADS, *arrays))
