"""cuBLASLt's epilogues in software: a bias, an activation or its gradient, and sums for the gradient of a bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from nvmath.bindings.cublas import Status
from nvmath.bindings.cublasLt import Epilogue, MatmulDescAttribute

from ..common.functions import LibraryError
from ..common.numbers import DTYPES, Numbers, narrowed, widened
from ..common.operands import Operand, array, vector

_SLOPE, _CUBIC = np.sqrt(2 / np.pi), 0.044715


class Epilogues:
    """The epilogue of a product d, in column-major order; `reads` and `writes` are its operands in device memory."""

    def __init__(self, attributes: dict[int, int], d: Operand) -> None:
        code = attributes.get(int(MatmulDescAttribute.EPILOGUE), int(Epilogue.DEFAULT))
        self._name = Epilogue(code).name
        self.reads: list[Operand] = []
        self.writes: list[Operand] = []
        self._auxiliary: Operand | None = None
        self._bias: Operand | None = None
        if code != Epilogue.DEFAULT and d.shape[0] != 1:
            raise LibraryError(Status.NOT_SUPPORTED, "the simulator has no epilogues of batches")
        _, rows, columns = d.shape
        if "AUX" in self._name or self._name.startswith(("DRELU", "DGELU")):
            self._auxiliary = self._auxiliary_of(attributes, d, rows, columns)
            (self.writes if "AUX" in self._name else self.reads).append(self._auxiliary)
        if "BIAS" in self._name or "GRAD" in self._name:
            code = attributes.get(int(MatmulDescAttribute.BIAS_DATA_TYPE), -1)
            dtype = DTYPES.get(code, d.dtype)
            address = attributes.get(int(MatmulDescAttribute.BIAS_POINTER), 0)
            self._bias = vector(address, columns if self._name == "BGRADB" else rows, dtype)
            (self.reads if "BIAS" in self._name else self.writes).append(self._bias)

    def _auxiliary_of(self, attributes: dict[int, int], d: Operand, rows: int, columns: int) -> Operand:
        address = attributes.get(int(MatmulDescAttribute.EPILOGUE_AUX_POINTER), 0)
        leading = attributes.get(int(MatmulDescAttribute.EPILOGUE_AUX_LD), 0)
        if "RELU" in self._name:  # one bit per element
            if leading % 128 or leading < rows:
                raise LibraryError(Status.INVALID_VALUE, f"the mask has columns of {leading} bits for {rows} elements")
            return array(address, (-(-rows // 8), columns), np.uint8, (1, leading // 8))
        if leading < rows:
            raise LibraryError(Status.INVALID_VALUE, f"the auxiliary matrix has columns of {leading} elements")
        return array(address, (rows, columns), d.dtype, (1, leading))

    def applied(self, x: Numbers, first: Numbers, second: Numbers) -> Numbers:
        """Return the epilogue of the product `x` of the factors `first` and `second`; write its other outputs."""
        if self._name == "BGRADA":
            self._sum(first, axis=1)
        elif self._name == "BGRADB":
            self._sum(second, axis=0)
        elif self._name.startswith("D") and self._auxiliary is not None:
            stored = self._auxiliary.elements
            if "RELU" in self._name:
                bits = np.unpackbits(np.ascontiguousarray(stored), axis=0, bitorder="little")[: len(x)]
                x = np.where(bits, x, x.dtype.type(0))
            else:
                x = (x * _gelu_slope(widened(stored))).astype(x.dtype)
            if self._bias is not None:
                self._sum(x, axis=1)
        else:
            if self._bias is not None:
                x = x + widened(self._bias.elements)[:, None].astype(x.dtype)
            if "AUX" in self._name and self._auxiliary is not None:
                packed = np.packbits(x > 0, axis=0, bitorder="little") if "RELU" in self._name else None
                self._auxiliary.elements[...] = narrowed(x, self._auxiliary.dtype) if packed is None else packed
            if "RELU" in self._name:
                x = np.maximum(x, x.dtype.type(0))
            elif "GELU" in self._name:
                x = (x / 2 * (1 + np.tanh(_SLOPE * (x + _CUBIC * x**3)))).astype(x.dtype)
        return x

    def _sum(self, x: Numbers, axis: int) -> None:
        if self._bias is not None:
            self._bias.elements[...] = narrowed(widened(x).sum(axis=axis), self._bias.dtype)


def _gelu_slope(x: Numbers) -> Numbers:
    """Return the derivative of GELU's approximation with the hyperbolic tangent."""
    bent: Any = np.tanh(_SLOPE * (x + _CUBIC * x**3))
    return np.asarray((1 + bent) / 2 + x / 2 * (1 - bent**2) * _SLOPE * (1 + 3 * _CUBIC * x**2))
