"""Lanes of a warp that wait at different instructions with the same qualifiers and member mask converge there.

Compilers may duplicate such an instruction into both sides of a branch, which the PTX manual allows from sm_70 on.
"""

from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.checks.reports import take_findings
from tests.simulator.ptx.machine import HEAD, Kernels

LANES = 32 * 5
# By instruction: the results for the lanes of a warp, given their values and which lanes are members. The register
# `first` contains the index of the first member.
INSTRUCTIONS: dict[str, Any] = {
    "shfl.sync.idx.b32 r, x, first, 31, m;": lambda x, members: np.full(32, x[members][0]),
    "shfl.sync.bfly.b32 r, x, 3, 31, m;": lambda x, members: x[np.arange(32) ^ 3],
    "vote.sync.ballot.b32 r, odd, m;": lambda x, members: np.full(32, bits(x & 1 & members)),
    "vote.sync.ballot.b32 r, !odd, m;": lambda x, members: np.full(32, bits(~x & 1 & members)),
    "match.any.sync.b32 r, x, m;": lambda x, members: np.array([bits((x == y) & members) for y in x]),
    "redux.sync.add.u32 r, x, m;": lambda x, members: np.full(32, np.sum(x, where=members, dtype=np.uint32)),
    "redux.sync.min.s32 r, x, m;": lambda x, members: np.full(32, x[members].view(np.int32).min()),
}
# Each lane loads the value that its neighbour stored before both synchronised.
SYNCHRONISED = "xor.b64 at, out, 4; st.global.u32 [out], x; bar.warp.sync m; ld.global.u32 r, [at]; bar.warp.sync m;"
INSTRUCTIONS[SYNCHRONISED] = lambda x, members: x[np.arange(32) ^ 1]
# Partitions of the warp into groups of lanes with a common member mask.
WHOLE = [np.ones(32, np.bool_)]
PARTS = [np.arange(32) < 12, np.arange(32) >= 12]


def bits(truth: Any) -> int:
    return sum(1 << lane for lane, each in enumerate(truth) if each)


def expected(instruction: str, x: Any, parts: list[Any]) -> Any:
    """Return the results of an instruction for all lanes."""
    function = INSTRUCTIONS[instruction]
    found = [sum(np.where(part, function(warp, part), 0) for part in parts) for warp in x.reshape(-1, 32)]
    return np.array(found).astype(np.uint32).reshape(-1)


def kernel(*sides: str, parts: list[Any] = WHOLE) -> str:
    """Return PTX whose lanes diverge to the sides that another array gives; each lane then stores its register `r`."""
    labels = ", ".join(f"SIDE{number}" for number in range(len(sides)))
    texts = "\n".join(f"SIDE{number}: {text} bra.uni END;" for number, text in enumerate(sides))
    masks, firsts = [bits(part) for part in parts], [int(part.argmax()) for part in parts]
    return f"""{HEAD}.visible .entry k(.param .u64 values, .param .u64 sides, .param .u64 found) {{
    .reg .b64 in, by, out, at; .reg .b32 lane, thread, x, side, r, m, t, first; .reg .pred odd;
    ld.param.u64 in, [values]; ld.param.u64 by, [sides]; ld.param.u64 out, [found];
    mov.u32 lane, %laneid; mov.u32 thread, %tid.x; mul.wide.u32 at, thread, 4;
    add.u64 in, in, at; add.u64 by, by, at; add.u64 out, out, at; ld.global.u32 x, [in]; ld.global.u32 side, [by];
    setp.lt.u32 odd, lane, 12; selp.b32 m, {masks[0]}, {masks[-1]}, odd; selp.b32 first, {firsts[0]}, {firsts[-1]}, odd;
    and.b32 t, x, 1; setp.ne.u32 odd, t, 0; mov.u32 r, 0;
TARGETS: .branchtargets {labels};
    brx.idx side, TARGETS;
{texts}
END:
    st.global.u32 [out], r;
}}"""


