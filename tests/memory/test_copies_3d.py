"""Copies of box-shaped windows of 3-D arrays."""

import numpy as np

import cudart_py as cuda


def test_boxes_by_memcpy3d_and_slices_by_memcpy_are_one_copy(device, driver_calls):
    host = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    array = cuda.zeros((6, 7, 8), np.float32)
    out = np.zeros((2, 3, 4), np.float32)
    expected = np.zeros((6, 7, 8), np.float32)
    expected[1:3, 2:5, 3:7] = host[2:4, 1:4, 0:4]
    driver_calls.clear()
    cuda.memcpy3d(array, host, (2, 3, 4), dst_start=(1, 2, 3), src_start=(2, 1, 0))
    np.testing.assert_array_equal(array.to_host(), expected)
    cuda.memcpy(out, array[1:3, 2:5, 3:7])
    np.testing.assert_array_equal(out, expected[1:3, 2:5, 3:7])
    asked = {name: count for name, count in driver_calls.items() if "Memcpy" in name}
    assert asked == {"cuMemcpy3DAsync": 2, "cuMemcpyDtoHAsync": 1}


def test_the_whole_of_the_source_is_the_default_as_far_as_the_destination_goes(device):
    host = np.arange(24.0).reshape(2, 3, 4)
    array = cuda.zeros((3, 4, 5))
    cuda.memcpy3d(array, host, dst_start=(1, 1, 1))
    expected = np.zeros((3, 4, 5))
    expected[1:, 1:, 1:] = host
    np.testing.assert_array_equal(array.to_host(), expected)
    out = np.zeros((1, 2, 2))
    cuda.memcpy3d(out, array, src_start=(2, 2, 3))
    np.testing.assert_array_equal(out, expected[2:, 2:, 3:])
