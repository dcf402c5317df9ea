"""Whether a result is right: its error in a norm, against what the arithmetic allows, as a row of a stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudart_py.benchmark import measure_host

from .. import timing
from ..stop import Check, Limit, Row, Value

__all__ = ["extra_row", "judged", "relative_error"]


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
) -> Row:
    """Return a row: what executed it, its relative error and what that may be, and its time where that is a GPU's.

    `work` queues the operation on the default stream, `amount` is what it does of what the limit counts. `host`
    adds what a call costs the host.
    """
    check = Check(f"{name}: error within {bound:.1e}", bool(error <= bound), f"{error:.2e}")
    values: dict[str, Value] = {"by": by, "error": error, "bound": bound}
    if work is not None and check.holds and timing.available():
        values.update(timing.rates(timing.median_ms(work), amount, limit))
        if host:
            values["host us"] = 1e6 * (measure_host(work).median or 0.0)
    return Row(name, values, check, note)


def relative_error(got: NDArray[Any], exact: NDArray[Any], scale: float | None = None) -> float:
    """Return the 2-norm (of matrices the Frobenius norm) of the difference over the exact result's, or a scale."""
    size = float(np.linalg.norm(exact.ravel())) if scale is None else scale
    found = float(np.linalg.norm((got - exact).ravel()))
    return found / size if size else found


def extra_row(name: str, extra: str, error: Exception) -> Row:
    """Return the row of something that a missing library keeps from running, with the extra that brings it."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return Row(name, note=f"not run here: {reason.rstrip('.')}. The extra `{extra}` brings it: cudart-py[{extra}]")
