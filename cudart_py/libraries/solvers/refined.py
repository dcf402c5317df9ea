"""Systems solved with factors of lower precision and iterative refinement, with cuSOLVER's IRS functions."""

from __future__ import annotations

import numpy as np

from ...base import arguments
from ...context.device import Device
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from ..dtypes import Kind
from ..failures import failure
from ..handles import allocate_workspace, library_handle
from .layout import transposed
from .right_hand_sides import columns_of, rows_of

# The letters of cuSOLVER's function for each dtype of the system and each precision of the factors.
LETTERS: dict[str, dict[str, str]] = {
    "float64": {"float32": "ds", "float16": "dh", "bfloat16": "db", "tf32": "dx"},
    "float32": {"float16": "sh", "bfloat16": "sb", "tf32": "sx"},
    "complex128": {"float32": "zc", "float16": "zk", "bfloat16": "ze", "tf32": "zy"},
    "complex64": {"float16": "ck", "bfloat16": "ce", "tf32": "cy"},
}
PRECISIONS = (None, "float32", "float16", "bfloat16", "tf32")


def check_precision(call: str, precision: str | None, kind: Kind, *, positive: bool) -> None:
    """Raise TypeError or ValueError for a precision of the factors that cuSOLVER does not refine."""
    arguments.choice(call, "precision", precision, PRECISIONS)
    if precision is None:
        return
    if positive:
        raise arguments.wrong_value(call, "precision", "None with positive=True", precision)
    if precision not in LETTERS[kind.name]:
        raise arguments.wrong_value(call, "precision", f"lower than that of 'a', which is {kind.name}", precision)


def solve_refined(
    a: DeviceArray, b: DeviceArray, kind: Kind, precision: str, stream: Stream, device: Device
) -> DeviceArray | None:
    """Return the refined solution, or None if the refinement did not converge (cusolverDnDSgesv and others)."""
    name = f"{LETTERS[kind.name][precision]}_gesv"
    symbol = f"cusolverDn{LETTERS[kind.name][precision].upper()}gesv"
    n = a.shape[0]
    matrix = transposed(a, kind, stream)
    right, count = columns_of(b, kind, stream)
    x, pivots = empty(right.shape, a.dtype, stream=stream), empty(n, np.int32, stream=stream)
    info = empty(1, np.int32, stream=stream)
    handle = library_handle("cusolverDn", stream, device)
    operands = n, count, matrix.pointer, n, pivots.pointer, right.pointer, n, x.pointer, n
    try:
        nbytes = int(getattr(handle.functions, f"{name}_buffer_size")(handle.native, *operands, 0))
        memory = allocate_workspace(nbytes, stream)
        iterations = getattr(handle.functions, name)(handle.native, *operands, memory.pointer, nbytes, info.pointer)
    except Exception as error:
        raise failure(symbol, error) from error
    if int(iterations) < 0 or info.to_host(stream=stream)[0]:
        return None
    return rows_of(x, b, kind, stream)
