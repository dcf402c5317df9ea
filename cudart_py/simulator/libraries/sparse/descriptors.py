"""cuSPARSE descriptors in software: vectors and matrices, dense and sparse, given by the addresses of their arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from nvmath.bindings.cusparse import DiagType, FillMode, IndexBase, IndexType, Order, SpMatAttribute, Status
from scipy import sparse

from ..common.functions import LibraryError, Objects
from ..common.indices import compressed_rows, within
from ..common.numbers import DTYPES, LETTERS, from_host
from ..common.operands import Operand, array, vector

_INDEX_DTYPES: dict[int, np.dtype[Any]] = {
    int(IndexType.INDEX_32I): np.dtype(np.int32),
    int(IndexType.INDEX_64I): np.dtype(np.int64),
}


@dataclass
class SparseVector:
    """A vector that has `values` at `indices` and is zero elsewhere."""

    indices: Operand
    values: Operand


@dataclass
class SparseMatrix:
    """A matrix in its storage format; `filled` has its nonzero elements between the phases of a conversion to it.

    `fill_mode` and `unit` select the triangle that triangular solves use.
    """

    format: str
    shape: tuple[int, int]
    count: int
    offsets: Operand
    indices: Operand
    values: Operand
    slice_size: int = 0
    filled: Any = None
    fill_mode: int = int(FillMode.LOWER)
    unit: bool = False

    @property
    def arrays(self) -> tuple[Operand, Operand, Operand]:
        """The arrays of the matrix that a product reads."""
        return self.offsets, self.indices, self.values

    def load(self) -> Any:
        """Return the matrix as a SciPy array in CSR format."""
        offsets, indices, values = (operand.elements for operand in self.arrays)
        if self.format == "csr":
            return compressed_rows(values, indices, offsets, self.shape)
        if self.format == "csc":
            return compressed_rows(values, indices, offsets, self.shape[::-1]).T.tocsr()
        if self.format == "coo":
            coordinates = within(offsets, self.shape[0]), within(indices, self.shape[1])
            return sparse.csr_array((values, coordinates), shape=self.shape)
        # Slices follow one another, and each is in column-major order; padding has the index -1.
        places = np.arange(len(values))
        slices = np.searchsorted(offsets, places, "right") - 1
        rows = slices * self.slice_size + (places - offsets[slices]) % self.slice_size
        used = indices != -1
        coordinates = within(rows[used], self.shape[0]), within(indices[used], self.shape[1])
        return sparse.csr_array((values[used], coordinates), shape=self.shape)


@dataclass
class SparseProduct:
    """The product of sparse matrices, which one phase of its computation passes to the next."""

    product: Any = None


dense: Objects[Operand] = Objects(Status.INVALID_VALUE)
matrices: Objects[SparseMatrix] = Objects(Status.INVALID_VALUE)
sparse_vectors: Objects[SparseVector] = Objects(Status.INVALID_VALUE)
products: Objects[SparseProduct] = Objects(Status.INVALID_VALUE)
# Descriptors of the old interface, which have no state here.
legacy: Objects[str] = Objects(Status.INVALID_VALUE)


def _dtype(code: int) -> np.dtype[Any]:
    dtype = DTYPES.get(int(code))
    if dtype is None or dtype not in LETTERS.values():
        raise LibraryError(Status.NOT_SUPPORTED, f"the simulator does not multiply elements of the type {int(code)}")
    return dtype


def _indices(address: int, count: int, code: int, base: int) -> Operand:
    if base != IndexBase.ZERO:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator supports only indices that count from 0")
    return vector(int(address), count, _INDEX_DTYPES[int(code)])


def create_dn_vec(size: int, values: int, value_type: int) -> int:
    """Create a descriptor of a dense vector (cusparseCreateDnVec)."""
    return dense.add(vector(int(values), size, _dtype(value_type)))


def create_dn_mat(rows: int, cols: int, ld: int, values: int, value_type: int, order: int) -> int:
    """Create a descriptor of a dense matrix in row-major or column-major order (cusparseCreateDnMat)."""
    strides = (ld, 1) if order == Order.ROW else (1, ld)
    return dense.add(array(int(values), (rows, cols), _dtype(value_type), strides))


def create_sp_vec(size: int, nnz: int, indices: int, values: int, idx_type: int, idx_base: int, value_type: int) -> int:
    """Create a descriptor of a sparse vector (cusparseCreateSpVec)."""
    numbers = vector(int(values), nnz, _dtype(value_type))
    return sparse_vectors.add(SparseVector(_indices(indices, nnz, idx_type, idx_base), numbers))


def create_csr(
    rows: int, cols: int, nnz: int, csr_row_offsets: int, csr_col_ind: int, csr_values: int,
    csr_row_offsets_type: int, csr_col_ind_type: int, idx_base: int, value_type: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Create a descriptor of a matrix in compressed sparse row format (cusparseCreateCsr)."""
    offsets = _indices(csr_row_offsets, rows + 1, csr_row_offsets_type, idx_base)
    indices = _indices(csr_col_ind, nnz, csr_col_ind_type, idx_base)
    values = vector(int(csr_values), nnz, _dtype(value_type))
    return matrices.add(SparseMatrix("csr", (rows, cols), nnz, offsets, indices, values))


