"""Accesses that name a variable and no state space touch the variable, in whatever space it lies."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault
from tests.simulator.ptx.machine import HEAD, Kernels

SOURCE = (
    HEAD
    + """.global .align 8 .u64 in_global;
.const .align 8 .u64 in_const = 77;
.func inner (.reg .b64 out) {
    .reg .u64 value; .local .align 8 .b8 own[16];
    st.u64 [own+8], 55; ld.local.u64 value, [own+8]; st.global.u64 [out+32], value;
    ret;
}
.visible .entry named(.param .u64 p) {
    .reg .u32 lane; .reg .u64 out, wide, more, found, other; .reg .pred away;
    .shared .align 8 .b8 in_shared[16]; .local .align 16 .b8 in_local[16];
    ld.param.u64 out, [p]; mov.u32 lane, %tid.x; cvt.u64.u32 wide, lane; add.u64 more, wide, 100;
    st.u64 [in_local], more; st.u64 [in_local+8], wide; ld.local.u64 found, [in_local]; ld.u64 other, [in_local+8];
    setp.ne.u32 away, lane, 3; @away bra done;
    st.global.u64 [out], found; st.global.u64 [out+8], other;
    st.u64 [in_shared+8], more; ld.shared.u64 found, [in_shared+8]; st.global.u64 [out+16], found;
    st.u64 [in_global], wide; ld.global.u64 found, [in_global]; ld.u64 other, [in_const];
    add.u64 found, found, other; st.global.u64 [out+24], found;
    call.uni inner, (out);
done:
    ret;
}
.visible .entry beyond() { .local .align 8 .b8 in_local[16]; st.u64 [in_local+1048576], 5; ret; }
"""
)


def test_each_variable_is_stored_and_loaded_by_its_name(on_each: Kernels) -> None:
    out = on_each.zeros(8, np.uint64)
    on_each.launch("named", 1, 32, out)
    assert on_each.get(out, 5, np.uint64).tolist() == [103, 3, 103, 80, 55]
    with pytest.raises(Fault, match="a local write of 8 bytes at 0x100000 "):
        on_each.launch("beyond", 1, 32)
