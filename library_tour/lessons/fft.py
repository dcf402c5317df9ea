"""The lesson of `fft`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..lesson import Exercise, Lesson, Step
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Differentiate waves of which the derivative is known, on grids with an even and an odd number of points."""
    for n in (64, 45):
        x = 2 * np.pi * np.arange(n) / n
        u, exact = np.sin(3 * x) + np.cos(7 * x), 3 * np.cos(3 * x) - 7 * np.sin(7 * x)
        given = cuda.to_device(u)
        found = answer.derivative(given).to_host()
        yield compare(f"the derivative at {n} points", found, exact, 1e-12)
        yield compare(f"the {n} numbers that were given are left as they were", given.to_host(), u)


LESSON = Lesson(
    learn=[
        "What cuFFT computes: sums without a factor, so that a transform and its inverse multiply by the length.",
        "Why the transform of n real numbers has n / 2 + 1 complex numbers, and how rows are laid out for it.",
        "How batches, columns and windows are transformed without a copy.",
        "Why a differential equation is a division between two transforms.",
    ],
    steps=[
        Step(
            name="C2C single",
            shows=["kind_rows"],
            text="`fft` transforms a batch of rows, and `ifft` goes back. Neither divides, so the result is compared "
            "with `n` times what was there. `rfft` and `irfft` do the same with real numbers, in half the memory.",
        ),
        Step(
            name="2-D of 3,600",
            shows=["dimension_rows"],
            text="With `axes=None` the same function transforms along all axes, here one, two and three.",
        ),
        Step(
            name="strided window",
            shows=["layout_rows"],
            text="cuFFT takes strides: the columns of a matrix, or every other number of some rows, are transformed "
            "where they are. With the same array for input and output, nothing else is allocated.",
        ),
        Step(
            name="R2C in place, padded",
            shows=["padded_row"],
            text="In place, a row of n real numbers needs the room of its n / 2 + 1 complex ones. The real numbers "
            "are a view of the padded array.",
        ),
        Step(
            name="Poisson's equation",
            shows=["poisson", "poisson_row"],
            text="In Fourier space a second derivative is a product with minus the squared wave number. So the "
            "equation is solved by a division, in a kernel of our own between the two transforms. The same division "
            "takes out the number of points, which the transforms leave in.",
        ),
    ],
    look_at=[
        "The column 'error' stays near the rounding of one operation, also for long transforms: an element is the end "
        "of log n additions, not of n.",
        "The rows 'length ...': lengths whose factors are 2, 3, 5 and 7 have the smallest errors, and a prime has a "
        "larger one, since it is computed by longer transforms.",
        "On a GPU, the picture of the time against the length: primes take several times as long as their neighbours. "
        "Pad to a length with small factors where the problem allows it.",
        "On an H200, a batch of 4,096 rows of 4,096 runs at 86 % of the rate of a copy, and the transform of a square "
        "at 29 %: its columns are passes of their own over the memory.",
    ],
    exercise=Exercise(
        task="`derivative(u)` differentiates a periodic function by Fourier transforms: `u` has its values at n points "
        "on [0, 2 pi). The spectrum is multiplied by i times the wave number and transformed back. Yet the result is "
        "too large, and for odd n it has the wrong length.",
        hints=[
            "What do a transform and its inverse multiply by together? And how can `irfft` know from n / 2 + 1 "
            "complex numbers whether n was even?",
        ],
        answer="The transforms leave a factor n in, which the kernel divides by while it has the numbers anyway. "
        "`length=n` tells `irfft` how many real numbers there are, since n and n + 1 have spectra of the same length "
        "for even n. For even n the last wave has no derivative on the grid: its factor is zero.",
        check=check,
    ),
    course="The courses show these libraries without figures for them.",
)
