"""Systems with sparse matrices, solved in stages with cuDSS: analysis, factorization, and any number of solutions."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...context.lifetimes import Handle  # releases cuDSS's objects at the right time
from ...driver.calls import library
from ...hints import answers_keywords
from ...host.callers import warn_caller
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..failures import IllConditionedWarning, NotPositiveDefiniteError, SingularMatrixError, failure
from ..sparse.matrix import SparseMatrix, check_matrix
from .right_hand_sides import columns_of, rows_of

# The cudssMatrixType_t for each kind of matrix.
KINDS = {"general": "GENERAL", "symmetric": "SYMMETRIC", "hermitian": "HERMITIAN", "positive": "SPD"}
TRIANGLES = ("lower", "upper")


class _Objects(Handle):
    """cuDSS's handle, configuration, data and matrix of one solver."""

    __slots__ = ("configuration", "data", "device", "functions", "matrix")

    def __init__(self, device: Device) -> None:
        self._value, self._owned = None, True
        self.device, self.functions = device, library("cudss")
        self.configuration = self.data = self.matrix = 0
        try:
            self._value = self.functions.create()
            self.configuration = self.functions.config_create()
            self.data = self.functions.data_create(self._value)
        except Exception as error:
            raise failure("cudssCreate", error) from error

    def _release(self, value: Any) -> None:
        with activated(self.device):
            if self.matrix:
                self.functions.matrix_destroy(self.matrix)
            if self.data:
                self.functions.data_destroy(value, self.data)
            if self.configuration:
                self.functions.config_destroy(self.configuration)
            self.functions.destroy(value)


