"""The library layer beside PyTorch and CuPy, in less than four minutes.

Ours and the rivals take turns, and the ratio is the median of the rounds'. A bar whose rivals are not installed is
shown and not judged. Where the same speed is asked for, the bar leaves room for noise. Results and errors are checked
by tests/libraries.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cudart_py as cuda
from cudart_py import benchmark
from cudart_py import libraries as lib
from cudart_py.benchmark import MeasureOptions
from cudart_py.benchmark.peers import in_turns
from library_tour.libraries.sparse import laplacian

from .library_calls import CALLS, Operands
from .report import Bar, Comparison, Report, conditions, optional

# Clocks and neighbours: two measurements of one thing differ by as much, for which a bar of the same speed leaves room.
SAME = 1.01
OPTIONS = MeasureOptions(min_samples=5, min_seconds=0.1, max_seconds=0.4, warm_up_seconds=0.05)
HOST_OPTIONS = MeasureOptions(min_samples=30, min_seconds=0.2, max_seconds=0.4, warm_up_seconds=0.1)
ROUNDS = 5
SECONDS = 230.0
# How much of each: rows and columns, points of transforms, a side of the grid, numbers.
PRODUCT, TRANSFORMS, GRID, DRAWN = 8192, {(65536, 1024): -1, (8192, 8192): None}, 4096, 2**28
FACTORED = {
    "Cholesky": ("cholesky", 8192),
    "LU": ("solve", 8192),
    "QR": ("qr", 4096),
    "SVD": ("svd", 1024),
    "eigh": ("eigh", 2048),
}
PACKAGES = ("nvmath-python", "cuda-bindings", "numpy", "torch", "cupy-cuda13x")

Work = Callable[[], object]


def device_seconds(work: Work) -> float:
    """Return the device's median time of a call."""
    found = benchmark.measure(work, options=OPTIONS).median
    assert found is not None
    return found


def host_seconds(work: Work) -> float:
    """Return what a call costs the host."""
    found = benchmark.measure_host(work, options=HOST_OPTIONS).median
    assert found is not None
    return found


def wall_seconds(work: Work) -> float:
    """Return the median time of a call and its completion, for work that waits for the device itself."""
    work()
    cuda.Device(0).synchronize()
    times: list[float] = []
    begun = time.perf_counter()
    while len(times) < 3 or (len(times) < 15 and time.perf_counter() - begun < 0.4):
        start = time.perf_counter()
        work()
        cuda.Device(0).synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def versus(
    what: str,
    ours: Work,
    rivals: dict[str, Work | None],
    how: Callable[[Work], float],
    most: float,
    amount: tuple[float, str] | None = None,
) -> Comparison:
    """Measure in turns, and compare with the fastest rival: our time is at most `most` of its.

    `amount` is what a call does, and the unit of the rate that is noted, like "TFLOP/s".
    """
    works = {"ours": ours, **{name: rival for name, rival in rivals.items() if rival is not None}}
    turns = {name: functools.partial(how, work) for name, work in works.items()}
    times = in_turns(turns, ROUNDS if len(works) > 1 else 1)
    medians = {name: statistics.median(found) for name, found in times.items()}
    mine = medians.pop("ours")
    note = ""
    if amount:
        count, unit = amount
        note = f"{count / mine / {'G': 1e9, 'T': 1e12}[unit[0]]:,.4g} {unit}"
    bar = Bar.at_most(most)
    if not medians:
        return Comparison(what, "us", 1e6 * mine, " and ".join(rivals), None, bar, f"{note}; not here".strip("; "))
    name = min(medians, key=medians.__getitem__)
    ratio = statistics.median(a / b for a, b in zip(times["ours"], times[name], strict=True))
    return Comparison(what, "us", 1e6 * mine, name, 1e6 * medians[name], bar, note, ratio)


