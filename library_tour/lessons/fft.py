"""The lesson of `fft`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from unittest.mock import patch

import numpy as np

import cudart_py as cuda
from cudart_py import libraries

from ..checks import compare, copies_to_host
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Differentiate waves with a known derivative, on grids with an even and an odd number of points."""
    for n in (64, 45):
        x = 2 * np.pi * np.arange(n) / n
        u, exact = np.sin(3 * x) + np.cos(7 * x), 3 * np.cos(3 * x) - 7 * np.sin(7 * x)
        if n % 2 == 0:
            u += np.cos(n // 2 * x)  # 1, -1, 1, …; its derivative at the points is 0
        device_u = cuda.to_device(u)
        with patch.object(libraries, "irfft", wraps=libraries.irfft) as inverse, copies_to_host() as copies:
            derivative = answer.derivative(device_u)
        result = derivative.to_host()
        yield compare(f"the derivative at {n} points", result, exact, 1e-12)
        yield compare(f"the {n} elements of `u` are unchanged", device_u.to_host(), u)
        yield at_most(f"{n} points: no array is copied to the host", len(copies), 0)
        spectrum = inverse.call_args.args[0] if inverse.call_args and inverse.call_args.args else None
        if n % 2 == 0 and isinstance(spectrum, cuda.DeviceArray) and not spectrum.closed:
            last = float(abs(spectrum.to_host().ravel()[-1].imag))
            yield at_most(f"{n} points: the wave k = {n // 2} that `irfft` transforms back is real", last, 1e-9)


LESSON = Lesson(
    why="Computed directly from its definition, the discrete Fourier transform of n points takes about n^2 operations. "
    "The fast algorithm takes about n log n. On an H200, cuFFT transforms 4,096 rows of 4,096 complex elements in "
    "0.072 ms, at 86.5 % of the speed of a plain copy of the same array: the transform itself is almost free.\n\n"
    "It is the layout that costs time. The two-dimensional transform of the same array takes 0.211 ms, because its "
    "columns need further passes over memory. Transforms also simplify some differential equations: instead of a "
    "sparse solver, you need only a division between two transforms.",
    learn=[
        "predict the scale of a result: `ifft` divides by the length as in NumPy, whereas cuFFT itself never divides. "
        "The division is one more pass over memory, which `norm` can save.",
        "lay out the transform of n real elements, which has n / 2 + 1 complex elements.",
        "transform batches, columns and windows without copying them.",
        "solve a differential equation with constant coefficients using a division between two transforms.",
    ],
    idea="A transform turns n elements into the amplitudes of the n waves that they contain. The fast algorithm splits "
    "the length into its prime factors and passes over the data once per factor or group of factors. Small factors (2, "
    "3, 5, 7) are fast. For a large prime, cuFFT uses longer transforms instead.\n\n"
    "cuFFT names its transforms after the types of their elements: C2C is complex to complex, R2C is real to complex, "
    "and C2R is complex to real. A real signal has a symmetric spectrum, so R2C stores only the first n / 2 + 1 "
    "elements.\n\n"
    "The rule of thumb: transform many rows in one batch, choose lengths with small factors, and divide by n once, "
    "wherever it costs nothing.",
    steps=[
        Step(
            name="C2C single",
            shows=["kind_rows[x:spectrum]", "kind_rows[back]"],
            text="`fft` transforms a batch of rows, and `ifft` transforms it back. `ifft` also divides by `n`, so the "
            "result is the original. `rfft` and `irfft` do the same for real elements, with half the memory. In all "
            "steps, `numbers` creates random elements, and `poisoned` allocates a result filled with "
            "values that are wrong until they are overwritten.",
        ),
        Step(
            name="2-D of 3,600",
            shows=["dimension_rows[x:got]"],
            text="With `axes=None`, the same function transforms along all axes. The arrays here have one, two and "
            "three axes.",
        ),
        Step(
            name="strided window",
            shows=["layout_rows[whole:got]", "layout_rows[place:got]"],
            text="cuFFT accepts strides: the columns of a matrix, or every other element of some rows, can be "
            "transformed without a copy. If input and output are the same array, no second array is allocated.",
        ),
        Step(
            name="R2C in place, padded",
            shows=["padded_row[real:got]"],
            text="For an in-place transform, a row of n real elements needs as much space as its n / 2 + 1 complex "
            "results. The real elements are a view of the padded array.",
        ),
        Step(
            name="with a load callback",
            shows=["window", "window_of", "callback_row[load:plan]"],
            text="A **callback** is a device function that the transform calls for each element that it loads or "
            "stores. Here it multiplies the elements by a window. A kernel before the transform could do the same, but "
            "would read and write the whole array once more.",
        ),
        Step(
            name="filter, cuFFT",
            shows=["filter_in_three_calls", "multiply"],
            text="A filter multiplies the amplitude of each wave by a factor. With calls of a library, it takes three "
            "passes over the rows: a transform, a kernel that multiplies, and the inverse transform. Each pass reads "
            "all elements from memory and writes them back.",
        ),
        Step(
            name="filter, cuFFTDx",
            shows=["filter_in_a_kernel"],
            text="A kernel can also compute transforms itself, so that one pass is enough. **cuFFTDx** is a library "
            "of device functions. The threads of a block keep the elements of a row in registers (`own`), and "
            "`execute` exchanges them through shared memory. An `FFT` object says how many elements each thread has, "
            "how far apart they are, and which block and how much shared memory the kernel needs. The kernel is a "
            "Python function that numba-cuda compiles. nvmath provides cuFFTDx as link-time code, and "
            "`interop.numba.kernel` links both, so that the transform is inlined. This step needs the extra `dx`, and "
            "on the simulator the command `cudart-py run -m library_tour run fft`.",
        ),
        Step(
            name="product, cuBLASDx",
            shows=["product_in_a_kernel", "product_in_a_call"],
            text="The transform of a row of n elements is its product with an n x n matrix of complex exponentials. "
            "It takes n^2 multiplications instead of about n log n, but for a short row the arithmetic is hidden "
            "behind the memory accesses. **cuBLASDx** multiplies tiles in shared memory. Each block loads the matrix "
            "once, and then multiplies one tile of 32 rows after another. With cuBLAS, the same product is one call of "
            "`gemm`.",
        ),
        Step(
            name="Poisson's equation",
            shows=["poisson", "poisson_row[u:got]"],
            text="In Fourier space, taking the second derivative means multiplying by minus the squared wave number. "
            "So the equation is solved by a division, which our own kernel performs between the two transforms. The "
            'kernel also divides by the number of points. With `norm="forward"`, the inverse transform therefore '
            "does not, which saves a pass over the result. `counted` launches the kernel and returns its counters.",
        ),
    ],
    look_at=[
        "The values in the 'error' column stay near the rounding error of a single operation, even for long "
        "transforms: each result is at the end of a chain of about log n additions, not n.",
        "Among the 'length …' rows, the errors are smallest for lengths with no prime factors other than 2, 3, 5 and "
        "7. The error for the prime length is larger, because it takes longer transforms.",
        "When the stop runs on a GPU, the page with pictures also has a plot of the time against the length. Prime "
        "lengths take several times as long as nearby lengths with small factors. If the problem allows it, pad the "
        "data to a length with small factors.",
        "On an H200, a batch of 4,096 rows of 4,096 elements runs at 86.5 % of the rate of a copy. The two-dimensional "
        "transform runs at 29.5 %, because its columns need separate passes over memory.",
        "On an H200, one kernel with cuFFTDx filters 2^24 elements in 0.104 ms. A transform, a kernel and an inverse "
        "transform take 0.212 ms. The tile product gains nothing on its own: it takes 0.211 ms with cuBLASDx, and "
        "0.128 ms with cuBLAS. It pays where the kernel also does the work before or after the product.",
        "In the row names, C2C, R2C and C2R are transforms from complex to complex, real to complex and complex to "
        "real elements. 'back' marks an inverse transform. The 'nvmath' rows call NVIDIA's Python library nvmath.",
    ],
    exercise=Exercise(
        task="`derivative(u)` differentiates a periodic function with Fourier transforms. `u` contains the values of "
        "the function at n points on [0, 2 pi). The given code multiplies the spectrum by i times the wave number and "
        "transforms it back. But the result is too large, and for odd n it has the wrong length. Fix both errors on "
        "the device, without copying an array to the host. Fix a third one that no result shows: for even n, the last "
        "element that `irfft` receives must be real.",
        hints=[
            'With `norm="forward"`, nothing is divided, so by what factor do a transform and its inverse multiply the '
            "elements? And how can `irfft` know from n / 2 "
            "+ 1 complex elements whether n was even?",
            "The kernel multiplies every element of the spectrum anyway, so it can divide by n too. `irfft` has a "
            "`length` argument.",
            "For even n, the last element belongs to the wave k = n / 2, which has the values 1, -1, 1, … at the "
            "points. What is its derivative there?",
        ],
        answer='The transforms leave a factor of n. Without `norm="forward"`, `irfft` would remove it in one more '
        "pass over the result. The kernel removes it at no cost, since it processes each element anyway. "
        "`length=n` tells `irfft` how many real elements to return. The spectrum alone does not show it: for even n, "
        "the lengths n and n + 1 have spectra of the same size. For even n, the derivative of the last wave is zero "
        "at all points, so its factor is zero. With the factor i n / 2, the element would be imaginary, and no real "
        "function has such a spectrum. The simulator ignores that imaginary part, as NumPy does, but cuFFT requires "
        "the spectrum of real elements.",
        check=check,
    ),
    course="The lectures on which the tour is based show these libraries but give no figures for them.",
)
