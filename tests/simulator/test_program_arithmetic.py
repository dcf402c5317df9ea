"""Settings of the processor's arithmetic that a program has changed, which must not reach a device's results.

A library that was built with -ffast-math flushes subnormal numbers to zero in the program that loads it.
"""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries

pytestmark = pytest.mark.needs("in_process", "libraries")

# The position of the control register in an fenv_t, and its bits.
CONTROL = {
    "x86_64": (28, {"flush subnormals": 0x8040, "round upwards": 0x4000}),
    "aarch64": (0, {"flush subnormals": 1 << 24, "round upwards": 1 << 22}),
}
OFFSET, BITS = CONTROL[platform.machine()]
KERNELS = """
extern "C" __global__ void compute(const float *x, float *sums, float *products, double *parts) {
    int i = threadIdx.x;
    sums[i] = x[i] + 1.0f;
    products[i] = x[i] * 1e-40f;
    parts[i] = x[i] / 3.0 * 1e-310;
}
"""
NUMBERS = np.linspace(0.1, 2, 32, dtype=np.float32)
SUBNORMAL = np.float32(1e-40)
MATRIX = np.full((4, 32), SUBNORMAL)


@contextmanager
def setting(bits: int) -> Iterator[None]:
    """Set bits of the calling thread's control register."""
    c = ctypes.PyDLL(None)
    before, changed = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    c.fegetenv(before)
    c.fegetenv(changed)
    control = ctypes.c_uint32.from_buffer(changed, OFFSET)
    control.value |= bits
    c.fesetenv(changed)
    try:
        yield
    finally:
        c.fesetenv(before)


def on_host() -> list[bytes]:
    return [(NUMBERS * SUBNORMAL).tobytes(), (NUMBERS + np.float32(1)).tobytes()]


def on_device(kernels: cuda.Module) -> list[bytes]:
    x, sums, products, parts = cuda.to_device(NUMBERS), *(cuda.empty(32, np.float32) for _ in range(2)), cuda.empty(32)
    kernels["compute"][1, 32](x, sums, products, parts)
    product = libraries.gemv(cuda.to_device(MATRIX), x)
    return [result.to_host().tobytes() for result in (sums, products, parts, product)]


@pytest.mark.parametrize("name", BITS)
def test_a_programs_arithmetic_does_not_reach_results_and_is_left_as_it_was(device, kernels, engine, name):
    host, expected = on_host(), on_device(kernels)
    with setting(BITS[name]):
        changed = on_host()
        assert on_device(kernels) == expected
        assert on_host() == changed != host
