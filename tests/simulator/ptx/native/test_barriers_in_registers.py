"""Barriers whose number or number of threads is in a register agree in both engines, with checks and without."""

import itertools

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Fault, load_module
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

# Each warp reads its barrier and its number of threads, and lanes whose predicate is true take part in a reduction.
SOURCE = """.visible .entry k(.param .u64 p0, .param .u64 p1) {{
    .reg .b32 i, number, count, mine, theirs, word, sum, room; .reg .b64 in, out, at; .reg .pred p, all, any;
    .shared .b32 cells[128];
    ld.param.u64 in, [p0]; ld.param.u64 out, [p1]; mov.u32 i, %tid.x; mad.wide.u32 at, i, 8, in;
    ld.global.v2.u32 {{number, count}}, [at]; mad.wide.u32 out, i, 16, out;
    and.b32 word, i, 5; setp.eq.u32 p, word, 1;
    mov.u32 room, cells; mad.lo.u32 mine, i, 4, room; st.shared.u32 [mine], i;
    {body}
    ret;
}}"""
BODIES = {
    "pairs of warps": "bar.sync number, count; xor.b32 theirs, i, 32; mad.lo.u32 theirs, theirs, 4, room; "
    "ld.shared.u32 word, [theirs]; st.global.u32 [out], word;",
    "reductions": "bar.red.popc.u32 sum, number, count, p; bar.red.and.pred all, number, count, p; "
    "bar.red.or.pred any, number, 64, p; selp.u32 word, 1, 0, any; selp.u32 theirs, 1, 0, all; "
    "st.global.v4.u32 [out], {sum, word, theirs, number};",
    "all threads": "mov.u32 number, 3; bar.sync number; sub.u32 theirs, 127, i; mad.lo.u32 theirs, theirs, 4, room; "
    "ld.shared.u32 word, [theirs]; st.global.u32 [out], word; bar.sync 0;",
}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_barriers_agree(name, checked):
    kernels = Kernels(load_module(HEAD + SOURCE.format(body=BODIES[name])))
    pairs = np.repeat([5, 5, 9, 9], 32)
    given = kernels.put(np.stack([pairs, np.full(128, 64)], 1).astype(np.uint32))
    found = []
    for kernels.engine in ("numpy", "native"):
        out = kernels.zeros(4 * 128)
        kernels.launch("k", 2, 128, given, out, observer=LaunchChecks() if checked else None)
        found.append(kernels.get(out, 4 * 128).tolist())
    assert found[0] == found[1]
    assert any(found[0])
    assert kernels.ran_natively("k") or (checked and name != "all threads")


def test_a_deadlock_is_reported_alike():
    kernels = Kernels(load_module(HEAD + SOURCE.format(body=BODIES["pairs of warps"])))
    given = kernels.put(np.stack([np.repeat([5, 6, 9, 9], 32), np.full(128, 64)], 1).astype(np.uint32))
    texts = []
    for kernels.engine, observer in itertools.product(("numpy", "native"), (LaunchChecks(), None)):
        with pytest.raises(Fault, match="deadlock: 64 threads wait") as caught:
            kernels.launch("k", 1, 128, given, kernels.zeros(4 * 128), observer=observer)
        texts.append(str(caught.value))
    assert len(set(texts)) == 1
    assert kernels.ran_natively("k")
