#!/usr/bin/env python3
"""Check on a GPU how fast the library layer is beside PyTorch and CuPy, in one command and less than four minutes.

    scripts/library_bars.py [--json FILE] [--markdown docs/libraries.md] [--only host,gemm,fft,sparse,random,solver]
    scripts/library_bars.py --recorded FILE --markdown docs/libraries.md

Ours and the rivals take turns, and the ratio is the median of the rounds'. A bar whose rivals are not installed is
shown and not judged. Prints a table; `--markdown` puts it into a page, behind the line "## Measured", and needs no
GPU for a table that is recorded. The exit status is 1 when a bar is missed, 2 when none is but something could not
be judged. What holds and is refused is checked by tests/libraries.
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import bars  # noqa: E402  # behind the path
import numpy as np  # noqa: E402  # behind the path
from bars import Verdict, optional  # noqa: E402  # behind the path
from library_calls import CALLS, Operands  # noqa: E402  # behind the path

import cudart_py as cuda  # noqa: E402  # behind the path
from cudart_py import libraries as lib  # noqa: E402  # behind the path
from cudart_py.benchmark import MeasureOptions, measure, measure_host  # noqa: E402  # behind the path
from cudart_py.benchmark.peers import in_turns  # noqa: E402  # behind the path
from library_tour.libraries.sparse import laplacian  # noqa: E402  # behind the path

# Clocks and neighbours: two measurements of one thing differ by as much.
NOISE = 0.01
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
STARTED = time.perf_counter()

Work = Callable[[], object]


@dataclass(frozen=True)
class Line:
    """A line of the table; `note` says why something could not be judged."""

    check: str
    ours: str = ""
    rate: str = ""
    theirs: str = ""
    ratio: float | None = None
    bar: str = ""
    verdict: Verdict = Verdict.NOT_JUDGED
    note: str = ""


# -- times -----------------------------------------------------------------------------------------


def device_seconds(work: Work) -> float:
    """Return the device's median time of a call."""
    found = measure(work, options=OPTIONS).median
    assert found is not None
    return found


def host_seconds(work: Work) -> float:
    """Return what a call costs the host."""
    found = measure_host(work, options=HOST_OPTIONS).median
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
    check: str,
    ours: Work,
    rivals: dict[str, Work | None],
    how: Callable[[Work], float],
    bar: float,
    *,
    amount: float = 0,
    unit: str = "",
) -> Line:
    """Measure in turns, and compare with the fastest rival: our time is at most `bar` of its.

    `amount` is what a call does of a unit like "TFLOP/s".
    """
    works = {"ours": ours, **{name: rival for name, rival in rivals.items() if rival is not None}}
    turns = {name: functools.partial(how, work) for name, work in works.items()}
    times = in_turns(turns, ROUNDS if len(works) > 1 else 1)
    medians = {name: statistics.median(found) for name, found in times.items()}
    mine = medians.pop("ours")
    rate = f"{amount / mine / {'G': 1e9, 'T': 1e12}[unit[0]]:,.4g} {unit}" if amount else ""
    if not medians:
        return Line(check, seconds(mine), rate, bar=f"<= {bar:.3g} x", note=f"{' and '.join(rivals)} not here")
    name = min(medians, key=medians.__getitem__)
    ratio = statistics.median(a / b for a, b in zip(times["ours"], times[name], strict=True))
    # Noise is allowed where the same is asked for, not where much less is.
    verdict = Verdict.of(ratio <= bar * (1 + (NOISE if bar == 1 else 0.0)))
    return Line(check, seconds(mine), rate, f"{seconds(medians[name])} {name}", ratio, f"<= {bar:.3g} x", verdict)


def seconds(value: float) -> str:
    """Write a time in the unit that suits it."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 1:
            return f"{value * factor:.4g} {unit}"
    return f"{1e6 * value:.4g} us"


# -- what is measured --------------------------------------------------------------------------------


def check_host(torch: Any, cupy: Any) -> Iterator[Line]:
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
    yield versus("host: uniform 1024, out=", lambda: lib.uniform(out=numbers), {"CuPy": drawn}, host_seconds, 1.0)


def check_gemm(torch: Any, cupy: Any) -> Iterator[Line]:
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
        yield versus(f"gemm {n} {name}", work, {"torch.matmul": rival}, device_seconds, 1 / 0.99,
                     amount=2 * n**3, unit="TFLOP/s")  # fmt: skip  # grouped by meaning
    if torch:
        torch.backends.cuda.matmul.allow_tf32 = False


def check_fft(torch: Any, cupy: Any) -> Iterator[Line]:
    """Compare a batch of short transforms, and a large square."""
    for shape, axes in TRANSFORMS.items():
        x, out = (cuda.zeros(shape, np.complex64) for _ in range(2))
        rival = None
        if cupy:
            points = cupy.zeros(shape, cupy.complex64)
            rival = functools.partial(cupy.fft.fft if axes == -1 else cupy.fft.fft2, points)
        work = functools.partial(lib.fft, x, out, axes=axes)
        yield versus(f"fft {shape}, axes {axes}", work, {"CuPy": rival}, device_seconds, 1.0,
                     amount=2 * x.nbytes, unit="GB/s")  # fmt: skip  # grouped by meaning
        lib.release()


def check_sparse(torch: Any, cupy: Any) -> Iterator[Line]:
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
        yield versus(f"spmv {GRID}^2 {np.dtype(dtype).name}", work, {"cupyx": rival}, device_seconds, 1.0,
                     amount=matrix.nbytes + x.nbytes + out.nbytes, unit="GB/s")  # fmt: skip  # grouped by meaning


def check_random(torch: Any, cupy: Any) -> Iterator[Line]:
    """Compare Philox's numbers."""
    count = DRAWN
    out = cuda.empty(count, np.float32)
    generator = lib.Generator("philox", 1)
    theirs = torch.empty(count, device="cuda") if torch else None
    for name in ("uniform", "normal"):
        rival = getattr(theirs, f"{name}_") if torch else None
        work = functools.partial(getattr(generator, name), out)
        yield versus(f"Philox {name} {count:,}", work, {"PyTorch": rival}, device_seconds, 1.0,
                     amount=out.nbytes, unit="TB/s")  # fmt: skip  # grouped by meaning


