"""Whether a result is right: its error in a norm, against what the arithmetic allows, as a row of a stop."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudart_py.benchmark import measure_host

from .. import timing
from ..stop import Check, Limit, Row, Value

__all__ = ["judged", "missing_row", "relative_error", "skipped_row"]


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
    values: dict[str, Value] = {"by": by, "error": error}
    if not timing.available():
        values["bound"] = bound  # times need its place in the table; the check has it anyway
    elif work is not None and check.holds:
        values.update(rates(timing.median_ms(work), amount, limit))
        if host:
            values["host us"] = 1e6 * (measure_host(work, options=timing.OPTIONS).median or 0.0)
    return Row(name, values, check, note)


def rates(ms: float, amount: float, limit: Limit | None) -> dict[str, Value]:
    """Return a row's time, rate and per cent of the limit, in fewer columns than the course's stops have for it."""
    found = timing.rates(ms, amount, limit)
    fraction = found.pop("of limit", None)
    return found if fraction is None else {**found, "limit %": 100 * float(fraction)}


def relative_error(got: NDArray[Any], exact: NDArray[Any], scale: float | None = None) -> float:
    """Return the 2-norm (of matrices the Frobenius norm) of the difference over the exact result's, or a scale."""
    size = float(np.linalg.norm(exact.ravel())) if scale is None else scale
    found = float(np.linalg.norm((got - exact).ravel()))
    return found / size if size else found


def skipped_row(name: str, reason: str) -> Row:
    """Return the row of something that is not for this driver, with the reason."""
    return Row(name, note=f"not run here: {reason}")


def missing_row(name: str, extra: str, error: Exception) -> Row:
    """Return the row of something that a missing library keeps from running, with the extra that brings it."""
    text = str(error) or type(error).__name__
    # Where the loader has looked, and what else could be done, fills pages.
    library = re.search(r"\blib([A-Za-z]+)[\w.-]*\.so", text)
    reason = f"{library[1]} is not installed" if library else re.split(r"[.,:;]?\s*\n|[.,:;] |\.$", text)[0]
    return skipped_row(name, f'{reason}; the extra `{extra}` brings it: pip install "cudart-py[{extra}]"')