def check_host(torch: Any, cupy: Any) -> Iterator[Comparison]:
    """Compare the host's cost of small calls, with outputs given and all checks on."""
    a, b, out = (cuda.zeros((128, 128), np.float32) for _ in range(3))
    rival = None
    if torch:
        x, y, z = (torch.zeros((128, 128), device="cuda") for _ in range(3))
        rival = lambda: torch.mm(x, y, out=z)  # noqa: E731  # one call
    yield versus("host: gemm 128^3, out=", lambda: lib.gemm(a, b, out), {"torch.mm": rival}, host_seconds, 0.85)
    planned = lib.gemm.plan(a, b, out)
    yield versus("host: gemm 128^3, planned", planned, {"torch.mm": rival}, host_seconds, 0.35)
    signal, spectrum = cuda.zeros(1024, np.complex64), cuda.empty(1024, np.complex64)
    rivals: dict[str, Work | None] = {"CuPy": None, "PyTorch": None}
    if cupy:
        points = cupy.zeros(1024, cupy.complex64)
        rivals["CuPy"] = lambda: cupy.fft.fft(points)
    if torch:
        values, result = (torch.zeros(1024, dtype=torch.complex64, device="cuda") for _ in range(2))
        rivals["PyTorch"] = lambda: torch.fft.fft(values, out=result)
    yield versus("host: fft 1024, out=", lambda: lib.fft(signal, spectrum), rivals, host_seconds, 0.5)
    numbers = cuda.empty(1024, np.float32)
    drawn = None
    if cupy:
        generator, target = cupy.random.default_rng(), cupy.empty(1024, cupy.float32)
        drawn = lambda: generator.random(1024, cupy.float32, out=target)  # noqa: E731  # one call
    yield versus("host: uniform 1024, out=", lambda: lib.uniform(out=numbers), {"CuPy": drawn}, host_seconds, SAME)


def check_gemm(torch: Any, cupy: Any) -> Iterator[Comparison]:
    """Compare products of matrices of 8192 in five precisions."""
    n = PRODUCT
    kinds: dict[str, tuple[Any, str, str | None]] = {
        "fp32": (np.float32, "float32", None),
        "fp64": (np.float64, "float64", None),
        "TF32": (np.float32, "float32", "tf32"),
        "fp16": (np.float16, "float16", None),
        "bf16": (lib.bfloat16, "bfloat16", None),
    }
    host = np.random.default_rng(1).standard_normal((2, n, n), np.float32)
    for name, (dtype, torch_name, compute) in kinds.items():
        values = [lib.to_bfloat16(x) if dtype is lib.bfloat16 else x.astype(dtype) for x in host]
        a, b = (cuda.to_device(x) for x in values)
        out = cuda.empty((n, n), dtype)
        rival = None
        if torch:
            torch.backends.cuda.matmul.allow_tf32 = compute == "tf32"
            kind = getattr(torch, torch_name)
            x, y = (torch.from_numpy(part).to("cuda").to(kind) for part in host)
            z = torch.empty((n, n), dtype=kind, device="cuda")
            rival = functools.partial(torch.matmul, x, y, out=z)
        work = functools.partial(lib.gemm, a, b, out, compute=compute)
        yield versus(f"gemm {n} {name}", work, {"torch.matmul": rival}, device_seconds, SAME, (2 * n**3, "TFLOP/s"))
    if torch:
        torch.backends.cuda.matmul.allow_tf32 = False


def check_fft(torch: Any, cupy: Any) -> Iterator[Comparison]:
    """Compare a batch of short transforms, and a large square."""
    for shape, axes in TRANSFORMS.items():
        x, out = (cuda.zeros(shape, np.complex64) for _ in range(2))
        rival = None
        if cupy:
            points = cupy.zeros(shape, cupy.complex64)
            rival = functools.partial(cupy.fft.fft if axes == -1 else cupy.fft.fft2, points)
        work = functools.partial(lib.fft, x, out, axes=axes)
        yield versus(f"fft {shape}, axes {axes}", work, {"CuPy": rival}, device_seconds, SAME, (2 * x.nbytes, "GB/s"))
        lib.release()