def results(text: str, x: Any, sides: Any, engine: str = "numpy") -> tuple[Any, list[str]]:
    """Return the values that the lanes store, and the findings of the checks."""
    kernels = Kernels(load_module(text), engine=engine)
    out = kernels.zeros(len(x), np.uint32)
    take_findings()
    arguments = kernels.put(x), kernels.put(sides), out
    # The native engine runs without the checks: with them, NumPy would rerun a launch that machine code gets wrong.
    kernels.launch("k", 1, len(x), *arguments, observer=None if engine == "native" else LaunchChecks())
    return kernels.get(out, len(x), np.uint32), take_findings()


@pytest.fixture
def x() -> Any:
    # There are few different values, so some lanes match.
    return np.random.default_rng().integers(0, 9, LANES, np.uint32) * np.uint32(0x1F3D5B79)


@pytest.fixture
def sides() -> Any:
    """Return the side of each lane; in one warp, a lane is alone on its side, and one warp does not diverge."""
    sides = np.random.default_rng().integers(0, 2, LANES, np.uint32)
    sides[:32] = 0
    sides[7] = 1
    sides[32:64] = 1
    return sides


@pytest.mark.parametrize("parts", [WHOLE, PARTS], ids=["one mask", "two masks"])
@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_lanes_on_several_sides_of_a_branch_meet_those_of_their_mask(instruction, parts, engine, x, sides):
    sides[64:] += np.random.default_rng().integers(0, 2, LANES - 64, np.uint32)
    copies = [f"add.u32 t, lane, {number}; {instruction}" for number in range(3)]
    found, reports = results(kernel(*copies, parts=parts), x, sides, engine)
    np.testing.assert_array_equal(found, expected(instruction, x, parts))
    assert reports == []


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_lanes_meet_on_the_driver_in_use(instruction, x, sides, device):
    found = cuda.zeros(LANES, np.uint32)
    loaded = cuda.Module(kernel(instruction, instruction).encode())["k"]
    loaded[1, LANES](cuda.to_device(x), cuda.to_device(sides), found)
    np.testing.assert_array_equal(found.to_host(), expected(instruction, x, WHOLE))


def test_lanes_meet_again_and_again(x, sides):
    """One side executes a loop, and the other the unrolled iterations."""
    once = "shfl.sync.bfly.b32 r, x, 9, 31, m; add.u32 x, x, r;"
    loop = f"mov.u32 t, 0; AGAIN: {once} add.u32 t, t, 1; setp.lt.u32 odd, t, 4; @odd bra AGAIN;"
    found, reports = results(kernel(loop, once * 4), x, sides)
    for _ in range(4):
        received = x.reshape(-1, 32)[:, np.arange(32) ^ 9].reshape(-1)
        x = x + received
    np.testing.assert_array_equal(found, received)
    assert reports == []


SHUFFLE = "shfl.sync.idx.b32 r, x, 0, 31, m;"


@pytest.mark.parametrize(
    "other",
    ["vote.sync.any.pred odd, odd, m;", "shfl.sync.up.b32 r, x, 1, 0, m;", f"mov.u32 m, 0x7fffffff; {SHUFFLE}"],
)
def test_other_qualifiers_and_masks_do_not_meet(other, x):
    _, reports = results(kernel(SHUFFLE, other), x, np.arange(LANES, dtype=np.uint32) % 2)
    assert any("member mask names threads that never reach" in report for report in reports)


@pytest.mark.parametrize("sides", [(SHUFFLE, "mov.u32 r, 1;"), (SHUFFLE * 2, "vote.sync.any.pred odd, odd, m;")])
def test_machine_code_is_made_where_lanes_cannot_meet(sides):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    from cudart_py.simulator.ptx.native.instances import lay_out

    lay_out(program_of(load_module(kernel(*sides)).entries["k"]), 0)
