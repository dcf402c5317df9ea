"""Warp operations agree with the PTX manual's definitions, lane by lane; `tests/conformance` has a GPU's shuffles."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations import warp

WARPS = 6
UFUNCS = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip  # rows of a table


@pytest.mark.parametrize("everyone", [True, False])
def test_votes_matches_and_reductions(everyone: bool) -> None:
    """vote, match, redux and elect over groups of members that differ between the lanes of a warp"""
    rng = np.random.default_rng(4)
    taking_part = rng.integers(0, 4, (WARPS, 32)) > 0
    taking_part[0] = True
    taking_part[1] = np.arange(32) == 5
    if everyone:
        taking_part[:] = True
    active = None if everyone else taking_part
    parts = rng.integers(0, 2, (WARPS, 32)).astype(bool)
    parts[:3] = True
    groups = np.packbits(parts, axis=1, bitorder="little").view("<u4")
    members = np.where(parts, groups, ~groups).astype(np.uint32)
    value = rng.integers(-3, 4, (WARPS, 32), np.int32)
    truth = rng.integers(0, 7, (WARPS, 32)) > 2
    truth[3], truth[4] = True, False
    value[5] = 2
    ballots = warp.vote_ballot(truth, members, active)
    everything = {name: getattr(warp, f"vote_{name}")(truth, members, active) for name in ("any", "all", "uni")}
    same = warp.match_any(value, members, active)
    same_wide = warp.match_any(value.astype(np.float64), members, active)
    all_bits, all_same = warp.match_all(value, members, active)
    reduced = {name: warp.redux(name, value, members, active) for name in UFUNCS}
    unsigned = warp.redux("max", value.view(np.uint32), members, active)
    leader, elected = warp.elect(members, taking_part)
    for w in range(WARPS):
        for lane in np.flatnonzero(taking_part[w]):
            group = [k for k in range(32) if int(members[w, lane]) >> k & 1 and taking_part[w, k]]
            bits = sum(1 << k for k in group)
            votes = [bool(truth[w, k]) for k in group]
            assert ballots[w, lane] == sum(1 << k for k in group if truth[w, k])
            assert everything["any"][w, lane] == any(votes)
            assert everything["all"][w, lane] == all(votes)
            assert everything["uni"][w, lane] == (len(set(votes)) == 1)
            alike = sum(1 << k for k in group if value[w, k] == value[w, lane])
            assert same[w, lane] == same_wide[w, lane] == alike
            assert all_same[w, lane] == (alike == bits)
            assert all_bits[w, lane] == (bits if alike == bits else 0)
            for name, ufunc in UFUNCS.items():
                assert reduced[name][w, lane] == ufunc.reduce(value[w, group])
            assert unsigned[w, lane] == value[w, group].view(np.uint32).max()
            assert leader[w, lane] == group[0]
            assert elected[w, lane] == (lane == group[0])
