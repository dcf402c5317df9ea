"""Draw random numbers with cuRAND, from every generator and distribution, and estimate an integral with them.

On the simulator, which runs the libraries in software and does not measure time:

    $ library-tour run rand
    rand: Random numbers with cuRAND: generators and distributions
    size 4,100: numbers to draw
                            by        error    bound  check
    ───────────────────────────────────────────────────────
    xorwow                  cuRAND    0.740     6.00  right
    mrg32k3a                cuRAND     0.00     6.00  right
    philox                  cuRAND     0.00     6.00  right
    mtgp32                  cuRAND     0.00     6.00  right
    sobol                   cuRAND     0.00     6.00  right
    scrambled_sobol         cuRAND     0.00     6.00  right
    sobol64                 cuRAND     0.00     6.00  right
    scrambled_sobol64       cuRAND     0.00     6.00  right
    uniform double, philox  cuRAND    0.775     6.00  right
    normal, philox          cuRAND    0.921     6.00  right
    normal double, philox   cuRAND    0.229     6.00  right
    log-normal, philox      cuRAND    0.591     6.00  right
    exponential, philox     cuRAND    0.672     6.00  right
    Poisson, philox         cuRAND     2.54     6.00  right
    in a kernel, xorwow     kernel     0.00     0.00  right
    in a kernel, mrg32k3a   kernel     0.00     0.00  right
    in a kernel, philox     kernel     0.00     0.00  right
    Sobol, beside SciPy     cuRAND     0.00     0.00  right
    discrepancy, scrambled  cuRAND  5.7e-04  0.00220  right
    integral, random        cuRAND   0.0204    0.141  right
    integral, quasi-random  cuRAND  2.5e-05   0.0249  right
    discrepancy, scrambled: of 256 points; SciPy's scrambled points have 0.0006,
    random ones 0.01
    Each generator draws uniform numbers in single precision. Its error is the
    chi-squared statistic over 64 bins, minus its mean, in standard deviations. For
    a distribution, the error is the larger of the errors of its mean and its
    variance, in standard errors. Errors of up to 6 are accepted.
    In the 'in a kernel' rows, the error is the number of values that differ from
    those of the host API. The integral uses 1,024 points in 6 dimensions, and its
    error is absolute; the exact value is 1. Quasi-random points cover the cube more
    evenly than random ones, so the error falls almost as fast as 1/n instead of
    1/sqrt(n).
    MT19937 is left out here, because setting up its streams takes seconds without a
    GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.libraries.random_numbers import KINDS, Generator

from .. import timing
from ..checks import compare, poisoned
from ..counters import counted
from ..device_code import blocks_for, load
from ..limits import write_limit
from ..stop import Check, Curve, Limit, Result, Row, Size
from .judgement import judged, missing_row, work_of

TITLE = "Random numbers with cuRAND: generators and distributions"
SIZE = Size("numbers to draw", full=2**28, small=2**12 + 4, least=64)
# The counts of numbers to check are not multiples of a block. Philox produces four numbers at a time.
CHECKED, CHECKED_IN_KERNELS, GROUP = 2**14 + 4, 2**9 + 4, 4
KNOWN_PHILOX = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
# The largest allowed difference from the exact value, in standard errors.
DEVIATIONS = 6.0
BINS = 64
# On the host, preparing the streams of MT19937 takes seconds.
SLOW = ("mt19937",)
SKIPPED, DRAWN = 1000, 200
DIMENSIONS, MANY = 6, 1000
# For each dimension after the first: the degree of a primitive polynomial over the integers modulo 2, its inner
# coefficients as bits, and the first direction integers (S. Joe and F. Y. Kuo, 2008).
SOBOL = ((1, 0, (1,)), (2, 1, (1, 3)), (3, 1, (1, 3, 1)), (3, 2, (1, 1, 1)), (4, 1, (1, 1, 3, 3)))
THREADS_PER_SM = 2048
BLOCK, BLOCKS = 256, (32, 64, 128, 256, 512, 1024)
# Numbers per call, up to the size of the stop.
CALLS = tuple(16**k for k in range(8))

Array = NDArray[Any]


class DeviceGenerator(NamedTuple):
    """Device functions of a generator: its state in curand_kernel.h, and the number of streams of the host API."""

    state: str
    streams: int

    @property
    def bits(self) -> str:
        """The kernel that draws the same numbers as the host API."""
        return f"bits<{self.state}, {self.streams}>"

    @property
    def uniform(self) -> str:
        """The kernel that fills an array."""
        return f"uniform<{self.state}>"


# With the ordering "legacy", number i of the host API is number i / streams of stream i % streams.
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
    rows += quasi_rows()
    points = 2 ** (min(size // 4, 2**16).bit_length() - 1)
    integral, pictures = integral_rows(module, points)
    rows += integral
    notes = [
        "Each generator draws uniform numbers in single precision. Its error is the chi-squared statistic over "
        f"{BINS} bins, minus its mean, in standard deviations. For a distribution, the error is the larger of the "
        f"errors of its mean and its variance, in standard errors. Errors of up to {DEVIATIONS:.0f} are accepted.",
        "In the 'in a kernel' rows, the error is the number of values that differ from those of the host API. The "
        f"integral uses {points:,} points in {DIMENSIONS} dimensions, and its error is absolute; the exact value is "
        "1. Quasi-random points cover the cube more evenly than random ones, so the error falls almost as fast as 1/n "
        "instead of 1/sqrt(n).",
    ]
    if not timing.available():
        notes.append("MT19937 is left out here, because setting up its streams takes seconds without a GPU.")
    else:
        pictures.append(call_curve(module if trouble is None else None, size, limit))
        notes.append(
            "If a call draws only a few numbers, the launch takes most of its time. Draw as many numbers per call as "
            "memory allows."
        )
        if trouble is None:
            pictures.append(block_curve(module, size, limit))
            notes += block_notes(module)
    checks = [known_check(beginnings["philox"]), *offset_checks(beginnings), sobol_check()]
    checks += agreement_checks(beginnings)
    return Result(rows, limit, checks=checks, pictures=pictures, notes=notes)


def compiled() -> tuple[cuda.Module, Exception | None]:
    """Return the compiled kernels. Without cuRAND's headers, return those that need none, and the error."""
    names = [name for kind, found in DEVICE.items() if kind != "philox" for name in (found.bits, found.uniform)]
    try:
        return load("rand", names=names), None
    except (cuda.CompileError, cuda.errors.NotFoundError, cuda.errors.NotSupportedError) as error:
        return load("rand"), error


