"""Fourier transforms with cuFFT: all types, batches and lengths, and Poisson's equation solved in Fourier space.

On the simulator, which runs the libraries in software and does not measure time:

    $ library-tour run fft
    fft: Fourier transforms with cuFFT, and Poisson's equation
    size 60: points per transform of the batch, and per side of the square
                          by             error    bound  check
    ──────────────────────────────────────────────────────────
    C2C single            cuFFT        9.2e-08  5.6e-06  right
    C2C single, back      cuFFT        1.3e-07  1.1e-05  right
    C2C double            cuFFT        1.8e-16  1.0e-14  right
    C2C double, back      cuFFT        2.6e-16  2.1e-14  right
    R2C single            cuFFT        8.8e-08  5.6e-06  right
    C2R single, back      cuFFT        1.3e-07  1.1e-05  right
    R2C double            cuFFT        1.7e-16  1.0e-14  right
    C2R double, back      cuFFT        2.5e-16  2.1e-14  right
    C2C half              cuFFT        2.0e-04   0.0469  right
    R2C half              cuFFT        2.1e-04   0.0469  right
    C2R half, back        cuFFT        2.0e-04   0.0938  right
    1-D of 3,600          cuFFT        2.8e-16  2.1e-14  right
    2-D of 3,600          cuFFT        2.5e-16  2.1e-14  right
    3-D of 3,375          cuFFT        2.7e-16  2.1e-14  right
    columns               cuFFT        1.6e-16  1.2e-14  right
    strided window        cuFFT        1.9e-16  1.2e-14  right
    in place              cuFFT        1.8e-16  1.2e-14  right
    R2C in place, padded  cuFFT        2.4e-16  2.1e-14  right
    length 2^8            cuFFT        1.0e-07  7.6e-06  right
    length 3^5            cuFFT        1.2e-07  7.6e-06  right
    length 5^3            cuFFT        1.1e-07  6.6e-06  right
    length 7^3            cuFFT        1.2e-07  8.0e-06  right
    length 251, prime     cuFFT        2.1e-07  1.7e-05  right
    with a load callback  cuFFT        2.6e-16  2.1e-14  right
    nvmath C2C double     nvmath, CPU  1.9e-16  1.0e-14  right
    nvmath C2C single     nvmath, CPU  1.0e-07  5.6e-06  right
    nvmath, planned       nvmath, CPU  1.0e-07  5.6e-06  right
    filter, cuFFTDx
    filter, cuFFT         cuFFT        1.2e-07  1.5e-05  right
    product, cuBLASDx
    product, cuBLAS       cuBLAS       1.5e-07  7.6e-06  right
    Poisson's equation    cuFFT        3.4e-16  2.1e-14  right
    with a load callback: the callback is called by a kernel before the transform,
    since cuFFT cannot
    filter, cuFFTDx: Skipped: No module named 'numba_cuda'; the `dx` extra installs
    what this needs: pip install "cudart-py[dx]"
    product, cuBLASDx: Skipped: No module named 'numba_cuda'; the `dx` extra
    installs what this needs: pip install "cudart-py[dx]"
    Poisson's equation: a kernel divides the spectrum by the negative of the squared
    wave number; the right-hand side is a single wave, which the grid represents
    exactly, so rounding is the only source of error
    Errors are in the 2-norm, relative to the norm of the result. The bound is 16
    rounding errors per factor of two in the length. The rates in GB/s count each
    element as read once and written once, as in a copy.
    The transform of n real elements has n/2 + 1 complex elements, which take as
    much space as n + 2 real elements (n + 1 if n is odd). Each row of an in-place
    transform is therefore padded by two elements (or by one), as in FFTW.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries

from .. import timing
from ..checks import poisoned
from ..counters import counted
from ..device_code import blocks_for, find, load
from ..limits import copy_limit
from ..stop import Curve, Limit, Result, Row, Size
from .device_functions import device_rows
from .high_level import lent, nvmath_row, runs_on_gpu
from .judgement import judged, relative_error, work_of
from .precisions import numbers, on_device, unit_roundoff

TITLE = "Fourier transforms with cuFFT, and Poisson's equation"
SIZE = Size("points per transform of the batch, and per side of the square", full=4096, small=60, least=4)
CHECKED = 180
BATCH = 24
BLOCK = (32, 8)
SMOOTH = (64, 243, 625, 1024, 2401, 4096, 6561, 15625, 16807, 65536, 117649, 262144, 1048576)
PRIMES = (61, 251, 631, 1021, 2399, 4093, 6563, 15619, 16811, 65537, 117671, 262139, 1048573)

# The number of points in a batch of one of these lengths.
POINTS = 2**24

Array = NDArray[Any]


def exact(x: Array) -> Array:
    """Return the elements in NumPy's longest precision, in which SciPy can also transform."""
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def bound_of(dtype: Any, points: int) -> float:
    """Return the largest allowed relative error of a transform in the 2-norm: several rounding errors per level.

    A prime length needs three transforms of at least twice the length.
    """
    return float(16 * unit_roundoff(np.dtype(dtype)) * np.log2(max(points, 2)))


