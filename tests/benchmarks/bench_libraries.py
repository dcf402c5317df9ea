"""The libraries: what their products and transforms reach, and what our call of one costs beside the bare one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.libraries import views
from cudart_py.libraries.blas import products, scalars
from cudart_py.libraries.handles import library_handle

pytestmark = pytest.mark.needs("libraries")

Size = Callable[[int, int], int]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.benchmark(group="libraries: gemm")
def test_gemm(gpu_benchmark: Any, device: cuda.Device, rng: np.random.Generator, size: Size, dtype: str) -> None:
    n = size(8192, 64)
    a, b = (cuda.to_device(rng.random((n, n), np.float32).astype(dtype)) for _ in range(2))
    out = cuda.empty((n, n), dtype)
    ceiling = {"float32": "fp32"}.get(dtype)
    gpu_benchmark(lambda: libraries.gemm(a, b, out), bytes=3 * out.nbytes, flops=2 * n**3, ceiling=ceiling)
    assert np.isfinite(out[:1].to_host()).all()


@pytest.mark.benchmark(group="libraries: fft")
def test_fft(gpu_benchmark: Any, device: cuda.Device, rng: np.random.Generator, size: Size) -> None:
    """Rows of 4096, whose transform passes once over the memory: a copy is its ceiling."""
    rows, n = size(1 << 14, 4), 4096
    x = cuda.to_device(rng.random((rows, n), np.float32).astype(np.complex64))
    out = cuda.empty_like(x)
    flops = 5 * rows * n * np.log2(n)
    gpu_benchmark(lambda: libraries.fft(x, out=out), bytes=2 * x.nbytes, flops=float(flops), ceiling="copy")
    assert np.isfinite(out[:1].to_host()).all()


def bare_gemm(a: cuda.DeviceArray, b: cuda.DeviceArray, out: cuda.DeviceArray) -> Callable[[], object]:
    """Return a call of nvmath's binding with all its arguments made beforehand."""
    handle = library_handle("cublas", cuda.legacy_default, cuda.current_device())
    kind, n = views.kind("a", a, products.TYPES), out.shape[0]
    none, factors = scalars.operation("op_a", "N"), np.array([1, 0], np.float32)
    one, zero = factors.ctypes.data, factors.ctypes.data + factors.itemsize
    call, compute = handle.functions.gemm_ex, scalars.compute_type(kind, None)
    operands = (one, b.pointer, kind.code, n, a.pointer, kind.code, n, zero, out.pointer, kind.code, n)

    def product() -> None:
        call(handle.native, none, none, n, n, n, *operands, compute, products.DEFAULT_ALGORITHM)
        assert factors.size  # which keeps the factors: the operands know them by their addresses alone

    return product


@pytest.mark.parametrize("way", ["bare", "direct", "planned"])
@pytest.mark.benchmark(group="host: gemm of 128 x 128")
def test_gemm_call(host_benchmark: Any, device: cuda.Device, rng: np.random.Generator, way: str) -> None:
    a, b = (cuda.to_device(rng.random((128, 128), np.float32)) for _ in range(2))
    out = cuda.empty((128, 128), np.float32)
    ways: dict[str, Callable[[], Callable[[], object]]] = {
        "bare": lambda: bare_gemm(a, b, out),
        "direct": lambda: lambda: libraries.gemm(a, b, out),
        "planned": lambda: libraries.gemm.plan(a, b, out),
    }
    host_benchmark(ways[way]())
    np.testing.assert_allclose(out.to_host(), a.to_host() @ b.to_host(), rtol=1e-4)
