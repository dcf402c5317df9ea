"""Products and conversions with sparse results, with cuSPARSE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...copies import memset
from ...driver.calls import library
from ...errors import NotSupportedError
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.scalars import Factor, Scalar, factor, scalar
from ..dtypes import Kind
from ..failures import failure
from ..handles import allocate_workspace, keep, library_handle, scratch
from ..plans import Plan, plannable
from .matrix import INDEX_DTYPE, TYPES, DenseMatrix, Description, SparseMatrix, check_matrix


class _ProductPlan(Plan[SparseMatrix]):
    """A product of sparse matrices whose values change between calls, but not their sparsity patterns."""

    def __init__(
        self, stream: Stream, device: Device, factors: tuple[Factor, Factor], a: SparseMatrix, b: SparseMatrix
    ) -> None:
        self._factors, self._a, self._b = factors, a, b
        with activated(device):
            self._work = Description("sp_gemm_create_descr", "sp_gemm_destroy_descr")
            offsets = empty(a.shape[0] + 1, INDEX_DTYPE, stream=stream)
            self._product = _unfilled((a.shape[0], b.shape[1]), offsets, a._kind)
            self._buffers: list[DeviceArray] = []
            try:
                result = self._find(stream, device, offsets)
            except Exception as error:
                raise failure("cusparseSpGEMMreuse", error) from error
        super().__init__("spgemm", stream, device, result)

    def _find(self, stream: Stream, device: Device, offsets: DeviceArray) -> SparseMatrix:
        """Return the result with the sparsity pattern that the library computes; its values are not computed yet."""
        if not (self._a.count and self._b.count):  # the library returns meaningless buffer sizes
            memset(offsets, 0, stream=stream)
            nothing = empty(0, self._a.values.dtype, stream=stream), empty(0, INDEX_DTYPE, stream=stream)
            return SparseMatrix("csr", (self._a.shape[0], self._b.shape[1]), *nothing, offsets)
        enums, handle = library("cusparse"), library_handle("cusparse", stream, device)
        plain, functions = int(enums.Operation.NON_TRANSPOSE), handle.functions
        parameters = (
            handle.native, plain, plain, self._a._describe_once().handle, self._b._describe_once().handle,
            self._product.handle, int(enums.SpGEMMAlg.DEFAULT), self._work.handle,
        )  # fmt: skip  # grouped by meaning

        def buffer(size: int) -> int:
            self._buffers.append(allocate_workspace(int(size), stream))
            return self._buffers[-1].pointer

        estimate, find, copy = (
            getattr(functions, f"sp_gemm_reuse_{phase}") for phase in ("work_estimation", "nnz", "copy")
        )
        estimate(*parameters, buffer(estimate(*parameters, 0)))
        find(*parameters, *(buffer(size) for size in find(*parameters, 0, 0, 0)))
        return _filled(
            self._product, offsets, self._a.values.dtype, stream,
            lambda: copy(*parameters, buffer(copy(*parameters, 0))),
        )  # fmt: skip  # grouped by meaning

    def _prepare(self) -> None:
        # The handle exists since the plan was made, unless it was released or another thread calls the plan.
        library_handle("cusparse", self._stream, self._device)

    def _queue(self, stream: Stream) -> None:
        enums, a, b = library("cusparse"), self._a, self._b
        if self._result.count:
            handle = library_handle("cusparse", self._stream, self._device)
            plain = int(enums.Operation.NON_TRANSPOSE)
            with handle.lent_to(stream):
                try:
                    handle.functions.sp_gemm_reuse_compute(
                        handle.native, plain, plain, self._factors[0].address, a._describe_once().handle,
                        b._describe_once().handle, self._factors[1].address, self._product.handle, a._kind.scalar_code,
                        int(enums.SpGEMMAlg.DEFAULT), self._work.handle,
                    )  # fmt: skip  # grouped by meaning
                except Exception as error:
                    raise failure("cusparseSpGEMMreuse_compute", error) from error
        for matrix in (a, b, self._result):
            keep(stream, "spgemm", matrix.values, matrix.indices, matrix.offsets)
        keep(stream, "spgemm", self._work, self._product, *self._buffers)


def _checked_product(
    call: str, a: SparseMatrix, b: SparseMatrix, alpha: Scalar, stream: Stream | None
) -> tuple[Stream, Device, tuple[Factor, Factor]]:
    """Check the arguments of a product; return the stream, its device, and the factors of the product and the sum."""
    where, device = views.device_of(call, stream)
    for name, matrix in (("a", a), ("b", b)):
        check_matrix(call, name, matrix, device, ("csr",))
    views.require_dtype(call, "b", b.values, a.values.dtype, "like 'a'")
    views.check_product(call, ("b", b.shape[0]), ("a", a.shape[1]))
    return where, device, (scalar(call, "alpha", alpha, a._kind), factor(0.0, a._kind))


def _plan_spgemm(a: SparseMatrix, b: SparseMatrix, alpha: Scalar, stream: Stream | None) -> Plan[SparseMatrix]:
    """Return a plan for a product of matrices whose values change between calls, but not their sparsity patterns.

    The host waits until the sparsity pattern is known (cusparseSpGEMMreuse_nnz). The values are computed by the first
    call.
    """
    where, device, factors = _checked_product("spgemm.plan", a, b, alpha, stream)
    return _ProductPlan(where, device, factors, a, b)


@plannable(_plan_spgemm)
def spgemm(a: SparseMatrix, b: SparseMatrix, *, alpha: Scalar = 1.0, stream: Stream | None = None) -> SparseMatrix:
    """Return alpha a b, where both factors and the result are sparse matrices in the format "csr" (cusparseSpGEMM).

    The host waits until the number of elements in the result is known. `spgemm.plan(a, b)` returns a plan that computes
    the sparsity pattern of the result only once: each call computes the values of the result from the current values of
    `a` and `b`, and does not wait. Raises TypeError or ValueError, naming the operand, before anything is queued.
    """
    where, device, factors = _checked_product("spgemm", a, b, alpha, stream)
    enums = library("cusparse")
    with activated(device):
        handle = library_handle("cusparse", where, device)
        functions = handle.functions
        offsets = empty(a.shape[0] + 1, INDEX_DTYPE, stream=where)
        product = _unfilled((a.shape[0], b.shape[1]), offsets, a._kind)
        plain = int(enums.Operation.NON_TRANSPOSE)
        work = Description("sp_gemm_create_descr", "sp_gemm_destroy_descr")
        parameters = (
            handle.native, plain, plain, factors[0].address, a._describe_once().handle, b._describe_once().handle,
            factors[1].address, product.handle, a._kind.scalar_code, int(enums.SpGEMMAlg.DEFAULT), work.handle,
        )  # fmt: skip  # grouped by meaning
        try:
            size = functions.sp_gemm_work_estimation(*parameters, 0)
            first = allocate_workspace(size, where)
            functions.sp_gemm_work_estimation(*parameters, first.pointer)
            sizes = np.zeros(1, np.uint64)
            functions.sp_gemm_compute(*parameters, sizes.ctypes.data, 0)
            second = allocate_workspace(int(sizes[0]), where)
            functions.sp_gemm_compute(*parameters, sizes.ctypes.data, second.pointer)
            return _filled(product, offsets, a.values.dtype, where, lambda: functions.sp_gemm_copy(*parameters))
        except Exception as error:
            raise failure("cusparseSpGEMM", error) from error


def sddmm(
    a: DeviceArray,
    b: DeviceArray,
    out: SparseMatrix,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    stream: Stream | None = None,
) -> SparseMatrix:
    """Queue out = alpha (a b) + beta out for the elements that `out` stores, and return `out` (cusparseSDDMM).

    `a` and `b` are dense, with contiguous rows and the dtype of `out`, which must have the format "csr". Raises
    TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "sddmm"
    where, device = views.device_of(call, stream)
    check_matrix(call, "out", out, device, ("csr",))
    views.check_place(call, device, a=a, b=b)
    for name, array in (("a", a), ("b", b)):
        views.require_dtype(call, name, array, out.values.dtype, "like 'out'")
    left, right = views.matrix(call, "a", a), views.matrix(call, "b", b)
    views.check_product(call, ("b", right.rows), ("a", left.columns))
    arguments.same_shape(call, "out", out, (left.rows, right.columns), "for the product of 'a' and 'b'")
    views.check_apart(
        call, "out.values", out.values.pointer, out.values.nbytes, a=(a.pointer, left.span), b=(b.pointer, right.span)
    )
    factors = scalar(call, "alpha", alpha, out._kind), scalar(call, "beta", beta, out._kind)
    enums = library("cusparse")
    plain = int(enums.Operation.NON_TRANSPOSE)
    with activated(device):
        handle = library_handle("cusparse", where, device)
        functions = handle.functions
        dense = DenseMatrix(a, left, out._kind), DenseMatrix(b, right, out._kind)
        parameters = (
            handle.native, plain, plain, factors[0].address, dense[0].handle, dense[1].handle,
            factors[1].address, out._describe_once().handle, out._kind.scalar_code, int(enums.SDDMMAlg.DEFAULT),
        )  # fmt: skip  # grouped by meaning
        try:
            size = np.zeros(1, np.uint64)
            functions.sddmm_buffer_size(*parameters, size.ctypes.data)
            # No preprocessing: it pays only if later calls reuse its buffer, which could not be the shared workspace.
            memory = scratch(device).get(int(size[0]), where)
            functions.sddmm(*parameters, memory.pointer)
        except Exception as error:
            raise failure("cusparseSDDMM", error) from error
    keep(where, call, a, b, out.values, out.indices, out.offsets, memory)
    return out


