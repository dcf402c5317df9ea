"""Products of 8-bit floats with their scales, against products in double precision, and the conversions to them."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib

pytestmark = pytest.mark.needs("libraries", "sm_89")  # which multiplies 8-bit floats

KINDS = {lib.float8_e4m3: (3, -6, 448.0), lib.float8_e5m2: (2, -14, 57344.0)}


def rounded(x, dtype):
    """Return numbers rounded to the nearest 8-bit float: to a multiple of the last place, ties to even."""
    bits, least, most = KINDS[dtype]
    sizes = np.abs(x).astype(np.float64)
    exponents = np.maximum(np.floor(np.log2(np.where(sizes == 0, 1, sizes))), least)
    place = 2.0 ** (exponents - bits)
    return np.copysign(np.minimum(np.round(sizes / place) * place, most), x)


@pytest.mark.parametrize("dtype", KINDS, ids=["e4m3", "e5m2"])
def test_numbers_are_rounded_to_the_nearest_8_bit_float(rng, dtype):
    x = rng.standard_normal(20_000) * 10.0 ** rng.integers(-8, 6, 20_000)
    x[:5] = 0, -0.0, np.inf, -np.inf, 17  # 17 is halfway between two floats with three bits after the leading one
    assert np.array_equal(
        lib.from_float8(lib.to_float8(x, dtype)), rounded(np.nan_to_num(x, posinf=1e9, neginf=-1e9), dtype)
    )
    assert np.isnan(lib.from_float8(lib.to_float8([np.nan], dtype)))[0]
    patterns = np.arange(256, dtype=np.uint8).view(dtype)
    values = lib.from_float8(patterns)
    finite = np.isfinite(values)
    assert np.array_equal(lib.to_float8(values[finite], dtype).view(np.uint8), patterns.view(np.uint8)[finite])


def blocks(scales, rows, columns, shape):
    return np.repeat(np.repeat(scales, rows, axis=0), columns, axis=1)[: shape[0], : shape[1]]


def in_lines_of_four(scales):
    """Return scales of 128 x 128 blocks on the device, in lines along k that are padded to a multiple of four."""
    padded = np.pad(scales, ((0, 0), (0, -scales.shape[1] % 4)), constant_values=np.nan)
    return cuda.to_device(padded)[:, : scales.shape[1]]


# The two scales of a product of (256, 640) and (640, 384): how they are stored, and the factors of every element.
M, N, K = 256, 384, 640
SCALES = {
    "none": lambda p: (None, None, 1, 1),
    "of the matrices": lambda p: (cuda.to_device(s := p(1)), cuda.to_device(t := p(1)), s, t),
    "of rows and columns": lambda p: (cuda.to_device(s := p(M)), cuda.to_device(t := p(N)), s[:, None], t[None]),
    "of blocks along k": lambda p: (
        cuda.to_device(np.ascontiguousarray((s := p(M, 5)).T)).T,
        cuda.to_device(t := p(5, N)),
        blocks(s, 1, 128, (M, K)),
        blocks(t, 128, 1, (K, N)),
    ),
    "of blocks along k and square ones": lambda p: (
        cuda.to_device(np.ascontiguousarray((s := p(M, 5)).T)).T,
        in_lines_of_four(t := p(3, 5)).T,
        blocks(s, 1, 128, (M, K)),
        blocks(t.T, 128, 128, (K, N)),
    ),
    "of square blocks and those along k": lambda p: (
        in_lines_of_four(s := p(2, 5)),
        cuda.to_device(t := p(5, N)),
        blocks(s, 128, 128, (M, K)),
        blocks(t, 128, 1, (K, N)),
    ),
}


@pytest.mark.parametrize("kind", SCALES)
def test_scales_multiply_the_elements_that_they_are_for(device, rng, kind):
    a, w = (lib.to_float8(rng.integers(-8, 9, shape)) for shape in ((M, K), (N, K)))
    scale_a, scale_b, each_a, each_b = SCALES[kind](lambda *shape: np.float32(2.0 ** rng.integers(-3, 4, shape)))
    try:
        got = lib.scaled_gemm(cuda.to_device(a), cuda.to_device(w).T, scale_a, scale_b, dtype=np.float32).to_host()
    except cuda.errors.NotSupportedError:
        if "gpu_timing" in cuda.capabilities() and device.compute_capability == (9, 0):
            raise
        pytest.skip("this GPU has no such scales")
    first, second = lib.from_float8(a).astype(float) * each_a, lib.from_float8(w).T.astype(float) * each_b
    assert np.linalg.norm(got - first @ second) <= 1e-3 * np.linalg.norm(first @ second)


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        (lib.float8_e4m3, lib.float8_e4m3, lib.bfloat16),
        (lib.float8_e4m3, lib.float8_e5m2, np.float16),
        (lib.float8_e5m2, lib.float8_e4m3, np.float32),
    ],
)
@pytest.mark.parametrize("fast", [False, True])
def test_8_bit_floats_of_both_formats_are_multiplied(device, numbers, first, second, result, fast):
    a, w = lib.to_float8(numbers((48, 64)), first), lib.to_float8(numbers((32, 64)), second)
    got = lib.scaled_gemm(cuda.to_device(a), cuda.to_device(w).T, dtype=result, fast_accumulation=fast)
    assert got.dtype == result
    host = lib.from_bfloat16(got.to_host()) if result == lib.bfloat16 else got.to_host()
    expected = lib.from_float8(a).astype(float) @ lib.from_float8(w).T
    assert np.linalg.norm(host - expected) <= 5e-3 * np.linalg.norm(expected)


def test_a_window_of_an_output_receives_a_product_with_a_bias(device, rng):
    a, w = lib.to_float8(rng.integers(-4, 5, (16, 32))), lib.to_float8(rng.integers(-4, 5, (24, 32)))
    bias = rng.integers(-9, 10, 24).astype(np.float16)
    whole = cuda.full((18, 40), 7.0, np.float16)
    lib.scaled_gemm(cuda.to_device(a), cuda.to_device(w).T, out=whole[1:17, 8:32], bias=cuda.to_device(bias))
    expected = np.full((18, 40), 7.0)
    expected[1:17, 8:32] = lib.from_float8(a) @ lib.from_float8(w).T + bias
    assert np.array_equal(whole.to_host(), expected)


def test_an_output_of_8_bit_floats_is_scaled_and_its_largest_value_noted(device, rng):
    a, w = lib.to_float8(rng.integers(-3, 4, (32, 64))), lib.to_float8(rng.integers(-3, 4, (48, 64)))
    amax, scale = cuda.full(1, -1, np.float32), cuda.full(1, 0.25, np.float32)
    bias = rng.integers(-9, 10, 48)
    got = lib.scaled_gemm(
        cuda.to_device(a), cuda.to_device(w).T, dtype=lib.float8_e4m3, scale_out=scale, amax=amax,
        bias=cuda.to_device(lib.to_bfloat16(bias)),
    )  # fmt: skip  # grouped by meaning
    expected = lib.from_float8(a) @ lib.from_float8(w).T + bias
    assert float(amax) == np.abs(expected).max()
    assert np.array_equal(lib.from_float8(got.to_host()), lib.from_float8(lib.to_float8(expected / 4)))
    assert got.dtype == lib.float8_e4m3
    # The same product without a scale is not multiplied by that of the call before.
    small = lib.to_float8(rng.integers(-1, 2, (32, 64)))
    expected = lib.from_float8(small) @ lib.from_float8(w).T
    lib.scaled_gemm(cuda.to_device(a), cuda.to_device(w).T, dtype=lib.float8_e4m3, scale_out=scale)
    unscaled = lib.scaled_gemm(cuda.to_device(small), cuda.to_device(w).T, dtype=lib.float8_e4m3)
    assert np.array_equal(lib.from_float8(unscaled.to_host()), lib.from_float8(lib.to_float8(expected)))