class SparseSolver:
    """A direct solver for a sparse matrix, whose stages can be repeated separately.

        solver = SparseSolver(a)
        solver.analyze()             # orders the rows, and allocates the factors
        solver.factorize()           # computes the factors
        x = solver.solve(b)
        solver.refactorize(values)   # new values with the same sparsity pattern
        x = solver.solve(b)

    `a` is a square `SparseMatrix` in the format "csr". `kind` is "general", "symmetric", "hermitian" or "positive"
    (positive definite, and Hermitian for complex numbers). For all but "general", only the triangle `triangle`,
    "lower" or "upper", is used; other elements are ignored. A matrix that stores only the other triangle is refused.
    `refinements` is the number of steps of iterative refinement of each solution. The stages need the capability
    "cudss": on a GPU, cuDSS's library, which the extra cu13 installs.

    A stage that has not been called yet is called by the next one. Each stage waits for the device. The solver refers
    to the arrays of `a`, and its factors take device memory until it is closed. It uses one stream. Raises TypeError
    or ValueError, naming the argument.
    """

    @answers_keywords("SparseSolver")
    def __init__(
        self,
        a: SparseMatrix,
        *,
        kind: str = "general",
        triangle: str = "lower",
        refinements: int = 0,
        stream: Stream | None = None,
    ) -> None:
        call = "SparseSolver"
        self._stream, self._device = views.device_of(call, stream)
        check_matrix(call, "a", a, self._device, ("csr",))
        if a.shape[0] != a.shape[1] or not a.shape[0]:
            raise arguments.unusable(call, "a", "be square with at least one row", f"of shape {a.shape}")
        self._kind_of_matrix = arguments.choice(call, "kind", kind, KINDS)
        self._triangle = arguments.choice(call, "triangle", triangle, TRIANGLES)
        refinements = arguments.integer(call, "refinements", refinements, 0, 100)
        self._a, self._kind = a, a._kind
        self._values = a.values
        self._stage = ""
        with activated(self._device):
            self._objects = _Objects(self._device)
            self._create_matrix()
            self._set_refinements(refinements)

    def _create_matrix(self) -> None:
        functions, a = self._objects.functions, self._a
        is_general = self._kind_of_matrix == "general"
        name = KINDS[self._kind_of_matrix]
        if name == "SPD" and self._kind.is_complex:
            name = "HPD"
        view = functions.MatrixViewType["FULL" if is_general else self._triangle.upper()]
        index = int(functions.DataType.R_32I)
        try:
            functions.set_stream(self._objects.handle, self._stream.handle)
            self._objects.matrix = functions.matrix_create_csr(
                *a.shape, a.values.size, a.offsets.pointer, 0, a.indices.pointer, a.values.pointer, index, index,
                self._code, int(functions.MatrixType[name]), int(view), int(functions.IndexBase.ZERO),
            )  # fmt: skip  # grouped by meaning
        except Exception as error:
            raise failure("cudssMatrixCreateCsr", error) from error

    @property
    def _code(self) -> int:
        """The cudssDataType_t of the values."""
        names = {"float32": "R_32F", "float64": "R_64F", "complex64": "C_32F", "complex128": "C_64F"}
        return int(self._objects.functions.DataType[names[self._kind.name]])

    def _set_refinements(self, count: int) -> None:
        functions = self._objects.functions
        attribute = int(functions.ConfigParam.IR_N_STEPS)
        memory = np.array([count], functions.get_config_param_dtype(attribute))
        try:
            functions.config_set(self._objects.configuration, attribute, memory.ctypes.data, memory.nbytes)
        except Exception as error:
            raise failure("cudssConfigSet", error) from error

    def analyze(self) -> None:
        """Order the rows, and compute the sparsity pattern of the factors (CUDSS_PHASE_ANALYSIS)."""
        call = "SparseSolver.analyze"
        self._check_matrix(call)
        self._check_triangle()
        with activated(self._device):
            self._run(call, "ANALYSIS")
        self._stage = "analyzed"

    def _check_triangle(self) -> None:
        """Raise ValueError if all elements off the diagonal are in the triangle that is not used."""
        if self._kind_of_matrix == "general":
            return
        offsets, columns = (part.to_host(stream=self._stream) for part in (self._a.offsets, self._a.indices))
        rows = np.repeat(np.arange(self._a.shape[0]), np.diff(offsets))
        filled = {"lower": bool((columns < rows).any()), "upper": bool((columns > rows).any())}
        other = "upper" if self._triangle == "lower" else "lower"
        if filled[other] and not filled[self._triangle]:
            rule = f"be {other!r} for 'a', which stores no elements off the diagonal in its {self._triangle} triangle"
            raise arguments.unusable("SparseSolver", "triangle", rule)

    def factorize(self) -> None:
        """Compute the factors (CUDSS_PHASE_FACTORIZATION).

        Raises NotPositiveDefiniteError or SingularMatrixError if cuDSS reports that there are none. For a general
        matrix, cuDSS replaces pivots that are zero to within rounding error, and an IllConditionedWarning gives their
        number.
        """
        self._factor("SparseSolver.factorize", "FACTORIZATION")

    def refactorize(self, values: DeviceArray | None = None) -> None:
        """Compute the factors of new values with the same sparsity pattern (CUDSS_PHASE_REFACTORIZATION).

        `values` is an array that the solver uses from then on, instead of the values of the matrix. None means that the
        array in use has new contents. The pivots of the first factorization are used again, so it takes less time.
        Raises as `factorize` does.
        """
        call = "SparseSolver.refactorize"
        self._require_open(call)
        if values is not None:
            views.check_place(call, self._device, values=values)
            views.require_dtype(call, "values", values, self._a.values.dtype, "like those of the matrix")
            arguments.same_shape(call, "values", values, self._a.values.shape, "like those of the matrix")
            arguments.contiguous(call, "values", values)
            with activated(self._device):
                try:
                    self._objects.functions.matrix_set_values(self._objects.matrix, values.pointer)
                except Exception as error:
                    raise failure("cudssMatrixSetValues", error) from error
            self._values = values
        self._factor(call, "REFACTORIZATION" if self._stage == "factored" else "FACTORIZATION")

    def _check_matrix(self, call: str) -> None:
        """Raise ValueError if the solver or an array of the matrix is closed."""
        self._require_open(call)
        arrays = {"values": self._values, "a.indices": self._a.indices, "a.offsets": self._a.offsets}
        views.check_place(call, self._device, **arrays)

    def _factor(self, call: str, phase: str) -> None:
        self._check_matrix(call)
        if not self._stage:
            self.analyze()
        self._stage = "analyzed"  # until the new factors have been found
        with activated(self._device):
            self._run(call, phase)
            info = self._report("INFO", np.int32)
            replaced = self._report("NPIVOTS", np.int32)
        if info and self._kind_of_matrix == "positive":
            fact = f"its leading minor of order {info}, after reordering, is not positive"
            raise NotPositiveDefiniteError(
                f"{call}: the matrix is not positive definite: {fact}", minor=info, call=call
            )
        if info:
            text = f"{call}: the matrix is singular: pivot {info - 1} of its rows, as they were reordered, is zero"
            raise SingularMatrixError(text, pivot=info - 1, call=call)
        self._stage = "factored"
        if replaced:
            text = f"{'1 pivot was' if replaced == 1 else f'{replaced} pivots were'} zero to within rounding error"
            warn_caller(f"{call}: the matrix is ill-conditioned: {text}, and replaced", IllConditionedWarning)

    def solve(self, b: DeviceArray) -> DeviceArray:
        """Return x with a x = b, for a vector or a matrix with one right-hand side per column (CUDSS_PHASE_SOLVE)."""
        call = "SparseSolver.solve"
        self._require_open(call)
        views.check_place(call, self._device, b=b)
        views.require_dtype(call, "b", b, self._values.dtype, "like the matrix")
        n = self._a.shape[0]
        if b.ndim not in (1, 2) or b.shape[0] != n:
            raise arguments.unusable(call, "b", f"have shape ({n},) or ({n}, k)", b.shape)
        if b.ndim == 1:
            arguments.contiguous(call, "b", b)
        else:
            views.matrix(call, "b", b)
        if not b.size:
            return empty(b.shape, b.dtype, stream=self._stream)
        if self._stage != "factored":
            self.factorize()
        functions, kind = self._objects.functions, self._kind
        with activated(self._device):
            right, count = columns_of(b, kind, self._stream)
            x = empty(right.shape, b.dtype, stream=self._stream)
            layout = int(functions.Layout.COL_MAJOR)
            try:
                dense = [
                    functions.matrix_create_dn(n, count, n, array.pointer, self._code, layout) for array in (x, right)
                ]
            except Exception as error:
                raise failure("cudssMatrixCreateDn", error) from error
            try:
                self._run(call, "SOLVE", *dense)
            finally:
                for matrix in dense:
                    functions.matrix_destroy(matrix)
            return rows_of(x, b, kind, self._stream)

    def _run(self, call: str, phase: str, x: int = 0, b: int = 0) -> None:
        """Run a phase and wait for it."""
        self._require_open(call)
        objects = self._objects
        functions = objects.functions
        try:
            functions.execute(
                objects.handle, int(functions.Phase[phase]), objects.configuration, objects.data, objects.matrix, x, b
            )
        except Exception as error:
            raise failure("cudssExecute", error) from error
        self._stream.synchronize()

    def _report(self, name: str, dtype: Any) -> int:
        functions, objects = self._objects.functions, self._objects
        memory, written = np.zeros(1, dtype), np.zeros(1, np.uint64)
        try:
            functions.data_get(
                objects.handle, objects.data, int(functions.DataParam[name]), memory.ctypes.data, memory.nbytes,
                written.ctypes.data,
            )  # fmt: skip  # grouped by meaning
        except Exception as error:
            raise failure("cudssDataGet", error) from error
        return int(memory[0])

    @property
    def factor_elements(self) -> int:
        """The number of elements in the factors, known after the analysis."""
        self._require_open("SparseSolver.factor_elements")
        if not self._stage:
            self.analyze()
        with activated(self._device):
            return self._report("LU_NNZ", np.int64)

    @property
    def closed(self) -> bool:
        """Whether the solver has been closed."""
        return self._objects.closed

    def close(self) -> None:
        """Release the factors; a second call does nothing."""
        self._objects.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else self._stage or "not analyzed"
        return f"<SparseSolver of {self._a.shape[0]} unknowns, {self._kind_of_matrix}, {state}>"

    def _require_open(self, call: str) -> None:
        if self.closed:
            raise ValueError(f"{call}: this SparseSolver is closed")
