"""Which wheels a compile depends on are installed, without the time that importlib.metadata takes to import."""

from __future__ import annotations

import os
import sys

__all__ = ["distributions", "is_from_wheel"]

# This package, NVRTC and the wheels that `cudart-py[headers]` brings, as their metadata folders spell them.
_NAMES = (
    "cudart_py-",
    "nvidia_cuda_nvrtc-",
    "nvidia_cuda_runtime-",
    "nvidia_cuda_crt-",
    "nvidia_cuda_cccl-",
    "nvidia_curand-",
)
_SUFFIX = ".dist-info"


def distributions() -> tuple[str, ...]:
    """Return those wheels with their versions, from their metadata folders' names."""
    found = []
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        found += [name.removesuffix(_SUFFIX) for name in names if name.startswith(_NAMES) and name.endswith(_SUFFIX)]
    return tuple(sorted(found))


def is_from_wheel(path: str) -> bool:
    """Tell whether a file lies among the installed NVIDIA wheels, whose versions `distributions` tells."""
    real = os.path.realpath(path)
    return any(real.startswith(os.path.join(os.path.realpath(folder), "nvidia", "")) for folder in sys.path)
