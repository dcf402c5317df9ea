"""Reading the files that a caller names, of which none may hang the process or fill its memory."""

from __future__ import annotations

import os
import stat

__all__ = ["read_file"]


def read_file(path: str | os.PathLike[str], limit: int | None = None) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises OSError as `open` does, and ValueError for a pipe, a device or a socket, which may block or never end, for a
    file whose size the system does not tell, and for one that is longer than allowed.
    """
    name = os.fsdecode(path)
    status = os.stat(path)
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise ValueError(f"{name!r} is a pipe, a device or a socket, not a regular file")
    if limit is not None and status.st_size > limit:
        raise ValueError(f"{name!r} has {status.st_size} bytes, more than {limit}")
    with open(path, "rb", opener=_open) as stream:
        if status.st_size == 0 and stream.read(1):
            # Such files, under /proc, may go on for ever.
            raise ValueError(f"{name!r} has content, although the system says that it has 0 bytes")
        return stream.read(status.st_size)


def _open(path: str, flags: int) -> int:
    """Open a file; should a pipe have come into its place, this does not wait for the other end."""
    return os.open(path, flags | os.O_NONBLOCK)
