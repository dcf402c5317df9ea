"""Calls leak no memory and no handles, and graphs keep alive what they use."""

import threading

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib
from cudart_py.libraries.handles import library_handle, thread_cache

pytestmark = pytest.mark.needs("libraries")


def used_bytes() -> int:
    cuda.Device(0).synchronize()
    return cuda.MemoryPool.current().used


def test_repeated_calls_leave_no_memory(device, numbers):
    scipy = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")
    a = cuda.to_device(numbers((32, 32)) + 32 * np.eye(32))
    spd, singular = cuda.to_device(np.eye(32) + 0.01), cuda.zeros((32, 32))
    x = cuda.to_device(numbers(32))
    signal = cuda.zeros((4, 64), np.complex64)
    matrix = lib.SparseMatrix.from_host(scipy.csr_array(np.eye(32)))

    def everything() -> None:
        lib.gemm(a, a)
        lib.gemv(a, x)
        lib.axpy(1.0, x, cuda.zeros(32))
        lib.dot(x, x)
        lib.fft(signal)
        lib.spmv(matrix, x)
        lib.spmm(matrix, a)
        lib.spgemm(matrix, matrix)
        lib.solve(a, x)
        lib.cholesky(spd)
        lib.qr(a)
        lib.svd(a)
        lib.eigh(spd)
        with pytest.raises(lib.SingularMatrixError):
            lib.solve(singular, x)

    for _ in range(8):  # let the pool grow to its final size
        everything()
    before = used_bytes()
    for _ in range(12):
        everything()
    assert used_bytes() == before


def test_release_gives_everything_back(device):
    lib.release()
    before = used_bytes()
    a = cuda.zeros((8, 8), np.complex64)
    lib.gemm(a, a)
    lib.fft(a)
    del a
    assert used_bytes() > before
    lib.release()
    assert used_bytes() == before


def test_threads_compute_side_by_side_with_handles_of_their_own(device, numbers):
    a, found = numbers((16, 16)), [None] * 4

    def work(index: int) -> None:
        with cuda.Device(0), cuda.Stream() as stream:
            array = cuda.to_device(a * (index + 1), stream=stream)
            for _ in range(12):
                out = lib.gemm(array, array, stream=stream)
            handle = library_handle("cublas", stream, cuda.Device(0))
            found[index] = out.to_host(stream=stream), handle, thread_cache("cufft")
            stream.synchronize()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(handle) for _, handle, _ in found}) == len({id(cache) for *_, cache in found}) == 4
    for index, (result, *_) in enumerate(found):
        assert np.allclose(result, (index + 1) ** 2 * (a @ a))


def test_a_captured_product_is_computed_anew_at_each_launch(device, numbers):
    a, b = numbers((2, 64, 64))
    with cuda.Stream() as stream:
        left, right = cuda.to_device(a, stream=stream), cuda.to_device(b, stream=stream)
        out = cuda.empty((64, 64), stream=stream)
        lib.gemm(left, right, out, stream=stream)
        with stream.capture() as graph:
            lib.gemm(left, right, out, stream=stream)
        executable = graph.instantiate()
        lib.gemm(left, right)  # moves the handle to another stream and workspace
        left.copy_from(2 * a, stream=stream)
        executable.launch(stream)
        assert np.allclose(out.to_host(stream=stream), 2 * a @ b)


def test_an_operand_on_another_device_is_named(device):
    if len(cuda.devices()) < 2:
        pytest.skip("there is one device")
    if cuda.Device(0).peer_enabled(cuda.Device(1)):
        pytest.skip("the devices have access to each other since an earlier test")
    operands = {name: cuda.zeros((4, 4)) for name in ("a", "b", "out")}
    with cuda.Device(1):
        there = cuda.zeros((4, 4))
    for name in operands:
        with pytest.raises(ValueError, match=f"gemm: argument '{name}' .*device 0.* not on device 1"):
            lib.gemm(**{**operands, name: there})


def test_a_second_device_has_handles_of_its_own(device, numbers):
    if len(cuda.devices()) < 2:
        pytest.skip("there is one device")
    a = numbers((40, 40))
    spd = a @ a.T + 40 * np.eye(40)
    for device in cuda.devices()[:2]:
        with device:
            array, matrix = cuda.to_device(a), cuda.to_device(spd)
            product = lib.gemm(array, array)
            assert product.device is device
            assert np.allclose(product.to_host(), a @ a)
            assert np.allclose(lib.cholesky(matrix).to_host(), np.linalg.cholesky(spd))
            assert np.allclose(lib.solve(matrix, array).to_host(), np.linalg.solve(spd, a))
            assert lib.uniform(size=10).device is device


@pytest.mark.parametrize(
    "call",
    [
        lambda: lib.gemm(a := cuda.zeros((4, 4)), a),
        lambda: lib.svd(cuda.zeros((4, 4))),
        lambda: lib.qr(cuda.to_device(np.eye(4))),
        lambda: lib.fft.plan(cuda.zeros(4, np.complex64)),
    ],
    ids=["gemm", "svd", "qr", "fft.plan"],
)
def test_a_workspace_that_does_not_fit_is_named(device, monkeypatch, call):
    def refuse(*arguments, **options):
        raise cuda.OutOfMemoryError("5 bytes were requested", requested=5)

    lib.release()
    with monkeypatch.context() as patched:
        patched.setattr("cudart_py.libraries.handles.empty", refuse)
        with pytest.raises(
            cuda.OutOfMemoryError, match=r"^5 bytes .*requested\. This is the workspace of a .*release"
        ) as error:
            call()
    assert error.value.requested == 5
    call()