def bits_dtype(kind: str) -> type[np.unsignedinteger[Any]]:
    """Return the dtype of the raw numbers of a generator."""
    return np.uint64 if KINDS[kind].bits == 64 else np.uint32


def drawn(kind: str, method: str, count: int, dtype: Any, *parameters: float, **options: Any) -> Array:
    """Return `count` numbers drawn from a generator."""
    generator = Generator(kind, **options)
    out = poisoned(count, dtype)
    getattr(generator, method)(out, *parameters)
    return out.to_host()


def beginning(kind: str, *, host: bool = False) -> Array:
    """Return the beginning of a sequence, in the order that is the same on host and device and in every release."""
    count = SKIPPED + DRAWN
    if kind in DEVICE:
        count = (GROUP if kind == "philox" else 1) * (DEVICE[kind].streams + CHECKED_IN_KERNELS)
    ordering = "legacy" if KINDS[kind].seeded else None
    if host:
        return Generator(kind, host=True, ordering=ordering).bits(np.empty(count, bits_dtype(kind)))
    return drawn(kind, "bits", count, bits_dtype(kind), ordering=ordering)


def generator_row(kind: str, count: int, size: int, limit: Limit) -> Row:
    """Draw uniform numbers and judge them by chi squared over bins of equal width, in standard deviations."""
    numbers = drawn(kind, "uniform", count, np.float32)
    counts = np.histogram(numbers, BINS, (0, 1))[0]
    expected = count / BINS
    chi_squared = float(((counts - expected) ** 2 / expected).sum())
    # Counts that are more even than random ones also pass: those of quasi-random numbers are meant to be so.
    error = max((chi_squared - (BINS - 1)) / np.sqrt(2 * (BINS - 1)), 0.0)
    work: Callable[[], object] | None = None
    if timing.available():
        generator, out = Generator(kind), cuda.empty(size, np.float32)

        def work() -> object:
            return generator.uniform(out)

    return judged(kind, "cuRAND", error, DEVIATIONS, work=work, amount=4 * size, limit=limit, does=work_of(0, numbers))