def run(device: cuda.Device, size: int) -> Result:
    """Check every kind and layout at a small size, and time batches and squares at the full one."""
    limit = copy_limit(device)
    n = min(size, CHECKED)
    rows = kind_rows(n)
    rows += dimension_rows(n)
    rows += layout_rows(n)
    rows += length_rows()
    rows.append(callback_row(n, size, limit))
    rows += high_level_rows(n, size, limit)
    rows += device_rows(size**2, limit)
    rows += timed_rows(size, limit)
    rows.append(poisson_row(n - n % 2))
    pictures = length_curves(limit) if timing.available() else []
    notes = [
        "Errors are in the 2-norm, relative to the norm of the result. The bound is 16 rounding errors per factor of "
        "two in the length. The rates in GB/s count each element as read once and written once, as in a copy.",
        "The transform of n real elements has n/2 + 1 complex elements, which take as much space as n + 2 real "
        "elements (n + 1 if n is odd). Each row of an in-place transform is therefore padded by two elements (or by "
        "one), as in FFTW.",
    ]
    return Result(rows, limit, pictures=pictures, notes=notes)


def transform_work(x: Array, spectrum: Array | cuda.DeviceArray, points: int) -> dict[str, float]:
    """Return the work of transforms of `points` points: 5 n log2 n operations each, half as many for real elements.

    This is the usual count in comparisons of libraries, whatever the algorithm.
    """
    large, small = max(x.size, spectrum.size), min(x.size, spectrum.size)
    half = 1.0 if large == small else 0.5
    return work_of(half * 5 * large * math.log2(max(points, 2)), x, spectrum)


