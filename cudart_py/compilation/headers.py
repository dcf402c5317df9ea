"""The search for the headers of CUDA's own libraries: the runtime, cuRAND and CCCL.

They come from wheels (`pip install cudart-py[headers]`) or from a toolkit. The runtime's headers must be from the same
release as the compiler. A folder from another release is skipped, and the reason is kept for the error message of a
compile that does not find a header.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from .requests import working_folder

_TOOLKIT = "/usr/local/cuda"

_RUNTIME_HEADER = "cuda_runtime_api.h"
_INTERNAL_HEADER = os.path.join("crt", "mma.h")
_RANDOM_HEADER = "curand_kernel.h"
_CORE_HEADER = os.path.join("cuda", "std", "__cccl", "version.h")
# CCCL 3 is the first version that compiles with CUDA 13. Every CCCL 3.x works with every CUDA 13.x.
_CORE_MAJOR = 3

# Prefixes of the metadata folders of this package, of NVRTC and of the wheels of `cudart-py[headers]`.
_WHEELS = (
    "cudart_py-",
    "nvidia_cuda_nvrtc-",
    "nvidia_cuda_runtime-",
    "nvidia_cuda_crt-",
    "nvidia_cuda_cccl-",
    "nvidia_curand-",
)
_METADATA = ".dist-info"

_LIBRARY_HEADER = re.compile(
    r"(cub|thrust|cuda|nv|cooperative_groups|crt)/|cooperative_groups\.h|curand\w*\.h|cuda_?\w*\.h|cuComplex\.h"
    r"|mma\.h|math_constants\.h|(vector|texture|surface|device|driver|host)_\w+\.h|sm_\d+_\w+\.h"
)


@dataclass(frozen=True, slots=True)
class Headers:
    """The folders to search, the header files that contain their versions, and why other folders were rejected."""

    folders: tuple[str, ...]
    version_files: tuple[str, ...]
    rejected: tuple[str, ...]


@functools.cache
def find(version: tuple[int, int], library: str | None) -> Headers:
    """Find the headers that match an NVRTC (major, minor) version; `library` is the path of the NVRTC library.

    The first call is slow, because it uses cuda.pathfinder. Call this only if a source includes CUDA's headers.
    """
    folders: list[str] = []
    version_files: list[str] = []
    rejected: list[str] = []
    roots = _distinct(_roots("cudart", library))
    for root in roots:
        if sentence := _runtime_mismatch(root, version):
            rejected.append(sentence)
        elif os.path.exists(os.path.join(root, _RUNTIME_HEADER)):
            folders.append(root)
            version_files.append(os.path.join(root, _RUNTIME_HEADER))
            break
    for root in _distinct(_roots("cudart", library)):
        # mma.h and a few others include headers that are in a separate wheel, or in a toolkit.
        if os.path.exists(os.path.join(root, _INTERNAL_HEADER)) and not _runtime_mismatch(root, version):
            folders.append(root)
            break
    for root in _distinct(_roots("curand", library)):
        # cuRAND has its own version numbers, but its folder must not contain another release's runtime headers.
        if os.path.exists(os.path.join(root, _RANDOM_HEADER)) and not _runtime_mismatch(root, version):
            folders.append(root)
            version_files.append(os.path.join(root, _RANDOM_HEADER))
            break
    for root in _distinct(_core_roots(library, folders)):
        path = os.path.join(root, _CORE_HEADER)
        number = _defined(path, "CCCL_VERSION")
        if number is None:
            continue
        if number // 1_000_000 < _CORE_MAJOR:
            rejected.append(f"{root} has CCCL {number // 1_000_000}, but CUDA 13 needs CCCL {_CORE_MAJOR} or later")
            continue
        # Inserted first in the search order, because a toolkit's runtime folder also has forwarding copies of some CCCL
        # headers.
        folders.insert(0, root)
        version_files.append(path)
        break
    return Headers(tuple(dict.fromkeys(folders)), tuple(dict.fromkeys(version_files)), tuple(rejected))


def _roots(name: str, library: str | None) -> Iterator[str]:
    """Yield the folders to try, most trusted first: pathfinder's, the toolkit's that NVRTC belongs to, then others."""
    if found := _pathfinder(name):
        yield found
    if library:
        folder = os.path.dirname(os.path.realpath(library))
        yield os.path.join(os.path.dirname(folder), "include")
    yield from _toolkit_roots()


def _toolkit_roots() -> Iterator[str]:
    for toolkit in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), _TOOLKIT):
        if toolkit:
            yield os.path.join(toolkit, "include")


def _core_roots(library: str | None, accepted: list[str]) -> Iterator[str]:
    if found := _pathfinder("cccl"):
        yield found
    for root in (*accepted, *_roots("cudart", library)):
        yield os.path.join(root, "cccl")


def _pathfinder(name: str) -> str | None:
    from cuda.pathfinder import find_nvidia_header_directory  # imported late: most compiles do not need it

    found: str | None = find_nvidia_header_directory(name)
    return found


def _distinct(roots: Iterator[str]) -> Iterator[str]:
    seen = set()
    for root in roots:
        real = os.path.realpath(root)
        if real not in seen and os.path.isdir(real):
            seen.add(real)
            yield root


def _runtime_mismatch(root: str, version: tuple[int, int]) -> str | None:
    """Return a sentence if a folder's CUDA release differs from NVRTC's release, otherwise None."""
    number = _defined(os.path.join(root, _RUNTIME_HEADER), "CUDART_VERSION")
    if number is None:
        return None
    found = (number // 1000, number % 1000 // 10)
    if found == version:
        return None
    return (
        f"the headers in {root} belong to CUDA {found[0]}.{found[1]} and were ignored, "
        f"because NVRTC belongs to CUDA {version[0]}.{version[1]}"
    )


def _defined(path: str, macro: str) -> int | None:
    """Return the numeric value of a macro in a header, or None if the file or the macro does not exist."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            match = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{macro}[ \t]+(\d+)", stream.read(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None


def remedy(header: str, headers: Headers) -> str:
    """Return advice for an error about a header that the compiler could not open."""
    if not _LIBRARY_HEADER.match(header):
        return (
            f'"{header}" is not in any of the folders searched: name its folder with include=[...], or pass its text '
            "with headers={...}"
        )
    advice = f"<{header}> belongs to CUDA's headers: pip install 'cudart-py[headers]', or install a matching toolkit"
    return "; ".join([advice, *headers.rejected])


def installed_wheels() -> tuple[str, ...]:
    """Return the wheels that a compile depends on, with their versions, from the names of their metadata folders.

    importlib.metadata is not used, because importing it would take longer than a cached compile.
    """
    found = []
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except (OSError, ValueError):  # ValueError for a name that the file system's encoding cannot represent
            continue
        found += [
            name.removesuffix(_METADATA) for name in names if name.startswith(_WHEELS) and name.endswith(_METADATA)
        ]
    return tuple(sorted(found))


def is_from_wheel(path: str) -> bool:
    """Return whether a file is in an installed NVIDIA wheel; `installed_wheels` covers the versions of such files."""
    real = _real_path(path)
    folders = (_real_path(os.path.join(working_folder(), folder)) for folder in sys.path)
    return any(real.startswith(os.path.join(folder, "nvidia", "")) for folder in folders)


def is_of_cuda(path: str) -> bool:
    """Return whether a file is among CUDA's own headers, in a wheel or in a toolkit at one of the usual places."""
    real = _real_path(path)
    return is_from_wheel(path) or any(
        real.startswith(os.path.join(os.path.realpath(root), "")) for root in _toolkit_roots()
    )


def _real_path(path: str) -> str:
    """Return a path without symbolic links, or unchanged if the file system's encoding cannot represent it."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path
