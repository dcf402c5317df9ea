"""Addresses at the ends of 64 and 32 bits are refused in every space, at every width, by both engines."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, load_module
from tests.simulator.ptx.machine import HEAD, Kernels

# An instruction, the bytes that it touches, and the registers that it reads or writes.
ACCESSES = {
    "ld{space}.u8 %r1, [%rd2];": 1,
    "ld{space}.u16 %h1, [%rd2];": 2,
    "ld{space}.u32 %r1, [%rd2];": 4,
    "ld{space}.u64 %rd3, [%rd2];": 8,
    "ld{space}.v2.u64 {{%rd3, %rd4}}, [%rd2];": 16,
    "ld{space}.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd2];": 16,
    "st{space}.u8 [%rd2], %r1;": 1,
    "st{space}.u32 [%rd2], %r1;": 4,
    "st{space}.u64 [%rd2], %rd3;": 8,
    "st{space}.v4.u32 [%rd2], {{%r1, %r2, %r3, %r4}};": 16,
    "atom{space}.add.u32 %r1, [%rd2], 1;": 4,
    "red{space}.add.u64 [%rd2], 1;": 8,
    "atom{space}.cas.b64 %rd3, [%rd2], %rd3, %rd3;": 8,
}
SPACES = ["", ".global", ".shared", ".local"]
CASES = [
    (space, access)
    for space in SPACES
    for access in ACCESSES
    if not (space == ".local" and access.startswith(("atom", "red")))
]
# Shared memory has addresses of 32 bits, whatever is above them in a register.
EDGES = {".shared": (1 << 31, 1 << 32)}
WIDE = (1 << 31, 1 << 32, 1 << 62, 1 << 63, 1 << 64)

PTX = (
    HEAD
    + """.visible .entry wild(.param .u64 address, .param .u32 lane) {{
    .reg .u16 %h<2>; .reg .u32 %r<6>; .reg .u64 %rd<6>; .reg .pred %p<2>;
    .shared .align 16 .b8 block[64];
    .local .align 16 .b8 own[64];
    mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u64 %rd3, 0; mov.u64 %rd4, 0;
    ld.param.u64 %rd2, [address];
    ld.param.u32 %r5, [lane];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, %r5;
    @%p1 bra done;
    {instruction}
done:
    ret;
}}
"""
)


@pytest.mark.parametrize(("space", "access"), CASES)
def test_a_wild_address_is_refused(engine: str, space: str, access: str) -> None:
    size = ACCESSES[access]
    kernels = Kernels(load_module(PTX.format(instruction=access.format(space=space))))
    kernels.engine = engine
    kernels.put(np.zeros(64, np.int32))
    for edge in EDGES.get(space, WIDE):
        for distance in (-size, 0, size):
            address = (edge + distance) % (1 << 64)
            mask = (1 << 32) - 1 if space == ".shared" else (1 << 64) - 1
            if space in (".shared", ".local") and address & mask < 2048:
                continue  # the hardware cuts it to a right one
            with pytest.raises(Fault) as caught:
                kernels.launch("wild", 1, 32, address, 5)
            text = str(caught.value)
            assert caught.value.status_name == "CUDA_ERROR_ILLEGAL_ADDRESS", text
            assert f"of {size} byte" in text
            assert "thread (5, 0, 0)" in text
            assert f"at {address & mask:#x} is out of bounds" in text


@pytest.mark.parametrize("space", ["", ".global"])
def test_one_wild_lane_among_right_ones_is_refused(engine: str, space: str) -> None:
    instruction = "mul.wide.u32 %rd4, %r1, 8; add.u64 %rd2, %rd2, %rd4; ld.global.u64 %rd2, [%rd2];"
    text = PTX.replace("@%p1 bra done;", "").format(instruction=f"{instruction} ld{space}.u32 %r1, [%rd2];")
    kernels = Kernels(load_module(text))
    kernels.engine = engine
    data = kernels.put(np.zeros(64, np.int32))
    for wild in ((1 << 63) - 4, 1 << 63, (1 << 64) - 4, (1 << 62) - 4):
        pointers = np.full(32, data, np.uint64)
        kernels.launch("wild", 1, 32, kernels.put(pointers), 0)
        pointers[7] = wild
        with pytest.raises(Fault, match=rf"at {wild:#x} is out of bounds.*thread \(7, 0, 0\)"):
            kernels.launch("wild", 1, 32, kernels.put(pointers), 0)
