"""Compiled images on disk, so that a source is compiled once rather than once per process.

The folder is `cudart_py` in the user's cache folder (on Linux `$XDG_CACHE_HOME/cudart_py` or `~/.cache/cudart_py`), or
the one that the environment variable CUDART_PY_CACHE names. One file is one entry: images, their signatures and their
names, after a checksum. Entries are written under a temporary name and renamed atomically, so concurrent readers and
writers never see a half-written entry. A damaged entry counts as a miss. Files left by a killed writer are removed
after an hour.

All entries together take at most 1 GiB, or the number of bytes in CUDART_PY_CACHE_SIZE. The least recently used entries
are removed first. A process examines the folder at its first store, and again whenever it has stored an eighth of the
bytes that were free. A limit of 0 disables the cache. Code from the cache runs with the user's rights, so a folder or
an entry is not used if it belongs to another user, if others can write to it, or if others could replace a parent
folder. Such a folder, a read-only folder, or an unknown home folder causes a warning, and the compile continues without
the cache. If either variable has an invalid value, a compile raises ValueError, but a launch only warns, because the
caller cannot repeat it.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..host.callers import warn_caller
from ..host.files import create_private, make_private_folder, read_file, why_not_private

ENVIRONMENT_VARIABLE = "CUDART_PY_CACHE"
SIZE_VARIABLE = "CUDART_PY_CACHE_SIZE"
_REMEDY = f"set {ENVIRONMENT_VARIABLE} to a folder that you alone can write to"
# Increase this when the content of entries, or the way the compiler is called, changes between releases.
FORMAT = 6
_SUFFIX = ".image"
_TEMPORARY = ".tmp"
_DEFAULT_SIZE = 1 << 30
# The age in seconds at which a temporary file counts as abandoned. No writer needs that long for an entry.
_ABANDONED = 3600
_MAGIC = b"cudart-py image\n"
_DIGEST_BYTES = 16
_LENGTHS = struct.Struct("<I")

_lock = threading.Lock()
_hits = 0
_misses = 0
_has_warned = False
# By folder and size limit: the bytes that this process may store until it examines the folder again.
_unchecked: dict[tuple[str, int], int] = {}

Witness = tuple[str, int, int]
T = TypeVar("T")


class CacheWarning(RuntimeWarning):
    """The compile cache cannot be used; compilation continues without it."""


class CacheInfo(NamedTuple):
    """The compile cache: its folder, the number and size of its entries, and this process's hits and misses.

    `folder` is "" if no environment variable sets it and the user's home folder is unknown. `bytes` is the total size.
    """

    folder: str
    entries: int
    bytes: int
    hits: int
    misses: int


def folder() -> str:
    """Return the cache's folder, which need not exist, or "" if the user's home folder is unknown.

    Raises ValueError if the environment names a folder that cannot be made an absolute path.
    """
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        return _absolute(chosen)
    if sys.platform == "linux":
        # This is platformdirs' rule for Linux. Importing platformdirs takes longer than a whole cached compile.
        base = os.environ.get("XDG_CACHE_HOME", "").strip()
        if not os.path.isabs(base):  # the XDG specification ignores relative paths
            base = os.path.expanduser("~/.cache")
        return os.path.join(base, "cudart_py") if os.path.isabs(base) else ""
    import platformdirs  # slow to import, see above

    return platformdirs.user_cache_dir("cudart_py", appauthor=False)


def _absolute(path: str) -> str:
    """Return the path that the environment names as an absolute path."""
    expanded = os.path.expanduser(path)
    # Python leaves the ~NAME of an unknown user as it is.
    if expanded.startswith("~"):
        home = expanded.partition("/")[0]
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE}={path!r} begins with {home!r}, and this home folder is unknown: set it to an "
            "absolute path"
        )
    try:
        return os.path.abspath(expanded)
    except FileNotFoundError:
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE}={path!r} is a relative path, and the working folder was deleted: set it to an "
            "absolute path"
        ) from None


def check_environment() -> None:
    """Raise ValueError for an environment variable of the cache with an invalid value."""
    folder()
    _size_limit()


def make_key(parts: Iterable[str | bytes]) -> str:
    """Return the name of an entry: a digest of the format and of the parts, each with its length."""
    import hashlib  # takes milliseconds, so programs that compile nothing do not pay for it

    digest = hashlib.blake2b(b"%d" % FORMAT, digest_size=20)
    for part in parts:
        content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


def witness(path: str) -> Witness | None:
    """Return a file's path, its size in bytes and its modification time in nanoseconds; None if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_size, status.st_mtime_ns


def _size_limit() -> int:
    """Return the size limit for all entries together, in bytes."""
    text = os.environ.get(SIZE_VARIABLE)
    if not text:
        return _DEFAULT_SIZE
    try:
        limit = int(text)
    except ValueError:
        limit = -1
    if limit < 0:
        raise ValueError(f"{SIZE_VARIABLE}={text!r} is not a number of bytes")
    return limit


def _usable_folder() -> str:
    """Return the folder, which need not exist, or "" if the cache is not usable; warn unless its size limit is 0."""
    try:
        if not _size_limit():
            return ""
        place = folder()
    except ValueError as error:
        _warn(f"compiled images cannot be cached: {error}")
        return ""
    if not place:
        _warn(f"compiled images cannot be cached: the home folder is unknown; {_REMEDY}")
    elif reason := why_not_private(place):
        _warn_of(place, reason)
        return ""
    return place


