"""Attach a session to the simulator, and let kernels be compiled for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import errors
from ..compilation.requests import compile_for_debugger
from ..driver.backend import chosen
from ..driver.capabilities import capabilities
from ..driver.unwrap import check

if TYPE_CHECKING:
    from .session import Session


@contextlib.contextmanager
def attached(session: Session, *, optimized: bool = False) -> Iterator[None]:
    """Attach a session inside the block; sources are compiled with -G there unless `optimized` is true.

    Raises NotSupportedError if the driver lacks the capability `debugger`.
    """
    if "debugger" not in capabilities():
        raise errors.NotSupportedError(
            "this driver lacks the capability 'debugger': use cuda-gdb on a GPU, or the simulator with "
            "CUDART_PY_DRIVER=simulator"
        )
    check(chosen().attach_debugger(session))
    try:
        with contextlib.nullcontext() if optimized else compile_for_debugger():
            yield
    except BaseException:
        # The exception is more informative than a failure of the work that is left.
        chosen().detach_debugger()
        raise
    check(chosen().detach_debugger())
