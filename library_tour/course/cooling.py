"""Compute an algorithm's input as it is read, with CCCL's iterators instead of a temporary array.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run cooling
    cooling: Newton's law of cooling with CCCL's iterators
    size 65,539: elements to compare and to cool
    counters: measured over 65,539 elements
                             loads  stores  atomics  check
    ──────────────────────────────────────────────────────
    temporary array          6,150   2,049      528  right
    counting and transform   4,104       0      528  right
    zip and transform        4,104       0      528  right
    by hand, four at a time  1,026       0      512  right
    One step for all temperatures
                              loads  stores  check
    ──────────────────────────────────────────────
    a kernel for the step     2,049   2,049  right
    transform(in, out, step)  2,049   2,049  right
    cuda::std::span           2,049   2,049  right
    cuda::std::mdspan         2,097   2,097  right
    Results of the iterators
                                          given                result       check
    ─────────────────────────────────────────────────────────────────────────────
    a step, ambient 20, k = 0.5           42, 24, 50           31, 22, 35   right
    transform_iterator, 2 a[i]            42, 24, 50           84, 48, 100  right
    transform_output_iterator, value / 2  10, 20               5, 10        right
    counting_iterator                                          0, 1, 2      right
    zip_iterator, a[i] + b[i]             42, 24, 50; 1, 2, 3  43, 26, 53   right
    An iterator is an object that is indexed like a pointer. A transform_iterator
    applies a function to what it reads, a zip_iterator reads from two arrays at
    once, a counting_iterator returns the index itself, and a
    transform_output_iterator applies a function to what is written. The compiler
    inlines all of this into the algorithm's loop.
    With a temporary array, the differences are written and read back, so twice as
    many bytes move through memory as in one pass. The rate counts only the two
    input arrays. A warp whose lanes load single elements fetches 128 bytes per
    load. Loading four elements at a time takes a quarter of the instructions for
    the same number of bytes, but saves no time where memory bandwidth is the limit.
    An algorithm that takes the step as a function object performs the same loads
    and stores as a kernel written for the step. A span combines a pointer with the
    length of the array, and an mdspan combines a pointer with the numbers of rows
    and columns. The kernels that use them also perform the same loads and stores,
    except at the ends of the mdspan's rows. Because of their loops, they take a
    fifth longer on an H200.
    The iterators are in Thrust's headers, which NVRTC can compile. It cannot
    compile Thrust's algorithms and vectors, because they are host code. The program
    scripts/thrust_cooling.cu uses them and is built with nvcc.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare
from ..device_code import WAVES, blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import copy_limit, read_limit
from ..stop import Check, Result, Row, Size
from ..variants import Variant, measure

TITLE = "Newton's law of cooling with CCCL's iterators"
SIZE = Size("elements to compare and to cool", full=2**29 + 3, small=2**16 + 3)
AMBIENT, PART = 20.0, 0.5
TOLERANCE = 1e-5  # degrees
BLOCK, CHECKED = 512, 2**16 + 3
# The columns of the array as a plate, and the largest grid for the loop over its rows.
COLUMNS, MOST_BLOCKS = 1000, 2**14
TEMPORARY, ZIPPED = "temporary array", "zip and transform"

Floats = NDArray[np.float32]
Work = Callable[[], object]


def reference(temperatures: Floats) -> Floats:
    """Return the temperatures after a step, computed in double precision."""
    now = temperatures.astype(np.float64)
    return (now + PART * (AMBIENT - now)).astype(np.float32)


def largest_difference(a: Floats, b: Floats) -> Floats:
    """Return the largest |a - b|, computed in double precision, as an array of one element."""
    return np.array([np.abs(a.astype(np.float64) - b).max()], np.float32)


def run(device: cuda.Device, size: int) -> Result:
    """Find the largest difference with and without a temporary array, take steps, and show each iterator."""
    module = load("cooling")
    limit, step_limit = read_limit(device), copy_limit(device)
    random = np.random.default_rng()
    a, b = (random.uniform(0, 100, min(size, CHECKED)).astype(np.float32) for _ in range(2))
    few = Ways(device, module, cuda.to_device(a), cuda.to_device(b))
    many = few
    if timing.available():
        many = Ways(device, module, *(repeated(random.random(min(size, INPUT_BLOCK), np.float32), size) for _ in "ab"))
    variants = [
        Variant(
            name=name,
            launch=work,
            output=few.total,
            expected=largest_difference(a, b),
            timed=many.works[name],
            amount=2 * many.a.nbytes,
        )
        for name, work in few.works.items()
    ]
    rows = measure(variants, limit, ("loads", "stores", "atomics"))
    tables = {
        step_limit.heading("One step for all temperatures"): measure(
            step_variants(module, a, many.a), step_limit, ("loads", "stores")
        ),
        "Results of the iterators": examples(module),
    }
    return Result(
        rows, limit, planted(few, rows), notes=notes(), tables=tables, counted=f"{min(size, CHECKED):,} elements"
    )


class Ways:
    """The ways to find the largest |a - b| of two arrays; each stores it in `total`."""

    def __init__(self, device: cuda.Device, module: cuda.Module, a: cuda.DeviceArray, b: cuda.DeviceArray) -> None:
        self.a, self.b = a, b
        self.total = cuda.zeros(1, np.float32)
        bits = self.total.view(np.uint32)
        # WAVES waves of blocks, but no more than have work to do.
        most = WAVES * device.sm_count * device.properties.max_threads_per_sm // BLOCK
        fixed = min(most, blocks_for(a.size, 4 * BLOCK))
        differences = cuda.empty_like(a)

        def one_pass(kernel: str) -> Work:
            def find() -> None:
                cuda.memset(bits, 0)
                module[kernel][fixed, BLOCK](a, b, bits, a.size)

            return find

        def two_passes() -> None:
            module["difference_temporary"][blocks_for(a.size, BLOCK), BLOCK](a, b, differences, a.size)
            cuda.memset(bits, 0)
            module["maximum"][fixed, BLOCK](differences, bits, a.size)

        self.works: dict[str, Work] = {
            TEMPORARY: two_passes,
            "counting and transform": one_pass("maximum_counted"),
            ZIPPED: one_pass("maximum_zipped"),
            "by hand, four at a time": one_pass("maximum_by_four"),
        }


def planted(ways: Ways, rows: list[Row]) -> list[Check]:
    """Place the largest difference at the ends of the arrays, and check that each variant that ran finds it."""
    places = sorted({0, ways.a.size // 4 * 4 - 1, ways.a.size - 1} - {-1})
    equal = np.zeros(ways.a.size, np.float32)
    ways.a.copy_from(equal)
    checks = []
    for place in places:
        other = equal.copy()
        other[place] = -place - 1
        ways.b.copy_from(other)
        for row in rows:
            if row.check:
                ways.works[row.name]()
                fact = f"{row.name}: the difference at index {place}"
                checks.append(compare(fact, ways.total.to_host(), largest_difference(equal, other)))
    return checks


def step_variants(module: cuda.Module, temperatures: Floats, many: cuda.DeviceArray) -> list[Variant]:
    """Return one variant per way to take a step, checked on some temperatures and timed on `many`."""
    few = cuda.empty_like(temperatures)

    def whole(kernel: str, array: cuda.DeviceArray) -> Work:
        return lambda: module[kernel][blocks_for(array.size, BLOCK), BLOCK](array, AMBIENT, PART, array.size)

    def rows_of(array: cuda.DeviceArray) -> Work:
        # Elements that do not fill a row get a second launch, with one row.
        rows, rest = divmod(array.size, COLUMNS)
        shapes = [(array[: rows * COLUMNS], rows, COLUMNS), (array[rows * COLUMNS :], 1, rest)]

        def launch() -> None:
            for part, height, width in shapes:
                if part.size:
                    module["step_mdspan"][min(height, MOST_BLOCKS), BLOCK](part, AMBIENT, PART, height, width)

        return launch

    ways = {
        "a kernel for the step": lambda array: whole("step_by_hand", array),
        "transform(in, out, step)": lambda array: whole("step_transform", array),
        "cuda::std::span": lambda array: whole("step_span", array),
        "cuda::std::mdspan": rows_of,
    }
    return [
        Variant(
            name=name,
            prepare=lambda: few.copy_from(temperatures),
            launch=way(few),
            output=few,
            expected=reference(temperatures),
            tolerance=TOLERANCE,
            timed=way(many),
            amount=2 * many.nbytes,
        )
        for name, way in ways.items()
    ]


def examples(module: cuda.Module) -> list[Row]:
    """Return a row for each iterator, with its input and its result."""
    temperatures, halves, more = (np.array(values, np.float32) for values in ([42, 24, 50], [10, 20], [1, 2, 3]))
    cases: list[tuple[str, str, tuple[Floats, ...], Floats]] = [
        ("transform_iterator, 2 a[i]", "doubled", (temperatures,), 2 * temperatures),
        ("transform_output_iterator, value / 2", "halved", (halves,), halves / np.float32(2)),
        ("counting_iterator", "counted", (), np.arange(3, dtype=np.float32)),
        ("zip_iterator, a[i] + b[i]", "paired", (temperatures, more), temperatures + more),
    ]
    now = cuda.to_device(temperatures)
    module["step_transform"][1, 32](now, AMBIENT, PART, 3)
    fact = f"a step, ambient {AMBIENT:g}, k = {PART:g}"
    given = {"given": in_words(temperatures), "result": in_words(now.to_host())}
    rows = [Row(fact, given, compare(fact, now.to_host(), reference(temperatures)))]
    for name, kernel, inputs, expected in cases:
        out = cuda.empty_like(expected)
        try:
            module[kernel][1, 32](*(cuda.to_device(each) for each in inputs), out, expected.size)
        except cuda.errors.NotFoundError as error:
            rows.append(Row(name, note=f"Skipped: {error}"))
            continue
        values = {"given": "; ".join(map(in_words, inputs)), "result": in_words(out.to_host())}
        rows.append(Row(name, values, compare(name, out.to_host(), expected)))
    return rows


def in_words(numbers: Floats) -> str:
    """Return the elements as text."""
    return ", ".join(f"{number:g}" for number in numbers)


def notes() -> list[str]:
    """Return the notes on the tables."""
    return [
        "An iterator is an object that is indexed like a pointer. A transform_iterator applies a function to what it "
        "reads, a zip_iterator reads from two arrays at once, a counting_iterator returns the index itself, and a "
        "transform_output_iterator applies a function to what is written. The compiler inlines all of this into the "
        "algorithm's loop.",
        "With a temporary array, the differences are written and read back, so twice as many bytes move through memory "
        "as in one pass. The rate counts only the two input arrays. A warp whose lanes load single elements fetches "
        "128 bytes per load. Loading four elements at a time takes a quarter of the instructions for the same number "
        "of bytes, but saves no time where memory bandwidth is the limit.",
        "An algorithm that takes the step as a function object performs the same loads and stores as a kernel written "
        "for the step. A span combines a pointer with the length of the array, and an mdspan combines a pointer with "
        "the numbers of rows and columns. The kernels that use them also perform the same loads and stores, except at "
        "the ends of the mdspan's rows. Because of their loops, they take a fifth longer on an H200.",
        "The iterators are in Thrust's headers, which NVRTC can compile. It cannot compile Thrust's algorithms and "
        "vectors, because they are host code. The program scripts/thrust_cooling.cu uses them and is built with nvcc.",
    ]
