"""Judge results, as rows of a stop: the error in a norm is compared with the rounding error that is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cudart_py.benchmark import measure_host

from .. import timing
from ..stop import Check, Limit, Row, Value


class HasBytes(Protocol):
    """An array or a matrix, on the host or the device."""

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""


def judged(
    name: str,
    by: str,
    error: float,
    bound: float,
    *,
    work: Callable[[], object] | None = None,
    amount: float = 0,
    limit: Limit | None = None,
    host: bool = False,
    note: str = "",
    does: Mapping[str, float] | None = None,
    metrics: Mapping[str, float] | None = None,
) -> Row:
    """Return a row: the library that computed, the relative error and its bound, and the time if a GPU is timed.

    `work` queues the operation on the default stream. `amount` is its amount of work in the unit of the limit: bytes
    for GB/s, operations for TFLOP/s. `host` adds the host time of a call. `does` is the work of the checked call, from
    `work_of`, and `metrics` holds the counters of its kernels.
    """
    check = Check(f"{name}: error within {bound:.1e}", bool(error <= bound), f"{error:.2e}")
    values: dict[str, Value] = {"by": by, "error": error}
    if not timing.available():
        values["bound"] = bound  # only without times, which take its place in the table; the check states it anyway
    elif work is not None and check.holds:
        values.update(rates(timing.median_ms(work), amount, limit))
        if host:
            values["host us"] = 1e6 * (measure_host(work, options=timing.OPTIONS).median or 0.0)
    return Row(name, values, check, note, metrics or {}, does or {})


def work_of(operations: float, *operands: HasBytes) -> dict[str, float]:
    """Return the work of a call, computed from its arguments, for pictures; nothing if times are drawn.

    The work is the bytes of its operands and results, each of which is read or written at least once. If the number of
    arithmetic operations is known (not 0), the operations and the operations per byte are included.
    """
    if timing.available():
        return {}
    nbytes = sum(operand.nbytes for operand in operands)
    found: dict[str, float] = {"bytes, at least": nbytes}
    if operations:
        found |= {"operations": int(operations), "operations per byte": operations / nbytes}
    return found


def rates(ms: float, amount: float, limit: Limit | None) -> dict[str, Value]:
    """Return a row's time, rate and per cent of the limit, in narrower columns than those of the course's stops."""
    found = timing.rates(ms, amount, limit)
    fraction = found.pop("of limit", None)
    return found if fraction is None else {**found, "limit %": 100 * float(fraction)}


def relative_error(got: NDArray[Any], exact: NDArray[Any], scale: float | None = None) -> float:
    """Return the 2-norm (Frobenius norm for matrices) of the difference, divided by that of `exact` or by `scale`."""
    size = float(np.linalg.norm(exact.ravel())) if scale is None else scale
    found = float(np.linalg.norm((got - exact).ravel()))
    return found / size if size else found


def skipped_row(name: str, reason: str) -> Row:
    """Return the row of an operation that this driver cannot do, with the reason."""
    return Row(name, note=f"Skipped: {reason}")


def missing_row(name: str, extra: str, error: Exception) -> Row:
    """Return the row of an operation whose library is missing, with the extra that installs the library."""
    text = str(error) or type(error).__name__
    # Leave out the rest of the text, which lists every folder that the loader has searched.
    library = re.search(r"\blib([A-Za-z]+)[\w.-]*\.so", text)
    reason = f"{library[1]} is not installed" if library else re.split(r"[.,:;]?\s*\n|[.,:;] |\.$", text)[0]
    return skipped_row(name, f'{reason}; the `{extra}` extra installs it: pip install "cudart-py[{extra}]"')
