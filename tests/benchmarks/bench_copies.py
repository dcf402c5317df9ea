"""Copies and fills: over the link from pinned and pageable memory, compared with others', and within the device.

Copies over the link are timed with the host's clock, because a copy of pageable memory keeps the host busy. All others
are timed with the device's clock.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from tests.benchmarks.peers import copies
from tests.benchmarks.peers.report import optional

Size = Callable[[int, int], int]
# Larger than the staging ring, so that the time includes reusing its buffers.
FULL, SMALL = 256 << 20, 1 << 16


@pytest.mark.parametrize("memory", [copies.pageable, copies.pinned], ids=["pageable", "pinned"])
@pytest.mark.parametrize("direction", ["upload", "download"])
@pytest.mark.benchmark(group="link")
def test_link(
    host_benchmark: Any, device: cuda.Device, size: Size, memory: Callable[[int], Any], direction: str
) -> None:
    """Copies are timed until they finish. Pageable ones are compared with the driver's, and pinned ones with CuPy's."""
    if memory is copies.pageable:
        # The driver copies pageable memory with one thread, whose speed varies by half from run to run.
        host_benchmark.extra_info["gate"] = "time"
    nbytes = size(FULL, SMALL)
    up, down = memory(nbytes)
    copy = up if direction == "upload" else down
    theirs = copy.theirs and copies.finished(copy.theirs)
    found = host_benchmark(copies.finished(copy.ours), beside={copy.rival: theirs})
    if found.median:
        host_benchmark.extra_info["GB/s"] = 1e-9 * nbytes / found.median


@pytest.fixture
def cupy() -> Any:
    """Return CuPy, or None if it is not installed or cannot access the arrays."""
    return optional("cupy") if "interop" in cuda.capabilities() else None


@pytest.mark.benchmark(group="device memory")
def test_copy_on_the_device(gpu_benchmark: Any, device: cuda.Device, size: Size, cupy: Any) -> None:
    nbytes = size(1 << 30, SMALL)
    source, target = cuda.full(nbytes, 7, np.uint8), cuda.empty(nbytes, np.uint8)
    theirs = cupy and partial(cupy.copyto, cupy.asarray(target), cupy.asarray(source))
    gpu_benchmark(lambda: cuda.memcpy(target, source), beside={"CuPy": theirs}, bytes=2 * nbytes, ceiling="copy")
    assert (target[-1:].to_host() == 7).all()


@pytest.mark.benchmark(group="device memory")
def test_fill(gpu_benchmark: Any, device: cuda.Device, size: Size, cupy: Any) -> None:
    target = cuda.empty(size(1 << 30, SMALL), np.uint8)
    theirs = cupy and partial(cupy.asarray(target).fill, 7)
    gpu_benchmark(lambda: cuda.memset(target, 7), beside={"CuPy": theirs}, bytes=target.nbytes, ceiling="write")
    assert (target[-1:].to_host() == 7).all()


@pytest.mark.benchmark(group="device memory")
def test_copy_of_a_window(gpu_benchmark: Any, device: cuda.Device, size: Size) -> None:
    """Copy half of every row of a pitched matrix to a contiguous array."""
    rows = size(1 << 14, 64)
    matrix, window = cuda.empty_pitched((rows, 8192), np.float32), cuda.empty((rows, 4096), np.float32)
    cuda.memset(matrix, 7)
    left = matrix[:, :4096]
    gpu_benchmark(
        lambda: cuda.memcpy2d(window, left, stream=cuda.legacy_default), bytes=2 * window.nbytes, ceiling="copy"
    )
    assert (window[-1:].to_host() == 7).all()
