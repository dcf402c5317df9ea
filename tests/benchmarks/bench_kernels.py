"""The course's fastest kernels, beside what this device was measured to reach: the column "of ceiling" is the ratio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from library_tour.course import reduction, transpose
from library_tour.device_code import blocks_for, load

pytestmark = pytest.mark.benchmark(group="course")

Size = Callable[[int, int], int]
BLOCK = 256


def test_vector_add(gpu_benchmark: Any, device: cuda.Device, size: Size) -> None:
    n = size(1 << 28, 1 << 12)
    a, b, out = cuda.full(n, 1, np.float32), cuda.full(n, 2, np.float32), cuda.empty(n, np.float32)
    launch = load("vector_add")["vector_add"][blocks_for(n, BLOCK), BLOCK].bind(a, b, out, n)
    gpu_benchmark(launch, bytes=3 * out.nbytes, flops=n, ceiling="copy")
    assert (out[-1:].to_host() == 3).all()


def test_daxpy(gpu_benchmark: Any, device: cuda.Device, size: Size) -> None:
    n = size(1 << 27, 1 << 12)
    x, y = cuda.full(n, 1, np.float64), cuda.zeros(n, np.float64)
    launch = load("daxpy")["daxpy"][blocks_for(n, BLOCK), BLOCK].bind(0.0, x, y, n)
    gpu_benchmark(launch, bytes=3 * x.nbytes, flops=2 * n, ceiling="copy")
    assert (y[-1:].to_host() == 0).all()


@pytest.mark.parametrize("way", ["an atomic a block", "two passes at once"])
@pytest.mark.benchmark(group="course: sum")
def test_sum(gpu_benchmark: Any, device: cuda.Device, size: Size, way: str) -> None:
    n = size(1 << 29, 1 << 12)
    x, expected = cuda.full(n, 2**-12, np.float32), np.array([n / 2**12], np.float32)
    sums, _ = reduction.make_variants(device, x, expected, np.full(1, 2**-12, np.float32))
    variant = next(v for v in sums if v.name == way)
    gpu_benchmark(variant.launch, bytes=x.nbytes, flops=n, ceiling="read")
    assert variant.output.to_host() == expected  # type: ignore[union-attr]  # a sum is left on the device


@pytest.mark.parametrize("way", ["naive", "tile", "tile, padded by one", "4 x 4, then a tile", "plain copy"])
@pytest.mark.benchmark(group="course: transpose")
def test_transpose(gpu_benchmark: Any, device: cuda.Device, size: Size, way: str) -> None:
    n = size(16384, 128)
    found = transpose.WAYS[way]
    names = [found.kernel] if "<" in found.kernel else []
    source, target = cuda.full((n, n), 7, np.float32), cuda.zeros((n, n), np.float32)
    grid = blocks_for(n, found.tile[0]), blocks_for(n, found.tile[1])
    launch = load("transpose", names=names)[found.kernel][grid, found.block].bind(source, target, n, n)
    gpu_benchmark(launch, bytes=2 * source.nbytes, ceiling="copy")
    assert (target[-1:].to_host() == 7).all()
