"""Lanes of a warp that wait at several instructions with the same qualifiers and member mask meet there.

Compilers copy such an instruction into both sides of a branch, which the PTX manual allows from sm_70 on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import HEAD, Kernels

LANES = 32 * 5
ALL = 0xFFFFFFFF
# Each instruction, and what it gives each lane of a warp by the values and the lanes that are members.
INSTRUCTIONS: dict[str, Any] = {
    "shfl.sync.idx.b32 r, x, 27, 31, m;": lambda x, members: np.full(32, x[27]),
    "shfl.sync.bfly.b32 r, x, 5, 31, m;": lambda x, members: x[np.arange(32) ^ 5],
    "vote.sync.ballot.b32 r, odd, m;": lambda x, members: np.full(32, bits(x & 1 & members)),
    "vote.sync.ballot.b32 r, !odd, m;": lambda x, members: np.full(32, bits(~x & 1 & members)),
    "match.any.sync.b32 r, x, m;": lambda x, members: np.array([bits((x == y) & members) for y in x]),
    "redux.sync.add.u32 r, x, m;": lambda x, members: np.full(32, np.sum(x, where=members, dtype=np.uint32)),
    "redux.sync.min.s32 r, x, m;": lambda x, members: np.full(32, x[members].view(np.int32).min()),
}


def bits(truth: Any) -> int:
    return sum(1 << lane for lane, each in enumerate(truth) if each)


def kernel(*sides: str, mask: str = f"mov.u32 m, {ALL};") -> str:
    """Return PTX whose lanes part by the value of another word into sides, and each store what they have in `r`."""
    labels = ", ".join(f"SIDE{number}" for number in range(len(sides)))
    parts = "\n".join(f"SIDE{number}: {text} bra.uni END;" for number, text in enumerate(sides))
    return f"""{HEAD}.visible .entry k(.param .u64 values, .param .u64 sides, .param .u64 found) {{
    .reg .b64 in, by, out, at; .reg .b32 lane, thread, x, side, r, m, t; .reg .pred odd;
    ld.param.u64 in, [values]; ld.param.u64 by, [sides]; ld.param.u64 out, [found];
    mov.u32 lane, %laneid; mov.u32 thread, %tid.x; mul.wide.u32 at, thread, 4;
    add.u64 in, in, at; add.u64 by, by, at; add.u64 out, out, at; ld.global.u32 x, [in]; ld.global.u32 side, [by];
    and.b32 t, x, 1; setp.ne.u32 odd, t, 0; mov.u32 r, 0; {mask}
TARGETS: .branchtargets {labels};
    brx.idx side, TARGETS;
{parts}
END:
    st.global.u32 [out], r;
}}"""


def results(text: str, x: Any, sides: Any, engine: str = "numpy") -> tuple[Any, list[str]]:
    """Return what the lanes store, and the findings of the checks."""
    kernels = Kernels(load_module(text))
    kernels.engine = engine
    out = kernels.zeros(len(x), np.uint32)
    findings.pending.clear()
    kernels.launch("k", 1, len(x), kernels.put(x), kernels.put(sides), out, observer=LaunchChecks())
    found = list(map(str, findings.pending))
    findings.pending.clear()
    return kernels.get(out, len(x), np.uint32), found


@pytest.fixture
def x() -> Any:
    # Few values, so that some of them match.
    return np.random.default_rng().integers(0, 9, LANES, np.uint32) * np.uint32(0x1F3D5B79)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_lanes_on_several_sides_of_a_branch_meet(instruction: str, count: int, engine: str, x: Any) -> None:
    sides = np.random.default_rng().integers(0, count, LANES, np.uint32)
    # A warp with a lane alone on its side, and one that doesn't part.
    sides[:32] = 0
    sides[7] = 1
    sides[32:64] = 1
    copies = [f"add.u32 t, lane, {number}; {instruction}" for number in range(count)]
    found, reports = results(kernel(*copies), x, sides, engine)
    members = np.ones(32, np.bool_)
    expected = [INSTRUCTIONS[instruction](warp, members) for warp in x.reshape(-1, 32)]
    np.testing.assert_array_equal(found.reshape(-1, 32), np.array(expected).astype(np.uint32))
    assert reports == []


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_lanes_meet_on_the_driver_in_use(instruction: str, x: Any, device: cuda.Device) -> None:
    sides = np.random.default_rng().integers(0, 2, LANES, np.uint32)
    found = cuda.zeros(LANES, np.uint32)
    cuda.Module(kernel(instruction, instruction).encode())["k"][1, LANES](
        cuda.to_device(x), cuda.to_device(sides), found
    )
    members = np.ones(32, np.bool_)
    expected = [INSTRUCTIONS[instruction](warp, members) for warp in x.reshape(-1, 32)]
    np.testing.assert_array_equal(found.to_host().reshape(-1, 32), np.array(expected).astype(np.uint32))


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_lanes_of_one_mask_meet_apart_from_those_of_another(instruction: str, x: Any) -> None:
    lower = np.arange(32) < 12
    mask = f"setp.lt.u32 odd, lane, 12; selp.b32 m, {bits(lower)}, {bits(~lower)}, odd; setp.ne.u32 odd, t, 0;"
    if instruction.startswith("shfl.sync.idx"):
        instruction = instruction.replace("27", "lane")
        expected = list(x.reshape(-1, 32))
    elif instruction.startswith("shfl"):
        # Lanes 8 to 11 would read from the other part.
        instruction, expected = instruction.replace(" 5,", " 3,"), [w[np.arange(32) ^ 3] for w in x.reshape(-1, 32)]
    else:
        parts = [(lower, INSTRUCTIONS[instruction]), (~lower, INSTRUCTIONS[instruction])]
        expected = [sum(np.where(part, f(w, part), 0) for part, f in parts) for w in x.reshape(-1, 32)]
    sides = np.random.default_rng().integers(0, 2, LANES, np.uint32)
    found, reports = results(kernel(instruction, instruction, mask=mask), x, sides)
    np.testing.assert_array_equal(found.reshape(-1, 32), np.array(expected).astype(np.uint32))
    assert reports == []


def test_lanes_meet_again_and_again(x: Any) -> None:
    """On one side a loop, on the other side its copies one after the other."""
    once = "shfl.sync.bfly.b32 r, x, 9, 31, m; add.u32 x, x, r;"
    loop = f"mov.u32 t, 0; AGAIN: {once} add.u32 t, t, 1; setp.lt.u32 odd, t, 4; @odd bra AGAIN;"
    sides = np.random.default_rng().integers(0, 2, LANES, np.uint32)
    found, reports = results(kernel(loop, once * 4), x, sides)
    expected = x.reshape(-1, 32).copy()
    for _ in range(4):
        received = expected[:, np.arange(32) ^ 9]
        expected = expected + received
    np.testing.assert_array_equal(found.reshape(-1, 32), received)
    assert reports == []


def test_lanes_that_synchronise_meet_and_see_what_the_others_stored(x: Any) -> None:
    wait = "xor.b64 at, out, 4; st.global.u32 [out], x; bar.warp.sync m; ld.global.u32 r, [at]; bar.warp.sync m;"
    sides = np.random.default_rng().integers(0, 2, LANES, np.uint32)
    found, reports = results(kernel(wait, wait), x, sides)
    np.testing.assert_array_equal(found, x.reshape(-1, 2)[:, ::-1].reshape(-1))
    assert reports == []


@pytest.mark.parametrize(
    "other",
    [
        "vote.sync.any.pred odd, odd, m;",
        "shfl.sync.up.b32 r, x, 1, 0, m;",
        "mov.u32 m, 0x7fffffff; shfl.sync.idx.b32 r, x, 0, 31, m;",
    ],
)
def test_other_qualifiers_and_masks_do_not_meet(other: str, x: Any) -> None:
    sides = np.arange(LANES, dtype=np.uint32) % 2
    _, reports = results(kernel("shfl.sync.idx.b32 r, x, 0, 31, m;", other), x, sides)
    assert any("member mask names threads that never come" in report for report in reports)


def test_machine_code_is_not_made_where_lanes_may_meet() -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    from cudart_py.simulator.ptx.native.errors import NotNative
    from cudart_py.simulator.ptx.native.instances import lay_out

    shuffle = "shfl.sync.idx.b32 r, x, 0, 31, m;"
    for sides in ([shuffle, shuffle], [shuffle, "mov.u32 r, 1;", f"{shuffle} {shuffle}"]):
        with pytest.raises(NotNative, match="both sides"):
            lay_out(program_of(load_module(kernel(*sides)).entries["k"]), 0)
    for sides in ([shuffle, "mov.u32 r, 1;"], [f"{shuffle} {shuffle}", "vote.sync.any.pred odd, odd, m;"]):
        lay_out(program_of(load_module(kernel(*sides)).entries["k"]), 0)
