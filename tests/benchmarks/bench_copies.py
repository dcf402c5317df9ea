"""Copies and fills: of pinned and pageable memory over the link beside others', and within the device.

Copies over the link are timed by the host's clock, since one of pageable memory keeps the host busy; the other ones by
the device's.
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
# Beyond what the staging ring holds, so that its turns are timed.
FULL, SMALL = 256 << 20, 1 << 16


@pytest.mark.parametrize("memory", [copies.pageable, copies.pinned], ids=["pageable", "pinned"])
@pytest.mark.parametrize("direction", ["upload", "download"])
@pytest.mark.benchmark(group="link")
def test_link(
    host_benchmark: Any, device: cuda.Device, size: Size, memory: Callable[[int], Any], direction: str
) -> None:
    """Each copy is timed to its end; pageable ones are beside the driver's, page-locked ones beside CuPy's."""
    if memory is copies.pageable:
        # The driver copies pageable memory by one thread, whose speed differs by half from run to run.
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
    """CuPy, None where it is not here or could not see the arrays."""
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
    """Half of every row of a pitched matrix, into an array without gaps."""
    rows = size(1 << 14, 64)
    matrix, window = cuda.empty_pitched((rows, 8192), np.float32), cuda.empty((rows, 4096), np.float32)
    cuda.memset(matrix, 7)
    left = matrix[:, :4096]
    gpu_benchmark(
        lambda: cuda.memcpy2d(window, left, stream=cuda.legacy_default), bytes=2 * window.nbytes, ceiling="copy"
    )
    assert (window[-1:].to_host() == 7).all()