def kind_rows(n: int) -> list[Row]:
    """Transform complex and real elements in single and double precision, forward and back, and in half precision."""
    from scipy import fft as reference

    rows = []
    by = "cuFFT"
    for name, dtype in (("single", np.complex64), ("double", np.complex128)):
        x = numbers((BATCH, n), dtype)
        place = cuda.to_device(x)
        spectrum = libraries.fft(place, poisoned(x.shape, dtype))
        error = relative_error(exact(spectrum.to_host()), reference.fft(exact(x)))
        does = transform_work(x, spectrum, n)
        rows.append(judged(f"C2C {name}", by, error, bound_of(dtype, n), does=does))
        back = libraries.ifft(spectrum).to_host()
        error = relative_error(back, x)
        rows.append(judged(f"C2C {name}, back", by, error, 2 * bound_of(dtype, n), does=does))
    for name, real in (("single", np.float32), ("double", np.float64)):
        x = numbers((BATCH, n), real)
        spectrum = libraries.rfft(cuda.to_device(x), poisoned((BATCH, n // 2 + 1), np.result_type(real, np.complex64)))
        error = relative_error(exact(spectrum.to_host()), reference.rfft(exact(x)))
        does = transform_work(x, spectrum, n)
        rows.append(judged(f"R2C {name}", by, error, bound_of(real, n), does=does))
        back = libraries.irfft(spectrum, poisoned(x.shape, real)).to_host()
        error = relative_error(back, x)
        rows.append(judged(f"C2R {name}, back", by, error, 2 * bound_of(real, n), does=does))
    return rows + half_rows()


def half_rows() -> list[Row]:
    """Transform real and complex half-precision elements; the length is a power of two, as cuFFT requires."""
    length, bound = 64, bound_of(np.float16, 64)
    pairs = np.zeros((BATCH, length), libraries.complex32)
    pairs["real"], pairs["imag"] = np.random.default_rng().standard_normal((2, BATCH, length))
    real = numbers((BATCH, length), np.float16)
    spectrum = libraries.rfft(cuda.to_device(real))
    back = libraries.irfft(spectrum).to_host()
    errors = {
        "C2C half": relative_error(
            of_pairs(libraries.fft(cuda.to_device(pairs)).to_host()), np.fft.fft(of_pairs(pairs))
        ),
        "R2C half": relative_error(of_pairs(spectrum.to_host()), np.fft.rfft(exact(real))),
        "C2R half, back": relative_error(exact(back), exact(real)),
    }
    work = {name: transform_work(real, spectrum, length) for name in errors}
    work["C2C half"] = transform_work(pairs, pairs, length)
    factors = {"C2R half, back": 2}
    return [
        judged(name, "cuFFT", error, factors.get(name, 1) * bound, does=work[name]) for name, error in errors.items()
    ]


def of_pairs(pairs: Array) -> Array:
    """Return pairs of half-precision elements as complex elements in the longest precision."""
    values: Array = pairs["real"].astype(np.longdouble) + 1j * pairs["imag"].astype(np.longdouble)
    return values


def dimension_rows(n: int) -> list[Row]:
    """Transform along one, two and three axes."""
    from scipy import fft as reference

    rows = []
    side = max(2, round(n ** (2 / 3)))
    for shape, title in (((n * n,), "1-D"), ((n, n), "2-D"), ((side, side, side), "3-D")):
        x = numbers(shape, np.complex128)
        got = libraries.fft(cuda.to_device(x), axes=None).to_host()
        error = relative_error(exact(got), reference.fftn(exact(x)))
        does = transform_work(x, got, x.size)
        rows.append(judged(f"{title} of {x.size:,}", "cuFFT", error, bound_of(np.complex128, x.size), does=does))
    return rows


def layout_rows(n: int) -> list[Row]:
    """Transform columns, every other element of a window, an array in place, and real elements in padded rows."""
    from scipy import fft as reference

    rows = []
    by, bound = "cuFFT", bound_of(np.complex128, 2 * n)
    x = numbers((BATCH, n), np.complex128)
    got = libraries.fft(cuda.to_device(x), axes=0).to_host()
    error = relative_error(exact(got), reference.fft(exact(x), axis=0))
    rows.append(judged("columns", by, error, bound, does=transform_work(x, got, BATCH)))
    whole = numbers((BATCH, 2 * n), np.complex128)
    got = libraries.fft(cuda.to_device(whole)[2:9, 1 : 2 * n : 2]).to_host()
    error = relative_error(exact(got), reference.fft(exact(whole[2:9, 1::2])))
    rows.append(judged("strided window", by, error, bound, does=transform_work(got, got, n)))
    place = cuda.to_device(x.copy())
    got = libraries.fft(place, place).to_host()
    error = relative_error(exact(got), reference.fft(exact(x)))
    rows.append(judged("in place", by, error, bound, does=transform_work(x, got, n)))
    rows.append(padded_row(n))
    return rows


def padded_row(n: int) -> Row:
    """Transform real elements in place: two more elements per row make room for its spectrum."""
    from scipy import fft as reference

    real = numbers((BATCH, n, n), np.float64)
    spectrum = poisoned((BATCH, n, n // 2 + 1), np.complex128)
    inside = spectrum.view(np.float64)[:, :, :n]
    cuda.memcpy3d(inside, real)
    got = libraries.rfft(inside, spectrum, axes=(1, 2)).to_host()
    error = relative_error(exact(got), reference.rfft2(exact(real)))
    does = transform_work(real, got, n * n)
    return judged("R2C in place, padded", "cuFFT", error, bound_of(np.float64, n * n), does=does)


def length_rows() -> list[Row]:
    """Transform lengths with small factors, and primes."""
    from scipy import fft as reference

    rows = []
    for length, title in ((2**8, "2^8"), (3**5, "3^5"), (5**3, "5^3"), (7**3, "7^3"), (251, "251, prime")):
        x = numbers((4, length), np.complex64)
        got = libraries.fft(cuda.to_device(x)).to_host()
        error = relative_error(exact(got), reference.fft(exact(x)))
        does = transform_work(x, got, length)
        # A transform of prime length is computed with longer ones.
        points = length if "prime" not in title else 4 * length**2
        rows.append(judged(f"length {title}", "cuFFT", error, bound_of(np.complex64, points), does=does))
    return rows


def callback_row(n: int, size: int, limit: Limit) -> Row:
    """Multiply each row by a window in a callback, which the transform calls for each element that it loads."""
    from scipy import fft as reference

    x = numbers((BATCH, n), np.complex128)
    load = window_of(n)
    plan = libraries.fft.plan(cuda.to_device(x), poisoned(x.shape, np.complex128), load=load)
    got = plan().to_host()
    window = np.sin(np.pi * np.arange(n, dtype=np.longdouble) / n) ** 2
    # The window and the product add a few rounding errors.
    error = relative_error(exact(got), reference.fft(window * exact(x)))
    work: Callable[[], object] | None = None
    if timing.available():
        work = libraries.fft.plan(cuda.zeros((size, size), np.complex128), load=window_of(size))
    how = "by cuFFT itself" if plan.fused else "by a kernel before the transform, since cuFFT cannot"
    note = f"the callback is called {how}"
    does, bound = transform_work(x, got, n), 2 * bound_of(np.complex128, n)
    return judged("with a load callback", "cuFFT", error, bound, work=work, amount=32 * size**2, limit=limit,
                  does=does, note=note)  # fmt: skip  # grouped by meaning


def window_of(n: int) -> libraries.Callback:
    """Return the callback for rows of n elements, from a source that also defines kernels."""
    length = cuda.to_device(np.array([n], np.int32))
    return libraries.Callback(find("fft"), "window", length, define={"ONLY_CALLBACKS": 1})


def high_level_rows(n: int, size: int, limit: Limit) -> list[Row]:
    """Transform with nvmath.fft, which runs on the CPU if there is no GPU: in one call, and planned."""
    from scipy import fft as reference

    execution = "cuda" if runs_on_gpu() else "cpu"

    def transformed(x: Any) -> Any:
        import nvmath

        return nvmath.fft.fft(x, axes=[1], execution=execution)

    def batch() -> Any:
        return lent(on_device((size, size), np.complex64))

    rows = []
    amount = 16 * size**2
    for name, dtype in (("double", np.complex128), ("single", np.complex64)):
        x = numbers((BATCH, n), dtype)
        result = reference.fft(exact(x))
        make_work = (lambda: functools.partial(transformed, batch())) if name == "single" else None
        rows.append(
            nvmath_row(f"nvmath C2C {name}", functools.partial(transformed, x),
                       functools.partial(relative_error, exact=result), bound_of(dtype, n), make_work=make_work,
                       amount=amount, limit=limit)
        )  # fmt: skip  # grouped by meaning
    if not rows[0].values:
        return rows[:1]  # the other rows need the same library
    with ExitStack() as stack:

        def planned(x: Any) -> Callable[[], Any]:
            import nvmath

            plan = stack.enter_context(nvmath.fft.FFT(x, axes=[1], execution=execution))
            plan.plan()
            plan.reset_operand(x)  # this array again, or another one of the same layout
            return lambda: plan.execute()

        rows.append(
            nvmath_row("nvmath, planned", lambda: planned(x)(), functools.partial(relative_error, exact=result),
                       bound_of(np.complex64, n), make_work=lambda: planned(batch()), amount=amount, limit=limit)
        )  # fmt: skip  # grouped by meaning
    return rows


def timed_rows(size: int, limit: Limit) -> list[Row]:
    """Time a batch of many short rows and a square; memory limits both, or nearly so."""
    if not timing.available():
        return []
    rows = []
    cases = {
        f"{size} rows of {size}": ((size, size), -1),
        f"2-D {size} x {size}": ((size, size), None),
    }
    for title, (shape, axes) in cases.items():
        x = on_device(shape, np.complex64)
        out = cuda.empty(shape, np.complex64)

        def work(x: Any = x, out: Any = out, axes: Any = axes) -> object:
            return libraries.fft(x, out, axes=axes)

        work()
        total = complex(out[0, :1].to_host()[0]) if axes is None else complex(out[:1, 0].to_host()[0])
        source = x.to_host()
        mean = source.sum(dtype=complex) if axes is None else source[0].sum(dtype=complex)
        # The first element is the sum.
        error = abs(total - mean) / float(np.linalg.norm(source if axes is None else source[0]))
        rows.append(judged(title, "cuFFT", error, 4 * bound_of(np.complex64, source.size), work=work,
                           amount=2 * source.nbytes, limit=limit, host=True))  # fmt: skip  # grouped by meaning
    return rows


def poisson_row(n: int) -> Row:
    """Solve the equation Δu = f on a periodic square: transform, divide in a kernel, transform back."""
    grid = 2 * np.pi * np.arange(n) / n
    x, y = np.meshgrid(grid, grid)
    # The grid represents this wave exactly, so rounding is the only error.
    u = np.sin(x) * np.cos(y)
    f = -2 * u
    spectrum = libraries.rfft(cuda.to_device(f), axes=(0, 1))
    columns = n // 2 + 1
    blocks = (blocks_for(columns, BLOCK[0]), blocks_for(n, BLOCK[1]))
    metrics = counted(load("fft")["poisson"][blocks, BLOCK].bind(spectrum, n))
    got = libraries.irfft(spectrum, axes=(0, 1), norm="forward", length=n, overwrite=True).to_host()
    note = (
        "a kernel divides the spectrum by the negative of the squared wave number; the right-hand side is a single "
        "wave, which the grid represents exactly, so rounding is the only source of error"
    )
    error = relative_error(got, u)
    return judged("Poisson's equation", "cuFFT", error, bound_of(np.float64, n * n), note=note, metrics=metrics)


def length_curves(limit: Limit) -> list[Curve]:
    """Measure the time of a transform against its length, for small factors and primes, in batches of 2^24 points."""
    times = {"factors 2, 3, 5, 7": times_of(SMOOTH), "primes": times_of(PRIMES)}
    length, first = times["factors 2, 3, 5, 7"][0]
    times["n log n"] = [(float(n), first * n * np.log(n) / (length * np.log(length))) for n in SMOOTH]
    points = {name: [(n, 1e3 * nanoseconds / n) for n, nanoseconds in line] for name, line in times.items()}
    if limit.rate:
        # Each point is read and written once: 16 bytes. GB/s are bytes per nanosecond.
        points["memory, one read and one write"] = [(float(n), 16e3 / limit.rate) for n in SMOOTH]
    return [
        Curve("times", "points of a transform", "ns per transform, in a batch", times, logarithmic="xy"),
        Curve("lengths", "points of a transform", "ps per point, in a batch", points, logarithmic="xy"),
    ]


def times_of(lengths: tuple[int, ...]) -> list[tuple[float, float]]:
    """Measure the nanoseconds per transform for several lengths, each in a batch."""
    times = []
    for length in lengths:
        count = max(1, POINTS // length)
        x, out = (cuda.zeros((count, length), np.complex64) for _ in range(2))
        times.append((float(length), 1e6 * timing.median_ms(transform(x, out), quick=True) / count))
    return times


def transform(x: cuda.DeviceArray, out: cuda.DeviceArray) -> Callable[[], object]:
    """Return a function that queues the transform of rows."""
    return lambda: libraries.fft(x, out)
