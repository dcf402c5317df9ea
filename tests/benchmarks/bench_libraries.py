"""Every library function compared with CuPy's or PyTorch's, and the host overhead of a small matrix product."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.libraries import views
from cudart_py.libraries.blas import products, scalars
from cudart_py.libraries.handles import library_handle
from tests.benchmarks.peers import library_calls
from tests.benchmarks.peers.copies import finished
from tests.benchmarks.peers.library_calls import Operands
from tests.benchmarks.peers.report import optional

pytestmark = pytest.mark.needs("libraries")

Size = Callable[[int, int], int]
# The numbers of rows and columns for the slowest functions, instead of the usual number.
SIZES = {"svd": 512, "eigh": 512, "lstsq": 512}


@pytest.fixture(scope="module")
def rivals() -> dict[str, Any]:
    return {name: optional(name) for name in ("cupy", "torch")} if "interop" in cuda.capabilities() else {}


@pytest.mark.parametrize("name", library_calls.CALLS)
@pytest.mark.benchmark(group="libraries")
def test_function(
    gpu_benchmark: Any, host_benchmark: Any, device: cuda.Device, size: Size, rivals: dict[str, Any], name: str
) -> None:
    """Functions that wait for their result are timed with the host's clock, until their work has finished."""
    function = library_calls.CALLS[name]
    operands = Operands(size(SIZES.get(name, 1024 if function.waits else 4096), 16))
    ours, peers = function.ours(operands), function.peers(operands, rivals)
    if function.waits:
        host_benchmark(finished(ours), beside={peer: finished(call) for peer, call in peers.items()})
    else:
        gpu_benchmark(ours, beside=peers, **function.amounts(operands))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.benchmark(group="libraries")
def test_gemm(gpu_benchmark: Any, device: cuda.Device, size: Size, rivals: dict[str, Any], dtype: str) -> None:
    function, operands = library_calls.CALLS["gemm"], Operands(size(4096, 16), dtype)
    peers = function.peers(operands, rivals)
    gpu_benchmark(function.ours(operands), beside=peers, flops=2 * operands.n**3)
    assert np.isfinite(operands.out[:1].to_host()).all()


def test_every_function_is_timed_or_has_a_reason() -> None:
    functions = [name for name in libraries.__all__ if inspect.isfunction(getattr(libraries, name))]
    assert sorted([*library_calls.CALLS, *library_calls.UNTIMED]) == functions


def bare_gemm(a: cuda.DeviceArray, b: cuda.DeviceArray, out: cuda.DeviceArray) -> Callable[[], object]:
    """Return a call of nvmath's binding with all its arguments prepared beforehand."""
    handle = library_handle("cublas", cuda.legacy_default, cuda.current_device())
    kind, n = views.kind("gemm", "a", a, products.TYPES), out.shape[0]
    none, factors = scalars.operation("gemm", "op_a", "N"), np.array([1, 0], np.float32)
    one, zero = factors.ctypes.data, factors.ctypes.data + factors.itemsize
    call, (compute, _) = handle.functions.gemm_ex, scalars.compute_type("gemm", kind, None)
    operands = (one, b.pointer, kind.code, n, a.pointer, kind.code, n, zero, out.pointer, kind.code, n)

    def product() -> None:
        call(handle.native, none, none, n, n, n, *operands, compute, products.DEFAULT_ALGORITHM)
        assert factors.size  # keeps the factors alive, because the operands contain only their addresses

    return product


@pytest.mark.parametrize("way", ["direct", "planned"])
@pytest.mark.benchmark(group="host")
def test_gemm_call(host_benchmark: Any, device: cuda.Device, rivals: dict[str, Any], way: str) -> None:
    o = Operands(128)
    ours = libraries.gemm.plan(o.a, o.b, o.out) if way == "planned" else library_calls.CALLS["gemm"].ours(o)
    host_benchmark(ours, beside={"bare": bare_gemm(o.a, o.b, o.out), **library_calls.CALLS["gemm"].peers(o, rivals)})
    np.testing.assert_allclose(o.out.to_host(), o.host @ o.b.to_host(), rtol=1e-4, atol=1e-4)
