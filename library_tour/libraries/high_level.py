"""Rows for nvmath's high-level functions, to compare with those for this package's functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..stop import Limit, Row
from .judgement import judged, missing_row, skipped_row


def nvmath_row(
    title: str,
    call: Callable[[], Any],
    error_of: Callable[[NDArray[Any]], float],
    bound: float,
    *,
    make_work: Callable[[], Callable[[], object]] | None = None,
    amount: float = 0,
    limit: Limit | None = None,
    gpu_only: bool = False,
) -> Row:
    """Return the row of a call whose operands are on the host, or the row that says why it does not run here.

    If a GPU is timed, and a package is installed whose arrays nvmath accepts (`lender`), `make_work` returns the call
    that is timed: the same call with operands on the device.
    """
    on_gpu = runs_on_gpu()
    if gpu_only and not on_gpu:
        return skipped_row(title, "nvmath provides this function only on a GPU")
    try:
        got = np.asarray(call())
    except (ImportError, RuntimeError) as error:
        return missing_row(title, "cu13" if on_gpu else "cpu", error)
    work = make_work() if make_work and on_gpu and timing.available() and lender() else None
    by = "nvmath" if on_gpu else "nvmath, CPU"
    return judged(title, by, error_of(got), bound, work=work, amount=amount, limit=limit, host=True)


def runs_on_gpu() -> bool:
    """Check whether nvmath can compute on the device, which must be a GPU."""
    return "interop" in cuda.capabilities()


def lender() -> ModuleType | None:
    """Return the package, CuPy or PyTorch, whose arrays pass this package's device memory to nvmath.

    nvmath accepts arrays of NumPy, CuPy and PyTorch. Return None if neither CuPy nor PyTorch is installed, or if they
    cannot use this driver's memory.
    """
    if not runs_on_gpu():
        return None
    for name in ("cupy", "torch"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def lent(array: cuda.DeviceArray) -> Any:
    """Return an array of the package that `lender` returns, on the same memory."""
    package = lender()
    assert package is not None
    return package.from_dlpack(array)
