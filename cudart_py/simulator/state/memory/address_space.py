"""The address space: the region for device memory, and a view of every byte that the process can address."""

from __future__ import annotations

import ctypes
import platform
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .region import Region


class AddressSpace:
    """The address space of this process, which the simulated devices share.

    Only allocations and registered host memory may be accessed through the view `bytes`. The view covers the whole
    address space, so that registered host memory needs no device address of its own.
    """

    # No process has memory below this address, and no page is larger than this.
    base = 65536

    @cached_property
    def region(self) -> Region:
        """Return the reserved region, which the first use creates."""
        return Region()

    @cached_property
    def bytes(self) -> NDArray[np.uint8]:
        """Return a view of all bytes from the address `base` on."""
        end = 1 << (47 if platform.machine() == "x86_64" else 48)
        pointer = ctypes.cast(self.base, ctypes.POINTER(ctypes.c_uint8))
        return np.ctypeslib.as_array(pointer, shape=(end - self.base,))

    def window(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DTypeLike = np.uint8
    ) -> NDArray[Any]:
        """Return a view of memory anywhere in the process, which the caller has checked; strides are in bytes."""
        return np.ndarray(shape, dtype, self.bytes, address - self.base, strides)


space = AddressSpace()
