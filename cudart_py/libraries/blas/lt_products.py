"""Products by cuBLASLt: descriptors, and an algorithm that its heuristic recommends or that a search has measured."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...context.current import activated
from ...context.device import Device
from ...context.lifetimes import Handle  # releases descriptors at the right time
from ...errors import NotSupportedError
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..dtypes import Kind
from ..failures import failure
from ..handles import LibraryHandle, keep, library_handle, refuse_capture, scratch, thread_cache, workspace_size
from .lt_search import fastest
from .scalars import Factor

ALGORITHMS = ("heuristic", "search")
MOST_PLANS = 64
# A search measures as many algorithms as cuBLASLt recommends, up to this number.
MOST_ALGORITHMS = 32


class Part(NamedTuple):
    """One matrix of a product: its cudaDataType, its layout with contiguous rows, and the alignment of its address."""

    code: int
    view: views.Matrix
    alignment: int


class Problem(NamedTuple):
    """All that determines the descriptors of a product out = op(a) op(b), in row-major order.

    `settings` has further attributes of the product, by name (cublasLtMatmulDescAttributes_t).
    """

    parts: tuple[Part, Part, Part]  # a, b and out
    operations: tuple[int, int]
    compute: int
    scale: int
    settings: tuple[tuple[str, int], ...] = ()
    added: int | None = None  # the cudaDataType of the matrix that beta multiplies, if it isn't that of `out`


class LtProduct(Handle):
    """The cuBLASLt descriptors of one product and the algorithm chosen for it."""

    __slots__ = (
        "_added",
        "_candidates",
        "_descriptors",
        "_layouts",
        "_pointers",
        "algorithm",
        "device",
        "functions",
        "searched",
    )

    def __init__(self, handle: LibraryHandle, problem: Problem, pointers: dict[str, int]) -> None:
        self._value, self._owned = None, True
        self.device, self.functions = handle.device, handle.functions
        self.searched = False
        self._layouts: list[int] = []
        self._pointers: dict[str, int] = {}
        functions = self.functions
        self._value = functions.matmul_desc_create(problem.compute, problem.scale)
        # cuBLAS is column-major, so it sees the transpose of every matrix: out^T = op(b)^T op(a)^T.
        a, b, out = problem.parts
        op_a, op_b = problem.operations
        for name, value in (("TRANSA", op_b), ("TRANSB", op_a), *problem.settings):
            self._set(name, value)
        for part in (b, a, out):
            self._layouts.append(self._layout(part))
        self._added = self._layouts[-1]
        if problem.added is not None:
            self._added = self._layout(out._replace(code=problem.added))
            self._layouts.append(self._added)
        # The heuristic refuses scales of rows and blocks whose addresses are not known.
        self.point_to(pointers)
        self._candidates = self._recommended(handle, problem)
        self.algorithm = self._candidates[:1]

    def _matrices(self) -> tuple[int, int, int, int]:
        """Return the layouts of b, a, the added matrix, and out."""
        b, a, out = self._layouts[:3]
        return b, a, self._added, out

    def _set(self, name: str, value: int) -> None:
        attribute = int(self.functions.MatmulDescAttribute[name])
        memory = np.array([value], self.functions.get_matmul_desc_attribute_dtype(attribute))
        self.functions.matmul_desc_set_attribute(self._value, attribute, memory.ctypes.data, memory.nbytes)

    def _layout(self, part: Part) -> int:
        functions, view = self.functions, part.view
        layout: int = functions.matrix_layout_create(part.code, view.columns, view.rows, view.leading)
        if view.batch > 1:
            attributes = functions.MatrixLayoutAttribute
            for attribute, value in (
                (attributes.BATCH_COUNT, view.batch),
                (attributes.STRIDED_BATCH_OFFSET, view.stride),
            ):
                memory = np.array([value], functions.get_matrix_layout_attribute_dtype(int(attribute)))
                functions.matrix_layout_set_attribute(layout, int(attribute), memory.ctypes.data, memory.nbytes)
        return layout

    def _recommended(self, handle: LibraryHandle, problem: Problem) -> NDArray[Any]:
        functions, attributes = self.functions, self.functions.MatmulPreferenceAttribute
        a, b, out = problem.parts
        # Without a stated alignment, cuBLASLt assumes that pointers are aligned to 256 bytes. The address of a window
        # of a larger matrix may not be.
        preferences = {
            attributes.MAX_WORKSPACE_BYTES: workspace_size(self.device),
            attributes.MIN_ALIGNMENT_A_BYTES: b.alignment,
            attributes.MIN_ALIGNMENT_B_BYTES: a.alignment,
            attributes.MIN_ALIGNMENT_C_BYTES: out.alignment,
            attributes.MIN_ALIGNMENT_D_BYTES: out.alignment,
        }
        preference = functions.matmul_preference_create()
        try:
            for attribute, value in preferences.items():
                memory = np.array([value], functions.get_matmul_preference_attribute_dtype(int(attribute)))
                functions.matmul_preference_set_attribute(preference, int(attribute), memory.ctypes.data, memory.nbytes)
            results = np.zeros(MOST_ALGORITHMS, functions.matmul_heuristic_result_dtype)
            count = np.zeros(1, np.int32)
            functions.matmul_algo_get_heuristic(
                handle.native,
                self._value,
                *self._matrices(),
                preference,
                len(results),
                results.ctypes.data,
                count.ctypes.data,
            )
        finally:
            functions.matmul_preference_destroy(preference)
        if not count[0]:
            raise NotSupportedError("cublasLtMatmulAlgoGetHeuristic: no algorithm for this product and epilogue")
        return results[: count[0]]

    def queue(
        self,
        stream: Stream,
        factors: tuple[Factor, Factor],
        addresses: tuple[int, int, int, int],
        workspace: DeviceArray,
        algorithm: NDArray[Any] | None = None,
    ) -> None:
        """Queue the product (cublasLtMatmul); `addresses` are those of a, b, the added matrix, and out."""
        a, b, added, out = addresses
        alpha, beta = factors
        layout_b, layout_a, layout_added, layout = self._matrices()
        chosen = self.algorithm if algorithm is None else algorithm
        handle = library_handle("cublasLt", stream, self.device)
        self.functions.matmul(
            handle.native, self._value, alpha.address, b, layout_b, a, layout_a, beta.address, added, layout_added,
            out, layout, chosen.ctypes.data, workspace.pointer, int(chosen["workspace_size"][0]), stream.handle,
        )  # fmt: skip  # grouped by meaning

    @property
    def workspace_bytes(self) -> int:
        """The size in bytes of the workspace that the algorithm needs."""
        return int(self.algorithm["workspace_size"][0])

    def point_to(self, pointers: dict[str, int]) -> None:
        """Set the addresses of other operands, such as "BIAS_POINTER", for the next product."""
        for name in self._pointers.keys() - pointers.keys():
            self._set(name, 0)
            del self._pointers[name]
        for name, address in pointers.items():
            if self._pointers.get(name) != address:
                self._set(name, address)
                self._pointers[name] = address

    def search(
        self, stream: Stream, factors: tuple[Factor, Factor], addresses: tuple[int, int, int, int], nbytes: int
    ) -> None:
        """Measure the recommended algorithms and keep the fastest.

        The products are written to other memory of `nbytes` bytes, so that `out` is not changed. The product itself
        computes the other outputs of an epilogue again.
        """
        if len(self._candidates) > 1:
            trial = empty(nbytes, np.uint8, stream=stream)
            workspace = scratch(self.device).get(int(self._candidates["workspace_size"].max()), stream)
            targets = (*addresses[:3], trial.pointer)
            self.algorithm = fastest(
                lambda algorithm: self.queue(stream, factors, targets, workspace, algorithm), self._candidates, stream
            )
        self.searched = True

    def _release(self, value: Any) -> None:
        with activated(self.device):
            for layout in self._layouts:
                self.functions.matrix_layout_destroy(layout)
            self.functions.matmul_desc_destroy(value)


def alignment_of(array: DeviceArray) -> int:
    """Return the largest power of two, at most 256, to which an array's address is aligned."""
    return min(array.pointer & -array.pointer, 256)


