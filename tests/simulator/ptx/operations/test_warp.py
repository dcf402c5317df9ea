"""Votes, matches and elections in several groups of lanes of a warp, some of them inactive.

The GPU's results in `tests/conformance` are for one or two groups.
"""

import numpy as np

from cudart_py.simulator.ptx.operations import warp

WARPS = 6


def test_groups_vote_match_and_elect() -> None:
    rng = np.random.default_rng(4)
    active = rng.integers(0, 4, (WARPS, 32)) > 0
    active[1] = np.arange(32) == 5
    parts = rng.integers(0, 2, (WARPS, 32)).astype(bool)
    groups = np.packbits(parts, axis=1, bitorder="little").view("<u4")
    members = np.where(parts, groups, ~groups).astype(np.uint32)
    value = rng.integers(-3, 4, (WARPS, 32), np.int32)
    value[5] = 2
    uniform = warp.vote("uni", value > 1, members, active)
    all_bits, all_same = warp.match("all", value, members, active)
    ufuncs = {"min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "xor": np.bitwise_xor}
    reduced = {name: warp.redux(name, value, members, active) for name in ufuncs}
    leader, elected = warp.elect("", np.arange(32, dtype=np.uint32), members, active)
    for w, lane in zip(*np.nonzero(active), strict=True):
        group = [k for k in range(32) if int(members[w, lane]) >> k & 1 and active[w, k]]
        alike = len(set(value[w, group])) == 1
        assert uniform[w, lane] == (len(set(value[w, group] > 1)) == 1)
        assert all_same[w, lane] == alike
        assert all_bits[w, lane] == alike * sum(1 << k for k in group)
        assert all(reduced[name][w, lane] == ufunc.reduce(value[w, group]) for name, ufunc in ufuncs.items())
        assert (leader[w, lane], elected[w, lane]) == (group[0], lane == group[0])
