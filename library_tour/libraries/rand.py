"""Draw random numbers with cuRAND: every generator and distribution, and an integral by chance and by design.

On the software driver, where NumPy and SciPy stand in for the libraries and nothing is timed:

    $ library-tour run rand
    rand: cuRAND's generators, by chance and by design
    size 4,096: numbers to draw
    limit: write bandwidth
                                by                            error  bound  check
    ─────────────────────────────────────────────────────────────────────────────
    uniform, xorwow             cuRAND on the host            0.796   6.00  right
    uniform, mrg32k3a           cuRAND on the host             0.00   6.00  right
    uniform, philox             cuRAND on the host             0.00   6.00  right
    uniform, mtgp32             cuRAND on the host             0.00   6.00  right
    uniform, sobol              cuRAND on the host             0.00   6.00  right
    uniform, scrambled_sobol    cuRAND on the host             0.00   6.00  right
    uniform, sobol64            cuRAND on the host             0.00   6.00  right
    uniform, scrambled_sobol64  cuRAND on the host             0.00   6.00  right
    uniform double, philox      cuRAND on the host            0.757   6.00  right
    normal, philox              cuRAND on the host            0.924   6.00  right
    normal double, philox       cuRAND on the host            0.291   6.00  right
    log-normal, philox          cuRAND on the host            0.561   6.00  right
    Poisson, philox             cuRAND on the host             2.49   6.00  right
    in a kernel, xorwow         kernel                         0.00   0.00  right
    in a kernel, mrg32k3a       kernel                         0.00   0.00  right
    in a kernel, philox         kernel                         0.00   0.00  right
    integral by chance          cuRAND on the host, kernel   0.0204  0.141  right
    integral by design          cuRAND on the host, kernel  2.5e-05  0.141  right
    in a kernel, xorwow: differences from the host's generator are counted
    in a kernel, mrg32k3a: differences from the host's generator are counted
    in a kernel, philox: differences from the host's generator are counted
    integral by chance: 1,024 points
    integral by design: 1,024 points
    Estimates may be off by 6 standard errors: the column error is in those.
    The host's MT19937 takes seconds to begin, and is left to the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare
from ..device_code import blocks_for, load
from ..limits import write_limit
from ..stop import Check, Curve, Limit, Result, Row, Size
from .curand_host import host_curand
from .judgement import extra_row, judged
from .random_numbers import KINDS, Generator
from .tools import Tools

TITLE = "cuRAND's generators, by chance and by design"
SIZE = Size("numbers to draw", full=2**28, small=2**12, least=64)
KNOWN_PHILOX = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
# Moments are estimated, and may be off by so many standard errors.
DEVIATIONS = 6.0
BINS = 64
# A thread starts in a state of its own; the host's MT19937 takes seconds to make its streams.
SLOW = ("mt19937",)
DIMENSIONS = 6
THREADS_PER_SM = 2048
BLOCKS = (32, 64, 128, 256, 512, 1024)

Array = NDArray[Any]


class DeviceGenerator(NamedTuple):
    """A generator's device functions: its state in curand_kernel.h, and the streams of the host's numbers."""

    state: str
    streams: int


# With the ordering "legacy" number i of the host is at place i / streams of stream i % streams.
DEVICE = {
    "xorwow": DeviceGenerator("curandStateXORWOW_t", 4096),
    "mrg32k3a": DeviceGenerator("curandStateMRG32k3a_t", 4096),
    "philox": DeviceGenerator("curandStatePhilox4_32_10_t", 65536),
}


def run(device: cuda.Device, size: int) -> Result:
    """Check every generator and distribution, then time them."""
    tools = Tools()
    limit = write_limit(device)
    if not tools.on_device and host_curand() is None:
        missing = extra_row("cuRAND", "headers", RuntimeError("cuRAND is not installed"))
        return Result([missing], limit)
    count = min(size, 2**14) // 2 * 2
    kinds = [kind for kind in KINDS if tools.on_device or kind not in SLOW]
    rows = [generator_row(tools, kind, count, size, limit) for kind in kinds]
    rows += [distribution_row(tools, name, count, size, limit) for name in DISTRIBUTIONS]
    rows += [device_row(tools, kind, min(count, 4096), size, limit) for kind in DEVICE]
    integral, pictures = integral_rows(tools, min(size // 4, 2**16))
    rows += integral
    if timing.available() and tools.on_device:
        pictures.append(block_curve(size))
    checks = [*known_checks(tools), *offset_checks(tools, kinds), sobol_check(tools)]
    skipped = [] if tools.on_device else ["The host's MT19937 takes seconds to begin, and is left to the GPU."]
    note = f"Estimates may be off by {DEVIATIONS:.0f} standard errors: the column error is in those."
    return Result(rows, limit, checks=checks, pictures=pictures, notes=[note, *skipped])


def drawn(tools: Tools, kind: str, method: str, count: int, dtype: Any, *parameters: float, **options: Any) -> Array:
    """Return numbers of a generator, on the device or on the host."""
    generator = Generator(kind, host=not tools.on_device, **options)
    return tools.get(getattr(generator, method)(tools.empty(count, dtype), *parameters))


def generator_row(tools: Tools, kind: str, count: int, size: int, limit: Limit) -> Row:
    """Draw uniform numbers: chi squared over bins of equal width, as a number of standard deviations."""
    numbers = drawn(tools, kind, "uniform", count, np.float32)
    counts = np.histogram(numbers, BINS, (0, 1))[0]
    expected = count / BINS
    chi_squared = float(((counts - expected) ** 2 / expected).sum())
    # Too even is no sign of chance, but what quasi random numbers are for.
    error = max((chi_squared - (BINS - 1)) / np.sqrt(2 * (BINS - 1)), 0.0)
    work: Callable[[], object] | None = None
    if tools.on_device and timing.available():
        generator, out = Generator(kind), cuda.empty(size, np.float32)

        def work() -> object:
            return generator.uniform(out)

    return judged(f"uniform, {kind}", tools.by("random"), error, DEVIATIONS, work=work, amount=4 * size, limit=limit)


class Distribution(NamedTuple):
    """A distribution's method, its dtype and parameters, and its mean and variance."""

    method: str
    dtype: Any
    parameters: tuple[float, ...]
    mean: float
    variance: float


