"""The places of matrices that descriptors of ``wgmma`` name, unit by unit, beside the layouts of CuTe's headers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.matrix_descriptors import unit_addresses

WIDTHS = {0: 1, 3: 2, 2: 4, 1: 8}


def descriptor(start: int, leading: int, stride: int, mode: int) -> np.ndarray:
    return np.array([start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62], np.uint64)


def swizzled(address: int, width: int) -> int:
    """Exchange the units of a piece by the number of the 128 bytes that the address lies in."""
    return address ^ (address // 128 % width * 16)


@pytest.mark.parametrize("mode", WIDTHS)
@pytest.mark.parametrize("start", [1024, 1024 + 32])
def test_rows_along_the_depth(mode: int, start: int) -> None:
    leading, stride, width = 2048, 4096, WIDTHS[mode]
    found = unit_addresses(descriptor(start, leading, stride, mode), 2, 64, turned=False)
    assert found.shape == (1, 64, 2)
    for row, unit in itertools.product(range(64), range(2)):
        # ((8, n), 2) : ((width, stride), 1), without swizzling ((8, n), 2) : ((1, stride), leading).
        step = leading if mode == 0 else 16
        place = start + row % 8 * width * 16 + row // 8 * stride + unit * step
        assert found[0, row, unit] == swizzled(place, width)


@pytest.mark.parametrize("mode", WIDTHS)
def test_columns_along_the_rows(mode: int) -> None:
    start, leading, stride, width = 2048, 8192, 1024, WIDTHS[mode]
    found = unit_addresses(descriptor(start, leading, stride, mode), 16, 16, turned=True)
    assert found.shape == (1, 16, 16)
    for depth, unit in itertools.product(range(16), range(16)):
        if mode == 0:
            # ((1, n), (8, k)) : ((_, stride), (1, leading))
            place = start + unit * stride + depth % 8 * 16 + depth // 8 * leading
        else:
            # ((width, n), (8, k)) : ((1, leading), (width, stride))
            place = start + unit % width * 16 + unit // width * leading + depth % 8 * width * 16 + depth // 8 * stride
        assert found[0, depth, unit] == swizzled(place, width)


def test_each_matrix_has_its_own_descriptor() -> None:
    both = np.concatenate([descriptor(1024, 16, 128, 0), descriptor(4096, 16, 256, 1)])
    found = unit_addresses(both, 2, 8, turned=False)
    assert found[0, 0, 0] == 1024
    assert found[1, 1, 0] == 4096 + (128 ^ 16)


def test_a_base_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="a base offset"):
        unit_addresses(descriptor(1024, 16, 128, 1) | np.uint64(1 << 49), 2, 8, turned=False)
