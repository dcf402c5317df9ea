"""The device of an address, which is asked without the bindings because they misread the driver's answer."""

import ctypes

import pytest

import cudart_py as cuda
from cudart_py.driver import pointer_device

DEVICE_ORDINAL = 9


@pytest.fixture
def answered(monkeypatch):
    """Replace cuPointerGetAttribute by a function that answers device 5; yield a list of its arguments."""
    asked = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)
    def get_attribute(answer, attribute, address):
        asked.append((attribute, address))
        ctypes.cast(answer, ctypes.POINTER(ctypes.c_int))[0] = 5
        return 0 if address else 1

    address = ctypes.cast(get_attribute, ctypes.c_void_p).value
    result = pointer_device.driver.CUresult.CUDA_SUCCESS, address, None
    monkeypatch.setattr(pointer_device.driver, "cuGetProcAddress", lambda name, version, flags: result)
    pointer_device._function.cache_clear()
    yield asked
    pointer_device._function.cache_clear()


def test_the_drivers_own_answer_is_returned_and_an_unknown_address_is_an_error(answered):
    assert pointer_device.ordinal(0x7F0000000000) == (pointer_device.driver.CUresult.CUDA_SUCCESS, 5)
    assert answered == [(DEVICE_ORDINAL, 0x7F0000000000)]
    with pytest.raises(cuda.errors.InvalidValueError):
        cuda.check(pointer_device.ordinal(0))