DISTRIBUTIONS = {
    "uniform double": Distribution("uniform", np.float64, (), 0.5, 1 / 12),
    "normal": Distribution("normal", np.float32, (1.0, 2.0), 1.0, 4.0),
    "normal double": Distribution("normal", np.float64, (1.0, 2.0), 1.0, 4.0),
    "log-normal": Distribution(
        "log_normal", np.float32, (0.0, 0.5), float(np.exp(0.125)), float(np.expm1(0.25) * np.exp(0.25))
    ),
    "Poisson": Distribution("poisson", np.uint32, (4.5,), 4.5, 4.5),
}


def distribution_row(tools: Tools, name: str, count: int, size: int, limit: Limit) -> Row:
    """Draw from a distribution by Philox, and compare its first two moments."""
    distribution = DISTRIBUTIONS[name]
    numbers = drawn(
        tools, "philox", distribution.method, count, distribution.dtype, *distribution.parameters, seed=7
    ).astype(np.float64)
    mean_error = abs(numbers.mean() - distribution.mean) / np.sqrt(distribution.variance / count)
    fourth = ((numbers - numbers.mean()) ** 4).mean()
    spread = np.sqrt(max(fourth - distribution.variance**2, distribution.variance**2) / count)
    error = float(max(mean_error, abs(numbers.var() - distribution.variance) / spread))
    work: Callable[[], object] | None = None
    amount = size * np.dtype(distribution.dtype).itemsize
    if tools.on_device and timing.available():
        generator, out = Generator("philox"), cuda.empty(size, distribution.dtype)
        draw = getattr(generator, distribution.method)

        def work() -> object:
            return draw(out, *distribution.parameters)

    return judged(f"{name}, philox", tools.by("random"), error, DEVIATIONS, work=work, amount=amount, limit=limit)


