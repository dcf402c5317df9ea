"""cuDSS in software, with the names and parameters of `nvmath.bindings.cudss`: direct solvers, computed by SuperLU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from nvmath import bindings
from nvmath.bindings.cudss import (
    ConfigParam,
    DataParam,
    DataType,
    IndexBase,
    Layout,
    MatrixType,
    MatrixViewType,
    Phase,
    Status,
    get_config_param_dtype,
)
from scipy import sparse
from scipy.sparse import linalg

from ..state.streams import complete_stream, find_stream
from .common.calls import queue
from .common.functions import LibraryError, Objects, entry, missing
from .common.indices import compressed_rows
from .common.numbers import from_host, to_host
from .common.operands import Operand, columns, vector

_call = entry(Status.EXECUTION_FAILED)
_DTYPES = {
    int(DataType.R_32F): np.dtype(np.float32),
    int(DataType.R_64F): np.dtype(np.float64),
    int(DataType.C_32F): np.dtype(np.complex64),
    int(DataType.C_64F): np.dtype(np.complex128),
    int(DataType.R_32I): np.dtype(np.int32),
    int(DataType.R_64I): np.dtype(np.int64),
}
_POSITIVE = (MatrixType.SPD, MatrixType.HPD)
# The default of CUDSS_CONFIG_PIVOT_EPSILON, which replaces zero pivots, keyed by the letters of NumPy's dtypes.
_PIVOT = {"f": 1e-5, "F": 1e-5, "d": 1e-13, "D": 1e-13}


@dataclass
class _Csr:
    """A sparse matrix: its order, its arrays, its type and the triangle that is used."""

    order: int
    offsets: Operand
    indices: Operand
    values: Operand
    kind: int
    view: int

    @property
    def operands(self) -> list[Operand]:
        return [self.offsets, self.indices, self.values]

    def whole(self) -> Any:
        """Return the matrix with both triangles, as SciPy's."""
        values, indices, offsets = (np.array(each.elements) for each in (self.values, self.indices, self.offsets))
        stored = compressed_rows(values, indices, offsets, (self.order, self.order))
        if self.view == MatrixViewType.FULL:
            return stored
        half = sparse.tril(stored) if self.view == MatrixViewType.LOWER else sparse.triu(stored)
        conjugates = self.kind in (MatrixType.HERMITIAN, MatrixType.HPD)
        other = half.conj().T if conjugates else half.T
        return half + other - sparse.diags_array(half.diagonal())


@dataclass
class _Data:
    """The results of the phases: the factors, and the numbers that data_get returns."""

    stage: int = 0
    factors: Any = None
    matrix: Any = None
    numbers: dict[int, int] = field(default_factory=dict)


_handles: Objects[list[int]] = Objects(Status.NOT_INITIALIZED)
_configurations: Objects[dict[int, int]] = Objects(Status.INVALID_VALUE)
_data: Objects[_Data] = Objects(Status.INVALID_VALUE)
_matrices: Objects[_Csr | Operand] = Objects(Status.INVALID_VALUE)


def __getattr__(name: str) -> Any:
    return missing(bindings.cudss, Status.NOT_SUPPORTED, name)


def create() -> int:
    """Return a new handle (cudssCreate)."""
    return _handles.add([0])


def destroy(handle: int) -> None:
    """Destroy a handle (cudssDestroy)."""
    _handles.remove(handle)


def set_stream(handle: int, stream: int) -> None:
    """Set the stream of later calls (cudssSetStream)."""
    _handles.find(handle)[0] = int(stream)


def config_create() -> int:
    """Return a new configuration (cudssConfigCreate)."""
    return _configurations.add({})


def config_destroy(solver_config: int) -> None:
    """Destroy a configuration (cudssConfigDestroy)."""
    _configurations.remove(solver_config)


def config_set(config: int, param: int, value: int, size_in_bytes: int) -> None:
    """Set the number of refinements; other settings have no effect here (cudssConfigSet)."""
    dtype = np.dtype(get_config_param_dtype(param))
    if dtype.itemsize != size_in_bytes:
        raise LibraryError(Status.INVALID_VALUE, f"the parameter {param} has {dtype.itemsize} bytes")
    _configurations.find(config)[int(param)] = int(from_host(value, dtype))


def data_create(handle: int) -> int:
    """Return new data for the phases of one matrix (cudssDataCreate)."""
    _handles.find(handle)
    return _data.add(_Data())


def data_destroy(handle: int, solver_data: int) -> None:
    """Destroy data (cudssDataDestroy)."""
    _data.remove(solver_data)


@_call
def data_get(handle: int, data: int, param: int, value: int, size_in_bytes: int, size_written: int) -> None:
    """Write the status, the number of replaced pivots, or that of the factors' elements (cudssDataGet)."""
    dtypes = {int(DataParam.INFO): np.int32, int(DataParam.NPIVOTS): np.int32, int(DataParam.LU_NNZ): np.int64}
    if int(param) not in dtypes:
        raise LibraryError(Status.NOT_SUPPORTED, f"the simulator does not report the parameter {param}")
    complete_stream(find_stream(_handles.find(handle)[0]))
    to_host(value, dtypes[int(param)], _data.find(data).numbers.get(int(param), 0))
    to_host(size_written, np.uint64, np.dtype(dtypes[int(param)]).itemsize)


