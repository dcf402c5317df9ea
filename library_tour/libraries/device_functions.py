"""Transforms and products inside kernels that are written in Python: cuFFTDx and cuBLASDx through nvmath.device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import interop, libraries

from .. import timing
from ..checks import poisoned
from ..device_code import WAVES, blocks_for, load
from ..stop import Limit, Row
from .judgement import judged, relative_error, skipped_row, work_of
from .precisions import exact, numbers, on_device, unit_roundoff

# The lengths of the rows that are filtered, and of those whose transform is a product.
LENGTH, SHORT = 256, 32
CHECKED_ROWS = 96
BLOCK = 256
# The rows that a block multiplies at a time, and its threads.
TILE_ROWS, THREADS = 32, 128

Array = NDArray[Any]
# Queues the work of a row: reads the rows, and writes as many others.
Work = Callable[[cuda.DeviceArray, cuda.DeviceArray], Callable[[], object]]


def device_rows(count: int, limit: Limit) -> list[Row]:
    """Filter rows and transform short ones with device functions, and compare with calls of the libraries.

    Times are for `count` elements.
    """
    reason = missing()
    # A low-pass filter. Its elements include the division by the number of points.
    waves = np.minimum(np.arange(LENGTH), LENGTH - np.arange(LENGTH))
    response = (np.exp(-((waves / 32) ** 2)) / LENGTH).astype(np.complex64)
    # The transform of a row is a product with this matrix, which is symmetric.
    points = np.arange(SHORT)
    matrix = np.exp(-2j * np.pi * (points[:, None] * points % SHORT) / SHORT).astype(np.complex64)
    weights, factors = cuda.to_device(response), cuda.to_device(matrix)
    works: dict[str, tuple[int, Callable[[Array], Array], Callable[[], Work]]] = {
        "filter, cuFFTDx": (LENGTH, lambda x: filtered(x, response), lambda: filter_in_a_kernel(weights)),
        "filter, cuFFT": (LENGTH, lambda x: filtered(x, response), lambda: filter_in_three_calls(weights)),
        "product, cuBLASDx": (SHORT, lambda x: x @ exact(matrix), lambda: product_in_a_kernel(factors)),
        "product, cuBLAS": (SHORT, lambda x: x @ exact(matrix), lambda: product_in_a_call(factors)),
    }
    rows = []
    for title, (length, reference, make_work) in works.items():
        by = title.split()[-1]
        if reason and by.endswith("Dx"):
            rows.append(skipped_row(title, reason))
            continue
        x = numbers((CHECKED_ROWS, length), np.complex64)
        source, out, work = cuda.to_device(x), poisoned(x.shape, np.complex64), make_work()
        work(source, out)()
        # Relative to the norm of all waves, since a filter removes most of them.
        scale = float(np.linalg.norm(x) * (np.sqrt(length) if "product" in title else 1))
        error = relative_error(exact(out.to_host()), reference(exact(x)), scale)
        timed = None
        if timing.available():
            large = [on_device((max(count // length, 1), length), np.complex64) for _ in range(2)]
            timed = work(*large)
        rows.append(judged(title, by, error, bound_of(title), work=timed, amount=16 * count, limit=limit,
                           does=work_of(0, x, out)))  # fmt: skip  # grouped by meaning
    return rows


def bound_of(title: str) -> float:
    """Return the largest allowed error: several rounding errors per factor of two in a length, or per term of a sum."""
    unit = unit_roundoff(np.dtype(np.complex64))
    # A filter is two transforms; a complex product of matrices has sums of two products per term.
    return float(2 * 16 * unit * np.log2(LENGTH) if "filter" in title else 4 * SHORT * unit)


def filtered(x: Array, response: Array) -> Array:
    """Return the filtered rows, in extended precision."""
    from scipy import fft as reference

    spectrum = reference.fft(x) * exact(response) * LENGTH
    result: Array = reference.ifft(spectrum)
    return result


def missing() -> str:
    """Return the reason why kernels cannot call the device functions here; empty if they can."""
    try:
        import numba_cuda  # noqa: F401  # without it, nvmath.device can be imported, but not called in kernels
        import nvmath.device  # noqa: F401  # it loads MathDx's library
    except Exception as error:  # a missing package raises ImportError, a missing library errors of nvmath's own
        text = (str(error) or type(error).__name__).partition("\n")[0]
        if "driver" in text:
            return "nvmath.device needs libcuda; on the simulator, `cudart-py run -m library_tour run fft` provides it"
        return f'{text}; the `dx` extra installs what this needs: pip install "cudart-py[dx]"'
    return ""


def filter_in_three_calls(response: cuda.DeviceArray) -> Work:
    """Transform, multiply in a kernel, and transform back: three passes over the rows."""

    def work(rows: cuda.DeviceArray, out: cuda.DeviceArray) -> Callable[[], object]:
        multiply = load("fft")["multiply"][blocks_for(rows.size, BLOCK), BLOCK].bind(out, response, LENGTH, rows.size)

        def queue() -> None:
            libraries.fft(rows, out)
            multiply()
            libraries.ifft(out, out, norm="forward")

        return queue

    return work


def filter_in_a_kernel(response: cuda.DeviceArray) -> Work:
    """Do the same in one kernel: a row stays in the registers of its threads from the first transform to the last."""
    from numba import cuda as numba_cuda
    from nvmath.device import FFT, ComputeCapability

    forward, inverse = (
        FFT(size=LENGTH, precision=np.float32, fft_type="c2c", direction=direction, execution="Block",
            ffts_per_block="suggested", sm=ComputeCapability(*cuda.current_device().compute_capability))
        for direction in ("forward", "inverse")
    )  # fmt: skip  # grouped by meaning
    elements, stride, per_block = forward.elements_per_thread, forward.stride, forward.ffts_per_block
    storage, element = max(forward.storage_size, inverse.storage_size), forward.value_type
    shared_bytes = max(forward.shared_memory_size, inverse.shared_memory_size)

    def filter_rows(rows: Any, response: Any, out: Any) -> None:
        own = numba_cuda.local.array(shape=(storage,), dtype=element)
        shared = numba_cuda.shared.array(shape=(0,), dtype=element)
        row, first = numba_cuda.blockIdx.x * per_block + numba_cuda.threadIdx.y, numba_cuda.threadIdx.x
        if row < rows.shape[0]:
            for i in range(elements):
                own[i] = rows[row, first + i * stride]
        forward.execute(own, shared)
        for i in range(elements):
            own[i] = complex(own[i].x, own[i].y) * response[first + i * stride]
        inverse.execute(own, shared)
        if row < rows.shape[0]:
            for i in range(elements):
                out[row, first + i * stride] = own[i]

    kernel = interop.numba.kernel(filter_rows, "void(complex64[:, ::1], complex64[::1], complex64[:, ::1])")
    return lambda rows, out: kernel[blocks_for(rows.shape[0], per_block), tuple(forward.block_dim), shared_bytes].bind(
        rows, response, out
    )


def product_in_a_call(matrix: cuda.DeviceArray) -> Work:
    """Multiply all rows by the matrix with cuBLAS."""
    return lambda rows, out: lambda: libraries.gemm(rows, matrix, out)


def product_in_a_kernel(matrix: cuda.DeviceArray, tile_rows: int = TILE_ROWS, threads: int = THREADS) -> Work:
    """Multiply all rows by the matrix in one kernel, whose blocks each multiply a tile of rows at a time."""
    from numba import cuda as numba_cuda
    from nvmath.device import ComputeCapability, Matmul

    device = cuda.current_device()
    tile = Matmul(
        size=(tile_rows, SHORT, SHORT), precision=np.float32, data_type="complex", arrangement=("row_major",) * 3,
        execution="Block", block_size=threads, sm=ComputeCapability(*device.compute_capability),
    )  # fmt: skip  # grouped by meaning
    matrix_size, tile_size, element = SHORT * SHORT, tile_rows * SHORT, tile.c_value_type

    def multiply_tiles(rows: Any, matrix: Any, out: Any) -> None:
        a = numba_cuda.shared.array(shape=(tile_size,), dtype=element)
        b = numba_cuda.shared.array(shape=(matrix_size,), dtype=element)
        c = numba_cuda.shared.array(shape=(tile_size,), dtype=element)
        for i in range(numba_cuda.threadIdx.x, matrix_size, threads):
            b[i] = matrix[i // SHORT, i % SHORT]
        for first in range(numba_cuda.blockIdx.x * tile_rows, rows.shape[0], numba_cuda.gridDim.x * tile_rows):
            for i in range(numba_cuda.threadIdx.x, tile_size, threads):
                a[i] = rows[first + i // SHORT, i % SHORT]
            numba_cuda.syncthreads()
            tile.execute(1 + 0j, a, b, 0j, c)
            numba_cuda.syncthreads()
            for i in range(numba_cuda.threadIdx.x, tile_size, threads):
                out[first + i // SHORT, i % SHORT] = c[i]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # nvmath reads deprecated attributes of the product itself
        kernel = interop.numba.kernel(multiply_tiles, "void(complex64[:, ::1], complex64[:, ::1], complex64[:, ::1])")

    def work(rows: cuda.DeviceArray, out: cuda.DeviceArray) -> Callable[[], object]:
        blocks = min(rows.shape[0] // tile_rows, WAVES * device.sm_count)
        return kernel[blocks, threads].bind(rows, matrix, out)

    return work
