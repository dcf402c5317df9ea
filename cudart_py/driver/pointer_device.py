"""The device of an address, asked of the driver without the bindings' reading of the answer.

`cuda.bindings` 13.0 to 13.3 return 0 for CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL whatever the driver answers
(https://github.com/NVIDIA/cuda-python/issues/2928), so that memory of every device would seem to be the first one's.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from cuda.bindings import driver

# Since this version the driver has had the function in its present form.
_SINCE = 4000


@functools.cache
def _function() -> Any:
    _, address, _ = driver.cuGetProcAddress(b"cuPointerGetAttribute", _SINCE, 0)  # which every driver has
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)(int(address))


def ordinal(address: int) -> tuple[Any, int]:
    """Return a status and the ordinal of the device that an address is on, or was allocated for.

    The status is an error's for an address that the driver does not know (cuPointerGetAttribute).
    """
    found = ctypes.c_int(-1)
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    status = driver.CUresult(_function()(ctypes.byref(found), int(attribute), address))
    return status, found.value
