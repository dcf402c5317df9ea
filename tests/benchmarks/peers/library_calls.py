"""Every function of `cudart_py.libraries` with its operands, and CuPy's or PyTorch's functions for the same work."""

import importlib
import operator
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse as scipy_sparse

import cudart_py as cuda
from cudart_py import libraries as lib
from library_tour.libraries.sparse import laplacian

from .report import attempt, tried

Call = Callable[[], object]
# Making the Laplacian of a large grid takes seconds.
grid_of = cache(laplacian)


class Operands:
    """Matrices of n rows and columns, vectors of n * n elements, and the other operands of the functions.

    The operands in `MADE` are created when they are first used. The rivals use our arrays without a copy.
    """

    def __init__(self, n: int, dtype: Any = np.float32) -> None:
        self.n, self.dtype = n, np.dtype(dtype)
        self._random = np.random.default_rng(2)

    def __getattr__(self, name: str) -> Any:
        if name not in MADE:
            raise AttributeError(name)
        value = MADE[name](self)
        setattr(self, name, value)
        return value

    def normal(self, *shape: int) -> Any:
        return self._random.standard_normal(shape, np.float32).astype(self.dtype)

    def array(self, *shape: int) -> cuda.DeviceArray:
        return cuda.to_device(self.normal(*shape))


def definite(o: Operands) -> cuda.DeviceArray:
    half = o.normal(o.n, o.n)
    return cuda.to_device(((half + half.T) / 2 + 2 * o.n * np.eye(o.n)).astype(o.dtype))


MANY = 10_000


def many(o: Operands) -> cuda.DeviceArray:
    half = o.normal(MANY, o.n, o.n)
    return cuda.to_device(half @ half.swapaxes(1, 2) + o.n * np.eye(o.n, dtype=o.dtype))


def small_integers(o: Operands) -> cuda.DeviceArray:
    return cuda.to_device(np.random.default_rng(3).integers(-100, 100, (o.n, o.n), np.int8))


def few(o: Operands) -> lib.SparseVector:
    places = np.arange(0, o.n, 8, dtype=np.int32)
    return lib.SparseVector(o.n, cuda.to_device(places), o.array(places.size))


def mostly_zero(o: Operands) -> cuda.DeviceArray:
    kept = np.zeros_like(o.host)
    kept[:, ::8] = o.host[:, ::8]
    return cuda.to_device(kept)


def bands(o: Operands) -> tuple[cuda.DeviceArray, ...]:
    lower, upper = np.full((2, o.n, o.n), -1, o.dtype)
    lower[:, 0], upper[:, -1] = 0, 0
    return tuple(map(cuda.to_device, (lower, np.full((o.n, o.n), 4, o.dtype), upper)))


