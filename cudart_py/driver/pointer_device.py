"""The device of an address, queried from the driver by a direct call instead of through the bindings.

`cuda.bindings` 13.0 to 13.3 always return 0 for CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, whatever the driver returns
(https://github.com/NVIDIA/cuda-python/issues/2928). All memory would seem to be on the first device.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from cuda.bindings import driver

# The CUDA version (4.0) that introduced the function in its present form.
_SINCE = 4000


@functools.cache
def _function() -> Any:
    _, address, _ = driver.cuGetProcAddress(b"cuPointerGetAttribute", _SINCE, 0)  # every driver has it
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)(int(address))


def ordinal(address: int) -> tuple[Any, int]:
    """Return a status and the ordinal of the device that an address is on, or was allocated for.

    For an address that the driver does not know, the status is an error (cuPointerGetAttribute).
    """
    found = ctypes.c_int(-1)
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    status = driver.CUresult(_function()(ctypes.byref(found), int(attribute), address))
    return status, found.value
