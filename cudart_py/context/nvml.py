"""NVML, the library that nvidia-smi uses to monitor devices."""

from __future__ import annotations

from typing import Any

from ..errors import NotSupportedError


def nvml() -> Any:
    """Return `cuda.bindings.nvml`, initialised (nvmlInit_v2).

    Raises NotSupportedError with the reason if the bindings lack NVML, if the library or a device is missing, or if the
    process has no permission.
    """
    try:
        # Bindings before 13.1 have no such module.
        from cuda.bindings import nvml as bindings

        bindings.init_v2()
    except Exception as error:  # no module, no library, no device: each raises a class of its own
        raise NotSupportedError(" ".join(str(error).split()) or type(error).__name__) from error
    return bindings
