"""Warp operations agree with the PTX manual's definitions, lane by lane."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations import warp
from tests.simulator.ptx.operations.references import Array

WARPS = 6


def values(seed: int, dtype: type = np.uint32) -> Array:
    """Draw one value for each lane, with repeats."""
    return np.random.default_rng(seed).integers(0, 7, (WARPS, 32)).astype(dtype)


def masks(seed: int) -> Array:
    """Draw which lanes take part; the first warp has all, the second one lane."""
    active = np.random.default_rng(seed).integers(0, 4, (WARPS, 32)) > 0
    active[0] = True
    active[1] = False
    active[1, 5] = True
    return active


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Find a shuffle's source as the manual's pseudocode does."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    last = (lane & segment) | (clamp & ~segment)
    first = lane & segment
    j, within = {
        "up": (lane - b, lane - b >= last), "down": (lane + b, lane + b <= last),
        "bfly": (lane ^ b, (lane ^ b) <= last),
        "idx": (first | (b & ~segment), (first | (b & ~segment)) <= last),
    }[mode]  # fmt: skip  # rows of a table
    return (j if within else lane), within


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("everyone", [True, False])
def test_shuffles(mode: str, everyone: bool) -> None:
    """shfl with segments, by one distance or many; a lane that takes no part is not read"""
    value = np.random.default_rng(1).standard_normal((WARPS, 32)).astype(np.float32)
    active = None if everyone else masks(2)
    for width, distance in itertools.product((32, 8, 2), [*map(np.uint32, (0, 3, 16, 33)), values(3)]):
        control = np.uint32(((32 - width) << 8) | (0 if mode == "up" else 31))
        result, predicate = getattr(warp, f"shfl_{mode}")(value, distance, control, active)
        assert result.dtype == np.float32
        distances = np.broadcast_to(distance, value.shape)
        for w, lane in itertools.product(range(WARPS), range(32)):
            j, within = source_lane(mode, lane, int(distances[w, lane]), int(control))
            if active is not None and not active[w, j]:
                j = lane
            assert result[w, lane] == value[w, j]
            assert predicate[w, lane] == within


@pytest.mark.parametrize("everyone", [True, False])
def test_votes_matches_and_reductions(everyone: bool) -> None:
    """vote, match, redux and elect over groups of members that differ between the lanes of a warp"""
    rng = np.random.default_rng(4)
    active = None if everyone else masks(5)
    taking_part = np.ones((WARPS, 32), bool) if active is None else active
    parts = rng.integers(0, 2, (WARPS, 32)).astype(bool)
    parts[:3] = True
    groups = np.packbits(parts, axis=1, bitorder="little").view("<u4")
    members = np.where(parts, groups, ~groups).astype(np.uint32)
    value, truth = values(6).view(np.int32) - 3, values(7) > 2
    truth[3], truth[4] = True, False
    value[5] = 2
    ballots = warp.vote_ballot(truth, members, active)
    everything = {name: getattr(warp, f"vote_{name}")(truth, members, active) for name in ("any", "all", "uni")}
    same = warp.match_any(value, members, active)
    same_wide = warp.match_any(value.astype(np.float64), members, active)
    all_bits, all_same = warp.match_all(value, members, active)
    operations = ("add", "min", "max", "and", "or", "xor")
    reduced = {name: warp.redux(name, value, members, active) for name in operations}
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
            numbers = [int(value[w, k]) for k in group]
            assert reduced["add"][w, lane] == sum(numbers)
            assert reduced["min"][w, lane] == min(numbers)
            assert reduced["max"][w, lane] == max(numbers)
            assert unsigned[w, lane] == max(n & 0xFFFFFFFF for n in numbers)
            for name, ufunc in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
                assert reduced[name][w, lane] == ufunc.reduce(numbers)
            assert leader[w, lane] == group[0]
            assert elected[w, lane] == (lane == group[0])


def test_full_warps_take_the_short_way() -> None:
    """A full member mask as one scalar gives the same results"""
    value = values(8).view(np.int32) - 3
    full = np.uint32(0xFFFFFFFF)
    assert (warp.redux("add", value, full) == value.sum(axis=1, keepdims=True)).all()
    assert (warp.redux("and", value, full) == np.bitwise_and.reduce(value, axis=1, keepdims=True)).all()
    assert (warp.vote_all(value > -4, full)).all()
    active = masks(9)
    assert (warp.activemask(active) == np.packbits(active, axis=1, bitorder="little").view("<u4")).all()