def load(key: str, restore: Callable[[Any, list[bytes]], T]) -> T | None:
    """Return the result of `restore` for an entry's description and images.

    Returns None if the entry is missing, damaged, out of date or belongs to another user.
    """
    global _hits, _misses
    place = _usable_folder()
    result = None
    if place:
        path = os.path.join(place, key + _SUFFIX)
        content = _read(path)
        result = _decode(content, key, restore) if content is not None else None
        if result is not None:
            _mark_used(path)
    with _lock:
        if result is None:
            _misses += 1
        else:
            _hits += 1
    return result


def _read(path: str) -> bytes | None:
    try:
        return read_file(path, private=True)
    except (OSError, ValueError):
        return None


def _mark_used(path: str) -> None:
    """Set an entry's time of last use to now; the least recently used entries are removed first."""
    try:
        os.utime(path)
    except OSError:
        return  # removed in the meantime, or in a read-only folder


def _decode(content: bytes, key: str, restore: Callable[[Any, list[bytes]], T]) -> T | None:
    import json  # imported late like hashlib in make_key

    start = len(_MAGIC) + _DIGEST_BYTES
    body = content[start:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _digest(body):
        return None
    try:
        (length,) = _LENGTHS.unpack_from(body)
        position = _LENGTHS.size + length
        header = json.loads(body[_LENGTHS.size : position])
        if header["key"] != key or any(witness(path) != (path, size, time) for path, size, time in header["witnesses"]):
            return None
        images = []
        for size in header["sizes"]:
            images.append(body[position : position + size])
            position += size
        return restore(header["description"], images) if position == len(body) else None
    except Exception:  # a forged entry may raise anything; it counts as a miss
        return None


def _digest(body: bytes) -> bytes:
    import hashlib  # imported late as in make_key

    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def store(key: str, description: Any, images: Sequence[bytes], witnesses: Sequence[Witness] = ()) -> None:
    """Write an entry: a description that JSON can represent, and images.

    The entry is valid as long as the files of `witnesses` do not change.
    """
    import json  # imported late like hashlib in make_key

    place = _usable_folder()
    if not place:
        return
    header = {"key": key, "description": description, "sizes": [len(image) for image in images], "witnesses": witnesses}
    text = json.dumps(header, separators=(",", ":")).encode()
    body = b"".join([_LENGTHS.pack(len(text)), text, *images])
    # Each writer uses a unique name, since processes and threads may write the same entry at once.
    temporary = os.path.join(place, f"{key}.{os.getpid()}.{os.urandom(4).hex()}{_TEMPORARY}")
    try:
        make_private_folder(place)
        try:
            create_private(temporary, _MAGIC + _digest(body) + body)
            os.replace(temporary, os.path.join(place, key + _SUFFIX))
        except BaseException:
            _remove(temporary)
            raise
        _tidy_if_due(place, _size_limit(), len(body))
    except OSError as error:
        _warn_of(place, error.strerror or str(error))


def _tidy_if_due(place: str, limit: int, stored: int) -> None:
    """Tidy the folder if this process may have used up its share of the bytes that were free.

    Each examination asks for the size of every entry. If a program compiled thousands of kernels, examining the folder
    at every store would take longer than the rest of the store.
    """
    left = _unchecked.get((place, limit), 0) - stored
    if left < 0:
        left = _tidy(place, limit) // 8
    _unchecked[place, limit] = left


def _tidy(place: str, limit: int) -> int:
    """Remove files left by killed writers, and the least recently used entries beyond the limit.

    Return the number of bytes that are free then.
    """
    entries = []
    with os.scandir(place) as files:
        for file in files:
            if not file.name.endswith((_SUFFIX, _TEMPORARY)):
                continue
            try:
                status = file.stat(follow_symlinks=False)
            except FileNotFoundError:  # another process removed it
                continue
            if file.name.endswith(_SUFFIX):
                entries.append((status.st_mtime_ns, status.st_size, file.path))
            elif time.time() - status.st_mtime > _ABANDONED:
                _remove(file.path)
    excess = sum(size for _, size, _ in entries) - limit
    for _, size, path in sorted(entries):
        if excess <= 0:
            break
        _remove(path)
        excess -= size
    return -excess


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _warn_of(place: str, reason: str) -> None:
    _warn(f"compiled images cannot be cached in {place} ({reason}); {_REMEDY}")


def _warn(text: str) -> None:
    """Warn at the caller's line, but only once per process, because every compile would repeat the same warning."""
    global _has_warned
    with _lock:
        if _has_warned:
            return
        _has_warned = True
    warn_caller(text, CacheWarning)


def _files(*suffixes: str) -> list[str]:
    place = folder()
    try:
        names = os.listdir(place)
    except OSError:
        return []
    return [os.path.join(place, name) for name in names if name.endswith(suffixes)]


def cache_info() -> CacheInfo:
    """Return the cache's folder, the number and total size of its images, and the hits and misses of this process."""
    found = [status for status in map(witness, _files(_SUFFIX)) if status]
    with _lock:
        return CacheInfo(folder(), len(found), sum(size for _, size, _ in found), _hits, _misses)


def clear_cache() -> int:
    """Delete all entries of the compile cache, and return how many were deleted."""
    for path in _files(_TEMPORARY):
        _remove(path)
    return sum(_remove(path) for path in _files(_SUFFIX))