def check_sparse(torch: Any, cupy: Any) -> Iterator[Comparison]:
    """Compare the product of a grid's Laplacian and a vector."""
    host = laplacian(GRID)
    for dtype in (np.float64, np.float32):
        values = host.astype(dtype)
        matrix = lib.SparseMatrix.from_host(values)
        x, out = cuda.full(host.shape[0], 1.0, dtype), cuda.empty(host.shape[0], dtype)
        rival = None
        if cupy:
            from cupyx.scipy import sparse

            theirs = sparse.csr_matrix(values)
            vector = cupy.ones(host.shape[0], dtype)
            rival = functools.partial(theirs.dot, vector)
        work = functools.partial(lib.spmv, matrix, x, out)
        work()
        if not np.allclose(out.to_host(), values @ np.ones(host.shape[0], dtype)):
            raise AssertionError("the product is not SciPy's")
        moved = matrix.nbytes + x.nbytes + out.nbytes
        name = np.dtype(dtype).name
        yield versus(f"spmv {GRID}^2 {name}", work, {"cupyx": rival}, device_seconds, SAME, (moved, "GB/s"))


def check_random(torch: Any, cupy: Any) -> Iterator[Comparison]:
    """Compare Philox's numbers."""
    count = DRAWN
    out = cuda.empty(count, np.float32)
    generator = lib.Generator("philox", 1)
    theirs = torch.empty(count, device="cuda") if torch else None
    for name in ("uniform", "normal"):
        rival = getattr(theirs, f"{name}_") if torch else None
        work = functools.partial(getattr(generator, name), out)
        yield versus(f"Philox {name} {count:,}", work, {"PyTorch": rival}, device_seconds, SAME, (out.nbytes, "TB/s"))


def check_solver(torch: Any, cupy: Any) -> Iterator[Comparison]:
    """Compare factorizations in double precision, with what each needs before and after."""
    for name, (function, n) in FACTORED.items():
        operands, row = Operands(n, np.float64), CALLS[function]
        rival = row.peers(operands, {"cupy": cupy}).get("cupy")
        yield versus(f"{name} {n} fp64", row.ours(operands), {"CuPy": rival}, wall_seconds, SAME)
        if name == "SVD":
            polar = functools.partial(lib.svd, operands.a, method="polar")
            yield versus(f"SVD {n} fp64, by polar decomposition", polar, {"CuPy": rival}, wall_seconds, SAME)


STEPS: dict[str, Callable[[Any, Any], Iterator[Comparison]]] = {
    "host": check_host,
    "gemm": check_gemm,
    "fft": check_fft,
    "sparse": check_sparse,
    "random": check_random,
    "solver": check_solver,
}


def compare(steps: list[str]) -> Iterator[Comparison]:
    """Yield the comparisons of the steps; an error ends a step, and is one of them."""
    torch, cupy = optional("torch"), optional("cupy")
    started = time.perf_counter()
    for step in steps:
        if time.perf_counter() - started > SECONDS:
            yield Comparison(step, "us", note=f"was not begun: {SECONDS:.0f} s are over")
            continue
        try:
            yield from STEPS[step](torch, cupy)
        except Exception as error:  # the other steps go on
            traceback.print_exc()
            yield Comparison(step, "us", note=f"did not end: {type(error).__name__}: {error}", failed=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), metavar="STEP", help="these alone")


def measure(options: argparse.Namespace) -> Report:
    if missing := {"libraries", "gpu_timing"} - cuda.capabilities():
        raise SystemExit(f"this driver has no {' and no '.join(sorted(missing))}: a GPU is needed, and the extra cu13")
    cuda.Device(0).set_current()
    return Report.of("libraries", conditions(*PACKAGES), compare(options.only))
