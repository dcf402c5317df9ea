"""nvmath's stateful objects and contractions as its authors use them: plan, autotune, execute, and new operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stop import Row
from .high_level import nvmath_row
from .judgement import relative_error


def autotuned_row(a: Any, b: Any, error_of: Callable[[NDArray[Any]], float], bound: float) -> Row:
    """Multiply with the fastest of cuBLASLt's algorithms, which nvmath measures, and again with other operands."""

    def product() -> Any:
        from nvmath.linalg.advanced import Matmul, MatmulOptions

        options = MatmulOptions(memory_limit="64 MiB", blocking=True)
        with Matmul(b, a, options=options) as planned:
            planned.plan()
            planned.autotune(iterations=3)
            planned.execute()
            planned.reset_operands(a=a, b=b)  # arrays of the same layout
            return planned.execute()

    return nvmath_row("nvmath, autotuned", product, error_of, bound, gpu_only=True)


def ternary_row(a: NDArray[Any], b: NDArray[Any]) -> Row:
    """Contract three tensors in one call; cuTENSOR chooses the order."""

    def contraction() -> Any:
        import nvmath

        return nvmath.tensor.ternary_contraction("ij,jk,kl->il", a, b, a)

    wide, other = a.astype(np.longdouble), b.astype(np.longdouble)
    exact, scale = wide @ other @ wide, float(np.linalg.norm(abs(wide) @ abs(other) @ abs(wide)))
    # Two products, one after the other.
    bound = 4 * len(a) * float(np.finfo(a.dtype).eps)
    return nvmath_row(
        "nvmath, 3 tensors", contraction, lambda got: relative_error(got, exact, scale), bound, gpu_only=True
    )
