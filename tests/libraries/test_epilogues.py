"""cuBLASLt's epilogues and their gradients against formulas in double precision, and the search for an algorithm."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib
from cudart_py.libraries.blas import lt_search
from cudart_py.libraries.dtypes import from_bfloat16, to_bfloat16
from cudart_py.libraries.handles import release

pytestmark = pytest.mark.needs("libraries")

SLOPE, CUBIC = np.sqrt(2 / np.pi), 0.044715
ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x / 2 * (1 + np.tanh(SLOPE * (x + CUBIC * x**3))),
}
# Errors relative to the norm of |a| |b|. The device approximates the hyperbolic tangent in 11 bits or more.
BOUNDS = {"float64": 1e-3, "float32": 1e-3, "float16": 2e-3, "bfloat16": 8e-3}


def gelu_slope(x):
    step = 1e-6
    return (ACTIVATIONS["gelu"](x + step) - ACTIVATIONS["gelu"](x - step)) / (2 * step)


def rounded(x, dtype):
    return to_bfloat16(x) if dtype == "bfloat16" else x.astype(dtype)


def exact(x):
    return (from_bfloat16(x) if x.dtype == lib.bfloat16 else x).astype(np.float64)


def near(got, expected, scale, dtype):
    return np.linalg.norm(exact(got) - expected) <= BOUNDS[dtype] * scale


@pytest.fixture
def layer(numbers):
    """Return a function that makes the operands of a layer, on the host and the device, and the scale of its errors."""

    def make(dtype, m=5, k=7, n=3):
        hosts = [rounded(x, dtype) for x in map(numbers, ((m, k), (k, n), (n,)))]
        a, b, bias = map(exact, hosts)
        return list(map(cuda.to_device, hosts)), a @ b, bias, np.linalg.norm(np.abs(a) @ np.abs(b) + 1)

    return make


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("with_aux", [True, False])
def test_an_epilogue_adds_a_bias_and_applies_the_activation(device, layer, dtype, activation, with_bias, with_aux):
    if with_aux and not activation:
        return
    (a, b, bias), product, bias_host, scale = layer(dtype)
    aux = lib.empty_aux((5, 3), a.dtype, activation).fill(0) if with_aux and dtype != "bfloat16" else None
    before = product + (bias_host if with_bias else 0)
    got = lib.gemm_epilogue(a, b, bias if with_bias else None, activation=activation, aux=aux)
    assert got.dtype == a.dtype
    assert near(got.to_host(), ACTIVATIONS[activation](before), scale, dtype)
    if aux is not None and activation == "gelu":
        assert near(aux.to_host(), before, scale, dtype)
    if aux is not None and activation == "relu":
        bits = np.unpackbits(aux.to_host(), axis=1, bitorder="little")[:, :3]
        assert np.array_equal(bits, got.to_host() > 0)


def test_transposed_operands_and_windows_have_epilogues(device, numbers):
    x, w, bias = numbers((9, 9)), numbers((4, 7)), numbers(4)
    whole = cuda.full((8, 8), 7.0)
    out = whole[1:6, 2:6]
    lib.gemm_epilogue(cuda.to_device(x)[1:6, 1:8], cuda.to_device(w).T, cuda.to_device(bias), out, activation="relu")
    expected = np.full((8, 8), 7.0)
    expected[1:6, 2:6] = np.maximum(x[1:6, 1:8] @ w.T + bias, 0)
    assert np.allclose(whole.to_host(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("with_bias", [True, False])
def test_a_gradient_continues_from_what_the_forward_pass_left(device, layer, numbers, dtype, activation, with_bias):
    (a, b, bias), product, bias_host, _ = layer(dtype)
    aux = lib.empty_aux((5, 3), a.dtype, activation)
    lib.gemm_epilogue(a, b, bias, activation=activation, aux=aux)
    dy, w = (numbers(shape).astype(dtype) for shape in ((5, 6), (3, 6)))
    gradient = cuda.full(3, np.nan, dtype) if with_bias else None
    operands = cuda.to_device(dy), cuda.to_device(w).T
    got = lib.gemm_gradient(*operands, activation, aux, bias_gradient=gradient).to_host()
    slope = {"relu": lambda x: x > 0, "gelu": gelu_slope}[activation](product + bias_host)
    expected = (exact(dy) @ exact(w).T) * slope
    scale = np.linalg.norm(np.abs(exact(dy)) @ np.abs(exact(w)).T)
    assert near(got, expected, 3 * scale, dtype)
    if gradient is not None:
        assert near(gradient.to_host(), expected.sum(axis=0), 5 * scale, dtype)


@pytest.mark.parametrize("of", ["a", "b"])
def test_the_sums_of_a_factor_are_the_gradient_of_a_bias(device, numbers, of):
    x, dz = numbers((9, 5)), numbers((9, 3))
    a, b = cuda.to_device(x).T, cuda.to_device(dz)
    sums = cuda.full(5 if of == "a" else 3, np.nan)
    out = lib.gemm_sums(a, b, sums, of=of).to_host()
    assert np.allclose(out, x.T @ dz, rtol=0, atol=1e-12)
    assert np.allclose(sums.to_host(), (x if of == "a" else dz).sum(axis=0), rtol=0, atol=1e-12)


def test_a_search_is_made_once_for_a_layout_and_changes_no_result(device, numbers, record):
    release()
    asked = record("cublasLt", "matmul_algo_get_heuristic", "matmul")
    a, b = cuda.to_device(numbers((48, 64), np.float32)), cuda.to_device(numbers((64, 32), np.float32))
    first = lib.gemm_epilogue(a, b, algorithm="search").to_host()
    products = len(asked)
    again = lib.gemm_epilogue(a, b, algorithm="search").to_host()
    assert np.array_equal(first, again)
    assert [name for name, _ in asked[products:]] == ["matmul"]
    assert sum(name == "matmul_algo_get_heuristic" for name, _ in asked) == 1
    expected = a.to_host().astype(float) @ b.to_host()
    assert np.linalg.norm(first - expected) <= 1e-6 * np.linalg.norm(expected)


def test_a_search_chooses_by_repeated_measurements_and_leaves_out_what_cannot_run(monkeypatch):
    """Algorithm 0 was measured once when the device was fast, and algorithm 2 is the fastest of those that run."""
    measured = {0: [10.2, 10.2, 8.0, *[10.2] * 50], 1: [20.0] * 50, 2: [10.0] * 50}
    counts = dict.fromkeys(measured, 0)

    def milliseconds(queue, algorithm, stream, runs):
        queue(algorithm)
        counts[int(algorithm[0])] += 1
        return measured[int(algorithm[0])].pop(0)

    def queue(algorithm):
        if algorithm[0] == 3:
            raise RuntimeError("NOT_SUPPORTED")

    monkeypatch.setattr(lt_search, "_milliseconds", milliseconds)
    assert lt_search.fastest(queue, np.arange(4), None) == [2]
    assert counts[0] == counts[2] > counts[1] > 0
    assert lt_search.fastest(queue, np.array([3, 3]), None) == [3]


def test_a_searched_product_is_scaled_added_and_planned(device, numbers, record):
    a, b, c = numbers((3, 5, 7)), numbers((7, 4)), numbers((3, 5, 4))
    operands, out = (cuda.to_device(a), cuda.to_device(b)), cuda.to_device(c)
    lib.gemm(*operands, out, alpha=2.0, beta=0.5, algorithm="search")
    assert np.allclose(out.to_host(), 2 * (a @ b) + 0.5 * c, rtol=0, atol=1e-12)
    with lib.gemm.plan(*operands, out, algorithm="search") as plan:
        plan()
        assert np.allclose(out.to_host(), a @ b, rtol=0, atol=1e-12)
    calls = record("cublasLt", "matrix_layout_create")
    nothing = cuda.empty((5, 0)), cuda.empty((0, 4))
    lib.gemm(*nothing, out[0], beta=0.5, algorithm="search")
    assert np.allclose(out[0].to_host(), 0.5 * (a @ b)[0], rtol=0, atol=1e-12)
    assert not calls
    turned = cuda.full((4, 5), np.nan)
    lib.gemm(operands[0][1], operands[1], turned.T, algorithm="search")
    assert np.allclose(turned.to_host().T, a[1] @ b, rtol=0, atol=1e-12)


def test_a_search_during_a_capture_is_refused_with_the_remedy(device):
    release()
    a, out = cuda.zeros((16, 16), np.float32), cuda.empty((16, 16), np.float32)
    with cuda.Stream() as stream:
        lib.gemm_epilogue(a, a, out=out, stream=stream)
        with pytest.raises(cuda.errors.CaptureError, match="call it once with these layouts"), stream.capture():
            lib.gemm_epilogue(a, a, out=out, algorithm="search", stream=stream)
