"""A transform inside a kernel that is written in Python, with cuFFTDx through nvmath.device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..stop import Row
from .high_level import runs_on_gpu
from .judgement import judged, relative_error, skipped_row

TITLE = "in a kernel, cuFFTDx"
LENGTH = 128
INSTALLS = "pip install 'nvmath-python[cu13-dx]'"


def device_row(bound: float) -> Row:
    """Transform rows in a kernel, or return the row that says why that is not possible here."""
    if not runs_on_gpu():
        return skipped_row(TITLE, "kernels of numba-cuda need a GPU")
    x = np.random.default_rng().standard_normal((8, LENGTH)) + 1j * np.random.default_rng().standard_normal((8, LENGTH))
    try:
        got = transformed(x)
    except Exception as error:  # numba, nvmath.device or MathDx is missing, or does not fit the others
        reason = (str(error) or type(error).__name__).partition("\n")[0]
        return skipped_row(TITLE, f"{reason}; {INSTALLS} installs what this needs")
    return judged(TITLE, "cuFFTDx", relative_error(got, np.fft.fft(x)), bound)


def transformed(x: NDArray[Any]) -> NDArray[Any]:
    """Return the transforms of rows, each of which the threads of a block compute together."""
    import nvmath.device
    from numba import cuda as numba_cuda

    fft = nvmath.device.FFT(
        fft_type="c2c", size=LENGTH, precision=np.float64, direction="forward", execution="Block", ffts_per_block=1
    )
    elements, stride, storage, dtype = fft.elements_per_thread, fft.stride, fft.storage_size, fft.value_type

    def transform(rows: Any) -> None:
        """Each thread holds some elements of a row in registers; they meet in shared memory."""
        own = numba_cuda.local.array(shape=(storage,), dtype=dtype)
        shared = numba_cuda.shared.array(shape=(0,), dtype=dtype)
        row, first = numba_cuda.blockIdx.x, numba_cuda.threadIdx.x
        for i in range(elements):
            own[i] = rows[row, first + i * stride]
        fft.execute(own, shared)
        for i in range(elements):
            rows[row, first + i * stride] = own[i]

    array = cuda.to_device(x)  # numba-cuda takes a DeviceArray without a copy
    numba_cuda.jit(transform)[x.shape[0], fft.block_dim, 0, fft.shared_memory_size](array)
    numba_cuda.synchronize()
    return array.to_host()
