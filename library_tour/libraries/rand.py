"""Draw random numbers with cuRAND: every generator and distribution, and an integral by chance and by design.

On the simulator, whose libraries are in software and which times nothing:

    $ library-tour run rand
    rand: cuRAND's generators, by chance and by design
    size 4,100: numbers to draw
    limit: write bandwidth
                            by        error   bound  check
    ──────────────────────────────────────────────────────
    xorwow                  cuRAND    0.740    6.00  right
    mrg32k3a                cuRAND     0.00    6.00  right
    philox                  cuRAND     0.00    6.00  right
    mtgp32                  cuRAND     0.00    6.00  right
    sobol                   cuRAND     0.00    6.00  right
    scrambled_sobol         cuRAND     0.00    6.00  right
    sobol64                 cuRAND     0.00    6.00  right
    scrambled_sobol64       cuRAND     0.00    6.00  right
    uniform double, philox  cuRAND    0.775    6.00  right
    normal, philox          cuRAND    0.921    6.00  right
    normal double, philox   cuRAND    0.229    6.00  right
    log-normal, philox      cuRAND    0.591    6.00  right
    Poisson, philox         cuRAND     2.54    6.00  right
    in a kernel, xorwow     kernel     0.00    0.00  right
    in a kernel, mrg32k3a   kernel     0.00    0.00  right
    in a kernel, philox     kernel     0.00    0.00  right
    integral by chance      cuRAND   0.0204   0.141  right
    integral by design      cuRAND  2.5e-05  0.0249  right
    A generator's own row has uniform numbers of single precision.
    Estimates may be off by 6 standard errors: the column error is in those. For
    numbers drawn in kernels it counts those that are not the host's, for integrals
    it is the error itself, with 1,024 points in 6 dimensions.
    MT19937 takes seconds to begin on the host, and is left to a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.libraries.random import KINDS, Generator

from .. import timing
from ..checks import compare, poison, poisoned
from ..device_code import blocks_for, load
from ..limits import write_limit
from ..stop import Check, Curve, Limit, Result, Row, Size
from .judgement import judged, missing_row

TITLE = "cuRAND's generators, by chance and by design"
SIZE = Size("numbers to draw", full=2**28, small=2**12 + 4, least=64)
# Checked are so many, a number that no block divides; philox makes four at a time.
CHECKED, CHECKED_IN_KERNELS, GROUP = 2**14 + 4, 2**9 + 4, 4
KNOWN_PHILOX = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
# Moments are estimated, and may be off by so many standard errors.
DEVIATIONS = 6.0
BINS = 64
# The host's MT19937 takes seconds to make its streams.
SLOW = ("mt19937",)
SKIPPED, DRAWN = 1000, 200
DIMENSIONS = 6
THREADS_PER_SM = 2048
BLOCK, BLOCKS = 256, (32, 64, 128, 256, 512, 1024)

Array = NDArray[Any]


class DeviceGenerator(NamedTuple):
    """A generator's device functions: its state in curand_kernel.h, and the streams of the host's numbers."""

    state: str
    streams: int

    @property
    def bits(self) -> str:
        """The kernel that gives the host's numbers."""
        return f"bits<{self.state}, {self.streams}>"

    @property
    def uniform(self) -> str:
        """The kernel that fills an array."""
        return f"uniform<{self.state}>"


# With the ordering "legacy" number i of the host is at place i / streams of stream i % streams.
DEVICE = {
    "xorwow": DeviceGenerator("curandStateXORWOW_t", 4096),
    "mrg32k3a": DeviceGenerator("curandStateMRG32k3a_t", 4096),
    "philox": DeviceGenerator("curandStatePhilox4_32_10_t", 65536),
}