def device_row(tools: Tools, kind: str, count: int, size: int, limit: Limit) -> Row:
    """Draw in a kernel, and find the host's numbers: the same ones at the places that the ordering says."""
    name = f"in a kernel, {kind}"
    # Places at the beginning, and where the streams have all given a number and begin anew.
    group = 4 if kind == "philox" else 1
    count = count // 4
    firsts = 0, DEVICE[kind].streams - count // 2
    try:
        found = [in_kernel(kind, first, count) for first in firsts]
    except (cuda.CompileError, cuda.NotFoundError, cuda.NotSupportedError) as error:
        return extra_row(name, "headers", error)
    host = drawn(tools, kind, "bits", group * (firsts[1] + count), np.uint32, ordering="legacy")
    expected = [host[group * first : group * (first + count)] for first in firsts]
    different = float(np.count_nonzero(np.concatenate(found) != np.concatenate(expected)))
    work: Callable[[], object] | None = None
    if tools.on_device and timing.available():
        work = kernel_work(kind, cuda.empty(size // 4 * 4, np.float32), 256)
    note = "differences from the host's generator are counted"
    return judged(name, "kernel", different, 0.0, work=work, amount=4 * size, limit=limit, note=note)


def in_kernel(kind: str, first: int, count: int) -> Array:
    """Return some numbers of a generator by its device functions, of Philox as many groups of four."""
    generator = DEVICE[kind]
    grid = blocks_for(count, 128)
    if kind == "philox":
        out = cuda.empty(4 * count, np.uint32)
        load("rand")["bits_philox"][grid, 128](out.view(VECTOR), 0, first, count, generator.streams)
    else:
        name = f"bits<{generator.state}, {generator.streams}>"
        out = cuda.empty(count, np.uint32)
        load("rand", names=[name])[name][grid, 128](out, 0, first, count)
    return out.to_host()


VECTOR = np.dtype([(name, np.uint32) for name in "xyzw"])


def kernel_work(kind: str, out: cuda.DeviceArray, block: int) -> Callable[[], object]:
    """Return the launch of the kernel that fills an array with uniform numbers."""
    grid = max(1, THREADS_PER_SM * out.device.sm_count // block)
    if kind == "philox":
        floats = out.view(np.dtype([(name, np.float32) for name in "xyzw"]))
        return load("rand")["uniform_philox"][grid, block].bind(floats, 0, out.size // 4)
    name = f"uniform<{DEVICE[kind].state}>"
    return load("rand", names=[name])[name][grid, block].bind(out, 0, out.size)


# -- facts ---------------------------------------------------------------------------------------


def known_checks(tools: Tools) -> list[Check]:
    """Compare Philox with the numbers that its authors publish for a counter and a key of zero."""
    got = drawn(tools, "philox", "bits", 4, np.uint32)
    return [compare("Philox4x32-10 begins with its known values", got, np.array(KNOWN_PHILOX, np.uint32))]


def offset_checks(tools: Tools, kinds: list[str]) -> list[Check]:
    """Begin behind some numbers: the sequence goes on as if they had been drawn."""
    checks = []
    for kind in kinds:
        if not KINDS[kind].offsets:
            continue
        dtype = np.uint64 if KINDS[kind].bits == 64 else np.uint32
        skipped = 1000
        whole = drawn(tools, kind, "bits", skipped + 200, dtype)
        got = drawn(tools, kind, "bits", 200, dtype, offset=skipped)
        checks.append(compare(f"{kind} with an offset goes on behind it", got, whole[skipped:]))
    return checks


def sobol_check(tools: Tools) -> Check:
    """Compare Sobol's points with SciPy's."""
    from scipy.stats import qmc

    points = 128
    got = drawn(tools, "sobol", "bits", points * DIMENSIONS, np.uint32, dimensions=DIMENSIONS)
    theirs = qmc.Sobol(DIMENSIONS, scramble=False).random(points)
    return compare("Sobol's points are SciPy's", got.reshape(DIMENSIONS, points).T / 2.0**32, theirs)


# -- an integral ---------------------------------------------------------------------------------


def integral_rows(tools: Tools, most: int) -> tuple[list[Row], list[Any]]:
    """Integrate over the unit cube with points by chance and by design; errors against the number of points."""
    sizes = [2**k for k in range(3, most.bit_length())]
    lines: dict[str, list[tuple[float, float]]] = {}
    rows = []
    # The integrand's variance, from that of each factor: 1 / (3 (1 + a)^2).
    deviation = float(np.sqrt(np.prod([1 + 1 / (3 * (1 + a) ** 2) for a in range(DIMENSIONS)]) - 1))
    for kind, title in (("philox", "by chance"), ("scrambled_sobol", "by design")):
        points = [(float(n), abs(integrate(tools, kind, n) - 1.0)) for n in sizes]
        lines[title] = points
        n, error = points[-1]
        # By chance the error is 1 / sqrt(n); design must do better, and by n like this it does.
        bound = DEVIATIONS * deviation / np.sqrt(n)
        note = f"{int(n):,} points"
        rows.append(judged(f"integral {title}", f"{tools.by('random')}, kernel", error, float(bound), note=note))
    return rows, [Curve("integral", "points", "error", lines, "xy")]


def integrate(tools: Tools, kind: str, n: int) -> float:
    """Return the mean of the integrand over points of a generator."""
    options = {} if KINDS[kind].seeded else {"dimensions": DIMENSIONS}
    points = drawn(tools, kind, "uniform", n * DIMENSIONS, np.float32, **options)
    values = cuda.empty(n, np.float32)
    load("rand")["integrand"][blocks_for(n, 256), 256](cuda.to_device(points), values, n, DIMENSIONS)
    return float(values.to_host().mean(dtype=np.float64))


def block_curve(size: int) -> Curve:
    """Measure the rate of the device functions against the threads of a block."""
    out = cuda.empty(size // 4 * 4, np.float32)
    lines = {
        kind: [
            (float(block), timing.per_second(4 * out.size, timing.median_ms(kernel_work(kind, out, block)), "GB/s"))
            for block in BLOCKS
        ]
        for kind in DEVICE
    }
    return Curve("blocks", "threads of a block", "GB/s", lines, "x")