def matrix_create_csr(
    nrows: int, ncols: int, nnz: int, row_start: int, row_end: int, col_indices: int, values: int, offset_type: int,
    index_type: int, value_type: int, mtype: int, mview: int, index_base: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return a sparse matrix (cudssMatrixCreateCsr)."""
    if nrows != ncols or index_base != IndexBase.ZERO:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator factors square matrices whose indices begin with 0")
    offsets = vector(int(row_start), int(nrows) + 1, _DTYPES[int(offset_type)])
    indices = vector(int(col_indices), int(nnz), _DTYPES[int(index_type)])
    numbers = vector(int(values), int(nnz), _DTYPES[int(value_type)])
    return _matrices.add(_Csr(int(nrows), offsets, indices, numbers, int(mtype), int(mview)))


def matrix_create_dn(nrows: int, ncols: int, ld: int, values: int, value_type: int, layout: int) -> int:
    """Return a dense matrix in column-major order (cudssMatrixCreateDn)."""
    if layout != Layout.COL_MAJOR:
        raise LibraryError(Status.NOT_SUPPORTED, "dense matrices must be in column-major order")
    return _matrices.add(columns(int(values), int(nrows), int(ncols), int(ld), _DTYPES[int(value_type)]))


def matrix_set_values(matrix: int, values: int) -> None:
    """Replace the values of a sparse matrix (cudssMatrixSetValues)."""
    found = _csr(matrix)
    found.values = vector(int(values), found.values.shape[0], found.values.dtype)


def matrix_destroy(matrix: int) -> None:
    """Destroy a matrix (cudssMatrixDestroy)."""
    _matrices.remove(matrix)


def _csr(matrix: int) -> _Csr:
    found = _matrices.find(matrix)
    if not isinstance(found, _Csr):
        raise LibraryError(Status.INVALID_VALUE, "the matrix must be sparse")
    return found


def _dense(matrix: int) -> Operand:
    found = _matrices.find(matrix)
    if not isinstance(found, Operand):
        raise LibraryError(Status.INVALID_VALUE, "the solution and the right-hand sides must be dense matrices")
    return found


@_call
def execute(
    handle: int, phase: int, solver_config: int, solver_data: int, input_matrix: int, solution: int, rhs: int
) -> None:
    """Queue a phase (cudssExecute)."""
    stream, data, matrix = _handles.find(handle)[0], _data.find(solver_data), _csr(input_matrix)
    needed = {Phase.ANALYSIS: 0, Phase.FACTORIZATION: 1, Phase.REFACTORIZATION: 2, Phase.SOLVE: 2}.get(Phase(phase))
    if needed is None:
        raise LibraryError(Status.NOT_SUPPORTED, f"the simulator has no phase {phase} by itself")
    if data.stage < needed:
        raise LibraryError(Status.INVALID_VALUE, "the phases before this one have not been executed")
    if phase == Phase.ANALYSIS:
        data.stage = 1
        queue(stream, "cudssExecute", lambda: _analyze(data, matrix), reads=matrix.operands[:2])
    elif phase == Phase.SOLVE:
        steps = _configurations.find(solver_config).get(int(ConfigParam.IR_N_STEPS), 0)
        out, right = _dense(solution), _dense(rhs)
        queue(stream, "cudssExecute", lambda: _solve(data, out, right, steps), reads=[right], writes=[out])
    else:
        data.stage = 2
        queue(stream, "cudssExecute", lambda: _factor(data, matrix), reads=matrix.operands)


def _analyze(data: _Data, matrix: _Csr) -> None:
    data.numbers[int(DataParam.LU_NNZ)] = 2 * matrix.indices.shape[0]  # a guess until the factors are known


def _factor(data: _Data, matrix: _Csr) -> None:
    """Factor the matrix, with the status 0, or the order of the first minor that is not positive."""
    whole = sparse.csc_array(matrix.whole())
    positive = matrix.kind in _POSITIVE
    numbers, order = data.numbers, matrix.order
    numbers[int(DataParam.INFO)] = numbers[int(DataParam.NPIVOTS)] = 0
    data.factors, data.matrix = None, whole
    if not np.isfinite(whole.data).all():  # SuperLU would refuse it
        numbers[int(DataParam.INFO)] = int(positive)
        return
    options = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}} if positive else {}
    try:
        data.factors = linalg.splu(whole, permc_spec="MMD_AT_PLUS_A" if positive else "COLAMD", **options)
    except RuntimeError:  # exactly singular
        if positive:
            numbers[int(DataParam.INFO)] = 1
            return
        # Every zero pivot becomes about as small as the added numbers. Elimination may add up `order` of them.
        small = max(_PIVOT[whole.dtype.char], 4 * np.finfo(whole.dtype).eps * abs(whole).max())
        data.matrix = sparse.csc_array(whole + small * sparse.eye_array(order, dtype=whole.dtype))
        try:
            data.factors = linalg.splu(data.matrix)
        except RuntimeError:  # an overflow
            return
        replaced = np.abs(data.factors.U.diagonal()) <= 10 * order * small
        numbers[int(DataParam.NPIVOTS)] = int(np.count_nonzero(replaced))
    numbers[int(DataParam.LU_NNZ)] = int(data.factors.nnz)
    if positive:
        wrong = np.flatnonzero(~(data.factors.U.diagonal().real > 0))
        numbers[int(DataParam.INFO)] = int(wrong[0]) + 1 if wrong.size else 0


def _solve(data: _Data, out: Operand, right: Operand, steps: int) -> None:
    if data.factors is None:
        out.elements[...] = np.nan
        return
    b = np.asfortranarray(right.elements)
    x = data.factors.solve(b)
    for _ in range(steps):
        x = x + data.factors.solve(b - data.matrix @ x)
    out.elements[...] = x
