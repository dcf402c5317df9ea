"""NVML, the library that nvidia-smi uses: what a device is doing right now."""

from __future__ import annotations

from typing import Any

from ..errors import NotSupportedError


def nvml() -> Any:
    """Return `cuda.bindings.nvml`, initialised (nvmlInit_v2).

    Raises NotSupportedError with the reason where the bindings have no NVML, or the library, a device or the right to
    ask is missing.
    """
    try:
        # Bindings before 13.1 have no such module.
        from cuda.bindings import nvml as bindings

        bindings.init_v2()
    except Exception as error:  # no module, no library, no device: each has a class of its own
        raise NotSupportedError(" ".join(str(error).split()) or type(error).__name__) from error
    return bindings