MADE: dict[str, Callable[[Operands], Any]] = {
    "host": lambda o: o.normal(o.n, o.n),
    "a": lambda o: cuda.to_device(o.host),
    "b": lambda o: o.array(o.n, o.n),
    "out": lambda o: cuda.empty((o.n, o.n), o.dtype),
    "a16": lambda o: cuda.to_device(lib.to_bfloat16(o.host)),
    "b16": lambda o: cuda.to_device(lib.to_bfloat16(o.normal(o.n, o.n))),
    "out16": lambda o: cuda.empty((o.n, o.n), lib.bfloat16),
    # What a forward pass leaves for the gradient of its activation.
    "before": lambda o: lib.empty_aux((o.n, o.n), o.dtype, "gelu").fill(0.5),
    # 8-bit floats and integers, along k as the tensor cores read them.
    "a8": lambda o: cuda.to_device(lib.to_float8(o.host)),
    "b8": lambda o: cuda.to_device(lib.to_float8(o.normal(o.n, o.n))).T,
    "integers": small_integers,
    "other_integers": lambda o: small_integers(o).T,
    "sums_of_integers": lambda o: cuda.empty((o.n, o.n), np.int32),
    # Ten thousand small systems.
    "many": many,
    "many_b": lambda o: o.array(MANY, o.n, 1),
    "definite": definite,
    "column": lambda o: o.array(o.n),
    "result": lambda o: cuda.empty(o.n, o.dtype),
    # Long vectors, and a scalar result.
    "x": lambda o: o.a.reshape(-1),
    "y": lambda o: o.array(o.n * o.n),
    "drawn": lambda o: cuda.empty(o.n * o.n, o.dtype),
    "scalar": lambda o: cuda.empty(1, o.dtype),
    "counts": lambda o: cuda.empty(o.n * o.n, np.uint32),
    # Rows for transforms, and all rows as a single one.
    "signal": lambda o: cuda.to_device((o.host + 1j).astype(np.complex64)),
    "spectrum": lambda o: cuda.empty((o.n, o.n), np.complex64),
    "half_spectrum": lambda o: cuda.zeros((o.n, o.n // 2 + 1), np.complex64),
    "long_signal": lambda o: o.signal.reshape(-1),
    "long_spectrum": lambda o: o.spectrum.reshape(-1),
    # The Laplacian of a grid of n/2 x n/2 points, as a matrix of SciPy and ours, with one vector, and with eight.
    "grid": lambda o: grid_of(max(4, o.n // 2), o.dtype),
    "sparse": lambda o: lib.SparseMatrix.from_host(o.grid),
    "points": lambda o: o.array(o.grid.shape[0]),
    "sums": lambda o: cuda.empty(o.grid.shape[0], o.dtype),
    "several": lambda o: o.array(o.grid.shape[0], 8),
    "few": few,
    "mostly_zero": mostly_zero,
    "pattern": lambda o: lib.sparse_from_dense(o.mostly_zero),
    "few_stored": lambda o: scipy_sparse.csr_matrix(o.mostly_zero.to_host()),
    "bands": bands,
    # Lower triangular, with a large diagonal.
    "triangle": lambda o: cuda.to_device(np.tril(o.host) + o.dtype.type(o.n) * np.eye(o.n, dtype=o.dtype)),
}


def values(o: Operands, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments in which the names of operands are replaced by the operands."""

    def value(each: Any) -> Any:
        return getattr(o, each) if isinstance(each, str) and each in MADE else each

    return [value(each) for each in given], {name: value(each) for name, each in named.items()}


def of(function: Callable[..., Any], *given: Any, **named: Any) -> Callable[[Operands], Call]:
    """Return a function that makes a call of one of our functions with operands, which are given by their names."""

    def make(o: Operands) -> Call:
        arguments, keywords = values(o, given, named)
        return partial(function, *arguments, **keywords)

    return make


Rival = Callable[[Any, Operands], Call]


def tensor(m: Any, operand: Any) -> Any:
    """Return a rival's view of one of our arrays, CuPy's copy of a SciPy matrix, or any other operand unchanged."""
    if isinstance(operand, cuda.DeviceArray):
        return m.asarray(operand) if m.__name__ == "cupy" else m.as_tensor(operand, device="cuda")
    if hasattr(operand, "tocsr"):
        return importlib.import_module("cupyx.scipy.sparse").csr_matrix(operand)
    return operand


def rival(module: str, function: str, *given: Any, **named: Any) -> dict[str, Rival]:
    """Return a rival's call by module: of a function of it or, with a leading dot, of a method of the first operand."""

    def make(m: Any, o: Operands) -> Call:
        arguments, keywords = values(o, given, named)
        operands = [tensor(m, each) for each in arguments]
        owner = operands.pop(0) if function.startswith(".") else m
        theirs = operator.attrgetter(function.lstrip("."))(owner)
        return partial(theirs, *operands, **{name: tensor(m, each) for name, each in keywords.items()})

    return {module: make}


cupy, torch = partial(rival, "cupy"), partial(rival, "torch")


def solved_by_cupyx(m: Any, o: Operands, right: str) -> Call:
    """Return a triangular solve by CuPy, which analyses the matrix at every call."""
    linalg = importlib.import_module("cupyx.scipy.sparse.linalg")
    lower = tensor(m, scipy_sparse.tril(o.grid).tocsr())
    return partial(linalg.spsolve_triangular, lower, tensor(m, getattr(o, right)), lower=True)


class Function(NamedTuple):
    """A function: `ours`, and `rivals` by module name, make calls with the operands.

    If `waits` is set, a call returns only when its work has finished. `moved` names the operands that a call reads and
    writes. `flops` returns the number of floating-point operations.
    """

    ours: Callable[[Operands], Call]
    rivals: Mapping[str, Rival] = {}
    waits: bool = False
    moved: str = ""
    flops: Callable[[Operands], float] | None = None

    def amounts(self, operands: Operands) -> dict[str, float]:
        found: dict[str, float] = {}
        if self.moved:
            found["bytes"] = sum(getattr(operands, name).nbytes for name in self.moved.split())
        if self.flops:
            found["flops"] = self.flops(operands)
        return found

    def peers(self, operands: Operands, modules: Mapping[str, Any]) -> dict[str, Call]:
        """Return the rivals' calls, without those that are not installed or fail, which are printed.

        With a driver whose memory other packages cannot access, there are none.
        """
        found = {}
        for name, make in self.rivals.items() if "interop" in cuda.capabilities() else ():
            call = modules.get(name) and attempt(name, make, modules[name], operands)
            if call and attempt(name, tried, call):
                found[name] = call
        return found


def scaled_by_torch(m: Any, o: Operands) -> Call:
    """Return PyTorch's product of the same 8-bit floats, on a view of our bytes, with scales of 1."""
    a, w = (tensor(m, x.view(np.uint8)).view(m.float8_e4m3fn) for x in (o.a8, o.b8.T))
    one = m.ones(1, device="cuda")
    return partial(m._scaled_mm, a, w.T, scale_a=one, scale_b=one, out_dtype=m.bfloat16, use_fast_accum=True)


def product(o: Operands) -> float:
    return 2 * o.n**3


CALLS: dict[str, Function] = {
    # cuBLAS
    "gemm": Function(of(lib.gemm, "a", "b", "out"), torch("matmul", "a", "b", out="out"), flops=product),
    "matmul": Function(of(lib.matmul, "a", "b", "out"), torch("matmul", "a", "b", out="out"), flops=product),
    "gemm_epilogue": Function(
        of(lib.gemm_epilogue, "a", "b", "column", "out", activation="relu"),
        {"torch": lambda m, o: lambda: m.addmm(tensor(m, o.column), tensor(m, o.a), tensor(m, o.b)).relu_()},
        flops=product,
    ),
    "gemm_gradient": Function(of(lib.gemm_gradient, "a", "b", "gelu", "before", "out"), flops=product),
    "gemm_sums": Function(of(lib.gemm_sums, "a", "b", "result", "out"), flops=product),
    "scaled_gemm": Function(
        of(lib.scaled_gemm, "a8", "b8", out="out16", fast_accumulation=True), {"torch": scaled_by_torch}, flops=product
    ),
    "gemv": Function(of(lib.gemv, "a", "column", "result"), torch("mv", "a", "column", out="result"), moved="a"),
    "axpy": Function(of(lib.axpy, 0.5, "x", "y"), torch(".add_", "y", "x", alpha=0.5), moved="x y y"),
    "scal": Function(of(lib.scal, 1.0, "x"), torch(".mul_", "x", 1.0), moved="x x"),
    "nrm2": Function(of(lib.nrm2, "x"), torch("linalg.vector_norm", "x"), moved="x"),
    "asum": Function(of(lib.asum, "x"), torch("linalg.vector_norm", "x", ord=1), moved="x"),
    "iamax": Function(of(lib.iamax, "x"), moved="x", waits=True),
    "ger": Function(of(lib.ger, 1e-9, "column", "column", "b"), torch(".addr_", "b", "column", "column", alpha=1e-9)),
    "symv": Function(of(lib.symv, "definite", "column", "result"), moved="definite"),
    "symm": Function(of(lib.symm, "definite", "b", "out"), flops=product),
    "syrk": Function(of(lib.syrk, "a", "out"), flops=lambda o: o.n**3),
    "gemm_batched": Function(lambda o: partial(lib.gemm_batched, [o.a], [o.b], [o.out]), flops=product),
    "dot": Function(of(lib.dot, "x", "y", "scalar"), torch("dot", "x", "y"), moved="x y"),
    # cuFFT
    "fft": Function(of(lib.fft, "signal", out="spectrum", axes=-1), cupy("fft.fft", "signal"), moved="signal spectrum"),
    "ifft": Function(
        of(lib.ifft, "signal", out="spectrum", axes=-1), cupy("fft.ifft", "signal"), moved="signal spectrum"
    ),
    "rfft": Function(of(lib.rfft, "a", out="half_spectrum", axes=-1), cupy("fft.rfft", "a"), moved="a half_spectrum"),
    "irfft": Function(
        of(lib.irfft, "half_spectrum", out="out", axes=-1),
        cupy("fft.irfft", "half_spectrum"),
        moved="out half_spectrum",
    ),
    # cuSPARSE
    "spmv": Function(of(lib.spmv, "sparse", "points"), cupy(".dot", "grid", "points"), moved="sparse points points"),
    "spmm": Function(
        of(lib.spmm, "sparse", "several"), cupy(".dot", "grid", "several"), moved="sparse several several"
    ),
    "spgemm": Function(of(lib.spgemm, "sparse", "sparse"), cupy(".dot", "grid", "grid"), waits=True),
    "sddmm": Function(of(lib.sddmm, "a", "b", "pattern")),
    "spdot": Function(of(lib.spdot, "few", "column"), waits=True),
    "gemvi": Function(of(lib.gemvi, "a", "few", "result")),
    "sparse_from_dense": Function(of(lib.sparse_from_dense, "mostly_zero"), waits=True),
    "sparse_to_dense": Function(of(lib.sparse_to_dense, "pattern", "out"), cupy(".toarray", "few_stored")),
    "sparse_convert": Function(of(lib.sparse_convert, "sparse", "csc"), cupy(".tocsc", "grid")),
    "sparse_transpose": Function(of(lib.sparse_transpose, "sparse")),
    "sparse_sort": Function(of(lib.sparse_sort, "sparse")),
    "spsv": Function(of(lib.spsv, "sparse", "points"), {"cupy": partial(solved_by_cupyx, right="points")}, waits=True),
    "spsm": Function(
        of(lib.spsm, "sparse", "several"), {"cupy": partial(solved_by_cupyx, right="several")}, waits=True
    ),
    "solve_tridiagonal": Function(
        lambda o: partial(lib.solve_tridiagonal, *o.bands, o.b, o.out), moved="out out out out out"
    ),
    # cuSOLVER
    "solve": Function(of(lib.solve, "a", "column"), cupy("linalg.solve", "a", "column"), waits=True),
    "inv": Function(of(lib.inv, "definite"), cupy("linalg.inv", "definite"), waits=True),
    "lu_factor": Function(of(lib.lu_factor, "definite"), torch("linalg.lu_factor", "definite"), waits=True),
    "cholesky": Function(of(lib.cholesky, "definite"), cupy("linalg.cholesky", "definite"), waits=True),
    "solve_triangular": Function(
        of(lib.solve_triangular, "triangle", "b"),
        torch("linalg.solve_triangular", "triangle", "b", upper=False),
        waits=True,
    ),
    "qr": Function(of(lib.qr, "a"), cupy("linalg.qr", "a"), waits=True),
    "lstsq": Function(of(lib.lstsq, "a", "column"), cupy("linalg.lstsq", "a", "column", rcond=None), waits=True),
    "svd": Function(of(lib.svd, "a"), cupy("linalg.svd", "a", full_matrices=False), waits=True),
    "eigh": Function(of(lib.eigh, "definite"), cupy("linalg.eigh", "definite"), waits=True),
    # cuRAND
    "uniform": Function(of(lib.uniform, out="y"), torch(".uniform_", "y"), moved="y"),
    "normal": Function(of(lib.normal, out="y"), torch(".normal_", "y"), moved="y"),
    "log_normal": Function(of(lib.log_normal, out="y"), torch(".log_normal_", "y"), moved="y"),
    "exponential": Function(of(lib.exponential, out="y"), torch(".exponential_", "y"), moved="y"),
    "poisson": Function(of(lib.poisson, rate=10.0, out="counts"), moved="counts"),
}
UNTIMED = {
    "release": "ends what a thread keeps",
    "to_bfloat16": "NumPy's work, on the host",
    "from_bfloat16": "NumPy's work, on the host",
    "to_float8": "NumPy's work, on the host",
    "from_float8": "NumPy's work, on the host",
    "empty_aux": "only allocates",
}
