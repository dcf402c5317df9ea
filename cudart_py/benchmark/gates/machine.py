"""The conditions, other than the host, that affect a benchmark's times: the GPUs, their driver, package versions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...compilation.programs import library_version
from ...context.nvml import nvml
from ...errors import NotSupportedError, NvrtcError

_NVRTC = "nvidia-cuda-nvrtc"

# The last ones are packages that this one is often compared with.
_DISTRIBUTIONS = ("cuda-bindings", _NVRTC, "numpy", "nvmath-python", "cuda-core", "cupy-cuda13x", "torch")


def gpu_info() -> dict[str, Any]:
    """Return the conditions, other than the host, that affect times; empty on a machine without NVML."""
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
    except bindings.NvmlError:  # no permission to query
        return {}


def nvrtc_version() -> str:
    """Return the version of NVRTC, with all its digits if its wheel is installed; empty without NVRTC."""
    try:
        return version(_NVRTC)
    except PackageNotFoundError:  # NVRTC may come from a toolkit
        try:
            return ".".join(map(str, library_version()))
        except NvrtcError:  # there is no NVRTC, and the kernels came from the cache
            return ""


def _versions() -> dict[str, str]:
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # NVRTC may come from a toolkit, and the other packages are optional
            continue
    return found
