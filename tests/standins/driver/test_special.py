"""Functions of the stand-in for libcuda that take C arrays."""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.standins.driver import special
from cudart_py.standins.driver.marshalling import copy_structure
from cudart_py.standins.driver.table import implementation
from cudart_py.standins.functions import driver_functions

ADDRESS = 1 << 20
# The element type f32, and the modes: not interleaved, a swizzle of 32 bytes, no promotion, and NaN outside.
FLOAT, MODES = 7, (0, 1, 0, 1)


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setattr(special, "_simulator", lambda: driver)
    assert not driver.cuInit(0)[0]
    # A tensor map needs a current context.
    assert not driver.cuCtxPushCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])[0]
    yield
    driver.cuCtxPopCurrent()
    driver.cuDevicePrimaryCtxRelease(0)


def encode(place, axes, **null):
    """Encode a tensor map whose arrays have only as many elements as they need, or are null pointers."""
    lists = {"sizes": ([40, 9], "u8"), "strides": ([160], "u8"), "box": ([8, 3], "u4"), "steps": ([1, 2], "u4")}
    arrays = {name: np.array(values, kind) for name, (values, kind) in lists.items()}
    call = implementation(driver_functions()["cuTensorMapEncodeTiled"])
    addresses = {name: array.ctypes.data for name, array in arrays.items()} | null
    return call(place, FLOAT, axes, ADDRESS, *addresses.values(), *MODES)


def test_a_tensor_map_is_encoded_from_c_arrays():
    room = ctypes.create_string_buffer(b"\xa5" * 256, 256)
    place = -(-ctypes.addressof(room) // 64) * 64
    assert encode(place, 2) == 0
    status, expected = driver.cuTensorMapEncodeTiled(FLOAT, 2, ADDRESS, [40, 9], [160], [8, 3], [1, 2], *MODES)
    assert status == 0
    assert ctypes.string_at(place, 128) == ctypes.string_at(expected.getPtr(), 128)
    assert ctypes.string_at(place + 128, 8) == b"\xa5" * 8


def test_even_one_axis_needs_strides():
    room = ctypes.create_string_buffer(256)
    place = -(-ctypes.addressof(room) // 64) * 64
    assert (encode(place, 1, strides=0), encode(place, 1)) == (1, 0)


@pytest.mark.parametrize("axes", [0, 6])
def test_a_wrong_number_of_dimensions_is_refused(axes):
    assert encode(0, axes) == 1


def test_a_tensor_map_needs_a_place():
    assert encode(0, 2) == 1


@pytest.mark.parametrize("name", ["CUipcEventHandle", "CUipcMemHandle", "CUmemPoolPtrExportData"])
def test_structures_whose_members_the_bindings_hide_are_copied_as_bytes(name):
    source, target = getattr(bindings, name)(), getattr(bindings, name)()
    ctypes.memmove(source.getPtr(), bytes(range(64)), 64)
    copy_structure(target, source)
    assert ctypes.string_at(target.getPtr(), 64) == bytes(range(64))
