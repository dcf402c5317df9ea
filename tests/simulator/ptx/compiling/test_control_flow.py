"""Indirect branches take each lane to the target at the lane's index in the table."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, load_module
from tests.simulator.ptx.machine import HEAD, Kernels

# Six indices and three targets: the table contains the first target twice, and the second one three times. Lanes whose
# guard is false continue after the branch, whatever their index is.
TABLE = """.visible .entry table(.param .u64 out, .param .u64 which, .param .u32 count) {
    .reg .b32 lane, r, n; .reg .b64 at, to; .reg .pred p;
    mov.u32 lane, %tid.x; ld.param.u64 at, [which]; mad.wide.u32 at, lane, 4, at; ld.global.u32 r, [at];
    ld.param.u64 to, [out]; mad.wide.u32 to, lane, 4, to; ld.param.u32 n, [count]; setp.lt.u32 p, lane, n;
    places: .branchtargets first, second, first, third, second, second;
    @p brx.idx r, places;
    mov.u32 r, 5; bra.uni done;
    first: mov.u32 r, 10; bra.uni done;
    second: mov.u32 r, 20; bra.uni done;
    third: mov.u32 r, 30;
    done: st.global.u32 [to], r;
}"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(load_module(HEAD + TABLE))


@pytest.mark.parametrize("guarded", [4, 64])
def test_every_index_to_one_target_gets_there(kernels: Kernels, guarded: int) -> None:
    """Lanes with different indices of the same target all continue at it."""
    indices = np.arange(64, dtype=np.uint32) % 6
    out = kernels.zeros(64)
    kernels.launch("table", 1, 64, out, kernels.put(indices), guarded)
    expected = np.array([10, 20, 10, 30, 20, 20])[indices]
    np.testing.assert_array_equal(kernels.get(out, 64), np.where(np.arange(64) < guarded, expected, 5))


@pytest.mark.parametrize("count", [1, 64])
def test_an_index_beyond_the_table_is_a_fault(kernels: Kernels, count: int) -> None:
    """PTX leaves such a branch undefined. The fault gives the index, the size of the table and the line."""
    indices = np.arange(64, dtype=np.uint32) % 6
    indices[count - 1] = 6
    with pytest.raises(Fault, match="index 6 of 6 targets") as fault:
        kernels.launch("table", 1, count, kernels.zeros(64), kernels.put(indices), count)
    assert fault.value.status_name == "CUDA_ERROR_LAUNCH_FAILED"


@pytest.mark.parametrize("engine", ["numpy", "native", "auto"])
@pytest.mark.parametrize("body", ["", "at_the_end:", "call nothing, ();"])
def test_a_kernel_without_instructions_does_nothing(body: str, engine: str) -> None:
    module = load_module(f"{HEAD}.func nothing() {{ }}\n.visible .entry e() {{ {body} }}")
    kernels = Kernels(module, engine=engine)
    for cluster in (1, 2):
        kernels.launch("e", 4, 64, cluster=(cluster, 1, 1))
