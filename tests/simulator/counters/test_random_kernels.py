"""Both engines count the same of random kernels of predicates: compared, joined, guarding, branching, ending threads.

What the kernels leave is compared too, since a lane that takes another way counts differently. A guarded instruction
counts for all lanes that come to it, as `smsp__thread_inst_executed` does in Nsight Compute; what has `_pred_on` in its
name counts for those whose guard holds.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

FLOATS, WORDS, PREDICATES = ([f"%{kind}{number}" for number in range(4)] for kind in "frp")
BLOCKS, THREADS = 3, 50

# Each thread has 16 bytes of input and of output. The function loops and returns early.
KERNEL = """.version 8.7
.target sm_90
.address_size 64
.func (.reg .u32 out) steps (.reg .u32 in) {{
    .reg .pred p; .reg .u32 n;
    and.b32 n, in, 7; mov.u32 out, in; setp.gt.u32 p, n, 4;
    @p ret;
    more: add.u32 out, out, 3; sub.u32 n, n, 1; setp.ne.u32 p, n, -1;
    @p bra more;
    ret;
}}
.visible .entry kernel(.param .u64 from, .param .u64 to) {{
    .reg .b32 %f<4>; .reg .b32 %r<4>; .reg .pred %p<4>; .reg .b32 %n<{loops}>; .reg .pred %q<{loops}>;
    .reg .b64 in, out, offset; .reg .u32 thread, block, threads, number;
    mov.u32 thread, %tid.x; mov.u32 block, %ctaid.x; mov.u32 threads, %ntid.x;
    mad.lo.u32 number, block, threads, thread; mul.wide.u32 offset, number, 16;
    ld.param.u64 in, [from]; add.u64 in, in, offset; ld.param.u64 out, [to]; add.u64 out, out, offset;
    ld.global.b32 %f0, [in]; ld.global.b32 %f1, [in + 4]; ld.global.b32 %f2, [in + 8]; ld.global.b32 %f3, [in + 12];
    mov.b32 %r0, %f0; mov.b32 %r1, %f1; mov.u32 %r2, thread; mov.u32 %r3, number;
    setp.lt.u32 %p0, thread, 20; setp.nan.f32 %p1, %f0, %f1; setp.num.f32 %p2, %f2, %f3; setp.eq.u32 %p3, block, 1;
    {body}
    st.global.f32 [out], %f0;
}}"""


class Writer:
    """Write the body of a random kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.labels = 0

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def predicate(self) -> str:
        """Return a predicate, or its opposite."""
        return self.pick("", "!") + self.pick(*PREDICATES)

    def comparison(self) -> str:
        """Return a comparison into one or two predicates, perhaps joined with a third, which may be one of them."""
        relation = self.pick("nan", "num", "lt", "eq", "geu", "gtu", "neu", "ltu", "equ")
        join = self.pick("", ".and", ".or", ".xor")
        results = "|".join(self.random.sample(PREDICATES, self.random.choice([1, 1, 2])))
        operands = f"{self.pick(*FLOATS)}, {self.pick(*FLOATS, '0f7F800000', '0f00000001')}"
        joined = f", {self.predicate()}" if join else ""
        return f"setp.{relation}{join}{self.pick('', '.ftz')}.f32 {results}, {operands}{joined};"

    def instruction(self) -> str:
        """Return an instruction, perhaps a guarded one."""
        f, r, p = (lambda names=names: self.pick(*names) for names in (FLOATS, WORDS, PREDICATES))
        text = self.pick(
            self.comparison(),
            self.comparison(),
            f"setp.{self.pick('lt', 'ge', 'eq', 'ne')}.s32 {p()}, {r()}, {self.pick(*WORDS, '3')};",
            f"selp.f32 {f()}, {f()}, {f()}, {p()};",
            f"{self.pick('add', 'mul', 'sub', 'min', 'max')}{self.pick('', '.ftz')}.f32 {f()}, {f()}, {f()};",
            f"{self.pick('min', 'max')}.f32 {f()}, {f()}, {f()};",
            f"{self.pick('add', 'sub', 'mul.lo')}.s32 {r()}, {r()}, {r()};",
            f"{self.pick('abs', 'neg')}.f32 {f()}, {f()};",
            f"st.global.f32 [out + {4 * self.random.randrange(4)}], {f()};",
            f"{self.pick('and', 'or', 'xor')}.pred {p()}, {p()}, {p()};",
            f"mov.b32 {f()}, {r()};",
            f"call ({r()}), steps, ({r()});",
        )
        return text if self.random.random() < 0.7 else f"@{self.predicate()} {text}"

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def block(self, depth: int = 0) -> None:
        """Write a few instructions, branches and loops."""
        for _ in range(self.random.randrange(2, 6)):
            kind = self.random.random()
            if kind < 0.7 or depth > 2:
                self.lines.append(self.instruction())
            elif kind < 0.85:
                other, end = self.label(), self.label()
                self.lines.append(f"@{self.predicate()} bra {other};")
                self.block(depth + 1)
                self.lines += [f"bra {end};", f"{other}:"]
                self.block(depth + 1)
                self.lines.append(f"{end}:")
            elif kind < 0.93:
                start = self.label()
                count, again = f"%n{self.labels}", f"%q{self.labels}"
                self.lines += [f"and.b32 {count}, {self.pick('0', *WORDS)}, 3;", f"{start}:"]
                self.block(depth + 1)
                self.lines += [f"add.u32 {count}, {count}, 1; setp.lt.u32 {again}, {count}, 5;"]
                self.lines.append(f"@{again} bra {start};")
            else:
                self.lines.append(f"@{self.predicate()} {self.pick('ret', 'exit')};")

    def kernel(self) -> str:
        """Return the PTX."""
        self.block()
        return KERNEL.format(loops=self.labels + 1, body="\n    ".join(self.lines))


def values(seed: int) -> Any:
    """Return random words, most of which are NaNs, some signalling, infinities, zeros and subnormal numbers."""
    generator = np.random.default_rng(seed)
    special = np.array([0x7FC00000, 0x7F800001, 0xFFC00000, 0x7F800000, 0, 1 << 31, 1, 0x3F800000, 0x400000], np.uint32)
    words = generator.integers(0, 1 << 32, 4 * BLOCKS * THREADS, dtype=np.uint32)
    return np.where(generator.random(words.shape) < 0.6, generator.choice(special, words.shape), words)


def differing(seed: int) -> str | None:
    """Return a kernel of which the engines count or compute something else, None if they agree."""
    text = Writer(seed).kernel()
    kernels = Kernels(load_module(text))
    found: list[Any] = []
    source = kernels.put(values(seed))
    for engine in ("numpy", "native"):
        kernels.engine = engine
        counters, out = LaunchCounters(), kernels.zeros(4 * BLOCKS * THREADS)
        kernels.launch("kernel", BLOCKS, THREADS, source, out, observer=counters)
        found.append((counters.metrics, counters.lines, kernels.get(out, 4 * BLOCKS * THREADS).tolist()))
    assert all(program_of(kernels.module.entries["kernel"]).native.values())
    return text if found[0] != found[1] else None


@pytest.mark.parametrize("seed", [2, 9, 14, 85, 106])
def test_a_random_kernel_is_counted_alike(seed: int) -> None:
    assert differing(seed) is None
