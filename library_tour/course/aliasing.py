"""Kernels with and without __restrict__: the loads and stores that it saves, and the effect of a broken promise.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run aliasing
    aliasing: Pointers that may alias, and what __restrict__ saves
    size 8,197: elements in each plane
    counters: measured over 8,197 elements per plane
                       PTX loads  PTX stores  loads  stores  check
    ──────────────────────────────────────────────────────────────
    may alias                 32          17  8,224   4,369  right
    __restrict__              32           1  8,224     257  right
    sum in a variable         32           1  8,224     257  right
    Four results of the same two elements
                        PTX loads  PTX stores  loads  stores  check
    ────────────────────────────────────────────────────────────────
    four results                8           4  2,056   1,028  right
    four, __restrict__          2           4    514   1,028  right
    results overlap a                                         right
    a broken promise                                          caught
    a broken promise: 768 of 1024 results differ from those of the code as written,
    because the output starts at a.
    Value of an int set to 1, after 0.0f or a zero byte is stored at its address
                                           int  check
    ─────────────────────────────────────────────────
    device, float*                           0
    device, char*                            0  right
    host -O2, float*                         1
    host -O2, char*                          0  right
    host -O2 -fno-strict-aliasing, float*    0  right
    host -O2 -fno-strict-aliasing, char*     0  right
    A store through one pointer may change the data that another points to. The
    compiler therefore loads a[i] and b[i] again after each store (8 loads instead
    of 2) and stores the sum to memory in every iteration of the loop. It cannot
    move the next iteration's load ahead of that store either, and each store must
    wait for the load of its own iteration. Each thread then has only one load in
    flight, which halves the rate on an H200. The repeated loads of a[i] and b[i]
    hardly matter there, because they hit in the cache.
    __restrict__ promises that memory written through one pointer is not accessed
    through another. A local variable needs no promise, since no pointer points to
    it. `const` promises nothing of the kind: it says only that nothing is written
    through this pointer, not that nothing is written through another.
    Nothing reports a broken promise. The results differ from those of the code as
    written, because a value was loaded before it was changed.
    C++ itself lets the compiler assume that pointers to different types do not
    alias, unless one of them is a char* (strict aliasing). A host compiler applies
    this rule at -O2, so an int appears to keep its old value after a float has been
    stored at its address. The device code that nvcc and NVRTC generate loads the
    int again. To read the bits of a value as another type, use __float_as_int() or
    memcpy().
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare
from ..device_code import blocks_for, find, load
from ..host_code import HOST_COMPILER, load_host
from ..inputs import INPUT_BLOCK, repeated
from ..limits import copy_limit, read_limit
from ..stop import Check, Result, Row, Size
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "Pointers that may alias, and what __restrict__ saves"
SIZE = Size("elements in each plane", full=2**26 + 5, small=2**13 + 5)
BLOCK, PLANES, RESULTS = 256, 16, 4
WEIGHING = {
    "may alias": "weigh",
    "__restrict__": "weigh_restrict",
    "sum in a variable": "weigh_variable",
}
FOUR = {
    "four results": "four_results",
    "four, __restrict__": "four_results_restrict",
}
FOUR_TABLE = "Four results of the same two elements"
REREAD_TABLE = "Value of an int set to 1, after 0.0f or a zero byte is stored at its address"
NO_STRICT = "-fno-strict-aliasing"
EXPLAINED_BY = ("loads", "stores")
NOTES = (
    "A store through one pointer may change the data that another points to. The compiler therefore loads a[i] and "
    "b[i] again after each store (8 loads instead of 2) and stores the sum to memory in every iteration of the loop. "
    "It cannot move the next iteration's load ahead of that store either, and each store must wait for the load of its "
    "own iteration. Each thread then has only one load in flight, which halves the rate on an H200. The repeated loads "
    "of a[i] and b[i] hardly matter there, because they hit in the cache.",
    "__restrict__ promises that memory written through one pointer is not accessed through another. A local variable "
    "needs no promise, since no pointer points to it. `const` promises nothing of the kind: it says only that nothing "
    "is written through this pointer, not that nothing is written through another.",
    "Nothing reports a broken promise. The results differ from those of the code as written, because a value was "
    "loaded before it was changed.",
    "C++ itself lets the compiler assume that pointers to different types do not alias, unless one of them is a char* "
    "(strict aliasing). A host compiler applies this rule at -O2, so an int appears to keep its old value after a "
    "float has been stored at its address. The device code that nvcc and NVRTC generate loads the int again. To read "
    "the bits of a value as another type, use __float_as_int() or memcpy().",
)

Floats = NDArray[np.float32]


def weighed(planes: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of the planes, which are the rows of the array, computed in double precision."""
    return (weights.astype(np.float64) @ planes.astype(np.float64)).astype(np.float32)


def four_results(a: Floats, b: Floats) -> Floats:
    """Return the sums, differences, products and maxima, one after another."""
    return np.concatenate([a + b, a - b, a * b, np.maximum(a, b)])


def four_results_over_a(a: Floats, b: Floats) -> Floats:
    """Return the four results, one expression after another, where the first plane of the results is `a` itself."""
    sums = a + b
    return np.concatenate([sums, sums - b, sums * b, np.maximum(sums, b)])


