"""Copies and fills: of pinned and pageable memory over the link, and within the device beside its ceilings.

A copy of pageable memory keeps the host busy, so that it is timed by the host's clock to its very end; the other
ones by the device's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda

Size = Callable[[int, int], int]
# Beyond what the staging ring holds, so that its turns are timed.
FULL, SMALL = 256 << 20, 1 << 16


@pytest.fixture
def nbytes(size: Size) -> int:
    return size(FULL, SMALL)


@pytest.mark.benchmark(group="link: upload")
def test_upload_pinned(gpu_benchmark: Any, device: cuda.Device, nbytes: int) -> None:
    source, target = cuda.pinned_empty(nbytes, np.uint8), cuda.empty(nbytes, np.uint8)
    source[:] = 7
    gpu_benchmark(lambda: cuda.memcpy(target, source, stream=cuda.legacy_default), bytes=nbytes, flush_l2=False)
    assert (target.to_host() == 7).all()


@pytest.mark.benchmark(group="link: upload")
def test_upload_pageable(host_benchmark: Any, device: cuda.Device, nbytes: int) -> None:
    source, target = np.full(nbytes, 7, np.uint8), cuda.empty(nbytes, np.uint8)

    def upload() -> None:
        cuda.memcpy(target, source)
        cuda.legacy_default.synchronize()

    host_benchmark(upload)
    assert (target.to_host() == 7).all()


@pytest.mark.benchmark(group="link: download")
def test_download_pinned(gpu_benchmark: Any, device: cuda.Device, nbytes: int) -> None:
    source, target = cuda.full(nbytes, 7, np.uint8), cuda.pinned_empty(nbytes, np.uint8)
    gpu_benchmark(lambda: cuda.memcpy(target, source, stream=cuda.legacy_default), bytes=nbytes, flush_l2=False)
    assert (target == 7).all()


@pytest.mark.benchmark(group="link: download")
def test_download_pageable(host_benchmark: Any, device: cuda.Device, nbytes: int) -> None:
    source, target = cuda.full(nbytes, 7, np.uint8), np.empty(nbytes, np.uint8)
    host_benchmark(lambda: cuda.memcpy(target, source))
    assert (target == 7).all()


@pytest.mark.benchmark(group="device memory")
def test_copy_on_the_device(gpu_benchmark: Any, device: cuda.Device, size: Size) -> None:
    nbytes = size(1 << 30, SMALL)
    source, target = cuda.full(nbytes, 7, np.uint8), cuda.empty(nbytes, np.uint8)
    gpu_benchmark(lambda: cuda.memcpy(target, source), bytes=2 * nbytes, ceiling="copy")
    assert (target[-1:].to_host() == 7).all()


@pytest.mark.benchmark(group="device memory")
def test_fill(gpu_benchmark: Any, device: cuda.Device, size: Size) -> None:
    target = cuda.empty(size(1 << 30, SMALL), np.uint8)
    gpu_benchmark(lambda: cuda.memset(target, 7), bytes=target.nbytes, ceiling="write")
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
