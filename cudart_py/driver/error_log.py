"""The error log of a GPU's driver (CUDA 12.9 and later), in which the driver says why a call has failed.

Nothing happens until a call fails. Then the messages that the log has received since the thread's last look are read.
All threads share the log, so messages of other threads are left out, as are those about earlier failures.

The functions are called directly: `cuda.bindings` 13.3 does not find them in drivers of CUDA 13.0, which have them.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import threading
from typing import Any

# The driver keeps no more than this.
_BYTES = 25600
# [time][thread][source][severity], where the thread is what pthread_self returns.
_HEAD = re.compile(r"^\[[\d:.]+\]\[(\d+)\]\[\w+\]\[\w\] ", re.MULTILINE)
# The last message about every failure of a driver function. Functions of the runtime have none of their own.
_RETURNING = re.compile(r"Returning (\d+) \(\w+\) from \w+")


class _Look(threading.local):
    """The position in the log after the thread's last look, or None before the first."""

    def __init__(self) -> None:
        self.iterator: ctypes.c_uint | None = None


_last = _Look()


@functools.cache
def _library() -> Any:
    """Return libcuda; None if it has no functions for the log."""
    try:
        library = ctypes.CDLL("libcuda.so.1")  # the library that the bindings have loaded
        return library if library.cuLogsCurrent and library.cuLogsDumpToMemory else None
    except (OSError, AttributeError):
        return None


def explanation(status: int) -> str:
    """Return what the driver has logged about the last failed call of this thread, one message per line.

    Returns an empty string if there is nothing, or if the last failure had another status.
    """
    return explanation_in(_new_content(), status)


def _new_content() -> str:
    """Return the log's content since this thread's last look."""
    library = _library()
    if library is None:
        return ""
    room, size = ctypes.create_string_buffer(_BYTES + 1), ctypes.c_size_t(_BYTES + 1)
    iterator = _last.iterator
    place = None if iterator is None else ctypes.byref(iterator)
    failed = library.cuLogsDumpToMemory(place, room, ctypes.byref(size), 0)
    if iterator is None:
        iterator = ctypes.c_uint()
        if not library.cuLogsCurrent(ctypes.byref(iterator), 0):
            _last.iterator = iterator
    return "" if failed else room.raw[: size.value].decode("utf-8", "replace")


def explanation_in(content: str, status: int) -> str:
    """Return what a log says about the last failed call of this thread, as `explanation` does."""
    heads = list(_HEAD.finditer(content))
    ends = [*(head.start() for head in heads[1:]), len(content)]
    here = str(threading.get_ident())
    texts = [content[head.end() : end].strip() for head, end in zip(heads, ends, strict=False) if head[1] == here]
    returned = _RETURNING.fullmatch(texts[-1]) if texts else None
    if returned:
        texts.pop()
        if int(returned[1]) != status:
            return ""
    found = itertools.takewhile(lambda text: not _RETURNING.fullmatch(text), reversed(texts))
    return "\n".join(reversed([*found]))
