"""libnvJitLink: links PTX to PTX, because the simulator runs that instead of machine code.

Inputs in LTO-IR go to NVIDIA's library, which can return PTX for them. All other inputs must be PTX, or fat binaries
that contain PTX; the simulator links them.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..compilation.linking.definitions import LINK_TIME_CODE
from ..driver import backend
from .foreign_memory import read_array, read_string, write, write_bytes
from .functions import Function
from .library_names import LINKER, REAL
from .messages import Implementation, not_supported

_SUCCESS, _INVALID_INPUT, _INTERNAL = 0, 3, 6  # nvJitLinkResult
_PTX, _LTO_IR, _FATBIN, _ANY = 2, 3, 4, 10  # nvJitLinkInputType
_JIT_PTX, _JIT_FATBIN = 1, 2  # CUjitInputType
_VARIANT = re.compile(r"^__(\w+?)_\d+_\d+$")


@dataclass
class Link:
    """A link: its options and inputs, and afterwards the PTX or the reason of its failure."""

    options: list[bytes]
    inputs: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    ptx: bytes = b""
    log: bytes = b""


_links: dict[int, Link] = {}
_handles = itertools.count(1)


@functools.cache
def _real() -> Any:
    """Return NVIDIA's library, which is next to the stand-in that this process has loaded."""
    return ctypes.CDLL(str(_stand_in().parent / REAL / LINKER))


def _stand_in() -> Path:
    for line in os.fsdecode(Path("/proc/self/maps").read_bytes()).splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name == LINKER and path.parent.name.startswith("standins-"):
            return path
    raise FileNotFoundError(f"{LINKER} is not loaded")


def create(handle: int, count: int, options: int) -> int:
    """Begin a link (nvJitLinkCreate)."""
    number = next(_handles)
    _links[number] = Link([read_string(address) or b"" for address in read_array(options, count)])
    write(handle, number)
    return _SUCCESS


def destroy(handle: int) -> int:
    """End a link (nvJitLinkDestroy)."""
    _links.pop(ctypes.c_size_t.from_address(handle).value, None)
    return _SUCCESS


def add_data(handle: int, kind: int, data: int, size: int, name: int) -> int:
    """Add an input from memory (nvJitLinkAddData)."""
    _links[handle].inputs.append((kind, ctypes.string_at(data, size), read_string(name) or b""))
    return _SUCCESS


def add_file(handle: int, kind: int, name: int) -> int:
    """Add an input from a file (nvJitLinkAddFile)."""
    path = read_string(name) or b""
    try:
        content = Path(path.decode()).read_bytes()
    except OSError as error:
        _links[handle].log = f"{error.filename}: {error.strerror}".encode()
        return _INVALID_INPUT
    _links[handle].inputs.append((kind, content, path))
    return _SUCCESS


def complete(handle: int) -> int:
    """Link (nvJitLinkComplete)."""
    link = _links[handle]
    if any(_is_lto_ir(kind, content) for kind, content, _ in link.inputs):
        return _link_lto(link)
    return _link_ptx(link)


def _is_lto_ir(kind: int, content: bytes) -> bool:
    return kind == _LTO_IR or (kind == _ANY and content.startswith(LINK_TIME_CODE))


def _link_ptx(link: Link) -> int:
    if len(link.inputs) == 1 and link.inputs[0][0] in (_PTX, _ANY):
        link.ptx = link.inputs[0][1].rstrip(b"\0")
        return _SUCCESS
    simulator = backend.chosen().functions
    status, state = simulator.cuLinkCreate(0, [], [])
    for kind, content, name in link.inputs:
        jit_kind = _JIT_FATBIN if kind == _FATBIN else _JIT_PTX
        if not status:
            (status,) = simulator.cuLinkAddData(state, jit_kind, content, len(content), name, 0, [], [])
    if not status:
        status, address, size = simulator.cuLinkComplete(state)
        if not status:
            link.ptx = ctypes.string_at(int(address), size).rstrip(b"\0")
    if status:
        link.log = (backend.chosen().explanation(int(status)) or str(status)).encode()
        return _INVALID_INPUT
    simulator.cuLinkDestroy(state)
    return _SUCCESS


def _link_lto(link: Link) -> int:
    """Let NVIDIA's library link LTO-IR to PTX."""
    library = _real()
    options = [*link.options, *(option for option in (b"-lto", b"-ptx") if option not in link.options)]
    listed = (ctypes.c_char_p * len(options))(*options)
    handle = ctypes.c_void_p()
    status = library.nvJitLinkCreate(ctypes.byref(handle), ctypes.c_uint32(len(options)), listed)
    for kind, content, name in link.inputs:
        status = status or library.nvJitLinkAddData(handle, kind, content, ctypes.c_size_t(len(content)), name)
    status = status or library.nvJitLinkComplete(handle)
    if not status:
        link.ptx = _text(library.nvJitLinkGetLinkedPtxSize, library.nvJitLinkGetLinkedPtx, handle)
    elif handle:
        link.log = _text(library.nvJitLinkGetErrorLogSize, library.nvJitLinkGetErrorLog, handle)
    if handle:
        library.nvJitLinkDestroy(ctypes.byref(handle))
    return int(status)


def _text(size_of: Any, get: Any, handle: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    if size_of(handle, ctypes.byref(size)):
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    return buffer.raw.rstrip(b"\0") if get(handle, buffer) == 0 else b""


def _sized(text: Callable[[Link], bytes]) -> tuple[Implementation, Implementation]:
    """Return the function that writes the size of a text with its final zero, and the one that writes the text."""

    def size(handle: int, place: int) -> int:
        write(place, len(text(_links[handle])) + 1)
        return _SUCCESS

    def content(handle: int, place: int) -> int:
        write_bytes(place, text(_links[handle]) + b"\0")
        return _SUCCESS

    return size, content


def version(major: int, minor: int) -> int:
    """Write the version of NVIDIA's library (nvJitLinkVersion)."""
    return int(_real().nvJitLinkVersion(ctypes.c_void_p(major), ctypes.c_void_p(minor)))


_ptx_size, _ptx = _sized(lambda link: link.ptx)
_log_size, _log = _sized(lambda link: link.log)
_no_text_size, _no_text = _sized(lambda link: b"")

_FUNCTIONS: dict[str, Implementation] = {
    "nvJitLinkAddData": add_data,
    "nvJitLinkAddFile": add_file,
    "nvJitLinkComplete": complete,
    "nvJitLinkCreate": create,
    "nvJitLinkDestroy": destroy,
    "nvJitLinkGetErrorLog": _log,
    "nvJitLinkGetErrorLogSize": _log_size,
    "nvJitLinkGetInfoLog": _no_text,
    "nvJitLinkGetInfoLogSize": _no_text_size,
    "nvJitLinkGetLinkedCubin": _ptx,
    "nvJitLinkGetLinkedCubinSize": _ptx_size,
    "nvJitLinkGetLinkedPtx": _ptx,
    "nvJitLinkGetLinkedPtxSize": _ptx_size,
    "nvJitLinkVersion": version,
}


def implementation(function: Function) -> Implementation:
    """Return the implementation of a function of libnvJitLink."""
    match = _VARIANT.match(function.symbol)
    name = match[1] if match else function.symbol
    return _FUNCTIONS.get(name) or not_supported(name)
