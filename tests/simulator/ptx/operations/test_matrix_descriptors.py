"""The places of matrices that descriptors of ``wgmma`` name, unit by unit, beside the layouts of CuTe's headers."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.matrix_descriptors import unit_addresses

WIDTHS = {0: 1, 3: 2, 2: 4, 1: 8}
START, LEADING, STRIDE = 1024 + 32, 2048, 4096


def descriptor(mode: int, start: int = START) -> np.ndarray:
    return np.array([start >> 4 | LEADING >> 4 << 16 | STRIDE >> 4 << 32 | mode << 62], np.uint64)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("mode", WIDTHS)
def test_units_lie_where_the_layout_puts_them(mode: int, turned: bool) -> None:
    width, units = WIDTHS[mode], 16 if turned else 2
    found = unit_addresses(descriptor(mode), units, 64, turned=turned)
    assert found.shape == (1, 64, units)
    for line, unit in np.ndindex(64, units):
        place = START + line % 8 * width * 16
        if not turned:
            # ((8, n), 2) : ((width, stride), 1), without swizzling ((8, n), 2) : ((1, stride), leading).
            place += line // 8 * STRIDE + unit * (LEADING if mode == 0 else 16)
        elif mode == 0:
            # ((1, n), (8, k)) : ((_, stride), (1, leading))
            place += unit * STRIDE + line // 8 * LEADING
        else:
            # ((width, n), (8, k)) : ((1, leading), (width, stride))
            place += unit % width * 16 + unit // width * LEADING + line // 8 * STRIDE
        # The units of a piece are exchanged by the number of the 128 bytes that the address lies in.
        assert found[0, line, unit] == place ^ (place // 128 % width * 16)


def test_each_matrix_has_its_own_descriptor() -> None:
    both = unit_addresses(np.concatenate([descriptor(0), descriptor(1, 4096)]), 2, 8, turned=False)
    np.testing.assert_array_equal(both[1:], unit_addresses(descriptor(1, 4096), 2, 8, turned=False))


def test_a_base_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="a base offset"):
        unit_addresses(descriptor(1) | np.uint64(1 << 49), 2, 8, turned=False)
