"""Headers of executables, which show whether the stand-ins can be loaded."""

from __future__ import annotations

import struct
from pathlib import Path

_MAGIC = b"\x7fELF"
_32_BIT = 1
_LITTLE_ENDIAN = 1
_INTERPRETER = 3  # the type of the segment that names the dynamic loader
_HEADER_BYTES = 64
_CUDA = 190  # the number of the machine in the headers of cubins
_MOST_BYTES = 1 << 16


def why_not(path: Path) -> str:
    """Return why an executable cannot run with the stand-ins, or ""."""
    header = _start_of(path)
    if header.startswith(_MAGIC) and header[4:5] == bytes([_32_BIT]):
        return "it is a 32-bit program, and CUDA 13 has no libraries for those"
    if header.startswith(_MAGIC) and int.from_bytes(header[18:20], "little") == _CUDA:
        return "it is a GPU module, not a program"
    return ""


def is_static(path: Path) -> bool:
    """Return whether an executable is linked statically, so that no shared library is loaded at its start."""
    header = _start_of(path)
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES or header[5] != _LITTLE_ENDIAN:
        return False  # a script, or a program of another machine, which the system rejects
    (offset,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    starts = range(offset, offset + size * count, max(size, 1))
    return all(int.from_bytes(header[start : start + 4], "little") != _INTERPRETER for start in starts)


def _start_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError:  # a program may be executable without being readable
        return b""
