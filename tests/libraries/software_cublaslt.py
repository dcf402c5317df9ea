"""cuBLASLt in software: a product with its bias and activation."""

from __future__ import annotations

from typing import Any

import numpy as np
from nvmath.bindings import cublasLt

from tests.libraries import memory
from tests.libraries.software_cublas import SCALARS, TYPES, narrowed, widened

ATTRIBUTES, EPILOGUES = cublasLt.MatmulDescAttribute, cublasLt.Epilogue


class CublasLt:
    """One library: its descriptors by number."""

    MatmulDescAttribute, Epilogue = ATTRIBUTES, EPILOGUES
    MatmulPreferenceAttribute = cublasLt.MatmulPreferenceAttribute
    matmul_heuristic_result_dtype = cublasLt.matmul_heuristic_result_dtype

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.things: dict[int, Any] = {}
        self.preferences: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("get_"):
            return getattr(cublasLt, name)
        raise AttributeError(name)

    def create(self) -> int:
        return 55

    def destroy(self, handle: int) -> None:
        pass

    def _add(self, thing: Any) -> int:
        self.things[len(self.things) + 1] = thing
        return len(self.things)

    def matmul_desc_create(self, compute: int, scale: int) -> int:
        return self._add({})

    def matrix_layout_create(self, type_: int, rows: int, columns: int, leading: int) -> int:
        return self._add((type_, rows, columns, leading))

    def matmul_preference_create(self) -> int:
        return self._add({})

    def _forget(self, thing: int) -> None:
        self.calls.append("destroy")

    matmul_desc_destroy = matrix_layout_destroy = matmul_preference_destroy = _forget

    def matmul_desc_set_attribute(self, descriptor: int, attribute: int, address: int, nbytes: int) -> None:
        kind = cublasLt.get_matmul_desc_attribute_dtype(attribute)
        assert np.dtype(kind).itemsize == nbytes
        self.things[descriptor][attribute] = int(memory.number(address, kind))

    def matmul_preference_set_attribute(self, preference: int, attribute: int, address: int, nbytes: int) -> None:
        kind = cublasLt.get_matmul_preference_attribute_dtype(attribute)
        self.preferences[attribute] = int(memory.number(address, kind))

    def matmul_algo_get_heuristic(self, handle, product, a, b, c, d, preference, most, results, count) -> None:
        memory.host(count, np.int32)[0] = 1

    def matmul(self, handle, product, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d, layout_d, algorithm,
               workspace, nbytes, stream) -> None:  # fmt: skip  # grouped by meaning
        attributes = self.things[product]
        arrays = []
        for address, layout in ((a, layout_a), (b, layout_b), (d, layout_d)):
            type_, rows, columns, leading = self.things[layout]
            arrays.append(memory.columns(address, rows, columns, leading, TYPES[type_]))
        out = arrays[2]
        result = memory.number(alpha, SCALARS[type_]) * (widened(arrays[0]) @ widened(arrays[1]))
        bias = memory.array(attributes[ATTRIBUTES.BIAS_POINTER], out.shape[0], out.dtype)
        result = result + widened(bias)[:, None]
        epilogue = attributes[ATTRIBUTES.EPILOGUE]
        if epilogue == EPILOGUES.RELU_BIAS:
            result = np.maximum(result, 0)
        elif epilogue == EPILOGUES.GELU_BIAS:
            result = result / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (result + 0.044715 * result**3)))
        out[...] = narrowed(result, type_)
