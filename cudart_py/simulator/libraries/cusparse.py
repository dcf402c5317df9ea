"""cuSPARSE in software, with the names and parameters of `nvmath.bindings.cusparse`, using SciPy."""

from __future__ import annotations

from typing import Any

from nvmath.bindings import cusparse as bindings
from nvmath.bindings.cusparse import Status

from .common.functions import missing
from .sparse.conversions import (
    create_identity_permutation,
    csr2csc_ex2,
    csr2csc_ex2_buffer_size,
    gather,
    sparse_to_dense,
    sparse_to_dense_buffer_size,
    xcoo2csr,
    xcoosort_buffer_size_ext,
    xcoosort_by_row,
    xcscsort,
    xcscsort_buffer_size_ext,
    xcsr2coo,
    xcsrsort,
    xcsrsort_buffer_size_ext,
)
from .sparse.descriptors import (
    create_coo,
    create_csc,
    create_csr,
    create_dn_mat,
    create_dn_vec,
    create_mat_descr,
    create_sliced_ell,
    create_sp_vec,
    csr_set_pointers,
    destroy_dn_mat,
    destroy_dn_vec,
    destroy_mat_descr,
    destroy_sp_mat,
    destroy_sp_vec,
    sp_gemm_create_descr,
    sp_gemm_destroy_descr,
    sp_mat_get_size,
    sp_mat_set_attribute,
)
from .sparse.handles import create, destroy, set_stream
from .sparse.products import (
    cgemvi,
    cgemvi_buffer_size,
    dgemvi,
    dgemvi_buffer_size,
    sgemvi,
    sgemvi_buffer_size,
    sp_mm,
    sp_mm_buffer_size,
    sp_mv,
    sp_mv_buffer_size,
    sp_mv_preprocess,
    sp_vv,
    sp_vv_buffer_size,
    zgemvi,
    zgemvi_buffer_size,
)
from .sparse.results import (
    dense_to_sparse_analysis,
    dense_to_sparse_buffer_size,
    dense_to_sparse_convert,
    sddmm,
    sddmm_buffer_size,
    sddmm_preprocess,
    sp_gemm_compute,
    sp_gemm_copy,
    sp_gemm_reuse_compute,
    sp_gemm_reuse_copy,
    sp_gemm_reuse_nnz,
    sp_gemm_reuse_work_estimation,
    sp_gemm_work_estimation,
)
from .sparse.triangular import (
    sp_sm_analysis,
    sp_sm_buffer_size,
    sp_sm_create_descr,
    sp_sm_destroy_descr,
    sp_sm_solve,
    sp_sm_update_matrix,
    sp_sv_analysis,
    sp_sv_buffer_size,
    sp_sv_create_descr,
    sp_sv_destroy_descr,
    sp_sv_solve,
    sp_sv_update_matrix,
)
from .sparse.tridiagonal import (
    cgtsv2strided_batch,
    cgtsv2strided_batch_buffer_size_ext,
    dgtsv2strided_batch,
    dgtsv2strided_batch_buffer_size_ext,
    sgtsv2strided_batch,
    sgtsv2strided_batch_buffer_size_ext,
    zgtsv2strided_batch,
    zgtsv2strided_batch_buffer_size_ext,
)


def __getattr__(name: str) -> Any:
    return missing(bindings, Status.NOT_SUPPORTED, name)