def check_solver(torch: Any, cupy: Any) -> Iterator[Line]:
    """Compare factorizations in double precision, with what each needs before and after."""
    for name, (function, n) in FACTORED.items():
        operands, row = Operands(n, np.float64), CALLS[function]
        rival = row.peers(operands, {"cupy": cupy}).get("cupy")
        yield versus(f"{name} {n} fp64", row.ours(operands), {"CuPy": rival}, wall_seconds, 1.0)
        if name == "SVD":
            polar = functools.partial(lib.svd, operands.a, method="polar")
            yield versus(f"SVD {n} fp64, by polar decomposition", polar, {"CuPy": rival}, wall_seconds, 1.0)


# -- the command -------------------------------------------------------------------------------------

STEPS: dict[str, Callable[[Any, Any], Iterator[Line]]] = {
    "host": check_host,
    "gemm": check_gemm,
    "fft": check_fft,
    "sparse": check_sparse,
    "random": check_random,
    "solver": check_solver,
}


def show(line: Line) -> None:
    """Print a line of the table."""
    ratio = "" if line.ratio is None else f"{line.ratio:.3f}"
    cells = f"{line.check:<38} {line.ours:>10} {line.rate:>14} {line.theirs:>24} {ratio:>7} {line.bar:>10}"
    print(f"{cells}  {line.verdict}  {line.note}".rstrip(), flush=True)


def collect(step: str, lines: Iterator[Line]) -> list[Line]:
    """Print a step's lines as they come; an error ends the step, and is a line itself."""
    found = []
    try:
        for line in lines:
            show(line)
            found.append(line)
    except Exception as error:  # the other steps go on
        traceback.print_exc()
        found.append(Line(f"{step} did not end", verdict=Verdict.MISSED, note=f"{type(error).__name__}: {error}"))
        show(found[-1])
    return found


def table(lines: list[Line]) -> str:
    """Return the lines as a table of Markdown."""
    headings = ("", "ours", "rate", "the fastest rival", "ratio", "bar", "")
    rows = [
        (
            line.check, line.ours, line.rate, line.theirs, "" if line.ratio is None else f"{line.ratio:.3f}", line.bar,
            f"{line.verdict} {line.note}".strip(),
        )
        for line in lines
    ]  # fmt: skip  # grouped by meaning
    return bars.table(headings, rows, right=" rrrrr")


def measure_all(steps: list[str]) -> tuple[str, list[Line]]:
    """Return the conditions and the lines of the steps, which are printed as they come."""
    device = cuda.Device(0)
    device.set_current()
    torch, cupy = optional("torch"), optional("cupy")
    where = bars.conditions(device, *PACKAGES)
    print(f"{where}; noise allowed where the same speed is asked for: {100 * NOISE:g} %")
    lines: list[Line] = []
    for step in steps:
        if time.perf_counter() - STARTED > SECONDS:
            lines.append(Line(f"{step} was not begun", note=f"{SECONDS:.0f} s are over"))
            show(lines[-1])
            continue
        print(f"-- {step}, after {time.perf_counter() - STARTED:.0f} s")
        lines += collect(step, STEPS[step](torch, cupy))
    counts = ", ".join(f"{sum(line.verdict is one for line in lines)} {one}" for one in Verdict if one)
    print(f"{counts}, {time.perf_counter() - STARTED:.0f} s")
    return where, lines


def main() -> int:
    """Run the checks, and return the exit status."""
    parser = bars.parser(__doc__, page=True)
    parser.add_argument("--only", default=",".join(STEPS), metavar="STEPS", help=f"some of {','.join(STEPS)}")
    options = parser.parse_args()
    if options.recorded:
        record = bars.recall(options.recorded)
        where = record["where"]
        lines = [Line(**{**line, "verdict": Verdict(line["verdict"])}) for line in record["lines"]]
        print(f"{where}\n\n{table(lines)}")
    else:
        steps = options.only.split(",")
        if unknown := set(steps) - set(STEPS):
            parser.error(f"no step is named {', '.join(sorted(unknown))}")
        if missing := {"libraries", "gpu_timing"} - cuda.capabilities():
            parser.error(f"this driver has no {' and no '.join(sorted(missing))}: a GPU is needed, and the extra cu13")
        where, lines = measure_all(steps)
    bars.keep(options.json, {"where": where, "lines": [asdict(line) for line in lines]})
    about = f"On one {where}. Times are medians, and ratios those of {ROUNDS} rounds, ours over the rival's."
    bars.write_page(options.markdown, f"{about}\n\n{table(lines)}")
    return bars.exit_status(line.verdict for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
