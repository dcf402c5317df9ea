"""Calls for the driver's error log, which explains in sentences why calls have failed.

As on an H200, `flags` are ignored.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from typing import Any

from cuda.bindings.driver import CUlogIterator, CUlogLevel, CUlogsCallbackHandle, CUresult

from ..state.arguments import host_address, number
from ..state.driver_log import CAPACITY, Message, log
from ..state.errors import StatusError
from .entry import entry

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
_LOST = f"Only the latest {CAPACITY} messages are available"
_TRUNCATED = "The buffer is too small for the earlier messages"

_handles = itertools.count(1)


@entry(values=1, before_init=True, of_thread_only=True)
def cuLogsRegisterCallback(callbackFunc: Any, userData: Any) -> Any:
    """Call a C function with each new message, in the thread whose call has failed (cuLogsRegisterCallback)."""
    address, data = number(callbackFunc), host_address(userData)
    if not address:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)

    def receive(message: Message) -> None:
        text = message.text.encode()
        _PROTOTYPE(address)(data, CUlogLevel.CU_LOG_LEVEL_ERROR.value, text, len(text))

    handle = next(_handles)
    log.receivers[handle] = receive
    return CUlogsCallbackHandle(handle)


@entry(before_init=True, of_thread_only=True)
def cuLogsUnregisterCallback(callback: Any) -> None:
    """Stop calling a function that cuLogsRegisterCallback has registered (cuLogsUnregisterCallback)."""
    if log.receivers.pop(number(callback), None) is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


@entry(values=1, before_init=True, of_thread_only=True)
def cuLogsCurrent(flags: Any) -> Any:
    """Return an iterator at the end of the log (cuLogsCurrent)."""
    return CUlogIterator(log.end)


@entry(values=1, before_init=True, of_thread_only=True)
def cuLogsDumpToFile(iterator: Any, pathToFile: Any, flags: Any) -> Any:
    """Write the messages since `iterator` to a file, and move the iterator to the log's end (cuLogsDumpToFile)."""
    if not pathToFile:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    messages = _since(iterator)
    try:
        with open(os.fsdecode(pathToFile), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in messages)
    except OSError:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None
    return _at_end(iterator)


@entry(values=2, before_init=True, of_thread_only=True)
def cuLogsDumpToMemory(iterator: Any, buffer: Any, size: Any, flags: Any) -> tuple[Any, int]:
    """Write the messages since `iterator` to a buffer, ending with a zero, and move the iterator (cuLogsDumpToMemory).

    Returns the iterator and the number of bytes without the zero. If the buffer is too small, it receives the latest
    messages after a line that says so; if not even one fits, the call fails.
    """
    address, room = host_address(buffer), number(size)
    if not address or room <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    lines = [f"{line}\n".encode() for line in _since(iterator)]
    if sum(map(len, lines)) >= room and lines:
        head = f"{_TRUNCATED}\n".encode()
        while lines and len(head) + sum(map(len, lines)) >= room:
            del lines[0]
        if not lines:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        lines.insert(0, head)
    content = b"".join(lines)
    ctypes.memmove(address, content + b"\0", len(content) + 1)
    return _at_end(iterator), len(content)


def _since(iterator: Any) -> list[str]:
    """Return the messages from an iterator on, or all, after a line that says so if some are no longer available."""
    messages = list(log.messages)
    first = 0 if iterator is None else int(iterator)
    if first > log.end:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    lost = bool(messages) and first < messages[0].number
    return [*([_LOST] if lost else []), *(str(message) for message in messages if message.number >= first)]


def _at_end(iterator: Any) -> Any:
    """Move an iterator to the end of the log, in place as C does, and return it."""
    if iterator is not None:
        ctypes.c_uint.from_address(iterator.getPtr()).value = log.end
    return iterator
