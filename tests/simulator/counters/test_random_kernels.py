"""Both engines count the same of random kernels in which predicates guard, branch, join others and end threads.

A guarded instruction counts for all lanes that come to it, as `smsp__thread_inst_executed` does in Nsight Compute; what
has `_pred_on` in its name counts for those whose guard holds.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

BLOCKS, THREADS = 3, 50
# Each thread has 16 bytes of input and of output. The function loops and returns early.
KERNEL = """
.func (.reg .u32 out) steps (.reg .u32 in) {{
    .reg .pred p; .reg .u32 n;
    and.b32 n, in, 7; mov.u32 out, in; setp.gt.u32 p, n, 4;
    @p ret;
    more: add.u32 out, out, 3; sub.u32 n, n, 1; setp.ne.u32 p, n, -1;
    @p bra more;
    ret;
}}
.visible .entry kernel(.param .u64 from, .param .u64 to) {{
    .reg .b32 %f<2>; .reg .b32 %r<2>; .reg .pred %p<4>; .reg .b32 %n<3>; .reg .pred %q<3>;
    .reg .b64 in, out, offset; .reg .u32 thread, block, threads, number;
    mov.u32 thread, %tid.x; mov.u32 block, %ctaid.x; mov.u32 threads, %ntid.x;
    mad.lo.u32 number, block, threads, thread; mul.wide.u32 offset, number, 16;
    ld.param.u64 in, [from]; add.u64 in, in, offset; ld.param.u64 out, [to]; add.u64 out, out, offset;
    ld.global.b32 %f0, [in]; ld.global.b32 %f1, [in + 4]; ld.global.b32 %r0, [in + 8]; mov.u32 %r1, number;
    setp.lt.u32 %p0, thread, 20; setp.nan.f32 %p1, %f0, %f1; setp.gt.s32 %p2, %r0, 0; setp.eq.u32 %p3, block, 1;
    {body}
    st.global.f32 [out], %f0;
}}"""
PREDICATES = ["%p0", "%p1", "%p2", "%p3"]


def body(draw: random.Random, depth: int = 0) -> list[str]:
    """Return a few instructions, branches, loops of a few rounds and ends of threads."""

    def guard() -> str:
        return draw.choice(["", "!"]) + draw.choice(PREDICATES)

    lines = []
    for _ in range(draw.randrange(2, 6)):
        p, q = draw.sample(PREDICATES, 2)
        instruction = draw.choice(
            [
                f"setp.{draw.choice(['num', 'lt', 'geu'])}.{draw.choice(['and', 'or', 'xor'])}.f32 {p}|{q}, "
                f"%f0, %f1, {guard()};",
                f"setp.{draw.choice(['lt', 'ne'])}.s32 {p}, %r0, %r1;",
                f"{draw.choice(['and', 'or', 'xor'])}.pred {p}, {p}, {q};",
                f"{draw.choice(['add', 'mul', 'max'])}.f32 %f0, %f1, %f0;",
                f"st.global.f32 [out + {4 * draw.randrange(4)}], %f0;",
                "add.s32 %r0, %r0, %r1;",
                "call (%r0), steps, (%r0);",
            ]
        )
        kind, label = draw.random(), f"L{draw.getrandbits(48)}"
        if kind < 0.7 or depth > 2:
            lines.append(instruction if draw.random() < 0.7 else f"@{guard()} {instruction}")
        elif kind < 0.85:
            lines += [f"@{guard()} bra {label};", *body(draw, depth + 1), f"bra {label}_end;"]
            lines += [f"{label}:", *body(draw, depth + 1), f"{label}_end:"]
        elif kind < 0.93:
            lines += [f"and.b32 %n{depth}, %r{draw.randrange(2)}, 3;", f"{label}:", *body(draw, depth + 1)]
            lines += [f"add.u32 %n{depth}, %n{depth}, 1; setp.lt.u32 %q{depth}, %n{depth}, 5; @%q{depth} bra {label};"]
        else:
            lines.append(f"@{guard()} {draw.choice(['ret', 'exit'])};")
    return lines


@pytest.mark.parametrize("seed", [0, 3, 5, 7])
def test_a_random_kernel_is_counted_alike(seed: int) -> None:
    text = HEAD + KERNEL.format(body="\n    ".join(body(random.Random(seed))))
    kernels, generator = Kernels(load_module(text)), np.random.default_rng(seed)
    special = np.array([0x7FC00000, 0x7F800001, 0x7F800000, 0, 0x3F800000], np.uint32)
    words = generator.integers(0, 1 << 32, 4 * BLOCKS * THREADS, dtype=np.uint32)
    source = kernels.put(np.where(generator.random(words.shape) < 0.3, generator.choice(special, words.shape), words))
    found: list[Any] = []
    for engine in ("numpy", "native"):
        kernels.engine = engine
        counters, out = LaunchCounters(), kernels.zeros(words.size)
        kernels.launch("kernel", BLOCKS, THREADS, source, out, observer=counters)
        found.append((counters.metrics, counters.lines, kernels.get(out, words.size).tolist()))
    assert all(program_of(kernels.module.entries["kernel"]).native.values())
    assert found[0] == found[1], text
