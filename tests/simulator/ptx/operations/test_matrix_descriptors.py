"""Addresses that ``wgmma``'s matrix descriptors describe, unit by unit, compared with the layouts in CuTe's headers."""

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.matrix_descriptors import unit_addresses

WIDTHS = {0: 1, 3: 2, 2: 4, 1: 8}
START, LEADING, STRIDE = 1024 + 32, 2048, 4096


@pytest.mark.parametrize("turned", [False, True])
def test_units_lie_where_the_layout_puts_them(turned: bool) -> None:
    """Each matrix has its own descriptor, with its own swizzle mode and start address."""
    units = 16 if turned else 2
    starts = START + 8192 * np.arange(len(WIDTHS))
    fixed = LEADING >> 4 << 16 | STRIDE >> 4 << 32
    descriptors = [int(start) >> 4 | fixed | mode << 62 for start, mode in zip(starts, WIDTHS, strict=True)]
    found = unit_addresses(np.array(descriptors, np.uint64), units, 64, turned=turned)
    assert found.shape == (len(WIDTHS), 64, units)
    for matrix, line, unit in np.ndindex(found.shape):
        width = list(WIDTHS.values())[matrix]
        place = starts[matrix] + line % 8 * width * 16
        if not turned:
            # ((8, n), 2) : ((width, stride), 1), without swizzling ((8, n), 2) : ((1, stride), leading).
            place += line // 8 * STRIDE + unit * (LEADING if width == 1 else 16)
        elif width == 1:
            # ((1, n), (8, k)) : ((_, stride), (1, leading))
            place += unit * STRIDE + line // 8 * LEADING
        else:
            # ((width, n), (8, k)) : ((1, leading), (width, stride))
            place += unit % width * 16 + unit // width * LEADING + line // 8 * STRIDE
        # Swizzling XORs the index of the unit with the index of the 128 bytes that contain the address.
        assert found[matrix, line, unit] == place ^ (place // 128 % width * 16)


def test_a_base_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="a base offset"):
        unit_addresses(np.array([1 << 62 | 1 << 49], np.uint64), 2, 8, turned=False)
