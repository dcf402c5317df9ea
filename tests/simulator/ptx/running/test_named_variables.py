"""Accesses that name a variable and no state space touch the variable, in whatever space it lies."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, has_llvmlite, load_module
from tests.simulator.ptx.machine import Kernels

PTX = """
.version 8.0
.target sm_90
.address_size 64
.global .align 8 .u64 in_global;
.const .align 8 .u64 in_const = 77;
.func inner (.param .b64 out)
{
    .reg .u64 %rd<4>;
    .local .align 8 .b8 own[16];
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, 55;
    st.u64 [own+8], %rd2;
    ld.local.u64 %rd3, [own+8];
    st.global.u64 [%rd1+32], %rd3;
    ret;
}
.visible .entry named(.param .u64 out, .param .u64 wide) {
    .reg .u32 %r<3>; .reg .u64 %rd<8>; .reg .pred %p<2>;
    .shared .align 8 .b8 in_shared[16];
    .local .align 8 .b8 in_local[16];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %rd2, %r1;
    add.u64 %rd3, %rd2, 100;
    st.u64 [in_local], %rd3;
    st.u64 [in_local+8], %rd2;
    ld.local.u64 %rd4, [in_local];
    ld.u64 %rd5, [in_local+8];
    setp.ne.u32 %p1, %r1, 3;
    @%p1 bra done;
    st.global.u64 [%rd1], %rd4;
    st.global.u64 [%rd1+8], %rd5;
    st.u64 [in_shared+8], %rd3;
    ld.shared.u64 %rd4, [in_shared+8];
    st.global.u64 [%rd1+16], %rd4;
    st.u64 [in_global], %rd2;
    ld.global.u64 %rd4, [in_global];
    ld.u64 %rd5, [in_const];
    add.u64 %rd4, %rd4, %rd5;
    st.global.u64 [%rd1+24], %rd4;
    {
        .param .b64 passed;
        st.param.b64 [passed], %rd1;
        call.uni inner, (passed);
    }
done:
    ret;
}
.visible .entry beyond(.param .u64 out) {
    .reg .u64 %rd<3>;
    .local .align 8 .b8 in_local[16];
    mov.u64 %rd1, 5;
    st.u64 [in_local+1048576], %rd1;
    ret;
}
"""


@pytest.fixture(params=["numpy", "native"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    if request.param == "native" and not has_llvmlite():
        pytest.skip("llvmlite is not installed (the extra native)")
    kernels = Kernels(load_module(PTX))
    kernels.engine = request.param
    return kernels


def test_each_variable_is_stored_and_loaded_by_its_name(kernels: Kernels) -> None:
    out = kernels.zeros(8, np.uint64)
    kernels.launch("named", 1, 32, out, 0)
    assert kernels.get(out, 5, np.uint64).tolist() == [103, 3, 103, 80, 55]


def test_a_place_behind_a_local_variable_is_named_as_local_memory(kernels: Kernels) -> None:
    with pytest.raises(Fault, match="a local write of 8 bytes at 0x100000 is out of bounds"):
        kernels.launch("beyond", 1, 32, 0)
