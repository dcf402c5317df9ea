"""Scales of 8-bit floats in software: factors for a whole matrix, its columns, or blocks of its elements."""

from __future__ import annotations

import numpy as np
from nvmath.bindings.cublas import Status
from nvmath.bindings.cublasLt import MatmulDescAttribute, MatmulMatrixScale

from ..common.functions import LibraryError
from ..common.numbers import E4M3, E5M2, Numbers, widened
from ..common.operands import Operand, array, vector
from ..common.products import EIGHT_BIT_FLOATS

_BLOCK = 128
# The largest finite numbers.
_LARGEST = {E4M3: 448.0, E5M2: 57344.0}


class Scale:
    """The scale of one matrix of a product, which is stored with contiguous elements along the summed index.

    `factors` are in device memory, and None if the matrix has no scale. `largest` receives the largest absolute value
    of an output before it is scaled.
    """

    def __init__(self, mode: int, matrix: Operand, factors: Operand | None, largest: Operand | None) -> None:
        self._mode = mode
        self._matrix = matrix
        self._factors, self._largest = factors, largest
        self.reads = [] if factors is None else [factors]
        self.writes = [] if largest is None else [largest]

    def loaded(self, matrix: Numbers) -> Numbers:
        """Return a factor of the product with its scales applied, in single precision if it has 8-bit floats."""
        if self._matrix.dtype not in EIGHT_BIT_FLOATS:
            return matrix
        values = widened(matrix)
        if self._factors is None:
            return values
        scales = self._factors.elements
        if self._mode == MatmulMatrixScale.SCALAR_32F:
            return np.asarray(values * scales[0])
        if self._mode == MatmulMatrixScale.OUTER_VEC_32F:
            return np.asarray(values * scales[None, :])
        depth, lines = values.shape
        blocks = np.repeat(scales, _BLOCK, axis=0)[:depth]
        if self._mode == MatmulMatrixScale.BLK128x128_32F:
            blocks = np.repeat(blocks, _BLOCK, axis=1)[:, :lines]
        return np.asarray(values * blocks)

    def stored(self, result: Numbers) -> Numbers:
        """Return the output multiplied by its scale, after noting its largest absolute value."""
        if self._largest is not None:
            self._largest.elements[0] = np.abs(result).max(initial=0)
        if self._factors is not None:
            result = result * self._factors.elements[0]
        if self._matrix.dtype in EIGHT_BIT_FLOATS:  # numbers that are too large become the largest finite one
            most = np.float32(_LARGEST[self._matrix.dtype])
            result = np.clip(result, -most, most)
        return result


def scale_of(attributes: dict[int, int], name: str, matrix: Operand) -> Scale:
    """Return the scale of the matrix "A", "B" or "D" from the attributes of a product."""
    mode = attributes.get(int(MatmulDescAttribute[f"{name}_SCALE_MODE"]), int(MatmulMatrixScale.SCALAR_32F))
    address = attributes.get(int(MatmulDescAttribute[f"{name}_SCALE_POINTER"]), 0)
    amax = attributes.get(int(MatmulDescAttribute.AMAX_D_POINTER), 0) if name == "D" else 0
    largest = vector(amax, 1, np.float32) if amax else None
    if (address or mode != MatmulMatrixScale.SCALAR_32F) and matrix.dtype not in EIGHT_BIT_FLOATS:
        raise LibraryError(Status.NOT_SUPPORTED, f"the matrix {name} has a scale, but no 8-bit floats")
    factors = None
    if address:
        _, depth, lines = matrix.shape
        blocks = -(-depth // _BLOCK)
        if mode == MatmulMatrixScale.SCALAR_32F:
            factors = vector(address, 1, np.float32)
        elif mode == MatmulMatrixScale.OUTER_VEC_32F:
            factors = vector(address, lines, np.float32)
        elif mode == MatmulMatrixScale.VEC128_32F:
            factors = array(address, (blocks, lines), np.float32, (lines, 1))
        elif mode == MatmulMatrixScale.BLK128x128_32F:
            factors = array(address, (blocks, -(-lines // _BLOCK)), np.float32, (1, -(-blocks // 4) * 4))
        else:
            raise LibraryError(Status.NOT_SUPPORTED, f"the simulator does not support scales of the mode {mode}")
    return Scale(mode, matrix, factors, largest)
