"""Differentiate a periodic function with Fourier transforms.

The starting code returns a result that is too large, and that has the wrong length if the number of points is odd. If
that number is even, the last element of the spectrum is wrong.
"""

from __future__ import annotations

import cudart_py as cuda
from cudart_py import libraries

SOURCE = """
// Multiply element k of a spectrum by i k.
extern "C" __global__ void differentiate(double2* spectrum, int columns)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= columns)
        return;
    double2 value = spectrum[k];
    spectrum[k] = make_double2(-k * value.y, k * value.x);
}
"""


def derivative(u: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return the derivative of a function with period 2 pi, whose values at n equally spaced points are `u`."""
    spectrum = libraries.rfft(u)
    columns = spectrum.size
    cuda.compile(SOURCE)["differentiate"][-(-columns // 64), 64](spectrum, columns)
    return libraries.irfft(spectrum, norm="forward")
