"""In random kernels of clusters, both engines find the same races in the shared memory of other blocks."""

import random

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.checks.reports import of_both
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

BLOCKS, THREADS, PIECES = 4, 64, 2
KERNEL = """.visible .entry k(.param .u64 out) {{
    .shared .align 16 .b32 words[{words}];
    .reg .b32 %r<12>; .reg .b64 %d<9>; .reg .pred %p<3>;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x;
    mad.lo.u32 %r4, %r3, {threads}, %r1; mad.wide.u32 %d1, %r4, 4, %d1;
    mov.u32 %r5, words; mad.lo.u32 %r6, %r1, 4, %r5; mov.u32 %r7, 0;
    {fills}
    barrier.cluster.arrive; barrier.cluster.wait;
    {steps}
    st.global.u32 [%d1], %r7;
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}}
"""


def random_kernel(generator: random.Random) -> str:
    """Return a kernel whose steps are accesses by some blocks to their own or to others' memory, or barriers."""
    lines, wrong = [], generator.random() < 0.5
    for number in range(10):
        # Lanes use their own words, the words of other lanes or all the same.
        index = generator.choice(["%r6", "%r6", "%r8", "%r5"])
        lane = "xor.b32 %r8, %r1, 33; mad.lo.u32 %r8, %r8, 4, %r5;"
        shift, stores = generator.randrange(BLOCKS), generator.random() < 0.5
        place = (
            f"add.u32 %r9, %r2, {shift}; and.b32 %r9, %r9, {BLOCKS - 1}; mapa.shared::cluster.u32 %r9, {index}, %r9;"
        )
        at, space = f"%r9+{4 * THREADS * generator.randrange(PIECES)}", "shared::cluster"
        if generator.random() < 0.3:
            place += " cvt.u64.u32 %d2, %r9; cvta.shared.u64 %d2, %d2;"
            at, space = at.replace("%r9", "%d2"), ""
        elif shift == 0 and generator.random() < 0.5:
            at, space = at.replace("%r9", index), "shared"
        space = f".{space}" if space else ""
        access = f"ld{space}.u32 %r10, [{at}]; add.u32 %r7, %r7, %r10;"
        if stores:
            atomic = f"atom{space}.add.u32 %r10, [{at}], 1;"
            access = atomic if index == "%r5" else f"st{space}.u32 [{at}], {number};"
        block = generator.choice([None, *range(BLOCKS)])
        guard = "" if block is None else f"setp.ne.u32 %p1, %r2, {block}; @%p1 bra skip{number};"
        lines += [f"{lane} {place} {guard}", access, f"skip{number}:"]
        if not wrong or generator.random() < 0.4:
            lines.append("barrier.cluster.arrive; barrier.cluster.wait;")
        elif generator.random() < 0.5:
            lines.append("bar.sync 0;")
    fills = " ".join(f"st.shared.u32 [%r6+{4 * THREADS * piece}], {piece};" for piece in range(PIECES))
    return HEAD + KERNEL.format(words=THREADS * PIECES, threads=THREADS, fills=fills, steps="\n".join(lines))


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 30), marks=pytest.mark.exhaustive)])
def test_both_engines_agree_on_the_races_of_random_kernels(seeds: range) -> None:
    found = quiet = again = 0
    for seed in seeds:
        kernels = Kernels(load_module(random_kernel(random.Random(seed))))
        out = np.zeros(2 * BLOCKS * THREADS, np.int32)
        texts = of_both(kernels, "k", 2 * BLOCKS, THREADS, out, cluster=(BLOCKS, 1, 1))
        (kernel,) = program_of(kernels.module.entries["k"]).native.values()
        assert kernel is not None
        found += bool(texts)
        quiet += not texts
        again += bool(kernel.recorded.doubts) and not texts
    assert min(found, quiet) > len(seeds) // 6
    # Few of the kernels without a race run again with NumPy.
    assert again <= 1 + len(seeds) // 15


def test_the_uninitialised_memory_of_another_block_is_reported() -> None:
    steps = """mapa.shared::cluster.u32 %r9, %r6, 2; ld.shared::cluster.u32 %r7, [%r9];
    setp.eq.u32 %p1, %r7, 5; @%p1 bra skip; add.u32 %r7, %r7, 1; skip:"""
    kernels = Kernels(load_module(HEAD + KERNEL.format(words=THREADS, threads=THREADS, fills="", steps=steps)))
    out = np.zeros(BLOCKS * THREADS, np.int32)
    assert "uninitialised" in of_both(kernels, "k", BLOCKS, THREADS, out, cluster=(BLOCKS, 1, 1))[0]