class LtCall(NamedTuple):
    """One call of cuBLASLt: a product of `arrays`, a and b, into the third.

    `factors` are alpha and beta, and `pointers` the other operands, by the attribute that has their address.
    """

    call: str
    stream: Stream
    device: Device
    problem: Problem
    factors: tuple[Factor, Factor]
    arrays: tuple[DeviceArray, DeviceArray, DeviceArray]
    pointers: dict[str, DeviceArray]

    def run(self, *, search: bool, workspace: DeviceArray | None = None) -> None:
        """Queue the product, by default with the workspace of the thread (cublasLtMatmul).

        With `search`, the first product of a layout measures the algorithms, as `prepare` does.
        """
        product = self.prepare(search=search)
        with activated(self.device):
            try:
                if workspace is None:
                    workspace = scratch(self.device).get(product.workspace_bytes, self.stream)
                product.queue(self.stream, self.factors, self._addresses(), workspace)
            except Exception as error:
                raise failure("cublasLtMatmul", error) from error
        keep(self.stream, self.call, *self.arrays, *self.pointers.values(), workspace, product)

    def prepare(self, *, search: bool) -> LtProduct:
        """Return the thread's descriptors for the product, with an algorithm that has been searched for if requested.

        Raises CaptureError if a search would be needed while the stream is being captured: it waits for the device.
        """
        with activated(self.device):
            try:
                addresses = {name: array.pointer for name, array in self.pointers.items()}
                handle = library_handle("cublasLt", self.stream, self.device)
                product = _product(handle, self.problem, addresses)
                product.point_to(addresses)
                if search and not product.searched:
                    remedy = "call it once with these layouts before the capture begins"
                    refuse_capture(self.call, self.stream, "a search for an algorithm waits for the device", remedy)
                    span = self.problem.parts[2].view.span
                    product.search(self.stream, self.factors, self._addresses(), span)
            except Exception as error:
                raise failure("cublasLtMatmul", error) from error
        return product

    def _addresses(self) -> tuple[int, int, int, int]:
        """Return the addresses of a, b, the added matrix, which is `out` unless it has another type, and out."""
        a, b, out = (array.pointer for array in self.arrays)
        return a, b, 0 if self.problem.added is not None else out, out


def _product(handle: LibraryHandle, problem: Problem, pointers: dict[str, int]) -> LtProduct:
    products = thread_cache("cublasLt")
    key = handle.device.ordinal, problem
    product: LtProduct | None = products.get(key)
    if product is None:
        if len(products) >= MOST_PLANS:
            del products[next(iter(products))]
        product = products[key] = LtProduct(handle, problem, pointers)
    return product


def part(kind: Kind, view: views.Matrix, array: DeviceArray) -> Part:
    """Return a matrix of a product."""
    return Part(kind.code, view, alignment_of(array))
