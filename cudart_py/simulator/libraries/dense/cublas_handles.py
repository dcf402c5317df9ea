"""The handles of cuBLAS in software."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from nvmath.bindings.cublas import PointerMode, Status

from ..common.functions import LibraryError, Objects
from ..common.numbers import from_host
from ..common.operands import Operand, vector


@dataclass
class Handle:
    """The state of a handle: its stream, its workspace, and whether scalars are on the host or the device."""

    stream: int = 0
    workspace: tuple[int, int] = (0, 0)
    pointer_mode: int = int(PointerMode.HOST)

    def workspaces(self) -> tuple[Operand, ...]:
        """Return the workspace that the program has set, if any."""
        address, nbytes = self.workspace
        return (vector(address, nbytes, np.uint8),) if nbytes else ()

    def factors(self, dtype: np.dtype[Any], *addresses: int) -> list[Any]:
        """Return factors such as alpha from host memory; raise NOT_SUPPORTED in any pointer mode other than HOST."""
        if self.pointer_mode != PointerMode.HOST:
            raise LibraryError(Status.NOT_SUPPORTED, "factors must be in host memory: set the pointer mode HOST")
        return [from_host(address, dtype) for address in addresses]

    def require_results_on_device(self) -> None:
        """Raise NOT_SUPPORTED in any pointer mode other than DEVICE."""
        if self.pointer_mode != PointerMode.DEVICE:
            raise LibraryError(Status.NOT_SUPPORTED, "results must be in device memory: set the pointer mode to DEVICE")


handles: Objects[Handle] = Objects(Status.NOT_INITIALIZED)
