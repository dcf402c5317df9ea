"""Compiled images on disk, so that a source is compiled once and not once a process.

The folder is the user's cache folder's `cudart_py` (on Linux `$XDG_CACHE_HOME/cudart_py` or
`~/.cache/cudart_py`), or what the environment variable CUDART_PY_CACHE names. One file is one entry:
images and what is known of them, behind a checksum. Entries are written beside their place and moved
there at once, so that readers and many writers never meet a half-written one; a damaged entry is the
same as none. A folder that cannot be written costs a warning, not the compile.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

__all__ = ["CacheInfo", "CacheWarning", "cache_info", "clear_cache", "folder", "load", "make_key", "store", "witness"]

ENVIRONMENT_VARIABLE = "CUDART_PY_CACHE"
# Raise it when the content of entries, or how the compiler is called, changes.
FORMAT = 1
_SUFFIX = ".image"
_MAGIC = b"cudart-py image\n"
_DIGEST_BYTES = 16
_LENGTHS = struct.Struct("<I")

_lock = threading.Lock()
_hits = 0
_misses = 0
_has_warned = False

Witness = tuple[str, int, int]


class CacheWarning(RuntimeWarning):
    """The compile cache cannot be written; compilation goes on without it."""


class CacheInfo(NamedTuple):
    """The compile cache: its folder, entries and bytes there, and this process's hits and misses."""

    folder: str
    entries: int
    bytes: int
    hits: int
    misses: int


def folder() -> str:
    """Return the cache's folder, which need not exist."""
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    if sys.platform == "linux":
        # platformdirs' rule for Linux, spelled out: to import it takes longer than a whole cached compile.
        base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
        return os.path.join(base, "cudart_py")
    import platformdirs

    return platformdirs.user_cache_dir("cudart_py", appauthor=False)


def make_key(parts: Iterable[str | bytes]) -> str:
    """Return the name of an entry: a digest of the parts, each with its length, and of the format."""
    digest = hashlib.blake2b(b"%d" % FORMAT, digest_size=20)
    for part in parts:
        content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


def witness(path: str) -> Witness | None:
    """Return what tells a file from a later one in its place: path, bytes and time of the last change."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_size, status.st_mtime_ns


def load(key: str) -> tuple[Any, list[bytes]] | None:
    """Return an entry's description and images; None when it is missing, damaged or out of date."""
    global _hits, _misses
    content = _read(os.path.join(folder(), key + _SUFFIX))
    entry = _decode(content) if content is not None else None
    with _lock:
        if entry is None:
            _misses += 1
        else:
            _hits += 1
    return entry


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None


def _decode(content: bytes) -> tuple[Any, list[bytes]] | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    body = content[start:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _digest(body):
        return None
    (length,) = _LENGTHS.unpack_from(body)
    position = _LENGTHS.size + length
    header = json.loads(body[_LENGTHS.size : position])
    if any(witness(path) != (path, size, time) for path, size, time in header["witnesses"]):
        return None
    images = []
    for size in header["sizes"]:
        images.append(body[position : position + size])
        position += size
    return header["description"], images


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def store(key: str, description: Any, images: Sequence[bytes], witnesses: Sequence[Witness] = ()) -> None:
    """Write an entry: a description that JSON can hold, and images.

    The entry is valid as long as the files of `witnesses` stay as they are.
    """
    header = {"description": description, "sizes": [len(image) for image in images], "witnesses": witnesses}
    text = json.dumps(header, separators=(",", ":")).encode()
    body = b"".join([_LENGTHS.pack(len(text)), text, *images])
    place = folder()
    # A name of its own for every writer: processes and threads may write the same entry at once.
    temporary = os.path.join(place, f"{key}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        try:
            with open(temporary, "wb") as stream:
                stream.write(_MAGIC + _digest(body) + body)
            os.replace(temporary, os.path.join(place, key + _SUFFIX))
        except OSError:
            _remove(temporary)
            raise
    except OSError as error:
        _warn(place, error)


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _warn(place: str, error: OSError) -> None:
    """Warn once a process: every later compile would repeat the same sentence."""
    global _has_warned
    with _lock:
        if _has_warned:
            return
        _has_warned = True
    warnings.warn(
        f"compiled images cannot be cached in {place} ({error.strerror or error}); set {ENVIRONMENT_VARIABLE} "
        "to a folder that can be written",
        CacheWarning,
        stacklevel=2,
    )


def _files(*suffixes: str) -> list[str]:
    place = folder()
    try:
        names = os.listdir(place)
    except OSError:
        return []
    return [os.path.join(place, name) for name in names if name.endswith(suffixes)]


def cache_info() -> CacheInfo:
    """Count what is in the compile cache, and how often this process found what it looked for."""
    found = [status for status in map(witness, _files(_SUFFIX)) if status]
    with _lock:
        return CacheInfo(folder(), len(found), sum(size for _, size, _ in found), _hits, _misses)


def clear_cache() -> int:
    """Delete every entry of the compile cache and return how many there were."""
    for path in _files(".tmp"):
        _remove(path)
    return sum(_remove(path) for path in _files(_SUFFIX))