class Distribution(NamedTuple):
    """A distribution: the method of the generator, its dtype and parameters, and the exact mean and variance."""

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
    "exponential": Distribution("exponential", np.float32, (2.0,), 2.0, 4.0),
    "Poisson": Distribution("poisson", np.uint32, (4.5,), 4.5, 4.5),
}


def distribution_row(name: str, count: int, size: int, limit: Limit) -> Row:
    """Draw from a distribution with Philox, and compare its first two moments."""
    distribution = DISTRIBUTIONS[name]
    found = drawn("philox", distribution.method, count, distribution.dtype, *distribution.parameters, seed=7)
    numbers = found.astype(np.float64)
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

    does = work_of(0, found)
    return judged(f"{name}, philox", "cuRAND", error, DEVIATIONS, work=work, amount=amount, limit=limit, does=does)


def device_row(module: cuda.Module, kind: str, sequence: Array, size: int, limit: Limit) -> Row:
    """Draw in a kernel, and compare with the numbers of the host API in the ordering "legacy"."""
    # At the beginning, and where every stream has drawn one number and the first stream draws its second.
    group, half = GROUP if kind == "philox" else 1, CHECKED_IN_KERNELS // 2
    places = np.arange(2 * half, dtype=np.int32)
    places[half:] += DEVICE[kind].streams - half - half // 2
    expected = sequence.reshape(-1, group)[places].ravel()
    numbers, metrics = in_kernel(module, kind, places)
    different = int(np.count_nonzero(numbers != expected))
    work: Callable[[], object] | None = None
    if timing.available():
        work = kernel_work(module, kind, cuda.empty(size, np.float32), BLOCK)
    return judged(f"in a kernel, {kind}", "kernel", float(different), 0.0, work=work, amount=4 * size, limit=limit,
                  does=work_of(0, numbers), metrics=metrics)  # fmt: skip  # grouped by meaning


def in_kernel(module: cuda.Module, kind: str, places: NDArray[np.int32]) -> tuple[Array, dict[str, float]]:
    """Return numbers at given places of a sequence, drawn by the device functions, and the counters of the launch.

    For Philox, each place is a group of four numbers.
    """
    generator, count = DEVICE[kind], places.size
    grid, block = blocks_for(count, 128), 128
    where = cuda.to_device(places)
    if kind == "philox":
        out = poisoned(GROUP * count, np.uint32)
        launch = module["bits_philox"][grid, block].bind(four(out), where, 0, count, generator.streams)
    else:
        out = poisoned(count, np.uint32)
        launch = module[generator.bits][grid, block].bind(out, where, 0, count)
    metrics = counted(launch)
    return out.to_host(), metrics


def four(array: cuda.DeviceArray) -> cuda.DeviceArray:
    """Return a view of an array as vectors of four, each of which a thread writes with one store."""
    return array.view(np.dtype([(name, array.dtype) for name in "xyzw"]))


def uniform_kernel(module: cuda.Module, kind: str) -> cuda.Kernel:
    """Return the kernel that fills an array with uniform numbers."""
    return module["uniform_philox" if kind == "philox" else DEVICE[kind].uniform]


