"""Differentiate a periodic function with Fourier transforms."""

from __future__ import annotations

import cudart_py as cuda
from cudart_py import libraries

SOURCE = """
// Multiply element k of a spectrum by i k / n. The wave k = n / 2, which exists only for even n, gets a factor of zero,
// because its derivative is zero at all points.
extern "C" __global__ void differentiate(double2* spectrum, int columns, int n)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= columns)
        return;
    double2 value = spectrum[k];
    double factor = 2 * k == n ? 0.0 : double(k) / n;
    spectrum[k] = make_double2(-factor * value.y, factor * value.x);
}
"""


def derivative(u: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return the derivative of a function with period 2 pi, whose values at n equally spaced points are `u`."""
    n, spectrum = u.size, libraries.rfft(u)
    columns = spectrum.size
    cuda.compile(SOURCE)["differentiate"][-(-columns // 64), 64](spectrum, columns, n)
    return libraries.irfft(spectrum, norm="forward", length=n)
