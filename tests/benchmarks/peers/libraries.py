"""The library layer, compared with PyTorch and CuPy in less than four minutes.

Our calls and the rivals' alternate, and the ratio is the median of the ratios of the rounds. A bar whose rivals are not
installed is shown but not judged. A bar that requires the same speed allows for noise. tests/libraries checks results
and errors.
"""

import argparse
import functools
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda
from cudart_py import benchmark
from cudart_py import libraries as lib
from cudart_py.benchmark import MeasureOptions
from cudart_py.benchmark.peers import in_turns

from . import lt_best
from .library_calls import CALLS, Function, Operands, cupy, of, product, tensor, torch
from .report import Bar, Comparison, Report, conditions, optional

# The ratio that a bar for the same speed allows. Two measurements of the same work differ by 1 %, because clock rates
# change and other programs run.
SAME = 1.01
# The ratio that a bar for more speed allows.
FASTER = 0.99
OPTIONS = MeasureOptions(min_samples=5, min_seconds=0.1, max_seconds=0.4, warm_up_seconds=0.05)
HOST_OPTIONS = MeasureOptions(min_samples=30, min_seconds=0.2, max_seconds=0.4, warm_up_seconds=0.1)
ROUNDS = 5
SECONDS = 230.0
PACKAGES = ("nvmath-python", "cuda-bindings", "numpy", "torch", "cupy-cuda13x")

Work = Callable[[], object]


def device_seconds(work: Work) -> float:
    found = benchmark.measure(work, options=OPTIONS).median
    assert found is not None
    return found


def host_seconds(work: Work) -> float:
    found = benchmark.measure_host(work, options=HOST_OPTIONS).median
    assert found is not None
    return found


def wall_seconds(work: Work) -> float:
    """Return the median time of a call until its work has finished, for calls that wait for the device themselves."""
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


class Case(NamedTuple):
    """A function on operands of n rows and columns; its time must be at most `most` times the fastest rival's."""

    what: str
    function: Function
    n: int
    dtype: Any = np.float32
    most: float = SAME
    how: Callable[[Work], float] = device_seconds


def planned(o: Operands) -> Work:
    return lib.gemm.plan(o.a, o.b, o.out)


def drawn_by_cupy(m: Any, o: Operands) -> Work:
    draw, target = m.random.default_rng().random, tensor(m, o.drawn)
    return lambda: draw(target.size, m.float32, out=target)


def in_bfloat16(m: Any, o: Operands) -> Work:
    """Return a product by PyTorch on its own arrays, because it does not accept our type for these numbers."""
    x, y = (tensor(m, each).to(m.bfloat16) for each in (o.a, o.b))
    return functools.partial(m.matmul, x, y, out=m.empty_like(x))


LT = "nvmath.bindings.cublasLt"


def lt_algorithm(types: lt_best.Types, a: str, b: str, out: str, *, along_k: bool = False, fast: bool = False) -> Any:
    """Return cuBLASLt's best algorithm, measured through the bindings, as a rival."""

    def make(m: Any, o: Operands) -> Work:
        operands = (getattr(o, name) for name in (a, b, out))
        return lt_best.fastest(m, types, *operands, along_k=along_k, fast=fast)

    return {LT: make}


def integers_by_torch(m: Any, o: Operands) -> Work:
    return functools.partial(m._int_mm, tensor(m, o.integers), tensor(m, o.other_integers.T).T)


def searched() -> list[tuple[str, Function, Any]]:
    """Return products whose algorithm is searched for, beside PyTorch and cuBLASLt's best algorithm."""
    search = {"algorithm": "search"}
    fp8 = of(lib.scaled_gemm, "a8", "b8", out="out16", fast_accumulation=True, **search)
    int8 = of(lib.gemm, "integers", "other_integers", "sums_of_integers", **search)
    emulated = of(lib.gemm, "a", "b", "out", compute="emulated", **search)
    best8 = lt_algorithm(lt_best.FP8, "a8", "b8", "out16", along_k=True, fast=True)
    best_int = lt_algorithm(lt_best.INT8, "integers", "other_integers", "sums_of_integers", along_k=True)
    mm = torch("mm", "a", "b", out="out")
    return [
        ("FP8", Function(fp8, {**CALLS["scaled_gemm"].rivals, **best8}, flops=product), np.float32),
        ("int8", Function(int8, {"torch": integers_by_torch, **best_int}, flops=product), np.float32),
        (
            # PyTorch has no emulated product.
            "emulated fp64",
            Function(emulated, lt_algorithm(lt_best.EMULATED, "a", "b", "out"), flops=product),
            np.float64,
        ),
        (
            "fp16",
            Function(
                of(lib.gemm, "a", "b", "out", **search),
                {**mm, **lt_algorithm(lt_best.FP16, "a", "b", "out")},
                flops=product,
            ),
            np.float16,
        ),
    ]