def run(device: cuda.Device, size: int) -> Result:
    """Check and time kernels with and without the promise; break it; reload an int after a store of another type."""
    random = np.random.default_rng()
    module, in_ptx = load("aliasing"), accesses_in_ptx(device)
    limit = read_limit(device)
    rows = measure(weighing(module, random, size, in_ptx), limit, EXPLAINED_BY)
    copying = copy_limit(device)
    four = measure(four_variants(module, random, size, in_ptx), copying, EXPLAINED_BY)
    wrong = [shown_wrong("a broken promise", broken_promise)]
    tables = {
        copying.heading(FOUR_TABLE): [*four, as_written(module, random), *wrong],
        REREAD_TABLE: read_again(module),
    }
    return Result(rows, limit, notes=NOTES, tables=tables, counted=f"{min(size, SIZE.small):,} elements per plane")


def weighing(
    module: cuda.Module, random: np.random.Generator, size: int, in_ptx: Mapping[str, dict[str, int]]
) -> list[Variant]:
    """Return the variants of a weighted sum of planes, checked on few elements and timed on all."""
    few = min(size, SIZE.small)
    planes, weights = random.random((PLANES, few), np.float32), random.random(PLANES, np.float32)
    x, out = repeated(planes.ravel(), PLANES * size), cuda.empty(size, np.float32)
    factors = cuda.to_device(weights)

    def variant(name: str, kernel: str) -> Variant:
        check, timed = (module[kernel][blocks_for(n, BLOCK), BLOCK].bind(x, factors, out, n) for n in (few, size))
        return Variant(
            name=name, launch=check, output=out[:few], expected=weighed(planes, weights), tolerance=1e-5,
            timed=timed, amount=4 * (PLANES + 1) * size, columns=in_ptx[kernel],
        )  # fmt: skip  # grouped by meaning

    return [variant(name, kernel) for name, kernel in WEIGHING.items()]


def four_variants(
    module: cuda.Module, random: np.random.Generator, size: int, in_ptx: Mapping[str, dict[str, int]]
) -> list[Variant]:
    """Return the kernels with four results, checked on few elements and timed on all."""
    few = min(size, SIZE.small)
    host = random.random((2, min(size, INPUT_BLOCK)), np.float32)
    a, b = (repeated(block, size) for block in host)
    results = cuda.empty(RESULTS * size, np.float32)

    def variant(name: str, kernel: str) -> Variant:
        check, timed = (module[kernel][blocks_for(n, BLOCK), BLOCK].bind(a, b, results, n) for n in (few, size))
        return Variant(
            name=name, launch=check, output=results[: RESULTS * few], expected=four_results(*host[:, :few]),
            timed=timed, amount=4 * (2 + RESULTS) * size, columns=in_ptx[kernel],
        )  # fmt: skip  # grouped by meaning

    return [variant(name, kernel) for name, kernel in FOUR.items()]


def accesses_in_ptx(device: cuda.Device) -> dict[str, dict[str, int]]:
    """Return the columns with each kernel's loads and stores of global memory in the PTX."""
    major, minor = device.compute_capability
    ptx = cuda.images.compile_image(find("aliasing"), arch=f"compute_{major}{minor}").ptx.decode()
    entries = re.findall(r"\.entry (\w+)\((.*?)\n}", ptx, re.DOTALL)
    return {
        name: {"PTX loads": body.count("ld.global"), "PTX stores": body.count("st.global")} for name, body in entries
    }


def as_written(module: cuda.Module, random: np.random.Generator) -> Row:
    """Let the results overwrite an input: without a promise, the kernel computes the expressions as written."""
    a, b = random.random((2, BLOCK), np.float32)
    results = over_a(module, FOUR["four results"], a, b)
    return Row("results overlap a", check=compare("results over a: as written", results, four_results_over_a(a, b)))


def broken_promise() -> str:
    """Let the results overwrite an input, which breaks the promise; return a sentence about the wrong results."""
    a, b = np.random.default_rng(0).random((2, BLOCK), np.float32)
    results = over_a(load("aliasing"), FOUR["four, __restrict__"], a, b)
    wrong = np.count_nonzero(results != four_results_over_a(a, b))
    if not wrong:
        return ""
    return (
        f"{wrong} of {results.size} results differ from those of the code as written, because the output starts at a."
    )


def over_a(module: cuda.Module, kernel: str, a: Floats, b: Floats) -> Floats:
    """Return the results of a kernel whose first results overwrite `a`."""
    results = cuda.empty(RESULTS * a.size, np.float32)
    results[: a.size].copy_from(a)
    module[kernel][1, a.size](results[: a.size], cuda.to_device(b), results, a.size)
    return results.to_host()


def read_again(module: cuda.Module) -> list[Row]:
    """Store an int and then another type at its address, and load the int again, on the device and on the host."""
    reread = cuda.empty(1, np.int32)
    rows = []
    for kind, dtype in (("float", np.float32), ("char", np.int8)):
        cell = cuda.empty(1, np.int32)
        module[f"reread_{kind}"][1, 1](cell, cell.view(dtype)[:1], reread)
        rows.append(reread_row("device", kind, int(reread.to_host()[0])))
    for option in ("", NO_STRICT):
        compiled = load_host("aliasing", *option.split())
        if compiled is None:
            return [*rows, Row("host", note=f"Skipped: needs a host compiler named {HOST_COMPILER}")]
        for kind in ("float", "char"):
            value = ctypes.c_int(7)
            address = ctypes.byref(value)
            again = int(compiled[f"host_reread_{kind}"](address, address))
            rows.append(reread_row(f"host -O2 {option}".strip(), kind, again))
    return rows


def reread_row(where: str, kind: str, value: int) -> Row:
    """Return a row with the int that was loaded again; it must be 0 where the language says that it has changed."""
    name = f"{where}, {kind}*"
    settled = kind == "char" or NO_STRICT in where
    return Row(name, {"int": value}, Check(f"{name}: the int has changed", value == 0, str(value)) if settled else None)
