"""A barrier in memory orders what was done before its arrivals, and nothing that was only done before another's."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx import Fault, load_module
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, compiled, found, watched
from tests.simulator.ptx.machine import Kernels

pytestmark = WRONG_ON_PURPOSE

# The shape of each kernel, and its mistakes with what a race does there.
KERNELS = {
    "ring": ((1, 128), {1: "writes", 2: "writes", 3: "writes"}),
    "next_phase": ((1, 64), {1: "writes"}),
    "chain": ((1, 128), {1: "reads"}),
    "named_between": ((1, 128), {}),
    "flag_between": ((1, 128), {}),
    "other_blocks": ((3, 64), {}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_barriers_put_in_order_is_no_race_and_all_else_is(name):
    shape, mistakes = KERNELS[name]
    given = cuda.to_device(np.arange(1, 1025, dtype=np.int32))
    launch = compiled("synchronisation.cu")[name][shape]
    assert found(launch, cuda.zeros(1024, np.int32), given, 0) == []
    for wrong, verb in mistakes.items():
        texts = found(launch, cuda.zeros(1024, np.int32), given, wrong)
        assert any(f"race: it {verb} 4 bytes of shared memory" in text for text in texts), (wrong, texts)


WILD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry wild(.param .u64 address) {{
    .reg .b64 %rd<3>;
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [address];
    {instruction};
    ret;
}}
"""


@pytest.mark.parametrize("address", [512, 0xFFF8, (1 << 31) - 8, (1 << 47) + (1 << 30), (1 << 63) - 8])
@pytest.mark.parametrize(
    "instruction",
    [
        "mbarrier.init.shared.b64 [%rd1], 1",
        "mbarrier.init.b64 [%rd1], 1",
        "mbarrier.arrive.shared.b64 %rd2, [%rd1]",
        "cp.async.mbarrier.arrive.shared.b64 [%rd1]",
    ],
)
def test_a_barrier_at_a_wild_address_is_a_fault(instruction, address):
    kernels = Kernels(load_module(WILD.format(instruction=instruction)))
    with pytest.raises(Fault):
        watched(kernels, "numpy", "wild", 1, 32, address)
