"""The error of every function in each dtype, in extended precision, against the bound that docs/libraries.md states."""

import math
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib
from tests.tables import quoted, rows

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")
scipy_fft = pytest.importorskip("scipy.fft", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
PAGE = (Path(__file__).parents[2] / "docs" / "libraries.md").read_text(encoding="utf-8")
# The bound of each function, as an expression of `n` and `eps`.
BOUNDS = {
    name: quoted(bound)[0]
    for functions, _, bound in rows(PAGE.partition("## Errors of results\n")[2].partition("\n## ")[0])[1:]
    for name in quoted(functions)
}

# Functions that have no rounding error of their own, or whose errors other tests compare with stated bounds.
EXACT = {
    "empty_aux", "from_bfloat16", "from_float8", "iamax", "release", "sparse_convert", "sparse_from_dense",
    "sparse_sort", "sparse_to_dense", "sparse_transpose", "to_bfloat16", "to_float8",
}  # fmt: skip  # a list of names
ELSEWHERE = {
    "SparseSolver": "test_sparse_solver.py",
    "gemm_gradient": "test_epilogues.py",
    "scaled_gemm": "test_scaled_products.py",
    **dict.fromkeys(("Generator", "exponential", "log_normal", "normal", "poisson", "uniform"),
                    "test_random_sequences.py"),
}  # fmt: skip  # grouped by file
OBJECTS = {
    "Callback", "IllConditionedWarning", "LuFactors", "NotConvergedError", "NotPositiveDefiniteError", "Plan",
    "SingularMatrixError", "SparseMatrix", "SparseVector", "TransformPlan", "bfloat16", "complex32", "float8_e4m3",
    "float8_e5m2",
}  # fmt: skip  # a list of names
M, N = 13, 37


def wide(x):
    """Return the elements in NumPy's longest precision."""
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def transposed(x):
    return x.conj().swapaxes(-1, -2)


def norm(x):
    return np.sqrt((np.abs(wide(x)) ** 2).sum())


def of_sums(got, exact, sizes):
    """Return the largest error of an element, relative to the sum of the absolute values of its terms."""
    return (np.abs(wide(got) - exact) / sizes).max()


def of_product(got, a, b):
    return of_sums(got, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


def of_system(a, x, b):
    """Return the residual of a system, relative to the norms of the matrix and the solution."""
    return norm(wide(a) @ wide(x) - b) / (norm(a) * norm(x))


def of_factors(product, a, *orthonormal):
    """Return the larger of the error of a product of factors, and of the products of columns that are orthonormal."""
    errors = [norm(product - a) / norm(a)]
    return max(errors + [norm(transposed(wide(q)) @ wide(q) - np.eye(q.shape[1])) for q in orthonormal])


def host(array):
    return array.to_host()


def to_device(*arrays):
    return [cuda.to_device(np.ascontiguousarray(array)) for array in arrays]


class Products:
    """Products and sums: of 37 terms, unless the name of an array says otherwise."""

    def __init__(self, draw, dtype):
        self.a, self.b, self.c = draw((M, N), dtype), draw((N, 5), dtype), draw((M, 5), dtype)
        self.x, self.y, self.square = draw(N, dtype), draw(N, dtype), draw((N, N), dtype)
        self.symmetric = self.square + self.square.T
        kept = np.where(np.abs(draw((M, N))) < 0.6, self.a, 0)
        self.sparse = sparse.csr_array(kept)
        self.kept = kept

    def gemm(self):
        out = cuda.to_device(self.c)
        lib.gemm(*to_device(self.a, self.b), out, alpha=2.5, beta=-0.5)
        exact = 2.5 * (wide(self.a) @ wide(self.b)) - wide(self.c) / 2
        sizes = 2.5 * (np.abs(wide(self.a)) @ np.abs(wide(self.b))) + np.abs(wide(self.c)) / 2
        yield of_sums(host(out), exact, sizes), N
        columns = cuda.to_device(np.ascontiguousarray(self.a.T))
        yield of_product(host(lib.gemm(columns, *to_device(self.b), op_a="T")), self.a, self.b), N

    def matmul(self):
        yield of_product(host(lib.matmul(*to_device(self.a, self.b))), self.a, self.b), N
        batch = np.stack([self.a, -2 * self.a])
        yield of_product(host(lib.matmul(*to_device(batch, self.b))), batch, self.b), N

    def gemm_batched(self):
        (first,), (second,) = to_device(self.a), to_device(self.b)
        for got in lib.gemm_batched([first, first], [second, second]):
            yield of_product(host(got), self.a, self.b), N

    def gemm_epilogue(self):
        if self.a.dtype.kind == "c":
            return
        bias = self.c[0]
        got = host(lib.gemm_epilogue(*to_device(self.a, self.b, bias), activation="relu"))
        exact = np.maximum(wide(self.a) @ wide(self.b) + wide(bias), 0)
        yield of_sums(got, exact, np.abs(wide(self.a)) @ np.abs(wide(self.b)) + np.abs(wide(bias))), N

    def gemm_sums(self):
        if self.a.dtype.kind == "c":
            return
        sums = cuda.empty(5, self.a.dtype)
        got = lib.gemm_sums(*to_device(self.a, self.b), sums)
        yield of_product(host(got), self.a, self.b), N
        yield of_sums(host(sums), wide(self.b).sum(axis=0), np.abs(wide(self.b)).sum(axis=0)), N

    def gemv(self):
        yield of_product(host(lib.gemv(*to_device(self.a, self.x))), self.a, self.x), N

    def symv(self):
        got = host(lib.symv(*to_device(np.tril(self.symmetric), self.x)))
        yield of_product(got, self.symmetric, self.x), N

    def symm(self):
        got = host(lib.symm(*to_device(np.tril(self.symmetric), self.b)))
        yield of_product(got, self.symmetric, self.b), N

    def syrk(self):
        got = host(lib.syrk(*to_device(self.a)))
        exact, sizes = wide(self.a) @ wide(self.a).T, np.abs(wide(self.a)) @ np.abs(wide(self.a)).T
        yield of_sums(got, np.tril(exact), sizes), N

    def ger(self):
        out = cuda.to_device(self.square)
        lib.ger(2.5, *to_device(self.x, self.y), out)
        terms = 2.5 * np.multiply.outer(wide(self.x), wide(self.y))
        yield of_sums(host(out), wide(self.square) + terms, np.abs(wide(self.square)) + np.abs(terms)), 1

    def axpy(self):
        got = host(lib.axpy(2.5, *to_device(self.x, self.y)))
        yield of_sums(got, 2.5 * wide(self.x) + wide(self.y), np.abs(2.5 * wide(self.x)) + np.abs(wide(self.y))), 1

    def scal(self):
        yield of_sums(host(lib.scal(0.3, *to_device(self.x))), np.float64(0.3) * wide(self.x), np.abs(wide(self.x))), 1

    def dot(self):
        yield of_product(host(lib.dot(*to_device(self.x, self.y)))[0], self.x, self.y), N

    def nrm2(self):
        yield abs(wide(host(lib.nrm2(*to_device(self.x)))[0]) / norm(self.x) - 1), N

    def asum(self):
        exact = np.abs(wide(self.x.real)).sum() + np.abs(wide(self.x.imag)).sum()
        yield abs(wide(host(lib.asum(*to_device(self.x)))[0]) / exact - 1), N

    def spmv(self):
        a = lib.SparseMatrix.from_host(self.sparse)
        yield of_sparse(host(lib.spmv(a, *to_device(self.x))), self.kept, self.x), N
        x = self.x[:M]
        yield of_sparse(host(lib.spmv(a, *to_device(x), op="T")), self.kept.T, x), M

    def spmm(self):
        a = lib.SparseMatrix.from_host(self.sparse)
        yield of_sparse(host(lib.spmm(a, *to_device(self.b))), self.kept, self.b), N

    def spgemm(self):
        other = sparse.csr_array(self.kept.T)
        got = lib.spgemm(*map(lib.SparseMatrix.from_host, (self.sparse, other))).to_host().toarray()
        yield of_sparse(got, self.kept, self.kept.T), N

    def sddmm(self):
        out = lib.SparseMatrix.from_host(self.sparse)
        lib.sddmm(*to_device(self.c, self.b.T), out)
        stored = self.kept != 0
        exact = np.where(stored, wide(self.c) @ wide(self.b).T, 0)
        yield of_sums(out.to_host().toarray(), exact, np.abs(wide(self.c)) @ np.abs(wide(self.b)).T), 5

    def vector(self):
        indices = np.arange(1, N, 3, dtype=np.int32)
        values = self.x[indices]
        return indices, values, lib.SparseVector(N, *to_device(indices, values))

    def spdot(self):
        indices, values, x = self.vector()
        yield of_product(np.asarray(lib.spdot(x, *to_device(self.y)), self.x.dtype), values, self.y[indices]), N

    def gemvi(self):
        indices, values, x = self.vector()
        yield of_product(host(lib.gemvi(*to_device(self.a), x)), self.a[:, indices], values), N


def of_sparse(got, a, b):
    """Return the error of a product with a sparse matrix, whose rows may have no terms."""
    sizes = np.abs(wide(a)) @ np.abs(wide(b))
    assert not got[sizes == 0].any()
    return of_sums(got, wide(a) @ wide(b), np.where(sizes == 0, 1, sizes))


class Transforms:
    """Transforms of even, odd and prime lengths, along one axis and several."""

    def __init__(self, draw, dtype):
        self.draw, self.dtype = draw, dtype
        self.real = np.finfo(dtype).dtype

    def compared(self, function, theirs, operand, length=None):
        options = {} if length is None else {"length": length}
        got = host(function(*to_device(operand), **options))
        exact = theirs(wide(operand), **({} if length is None else {"n": length}))
        return norm(wide(got) - exact) / norm(exact)

    def fft(self):
        for n in (16, 45, 101):
            yield self.compared(lib.fft, scipy_fft.fft, self.draw((3, n), self.dtype)), n
        x = self.draw((6, 9, 10), self.dtype)
        got = host(lib.fft(*to_device(x), axes=(0, 1, 2)))
        exact = scipy_fft.fftn(wide(x))
        yield norm(wide(got) - exact) / norm(exact), x.size

    def ifft(self):
        for n in (16, 45, 101):
            yield self.compared(lib.ifft, scipy_fft.ifft, self.draw((3, n), self.dtype)), n

    def rfft(self):
        for n in (16, 45, 101):
            yield self.compared(lib.rfft, scipy_fft.rfft, self.draw((3, n), self.real)), n

    def irfft(self):
        for n in (16, 45, 101):
            spectrum = np.fft.rfft(self.draw((3, n))).astype(np.result_type(self.real, np.complex64))
            spectrum[:, 0] = spectrum[:, 0].real
            if n % 2 == 0:
                spectrum[:, -1] = spectrum[:, -1].real
            yield self.compared(lib.irfft, scipy_fft.irfft, spectrum, n), n


class Systems:
    """Solvers and factorizations, of one matrix and of a batch."""

    def __init__(self, draw, dtype):
        self.a, self.b = draw((2, N, N), dtype), draw((2, N, 3), dtype)
        self.tall, self.right = draw((2, N, M), dtype), draw((2, N, 3), dtype)
        self.definite = self.a @ transposed(self.a) + np.eye(N, dtype=dtype)
        self.draw, self.dtype = draw, dtype

    def solve(self):
        for a, options in ((self.a, {}), (self.definite, {"positive": True})):
            yield of_system(a[0], host(lib.solve(*to_device(a[0], self.b[0]), **options)), self.b[0]), N
            for each, x, b in zip(a, host(lib.solve(*to_device(a, self.b), **options)), self.b, strict=True):
                yield of_system(each, x, b), N
        if np.finfo(self.dtype).bits == 64:
            operands = to_device(self.a[0] + N * np.eye(N), self.b[0])
            x = host(lib.solve(*operands, precision="float32"))
            yield of_system(self.a[0] + N * np.eye(N), x, self.b[0]), N

    def lu_factor(self):
        factors = lib.lu_factor(*to_device(self.a[0]))
        for op, a in {"N": self.a[0], "T": self.a[0].T, "C": transposed(self.a[0])}.items():
            yield of_system(a, host(factors.solve(*to_device(self.b[0]), op=op)), self.b[0]), N

    def inv(self):
        inverses = host(lib.inv(*to_device(self.a[0]))), host(lib.inv(*to_device(self.a)))[1]
        for a, inverse in zip(self.a, inverses, strict=True):
            yield of_system(a, inverse, np.eye(N)), N

    def solve_triangular(self):
        a = np.tril(self.a[0]) + 5 * np.eye(N, dtype=self.dtype)
        yield of_system(a, host(lib.solve_triangular(*to_device(a, self.b[0]))), self.b[0]), N

    def spsv(self):
        a = np.tril(self.a[0]) + 5 * np.eye(N, dtype=self.dtype)
        b = self.b[0, :, 0]
        x = host(lib.spsv(lib.SparseMatrix.from_host(sparse.csr_array(a)), *to_device(b)))
        yield of_system(a, x, b), N

    def spsm(self):
        a = np.triu(self.a[0]) + 5 * np.eye(N, dtype=self.dtype)
        x = host(lib.spsm(lib.SparseMatrix.from_host(sparse.csr_array(a)), *to_device(self.b[0]), lower=False))
        yield of_system(a, x, self.b[0]), N

    def solve_tridiagonal(self):
        lower, middle, upper, b = self.draw((4, 2, N), self.dtype)
        lower[:, 0] = upper[:, -1] = 0
        middle = middle + 8
        solutions = host(lib.solve_tridiagonal(*to_device(lower, middle, upper, b)))
        for place, x in enumerate(solutions):
            a = np.diag(middle[place]) + np.diag(lower[place, 1:], -1) + np.diag(upper[place, :-1], 1)
            yield of_system(a, x, b[place]), N

    def cholesky(self):
        factors = host(lib.cholesky(*to_device(self.definite[0]))), host(lib.cholesky(*to_device(self.definite)))[1]
        for a, factor in zip(self.definite, factors, strict=True):
            yield of_factors(wide(factor) @ transposed(wide(factor)), a), N

    def qr(self):
        factors = lib.qr(*to_device(self.tall[0])), [part[1] for part in lib.qr(*to_device(self.tall))]
        for a, parts in zip(self.tall, factors, strict=True):
            q, r = map(host, parts)
            yield of_factors(wide(q) @ wide(r), a, q), N

    def lstsq(self):
        """The residual is orthogonal to the columns of the matrix."""
        a, b = self.tall[0], self.right[0]
        fits = [(a, b, host(lib.lstsq(*to_device(a, b), method=method))) for method in ("qr", "svd")]
        fits += zip(self.tall, self.right, host(lib.lstsq(*to_device(self.tall, self.right))), strict=True)
        for a, b, x in fits:
            rest = wide(a) @ wide(x) - b
            yield norm(transposed(wide(a)) @ rest) / (norm(a) * (norm(a) * norm(x) + norm(b))), N

    def svd(self):
        cases = [(self.tall[0], lib.svd(*to_device(self.tall[0]), method=method)) for method in ("qr", "polar")]
        small = np.ascontiguousarray(self.tall[:, :20])
        cases += [(batch[1], [part[1] for part in lib.svd(*to_device(batch))]) for batch in (self.tall, small)]
        for a, parts in cases:
            u, s, vh = map(host, parts)
            assert np.all(np.diff(s) <= 0)
            yield of_factors(wide(u) * s @ wide(vh), a, u, transposed(vh)), N

    def eigh(self):
        a = self.a + transposed(self.a)
        for each, parts in ((a[0], lib.eigh(*to_device(a[0]))), (a[1], [part[1] for part in lib.eigh(*to_device(a))])):
            values, vectors = map(host, parts)
            assert np.all(np.diff(values) >= 0)
            yield of_factors(wide(vectors) * values @ transposed(wide(vectors)), each, vectors), N


FAMILIES = {name: family for family in (Products, Transforms, Systems) for name in vars(family) if name in lib.__all__}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FAMILIES)
def test_an_error_is_within_its_stated_bound(device, numbers, name, dtype):
    for error, n in getattr(FAMILIES[name](numbers, dtype), name)():
        bound = eval(BOUNDS[name], {"n": n, "eps": np.finfo(dtype).eps, "log2": math.log2})
        assert error <= bound


def test_every_function_has_a_stated_bound_or_is_exact():
    assert set(BOUNDS) == set(FAMILIES)
    assert {*FAMILIES, *EXACT, *ELSEWHERE, *OBJECTS} == set(lib.__all__)
    for name, file in ELSEWHERE.items():
        assert f"{name}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")
