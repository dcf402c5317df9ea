"""Reading callers' files, which must not hang the process or fill its memory, and files private to this user."""

from __future__ import annotations

import os
import stat

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


def read_file(path: str | os.PathLike[str], limit: int | None = None, *, private: bool = False) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises OSError as `open` does, and ValueError for a pipe, a device or a socket, which may block or never end, for a
    file whose size the system does not report, and for a file longer than `limit`. A `private` file must belong to this
    user, must not be writable by others and must not be a symbolic link: PermissionError or OSError otherwise.
    """
    name = os.fsdecode(path)
    # Checked before opening, because opening some devices already has an effect.
    _check_kind(name, os.stat(path, follow_symlinks=not private))
    flags = os.O_NOFOLLOW if private else 0
    # If a pipe has replaced the file, O_NONBLOCK keeps `open` from waiting for the other end.
    with open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags | os.O_NONBLOCK)) as stream:
        # The open file is checked too, because the path may have been replaced since.
        status = os.fstat(stream.fileno())
        _check_kind(name, status)
        if private and (reason := _why_not_ours(status)):
            raise PermissionError(f"{name!r} cannot be trusted: {reason}")
        if limit is not None and status.st_size > limit:
            raise ValueError(f"{name!r} has {status.st_size} bytes, more than {limit}")
        if status.st_size == 0 and stream.read(1):
            # Such files, under /proc, may never end.
            raise ValueError(f"{name!r} has content, although the system says that it has 0 bytes")
        return stream.read(status.st_size)


def _check_kind(name: str, status: os.stat_result) -> None:
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise ValueError(f"{name!r} is a pipe, a device or a socket, not a regular file")


def _why_not_ours(status: os.stat_result) -> str:
    """Return why others may have written a file or folder, or an empty string if only this user can have written it."""
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    return "other users can write to it" if status.st_mode & _OTHERS_MAY_WRITE else ""


def create_private(path: str, content: bytes) -> None:
    """Write a new file that only its owner may read and write, whatever the umask."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _PRIVATE_FILE)
    with open(descriptor, "wb") as stream:
        os.fchmod(descriptor, _PRIVATE_FILE)
        stream.write(content)


def make_private_folder(path: str) -> None:
    """Create a folder and its missing parents, by absolute path, for their owner alone, whatever the umask."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_private_folder(parent)
    try:
        os.mkdir(path, _PRIVATE_FOLDER)
    except FileExistsError:
        if os.path.isdir(path):  # another process was quicker
            return
        raise
    os.chmod(path, _PRIVATE_FOLDER)


def why_not_private(folder: str) -> str:
    """Return why others could plant files in a folder, or an empty string if nobody can.

    `folder` is an absolute path and need not exist. It must belong to this user, and each parent folder to this user or
    to root. Others must not be able to write to any of them, except to a sticky parent such as /tmp, because there they
    cannot replace this user's files.
    """
    # The parents of the path as written contain the symbolic links; the parents of the real path contain their targets.
    for path in (folder, os.path.realpath(folder)):
        try:
            status = os.stat(path)
        except OSError:
            pass
        else:
            if reason := _why_not_ours(status):
                return reason
        while (parent := os.path.dirname(path)) != path:
            path = parent
            try:
                status = os.stat(path)
            except OSError:
                continue
            if status.st_uid not in (0, os.geteuid()):
                return f"{path} belongs to another user"
            if status.st_mode & _OTHERS_MAY_WRITE and not status.st_mode & stat.S_ISVTX:
                return f"other users can write to {path}"
    return ""