def sparse_from_dense(a: DeviceArray, *, stream: Stream | None = None) -> SparseMatrix:
    """Return a sparse matrix in the format "csr" with the nonzero elements of a dense matrix (cusparseDenseToSparse).

    `a` has the dtype float32, float64, complex64 or complex128, and contiguous rows. The host waits until the number of
    nonzero elements is known. Raises TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "sparse_from_dense"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, TYPES)
    view = views.matrix(call, "a", a)
    enums = library("cusparse")
    with activated(device):
        handle = library_handle("cusparse", where, device)
        functions = handle.functions
        offsets = empty(view.rows + 1, INDEX_DTYPE, stream=where)
        product = _unfilled((view.rows, view.columns), offsets, kind)
        dense = DenseMatrix(a, view, kind)
        parameters = (
            handle.native, dense.handle, product.handle, int(enums.DenseToSparseAlg.DEFAULT)
        )  # fmt: skip  # grouped by meaning
        try:
            size = functions.dense_to_sparse_buffer_size(*parameters)
            memory = allocate_workspace(size, where)
            functions.dense_to_sparse_analysis(*parameters, memory.pointer)
            convert = functions.dense_to_sparse_convert
            return _filled(product, offsets, a.dtype, where, lambda: convert(*parameters, memory.pointer))
        except Exception as error:
            raise failure("cusparseDenseToSparse", error) from error


def _unfilled(shape: tuple[int, int], offsets: DeviceArray, kind: Kind) -> Description:
    """Return the descriptor of a CSR matrix for which only the array of row offsets is allocated yet."""
    enums = library("cusparse")
    index, base = int(enums.IndexType.INDEX_32I), int(enums.IndexBase.ZERO)
    parameters = *shape, 0, offsets.pointer, 0, 0, index, index, base, kind.code
    return Description("create_csr", "destroy_sp_mat", *parameters)


def _filled(
    description: Description,
    offsets: DeviceArray,
    dtype: np.dtype[Any],
    stream: Stream,
    fill: Callable[[], object],
) -> SparseMatrix:
    """Allocate arrays for the number of elements that cuSPARSE has counted, and call `fill`, which fills them."""
    functions = library("cusparse")
    rows, columns, count = functions.sp_mat_get_size(description.handle)
    if count > np.iinfo(INDEX_DTYPE).max:
        raise NotSupportedError(f"the result has {count} elements, too many for int32 indices")
    indices = empty(count, INDEX_DTYPE, stream=stream)
    values = empty(count, dtype, stream=stream)
    if not count:
        memset(offsets, 0, stream=stream)
        return SparseMatrix("csr", (rows, columns), values, indices, offsets)
    functions.csr_set_pointers(description.handle, offsets.pointer, indices.pointer, values.pointer)
    fill()
    return SparseMatrix("csr", (rows, columns), values, indices, offsets)