def transform(shape: tuple[int, int], axes: int | None) -> Case:
    """Return the transform of 8192 x 8192 elements that are reshaped to `shape`."""

    def ours(o: Operands) -> Work:
        return functools.partial(lib.fft, o.signal.reshape(shape), o.spectrum.reshape(shape), axes=axes)

    def theirs(m: Any, o: Operands) -> Work:
        return functools.partial(m.fft.fft2 if axes is None else m.fft.fft, tensor(m, o.signal.reshape(shape)))

    return Case(f"fft {shape}, axes {axes}", Function(ours, {"cupy": theirs}, moved="signal spectrum"), 8192)


# What takes the place of a rival where a callback is compared with a kernel of its own.
KERNEL_APART = "fft and a kernel"
# Each callback has a source of its own: cuFFT links no source with a kernel in it, nor two with the same function.
WEIGHT = """
static __device__ float2 weighed(float2 element, unsigned long long i)
{
    float weight = 0.5f - 0.5f * cospif(i % COLUMNS * (2.0f / COLUMNS));
    return make_float2(weight * element.x, weight * element.y);
}
"""
WEIGHING = {
    "load": """
__device__ float2 load(void* x, unsigned long long i, void*, void*)
{
    return weighed(static_cast<float2*>(x)[i], i);
}
""",
    "store": """
__device__ void store(void* x, unsigned long long i, float2 element, void*, void*)
{
    static_cast<float2*>(x)[i] = weighed(element, i);
}
""",
    "kernel": """
extern "C" __global__ void weigh(const float2* x, float2* out, unsigned long long count)
{
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = weighed(x[i], i);
}
""",
}