def create_csc(
    rows: int, cols: int, nnz: int, csc_col_offsets: int, csc_row_ind: int, csc_values: int,
    csc_col_offsets_type: int, csc_row_ind_type: int, idx_base: int, value_type: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Create a descriptor of a matrix in compressed sparse column format (cusparseCreateCsc)."""
    offsets = _indices(csc_col_offsets, cols + 1, csc_col_offsets_type, idx_base)
    indices = _indices(csc_row_ind, nnz, csc_row_ind_type, idx_base)
    values = vector(int(csc_values), nnz, _dtype(value_type))
    return matrices.add(SparseMatrix("csc", (rows, cols), nnz, offsets, indices, values))


def create_coo(
    rows: int, cols: int, nnz: int, coo_row_ind: int, coo_col_ind: int, coo_values: int, coo_idx_type: int,
    idx_base: int, value_type: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Create a descriptor of a matrix in coordinate format (cusparseCreateCoo)."""
    rows_of, columns_of = (_indices(address, nnz, coo_idx_type, idx_base) for address in (coo_row_ind, coo_col_ind))
    values = vector(int(coo_values), nnz, _dtype(value_type))
    return matrices.add(SparseMatrix("coo", (rows, cols), nnz, rows_of, columns_of, values))


def create_sliced_ell(
    rows: int, cols: int, nnz: int, sell_values_size: int, slice_size: int, sell_slice_offsets: int, sell_col_ind: int,
    sell_values: int, sell_slice_offsets_type: int, sell_col_ind_type: int, idx_base: int, value_type: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Create a descriptor of a matrix in sliced ELLPACK format (cusparseCreateSlicedEll)."""
    slices = -(-rows // slice_size)
    offsets = _indices(sell_slice_offsets, slices + 1, sell_slice_offsets_type, idx_base)
    indices = _indices(sell_col_ind, sell_values_size, sell_col_ind_type, idx_base)
    values = vector(int(sell_values), sell_values_size, _dtype(value_type))
    return matrices.add(SparseMatrix("sell", (rows, cols), nnz, offsets, indices, values, slice_size))


def sp_mat_get_size(sp_mat_descr: int) -> tuple[int, int, int]:
    """Return the number of rows, of columns and of stored elements of a matrix (cusparseSpMatGetSize)."""
    matrix = matrices.find(sp_mat_descr)
    return *matrix.shape, matrix.count


def sp_mat_set_attribute(sp_mat_descr: int, attribute: int, data: int, data_size: int) -> None:
    """Select the lower or upper triangle, or a diagonal of ones (cusparseSpMatSetAttribute)."""
    matrix, value = matrices.find(sp_mat_descr), int(from_host(data, np.int32))
    if attribute == SpMatAttribute.FILL_MODE:
        matrix.fill_mode = int(FillMode(value))
    else:
        matrix.unit = DiagType(value) == DiagType.UNIT


def create_mat_descr() -> int:
    """Return a descriptor of the old interface (cusparseCreateMatDescr)."""
    return legacy.add("general")


def destroy_mat_descr(descr_a: int) -> None:
    """Destroy a descriptor of the old interface (cusparseDestroyMatDescr)."""
    legacy.remove(descr_a)


def csr_set_pointers(sp_mat_descr: int, csr_row_offsets: int, csr_col_ind: int, csr_values: int) -> None:
    """Set the arrays of a matrix after its number of elements has been determined (cusparseCsrSetPointers)."""
    matrix = matrices.find(sp_mat_descr)
    matrix.offsets = vector(int(csr_row_offsets), matrix.shape[0] + 1, matrix.offsets.dtype)
    matrix.indices = vector(int(csr_col_ind), matrix.count, matrix.indices.dtype)
    matrix.values = vector(int(csr_values), matrix.count, matrix.values.dtype)


def sp_gemm_create_descr() -> int:
    """Return a descriptor for the state that the phases of a product share (cusparseSpGEMM_createDescr)."""
    return products.add(SparseProduct())


def destroy_dn_vec(dn_vec_descr: int) -> None:
    """Destroy a descriptor (cusparseDestroyDnVec)."""
    dense.remove(dn_vec_descr)


def destroy_dn_mat(dn_mat_descr: int) -> None:
    """Destroy a descriptor (cusparseDestroyDnMat)."""
    dense.remove(dn_mat_descr)


def destroy_sp_vec(sp_vec_descr: int) -> None:
    """Destroy a descriptor (cusparseDestroySpVec)."""
    sparse_vectors.remove(sp_vec_descr)


def destroy_sp_mat(sp_mat_descr: int) -> None:
    """Destroy a descriptor (cusparseDestroySpMat)."""
    matrices.remove(sp_mat_descr)


def sp_gemm_destroy_descr(descr: int) -> None:
    """Destroy a descriptor (cusparseSpGEMM_destroyDescr)."""
    products.remove(descr)
