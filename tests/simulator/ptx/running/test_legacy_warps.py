"""Votes and shuffles without .sync, as in PTX before version 6.4, take the lanes that execute them together."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import Kernels

HEAD = ".version 6.0\n.target sm_60\n.address_size 64\n"
# The even lanes below 20 branch; `d` is stored for all lanes.
KERNEL = """.visible .entry k(.param .u64 words) {{
    .reg .b32 t, d, e; .reg .b64 at; .reg .pred p, q, r;
    mov.u32 t, %tid.x; ld.param.u64 at, [words]; mad.wide.u32 at, t, 4, at; mov.u32 d, 99;
    and.b32 e, t, 1; setp.eq.u32 p, e, 0; setp.lt.and.u32 p, t, 20, p; setp.gt.u32 q, t, 9;
    @!p bra end;
    {}
end:
    st.global.u32 [at], d;
}}"""
INSIDE = [lane for lane in range(20) if lane % 2 == 0]
BODIES = {
    "vote.ballot.b32 d, q;": lambda lane: sum(1 << one for one in INSIDE if one > 9),
    "vote.ballot.b32 d, !q;": lambda lane: sum(1 << one for one in INSIDE if one <= 9),
    "vote.any.pred r, q; selp.u32 d, 1, 0, r;": lambda lane: 1,
    "vote.all.pred r, q; selp.u32 d, 1, 0, r;": lambda lane: 0,
    "vote.uni.pred r, p; selp.u32 d, 1, 0, r;": lambda lane: 1,
    "shfl.bfly.b32 d, t, 2, 31;": lambda lane: lane ^ 2 if lane ^ 2 in INSIDE else lane,
    "shfl.up.b32 d|r, t, 4, 0; @!r add.u32 d, d, 100;": lambda lane: lane - 4 if lane >= 4 else lane + 100,
    "shfl.idx.b32 d, t, 6, 31;": lambda lane: 6,
}


@pytest.mark.parametrize("body", BODIES)
def test_the_active_lanes_take_part(engine, body):
    kernels = Kernels(load_module(HEAD + KERNEL.format(body)), engine=engine)
    out = kernels.zeros(32, np.uint32)
    kernels.launch("k", 1, 32, out)
    expected = [BODIES[body](lane) if lane in INSIDE else 99 for lane in range(32)]
    assert kernels.get(out, 32, np.uint32).tolist() == expected
    assert engine == "numpy" or kernels.ran_natively("k")