def weighed(shape: tuple[int, int], *roles: str) -> Case:
    """Return a transform with callbacks before or after it, beside the transform with kernels in the same places."""
    define = {"COLUMNS": shape[1]}

    def ours(o: Operands) -> Work:
        callbacks = {role: lib.Callback(WEIGHT + WEIGHING[role], role, define=define) for role in roles}
        return lib.fft.plan(o.signal.reshape(shape), o.spectrum.reshape(shape), **callbacks)

    def kernels_apart(_: Any, o: Operands) -> Work:
        x, out = o.signal.reshape(shape), o.spectrum.reshape(shape)
        launch = cuda.compile(WEIGHT + WEIGHING["kernel"], define=define)["weigh"][-(-x.size // 256), 256]
        loads = "load" in roles
        steps: list[Work] = [launch.bind(x, out, x.size)] if loads else []
        steps += [lib.fft.plan(out if loads else x, out)]
        steps += [launch.bind(out, out, out.size)] if "store" in roles else []

        def work() -> None:
            for step in steps:
                step()

        return work

    function = Function(ours, {KERNEL_APART: kernels_apart}, moved="signal spectrum")
    return Case(f"fft {shape} with a callback for {' and '.join(roles)}", function, 8192, most=FASTER)


def cases() -> dict[str, list[Case]]:
    """Return the cases of all steps: host overhead of small calls with outputs given and all checks, and large work."""
    mm, gemm, philox = torch("mm", "a", "b", out="out"), CALLS["gemm"], lib.Generator("philox", 1)
    fft = {**cupy("fft.fft", "long_signal"), **torch("fft.fft", "long_signal", out="long_spectrum")}
    host = [
        ("gemm 128^3, out=", gemm._replace(rivals=mm), 128, 0.85),
        ("gemm 128^3, planned", Function(planned, mm), 128, 0.35),
        ("fft 1024, out=", Function(of(lib.fft, "long_signal", "long_spectrum"), fft), 32, 0.5),
        ("uniform 1024, out=", Function(of(lib.uniform, out="drawn"), {"cupy": drawn_by_cupy}), 32, SAME),
    ]
    tf32 = Function(of(lib.gemm, "a", "b", "out", compute="tf32"), gemm.rivals, flops=product)
    bf16 = Function(of(lib.gemm, "a16", "b16", "out16"), {"torch": in_bfloat16}, flops=product)
    products = [("fp32", gemm, np.float32), ("fp64", gemm, np.float64), ("TF32", tf32, np.float32)]
    products += [("fp16", gemm, np.float16), ("bf16", bf16, np.float32)]
    spmv = Function(of(lib.spmv, "sparse", "points", "sums"), CALLS["spmv"].rivals, moved="sparse points sums")
    draws = {
        name: Function(of(getattr(philox, name), "drawn"), torch(f".{name}_", "drawn"), moved="drawn")
        for name in ("uniform", "normal")
    }
    factored = [("Cholesky 8192 fp64", CALLS["cholesky"], 8192), ("LU 8192 fp64", CALLS["solve"], 8192)]
    factored += [("QR 4096 fp64", CALLS["qr"], 4096), ("SVD 1024 fp64", CALLS["svd"], 1024)]
    many = [
        ("Cholesky 10,000 x 32^2 fp64", Function(of(lib.cholesky, "many"), cupy("linalg.cholesky", "many")), 32),
        (
            "LU 10,000 x 32^2 fp64",
            Function(of(lib.solve, "many", "many_b"), cupy("linalg.solve", "many", "many_b")),
            32,
        ),
    ]
    polar = Function(of(lib.svd, "a", method="polar"), CALLS["svd"].rivals)
    factored += [("SVD 1024 fp64, by polar decomposition", polar, 1024), ("eigh 2048 fp64", CALLS["eigh"], 2048)]
    long, short = (65536, 1024), (131072, 512)
    windows = [weighed(long, "store"), weighed(short, "load"), weighed(long, "load", "store"), weighed(long, "load")]
    return {
        "host": [
            Case(f"host: {what}", function, n, np.float32, most, host_seconds) for what, function, n, most in host
        ],
        "gemm": [Case(f"gemm 8192 {what}", function, 8192, dtype) for what, function, dtype in products],
        "searched": [
            Case(f"gemm 8192 {what}, searched", function, 8192, dtype) for what, function, dtype in searched()
        ],
        "batches": [Case(what, function, n, np.float64, how=wall_seconds) for what, function, n in many],
        "fft": [transform((65536, 1024), -1), transform((8192, 8192), None), *windows],
        "sparse": [
            *(Case(f"spmv 4096^2 {dtype}", spmv, 8192, dtype) for dtype in ("float64", "float32")),
            *(
                Case(f"{name} 1024^2 float64", CALLS[name], 2048, np.float64, how=wall_seconds)
                for name in ("spsv", "spsm")
            ),
        ],
        "random": [Case(f"Philox {name} {2**28:,}", draw, 2**14) for name, draw in draws.items()],
        "solver": [Case(what, function, n, np.float64, how=wall_seconds) for what, function, n in factored],
    }


STEPS = ("host", "gemm", "searched", "batches", "fft", "sparse", "random", "solver")


def versus(case: Case, modules: Mapping[str, Any]) -> Comparison:
    operands = Operands(case.n, case.dtype)
    if modules["torch"]:
        modules["torch"].backends.cuda.matmul.allow_tf32 = "TF32" in case.what
    works = {"ours": case.function.ours(operands), **case.function.peers(operands, modules)}
    turns = {name: functools.partial(case.how, work) for name, work in works.items()}
    times = in_turns(turns, ROUNDS if len(works) > 1 else 1)
    medians = {name: statistics.median(found) for name, found in times.items()}
    mine = medians.pop("ours")
    units = {"bytes": (1e9, "GB/s"), "flops": (1e12, "TFLOP/s")}
    amounts = case.function.amounts(operands) if case.how is device_seconds else {}
    notes = [f"{amount / mine / units[what][0]:,.4g} {units[what][1]}" for what, amount in amounts.items()]
    bar = Bar.at_most(case.most)
    if not medians:
        note = "; ".join([*notes, "not here"])
        return Comparison(case.what, "us", 1e6 * mine, " and ".join(case.function.rivals), None, bar, note)
    name = min(medians, key=medians.__getitem__)
    ratio = statistics.median(a / b for a, b in zip(times["ours"], times[name], strict=True))
    return Comparison(case.what, "us", 1e6 * mine, name, 1e6 * medians[name], bar, "; ".join(notes), ratio)


def compare(steps: list[str]) -> Iterator[Comparison]:
    modules = {name: optional(name) for name in ("torch", "cupy", LT)} | {KERNEL_APART: cuda}
    started = time.perf_counter()
    known = cases()
    for step in steps:
        if time.perf_counter() - started > SECONDS:
            yield Comparison(step, "us", note=f"was not begun: {SECONDS:.0f} s are over")
            continue
        try:
            for case in known[step]:
                yield versus(case, modules)
                lib.release()
        except Exception as error:  # the other steps still run
            traceback.print_exc()
            yield Comparison(step, "us", note=f"did not end: {type(error).__name__}: {error}", failed=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=STEPS, default=STEPS, metavar="STEP", help="these alone")


def measure(options: argparse.Namespace) -> Report:
    if missing := {"libraries", "gpu_timing"} - cuda.capabilities():
        raise SystemExit(f"this driver has no {' and no '.join(sorted(missing))}: a GPU is needed, and the extra cu13")
    cuda.Device(0).set_current()
    return Report.of("libraries", conditions(*PACKAGES), compare(options.only))
