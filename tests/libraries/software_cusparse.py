"""cuSPARSE in software: descriptors as Python objects, products by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from nvmath.bindings import cusparse
from scipy import sparse

from tests.libraries import memory

PLAIN = cusparse.Operation.NON_TRANSPOSE


class Cusparse:
    """One library: its descriptors by number, and its calls' names."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.things: dict[int, Any] = {}
        for name in ("Operation", "IndexType", "IndexBase", "Order", "SpMVAlg", "SpMMAlg", "SpGEMMAlg", "SDDMMAlg",
                     "DenseToSparseAlg"):  # fmt: skip  # grouped by meaning
            setattr(self, name, getattr(cusparse, name))

    def create(self) -> int:
        return 66

    def destroy(self, handle: int) -> None:
        pass

    def set_stream(self, handle: int, stream: int) -> None:
        pass

    def _add(self, thing: Any) -> int:
        number = len(self.calls) + len(self.things) + 1
        while number in self.things:
            number += 1
        self.things[number] = thing
        return number

    def create_dn_vec(self, size, values, type_) -> int:
        return self._add(("vector", values, size, memory.TYPES[type_]))

    def create_dn_mat(self, rows, columns, leading, values, type_, order) -> int:
        strides = (leading, 1) if order == cusparse.Order.ROW else (1, leading)
        return self._add(("matrix", values, (rows, columns), memory.TYPES[type_], strides))

    def create_csr(self, rows, columns, count, offsets, indices, values, offset_type, index_type, base, type_) -> int:
        return self._add(["csr", (rows, columns), count, offsets, indices, values, memory.TYPES[type_]])

    def create_coo(self, rows, columns, count, offsets, indices, values, index_type, base, type_) -> int:
        return self._add(["coo", (rows, columns), count, offsets, indices, values, memory.TYPES[type_]])

    def create_sliced_ell(self, rows, columns, count, size, slice_size, offsets, indices, values, offset_type,
                          index_type, base, type_) -> int:  # fmt: skip  # grouped by meaning
        return self._add(
            ["sell", (rows, columns), count, offsets, indices, values, memory.TYPES[type_], size, slice_size]
        )

    def create_sp_vec(self, size, count, indices, values, index_type, base, type_) -> int:
        return self._add(["sp_vec", size, count, indices, values, memory.TYPES[type_]])

    def sp_gemm_create_descr(self) -> int:
        return self._add({})

    def _remove(self, number: int) -> None:
        del self.things[number]

    destroy_dn_vec = destroy_dn_mat = destroy_sp_mat = destroy_sp_vec = sp_gemm_destroy_descr = _remove

    # -- reading -------------------------------------------------------------------------------

    def dense(self, number: int) -> Any:
        _, address, shape, dtype, *strides = self.things[number]
        return memory.array(address, shape, dtype, *strides)

    def matrix(self, number: int) -> Any:
        format_, shape, count, offsets, indices, values, dtype, *sizes = self.things[number]
        index = np.int32
        if format_ == "sell":
            size, slice_size = sizes
            starts = memory.array(offsets, -(-shape[0] // slice_size) + 1, index)
            columns, numbers = memory.array(indices, size, index), memory.array(values, size, dtype)
            places = np.arange(size)
            slices = np.searchsorted(starts, places, "right") - 1
            rows = slices * slice_size + (places - starts[slices]) % slice_size
            used = columns >= 0
            assert used.sum() == count
            return sparse.csr_array((numbers[used], (rows[used], columns[used])), shape=shape)
        columns, numbers = memory.array(indices, count, index), memory.array(values, count, dtype)
        if format_ == "coo":
            return sparse.csr_array((numbers, (memory.array(offsets, count, index), columns)), shape=shape)
        return sparse.csr_array((numbers, columns, memory.array(offsets, shape[0] + 1, index)), shape=shape)

    @staticmethod
    def turned(matrix: Any, op: int) -> Any:
        return matrix if op == PLAIN else matrix.T if op == cusparse.Operation.TRANSPOSE else matrix.conj().T

    # -- products ------------------------------------------------------------------------------

    def sp_mv_buffer_size(self, *arguments) -> int:
        return 32

    def sp_mv_preprocess(self, *arguments) -> None:
        self.calls.append("sp_mv_preprocess")

    def sp_mv(self, handle, op, alpha, a, x, beta, y, type_, algorithm, buffer) -> None:
        self.calls.append("sp_mv")
        out, dtype = self.dense(y), memory.TYPES[type_]
        product = memory.number(alpha, dtype) * (self.turned(self.matrix(a), op) @ self.dense(x))
        rest = memory.number(beta, dtype)
        out[...] = product + rest * out if rest else product

    def sp_mm_buffer_size(self, *arguments) -> int:
        return 32

    def sp_mm(self, handle, op_a, op_b, alpha, a, b, beta, c, type_, algorithm, buffer) -> None:
        assert op_b == PLAIN
        self.sp_mv(handle, op_a, alpha, a, b, beta, c, type_, algorithm, buffer)

    def sp_vv_buffer_size(self, *arguments) -> int:
        return 0

    def sp_vv(self, handle, op, x, y, result, type_, buffer) -> None:
        _, _, count, indices, values, dtype = self.things[x]
        places = memory.array(indices, count, np.int32)
        memory.host(result, dtype)[0] = memory.array(values, count, dtype) @ self.dense(y)[places]

    def sp_gemm_work_estimation(self, *arguments) -> int:
        *_, buffer = arguments
        self.calls.append("sp_gemm_work_estimation")
        return 0 if buffer else 32

    def sp_gemm_compute(self, handle, op_a, op_b, alpha, a, b, beta, c, type_, algorithm, work, size, buffer) -> None:
        if not buffer:
            memory.host(size, np.uint64)[0] = 48
            return
        product = memory.number(alpha, memory.TYPES[type_]) * (self.matrix(a) @ self.matrix(b))
        self._count(c, product)

    def sp_gemm_copy(self, handle, op_a, op_b, alpha, a, b, beta, c, *rest) -> None:
        self._fill(c)

    def sp_mat_get_size(self, number: int) -> tuple[int, int, int]:
        _, (rows, columns), count, *_ = self.things[number]
        return rows, columns, count

    def csr_set_pointers(self, number: int, offsets: int, indices: int, values: int) -> None:
        self.things[number][3:6] = offsets, indices, values

    def sddmm_buffer_size(self, handle, op_a, op_b, alpha, a, b, beta, c, type_, algorithm, size) -> None:
        memory.host(size, np.uint64)[0] = 48

    def sddmm_preprocess(self, *arguments) -> None:
        self.calls.append("sddmm_preprocess")

    def sddmm(self, handle, op_a, op_b, alpha, a, b, beta, c, type_, algorithm, buffer) -> None:
        dtype = memory.TYPES[type_]
        _, _, count, _, _, values, _ = self.things[c]
        where = self.matrix(c).tocoo()
        product = (self.dense(a) @ self.dense(b))[where.row, where.col]
        out = memory.array(values, count, dtype)
        out[...] = memory.number(alpha, dtype) * product + memory.number(beta, dtype) * out

    def dense_to_sparse_buffer_size(self, *arguments) -> int:
        return 16

    def dense_to_sparse_analysis(self, handle, a, b, algorithm, buffer) -> None:
        self._count(b, sparse.csr_array(self.dense(a)))

    def dense_to_sparse_convert(self, handle, a, b, algorithm, buffer) -> None:
        self._fill(b)

    def _count(self, number: int, product: Any) -> None:
        product.sort_indices()
        self.calls.append("count")
        self.found = product
        self.things[number][2] = product.nnz

    def _fill(self, number: int) -> None:
        _, (rows, _), count, offsets, indices, values, dtype = self.things[number]
        memory.array(offsets, rows + 1, np.int32)[...] = self.found.indptr
        memory.array(indices, count, np.int32)[...] = self.found.indices
        memory.array(values, count, dtype)[...] = self.found.data