def kernel_work(module: cuda.Module, kind: str, out: cuda.DeviceArray, block: int) -> Callable[[], object]:
    """Return a launch of `uniform_kernel` with as many threads as the device holds, but no more than elements."""
    grid = max(1, min(THREADS_PER_SM * out.device.sm_count // block, blocks_for(out.size, block)))
    launch = uniform_kernel(module, kind)[grid, block]
    return launch.bind(four(out), 0, out.size // GROUP) if kind == "philox" else launch.bind(out, 0, out.size)


# -- facts ---------------------------------------------------------------------------------------


def known_check(sequence: Array) -> Check:
    """Compare Philox with the numbers that its authors publish for a counter and a key of zero."""
    return compare("Philox4x32-10 begins with its known values", sequence[:4], np.array(KNOWN_PHILOX, np.uint32))


def offset_checks(beginnings: dict[str, Array]) -> list[Check]:
    """Begin at an offset, and compare with the sequence from there on."""
    checks = []
    for kind, sequence in beginnings.items():
        if KINDS[kind].offsets:
            ordering = "legacy" if KINDS[kind].seeded else None
            got = drawn(kind, "bits", DRAWN, bits_dtype(kind), offset=SKIPPED, ordering=ordering)
            expected = sequence[SKIPPED : SKIPPED + DRAWN]
            checks.append(compare(f"{kind} with an offset continues the sequence there", got, expected))
    return checks


def agreement_checks(beginnings: dict[str, Array]) -> list[Check]:
    """Compare the numbers of the generators on the device and on the host."""
    return [
        compare(f"{kind} draws the same numbers on the host", sequence, beginning(kind, host=True))
        for kind, sequence in beginnings.items()
        if kind not in SLOW
    ]


def sobol_check() -> Check:
    """Compare the points of Sobol with those computed from the published direction numbers."""
    points = 128
    got = drawn("sobol", "bits", points * DIMENSIONS, np.uint32, dimensions=DIMENSIONS)
    expected = np.array([sobol(coordinate, points) for coordinate in range(DIMENSIONS)])
    return compare("the Sobol points match their direction numbers", got.reshape(DIMENSIONS, points), expected)


def quasi_rows() -> list[Row]:
    """Compare the points of Sobol with SciPy's, and how evenly scrambled points cover the cube.

    The discrepancy measures how far the share of the points in a box differs from the volume of the box.
    """
    from scipy.stats import qmc

    points = 256
    got = drawn("sobol", "bits", points * MANY, np.uint32, dimensions=MANY).reshape(MANY, points).T
    different = float(np.count_nonzero(got / 2**32 != qmc.Sobol(MANY, scramble=False, bits=32).random(points)))
    rows = [judged("Sobol, beside SciPy", "cuRAND", different, 0.0, does=work_of(0, got))]
    options = {"dimensions": DIMENSIONS}
    ours = drawn("scrambled_sobol", "uniform", points * DIMENSIONS, np.float64, **options).reshape(DIMENSIONS, points).T
    theirs = qmc.Sobol(DIMENSIONS, seed=3).random(points)
    random = np.random.default_rng(3).random(ours.shape)
    found, scipys, of_random = (float(qmc.discrepancy(each)) for each in (ours, theirs, random))
    note = f"of {points} points; SciPy's scrambled points have {scipys:.1g}, random ones {of_random:.1g}"
    # Scramblings differ by chance.
    row = judged("discrepancy, scrambled", "cuRAND", found, 4 * scipys, does=work_of(0, ours), note=note)
    return [*rows, row]


def sobol(coordinate: int, points: int) -> NDArray[np.uint32]:
    """Return a coordinate of the first points of the Sobol sequence, times 2^32.

    Point i is the exclusive or of the direction numbers that the bits of i's Gray code select.
    """
    directions = [1 << (31 - bit) for bit in range(32)]
    if coordinate:
        degree, coefficients, first = SOBOL[coordinate - 1]
        directions[:degree] = [integer << (31 - bit) for bit, integer in enumerate(first)]
        for bit in range(degree, 32):
            found = directions[bit - degree] ^ directions[bit - degree] >> degree
            for k in range(1, degree):
                if coefficients >> (degree - 1 - k) & 1:
                    found ^= directions[bit - k]
            directions[bit] = found
    numbers = np.arange(points)
    gray, result = numbers ^ numbers >> 1, np.zeros(points, np.uint32)
    for bit, direction in enumerate(directions):
        result[gray >> bit & 1 == 1] ^= np.uint32(direction)
    return result


# -- an integral ---------------------------------------------------------------------------------


def integral_rows(module: cuda.Module, most: int) -> tuple[list[Row], list[Any]]:
    """Integrate over the unit cube with random and with quasi-random points; errors against the number of points."""
    sizes = [2**k for k in range(3, most.bit_length())]
    lines: dict[str, list[tuple[float, float]]] = {}
    rows = []
    # The variance of the integrand, from that of each factor: 1 / (3 (1 + a)^2).
    deviation = float(np.sqrt(np.prod([1 + 1 / (3 * (1 + a) ** 2) for a in range(DIMENSIONS)]) - 1))
    # With random points the error falls like 1 / sqrt(n), with quasi-random ones nearly like 1 / n. Random points
    # would rarely meet the bound in between.
    for kind, title, power in (("philox", "random", 0.5), ("scrambled_sobol", "quasi-random", 0.75)):
        points = [(float(n), abs(integrate(module, kind, n) - 1.0)) for n in sizes]
        lines[title] = points
        n, error = points[-1]
        bound = DEVIATIONS * deviation / n**power
        rows.append(judged(f"integral, {title}", "cuRAND", error, bound))
    lines["standard error, random"] = [(float(n), deviation / np.sqrt(n)) for n in sizes]
    return rows, [Curve("integral", "points", "error of the integral", lines, "xy")]


def integrate(module: cuda.Module, kind: str, n: int) -> float:
    """Return the mean of the integrand over points drawn from a generator."""
    options = {} if KINDS[kind].seeded else {"dimensions": DIMENSIONS}
    points = drawn(kind, "uniform", n * DIMENSIONS, np.float32, **options)
    values = poisoned(n, np.float32)
    module["integrand"][blocks_for(n, BLOCK), BLOCK](cuda.to_device(points), values, n, DIMENSIONS)
    return float(values.to_host().mean(dtype=np.float64))


# -- curves --------------------------------------------------------------------------------------


def call_curve(module: cuda.Module | None, size: int, limit: Limit) -> Curve:
    """Measure the rate of drawing uniform numbers against the numbers per call, from 1 on."""
    out = cuda.empty(size, np.float32)
    counts = [count for count in CALLS if count <= size]
    lines: dict[str, list[tuple[float, float]]] = {}
    for kind in (*DEVICE, "sobol"):
        generator = Generator(kind)
        works = {count: partial(generator.uniform, out[:count]) for count in counts}
        lines[f"{kind}, host API"] = [(float(count), rate(4 * count, work)) for count, work in works.items()]
    if module is not None:
        kernels = {n: kernel_work(module, "philox", out[:n], BLOCK) for n in counts if n >= GROUP}
        lines["philox, in a kernel"] = [(float(count), rate(4 * count, work)) for count, work in kernels.items()]
    return Curve("calls", "numbers per call", "GB/s", lines, "xy", line=limit)


def block_curve(module: cuda.Module, size: int, limit: Limit) -> Curve:
    """Measure the rate of the device functions against the threads per block, and the rate of the library's kernels."""
    out = cuda.empty(size, np.float32)
    lines: dict[str, list[tuple[float, float]]] = {}
    for kind in DEVICE:
        most = uniform_kernel(module, kind).attributes.max_threads_per_block or 0
        works = {block: kernel_work(module, kind, out, block) for block in BLOCKS if block <= most}
        lines[kind] = [(float(block), rate(out.nbytes, work)) for block, work in works.items()]
    generator = Generator("philox")
    whole = rate(out.nbytes, lambda: generator.uniform(out))
    lines["philox, host API"] = [(float(block), whole) for block in BLOCKS]
    return Curve("blocks", "threads per block", "GB/s", lines, "x", line=limit)


def rate(nbytes: int, work: Callable[[], object]) -> float:
    """Measure the GB/s of work that writes `nbytes` bytes."""
    return timing.per_second(nbytes, timing.median_ms(work, quick=True), "GB/s")


def block_notes(module: cuda.Module) -> list[str]:
    """Return a sentence for each kernel that cannot have the largest blocks."""
    found = {kind: uniform_kernel(module, kind).attributes for kind in DEVICE}
    return [
        f"The {kind} kernel uses {attributes.registers} registers per thread, so its blocks can have at most "
        f"{attributes.max_threads_per_block} threads. The plot leaves out larger blocks."
        for kind, attributes in found.items()
        if (attributes.max_threads_per_block or 0) < max(BLOCKS)
    ]
