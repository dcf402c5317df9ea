"""The conditions of a benchmark's times besides the host: the GPUs, their driver, and versions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...compilation.programs import library_version
from ...context.nvml import nvml
from ...errors import NotSupportedError, NvrtcError

_NVRTC = "nvidia-cuda-nvrtc"

# The last ones are those that this one is often measured beside.
_DISTRIBUTIONS = ("cuda-bindings", _NVRTC, "numpy", "nvmath-python", "cuda-core", "cupy-cuda13x", "torch")


def gpu_info() -> dict[str, Any]:
    """Return what a benchmark's times depend on beside the host; empty on a machine without NVML."""
    try:
        bindings = nvml()
    except NotSupportedError:
        return {}
    try:
        handles = [bindings.device_get_handle_by_index_v2(i) for i in range(bindings.device_get_count_v2())]
        cuda = bindings.system_get_cuda_driver_version_v2()
        return {
            "devices": [bindings.device_get_name(handle) for handle in handles],
            "driver": bindings.system_get_driver_version(),
            "cuda_driver": f"{cuda // 1000}.{cuda % 1000 // 10}",
            **_versions(),
        }
    except bindings.NvmlError:  # no right to ask
        return {}


def nvrtc_version() -> str:
    """Return the version of NVRTC, with all its digits where its wheel is installed; empty without any NVRTC."""
    try:
        return version(_NVRTC)
    except PackageNotFoundError:  # a toolkit's serves
        try:
            return ".".join(map(str, library_version()))
        except NvrtcError:  # the kernels came from the cache
            return ""


def _versions() -> dict[str, str]:
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a toolkit's NVRTC serves, and others' libraries are optional
            continue
    return found