def run(device: cuda.Device, size: int) -> Result:
    """Check every generator and distribution, then time them."""
    limit = write_limit(device)
    size = size // GROUP * GROUP
    count = min(size, CHECKED)
    kinds = [kind for kind in KINDS if timing.available() or kind not in SLOW]
    module, trouble = compiled()
    beginnings = {kind: beginning(kind) for kind in kinds}
    rows = [generator_row(kind, count, size, limit) for kind in kinds]
    rows += [distribution_row(name, count, size, limit) for name in DISTRIBUTIONS]
    if trouble is None:
        rows += [device_row(module, kind, beginnings[kind], size, limit) for kind in DEVICE]
    else:
        rows += [missing_row(f"in a kernel, {kind}", "headers", trouble) for kind in DEVICE]
    points = 2 ** (min(size // 4, 2**16).bit_length() - 1)
    integral, pictures = integral_rows(module, points)
    rows += integral
    notes = [
        "A generator's own row has uniform numbers of single precision.",
        f"Estimates may be off by {DEVIATIONS:.0f} standard errors: the column error is in those. For numbers drawn in "
        "kernels it counts those that are not the host's, for integrals it is the error itself, with "
        f"{points:,} points in {DIMENSIONS} dimensions.",
    ]
    if not timing.available():
        notes.append("MT19937 takes seconds to begin on the host, and is left to a GPU.")
    elif trouble is None:
        pictures.append(block_curve(module, size, limit))
        notes += block_notes(module)
    checks = [known_check(beginnings["philox"]), *offset_checks(beginnings), sobol_check()]
    checks += agreement_checks(beginnings)
    return Result(rows, limit, checks=checks, pictures=pictures, notes=notes)


def compiled() -> tuple[cuda.Module, Exception | None]:
    """Compile the kernels, all at once; without cuRAND's headers those that need none, and say what is missing."""
    names = [name for kind, found in DEVICE.items() if kind != "philox" for name in (found.bits, found.uniform)]
    try:
        return load("rand", names=names), None
    except (cuda.CompileError, cuda.NotFoundError, cuda.NotSupportedError) as error:
        return load("rand"), error


def bits_dtype(kind: str) -> type[np.unsignedinteger[Any]]:
    """Return the dtype of a generator's raw numbers."""
    return np.uint64 if KINDS[kind].bits == 64 else np.uint32


def drawn(kind: str, method: str, count: int, dtype: Any, *parameters: float, **options: Any) -> Array:
    """Return numbers of a generator."""
    generator = Generator(kind, **options)
    out = poisoned(count, dtype)
    getattr(generator, method)(out, *parameters)
    return out.to_host()


def beginning(kind: str, *, host: bool = False) -> Array:
    """Return how a generator's sequence begins, in the order that is the same on the host, on the device and later."""
    count = SKIPPED + DRAWN
    if kind in DEVICE:
        count = (GROUP if kind == "philox" else 1) * (DEVICE[kind].streams + CHECKED_IN_KERNELS)
    ordering = "legacy" if KINDS[kind].seeded else None
    if host:
        return Generator(kind, host=True, ordering=ordering).bits(np.empty(count, bits_dtype(kind)))
    return drawn(kind, "bits", count, bits_dtype(kind), ordering=ordering)


def generator_row(kind: str, count: int, size: int, limit: Limit) -> Row:
    """Draw uniform numbers: chi squared over bins of equal width, as a number of standard deviations."""
    numbers = drawn(kind, "uniform", count, np.float32)
    counts = np.histogram(numbers, BINS, (0, 1))[0]
    expected = count / BINS
    chi_squared = float(((counts - expected) ** 2 / expected).sum())
    # Too even is no sign of chance, but what quasi random numbers are for.
    error = max((chi_squared - (BINS - 1)) / np.sqrt(2 * (BINS - 1)), 0.0)
    work: Callable[[], object] | None = None
    if timing.available():
        generator, out = Generator(kind), cuda.empty(size, np.float32)

        def work() -> object:
            return generator.uniform(out)

    return judged(kind, "cuRAND", error, DEVIATIONS, work=work, amount=4 * size, limit=limit)


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


def distribution_row(name: str, count: int, size: int, limit: Limit) -> Row:
    """Draw from a distribution by Philox, and compare its first two moments."""
    distribution = DISTRIBUTIONS[name]
    numbers = drawn("philox", distribution.method, count, distribution.dtype, *distribution.parameters, seed=7).astype(
        np.float64
    )
    mean_error = abs(numbers.mean() - distribution.mean) / np.sqrt(distribution.variance / count)
    fourth = ((numbers - numbers.mean()) ** 4).mean()
    spread = np.sqrt(max(fourth - distribution.variance**2, distribution.variance**2) / count)
    error = float(max(mean_error, abs(numbers.var() - distribution.variance) / spread))
    work: Callable[[], object] | None = None
    amount = size * np.dtype(distribution.dtype).itemsize
    if timing.available():
        generator, out = Generator("philox"), cuda.empty(size, distribution.dtype)
        draw = getattr(generator, distribution.method)

        def work() -> object:
            return draw(out, *distribution.parameters)

    return judged(f"{name}, philox", "cuRAND", error, DEVIATIONS, work=work, amount=amount, limit=limit)


def device_row(module: cuda.Module, kind: str, sequence: Array, size: int, limit: Limit) -> Row:
    """Draw in a kernel, and find the host's numbers: the same ones at the places that the ordering says."""
    # Places at the beginning, and where the streams have all given a number and begin anew.
    group = GROUP if kind == "philox" else 1
    count = CHECKED_IN_KERNELS // 2
    different = 0
    for first in (0, DEVICE[kind].streams - count // 2):
        expected = sequence[group * first : group * (first + count)]
        different += int(np.count_nonzero(in_kernel(module, kind, first, count) != expected))
    work: Callable[[], object] | None = None
    if timing.available():
        work = kernel_work(module, kind, cuda.empty(size, np.float32), BLOCK)
    return judged(f"in a kernel, {kind}", "kernel", float(different), 0.0, work=work, amount=4 * size, limit=limit)


def in_kernel(module: cuda.Module, kind: str, first: int, count: int) -> Array:
    """Return some numbers of a generator by its device functions, of Philox as many groups of four."""
    generator = DEVICE[kind]
    grid, block = blocks_for(count, 128), 128
    if kind == "philox":
        out = cuda.empty(GROUP * count, np.uint32)
        poison(out)
        module["bits_philox"][grid, block](four(out), 0, first, count, generator.streams)
    else:
        out = cuda.empty(count, np.uint32)
        poison(out)
        module[generator.bits][grid, block](out, 0, first, count)
    return out.to_host()


def four(array: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return an array as vectors of four, which a thread writes at once."""
    return array.view(np.dtype([(name, array.dtype) for name in "xyzw"]))


def uniform_kernel(module: cuda.Module, kind: str) -> cuda.Kernel:
    """Return the kernel that fills an array with uniform numbers."""
    return module["uniform_philox" if kind == "philox" else DEVICE[kind].uniform]


def kernel_work(module: cuda.Module, kind: str, out: cuda.DeviceArray, block: int) -> Callable[[], object]:
    """Return the launch of that kernel, with as many threads as the device holds."""
    grid = max(1, THREADS_PER_SM * out.device.sm_count // block)
    launch = uniform_kernel(module, kind)[grid, block]
    return launch.bind(four(out), 0, out.size // GROUP) if kind == "philox" else launch.bind(out, 0, out.size)


# -- facts ---------------------------------------------------------------------------------------


def known_check(sequence: Array) -> Check:
    """Compare Philox with the numbers that its authors publish for a counter and a key of zero."""
    return compare("Philox4x32-10 begins with its known values", sequence[:4], np.array(KNOWN_PHILOX, np.uint32))


def offset_checks(beginnings: dict[str, Array]) -> list[Check]:
    """Begin behind some numbers: the sequence goes on as if they had been drawn."""
    checks = []
    for kind, sequence in beginnings.items():
        if KINDS[kind].offsets:
            ordering = "legacy" if KINDS[kind].seeded else None
            got = drawn(kind, "bits", DRAWN, bits_dtype(kind), offset=SKIPPED, ordering=ordering)
            expected = sequence[SKIPPED : SKIPPED + DRAWN]
            checks.append(compare(f"{kind} with an offset goes on behind it", got, expected))
    return checks


def agreement_checks(beginnings: dict[str, Array]) -> list[Check]:
    """Compare what the device's generators made with what the host's make."""
    return [
        compare(f"{kind} makes the same numbers on the host", sequence, beginning(kind, host=True))
        for kind, sequence in beginnings.items()
        if kind not in SLOW
    ]


def sobol_check() -> Check:
    """Compare Sobol's points with SciPy's."""
    from scipy.stats import qmc

    points = 128
    got = drawn("sobol", "bits", points * DIMENSIONS, np.uint32, dimensions=DIMENSIONS)
    theirs = qmc.Sobol(DIMENSIONS, scramble=False).random(points)
    return compare("Sobol's points are SciPy's", got.reshape(DIMENSIONS, points).T / 2.0**32, theirs)


# -- an integral ---------------------------------------------------------------------------------


def integral_rows(module: cuda.Module, most: int) -> tuple[list[Row], list[Any]]:
    """Integrate over the unit cube with points by chance and by design; errors against the number of points."""
    sizes = [2**k for k in range(3, most.bit_length())]
    lines: dict[str, list[tuple[float, float]]] = {}
    rows = []
    # The integrand's variance, from that of each factor: 1 / (3 (1 + a)^2).
    deviation = float(np.sqrt(np.prod([1 + 1 / (3 * (1 + a) ** 2) for a in range(DIMENSIONS)]) - 1))
    # By chance the error falls like 1 / sqrt(n), by design nearly like 1 / n: here it must be well beyond chance.
    for kind, title, power in (("philox", "by chance", 0.5), ("scrambled_sobol", "by design", 0.75)):
        points = [(float(n), abs(integrate(module, kind, n) - 1.0)) for n in sizes]
        lines[title] = points
        n, error = points[-1]
        bound = DEVIATIONS * deviation / n**power
        rows.append(judged(f"integral {title}", "cuRAND", error, bound))
    lines["standard error by chance"] = [(float(n), deviation / np.sqrt(n)) for n in sizes]
    return rows, [Curve("integral", "points", "error of the integral", lines, "xy")]


def integrate(module: cuda.Module, kind: str, n: int) -> float:
    """Return the mean of the integrand over points of a generator."""
    options = {} if KINDS[kind].seeded else {"dimensions": DIMENSIONS}
    points = drawn(kind, "uniform", n * DIMENSIONS, np.float32, **options)
    values = cuda.empty(n, np.float32)
    poison(values)
    module["integrand"][blocks_for(n, BLOCK), BLOCK](cuda.to_device(points), values, n, DIMENSIONS)
    return float(values.to_host().mean(dtype=np.float64))


# -- blocks --------------------------------------------------------------------------------------


def block_curve(module: cuda.Module, size: int, limit: Limit) -> Curve:
    """Measure the rate of the device functions against the threads of a block, beside the library's own kernels."""
    out = cuda.empty(size, np.float32)
    lines: dict[str, list[tuple[float, float]]] = {}
    for kind in DEVICE:
        most = uniform_kernel(module, kind).attributes.max_threads_per_block
        works = {block: kernel_work(module, kind, out, block) for block in BLOCKS if block <= most}
        lines[kind] = [(float(block), rate(out.nbytes, work)) for block, work in works.items()]
    generator = Generator("philox")
    whole = rate(out.nbytes, lambda: generator.uniform(out))
    lines["philox, host API"] = [(float(block), whole) for block in BLOCKS]
    return Curve("blocks", "threads of a block", "GB/s", lines, "x", line=limit)


def rate(nbytes: int, work: Callable[[], object]) -> float:
    """Measure the GB/s of something that writes so many bytes."""
    return timing.per_second(nbytes, timing.median_ms(work, quick=True), "GB/s")


def block_notes(module: cuda.Module) -> list[str]:
    """Say which blocks a kernel cannot have."""
    found = {kind: uniform_kernel(module, kind).attributes for kind in DEVICE}
    return [
        f"The kernel of {kind} has {attributes.registers} registers a thread, so {attributes.max_threads_per_block} "
        "threads a block at most: longer blocks are left out of the picture."
        for kind, attributes in found.items()
        if attributes.max_threads_per_block < max(BLOCKS)
    ]
