"""NVRTC, the runtime compiler: loading its library, and compiling one program.

`cudart_py.images.compile_image` builds on this with defaults, header discovery, checked signatures and a cache.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from .. import errors
from . import diagnostics
from .assembler import at_source_lines
from .requests import has_debug_option

_MAJOR = 13
# The control character that replaces a quotation mark in names, and the PTX directives that contain names.
_SUBSTITUTE = "\x1a"
_FILE = re.compile(rb"^\s*\.file\b.*", re.MULTILINE)

# Whether this process has compiled a program with -G.
_for_debugger = False


@functools.cache
def _library() -> Any:
    """Return the bindings of NVRTC, which is loaded once, at the first compile that the cache cannot serve."""
    from cuda.bindings import nvrtc  # a cached image needs no compiler

    _load_beside_older_version()
    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError as error:  # cuda.pathfinder's DynamicLibNotFoundError, which older versions do not have
        raise errors.NvrtcError(
            "the NVRTC library was not found: install the wheel nvidia-cuda-nvrtc for CUDA 13, or a CUDA 13 toolkit",
            call="nvrtcVersion",
        ) from error
    if status:
        raise nvrtc_failure(status, "nvrtcVersion")
    if major != _MAJOR:
        raise errors.NvrtcError(
            f"this NVRTC belongs to CUDA {major}.{minor}, but cudart_py needs CUDA {_MAJOR}: install the wheel "
            f"nvidia-cuda-nvrtc for CUDA {_MAJOR}; if another package has loaded this one, compile before importing it",
            call="nvrtcVersion",
        )
    return nvrtc


def _load_beside_older_version() -> None:
    """Load the wheel's NVRTC if another package, such as a PyTorch for CUDA 12, has loaded an older one.

    cuda.bindings would use the older one, but only as long as none of CUDA 13 is loaded.
    """
    name = f"libnvrtc.so.{_MAJOR}"
    if not _is_loaded(f"libnvrtc.so.{_MAJOR - 1}") or _is_loaded(name):
        return
    wheel = importlib.util.find_spec(f"nvidia.cu{_MAJOR}") if importlib.util.find_spec("nvidia") else None
    for folder in (wheel and wheel.submodule_search_locations) or ():
        # NVRTC 13.0 does not find its builtins itself.
        for path in [*Path(folder, "lib").glob(f"libnvrtc-builtins.so.{_MAJOR}.*"), Path(folder, "lib", name)]:
            with contextlib.suppress(OSError):  # cuda.bindings then reports that there is none
                ctypes.CDLL(str(path), os.RTLD_NOW)


def _is_loaded(library: str) -> bool:
    try:
        ctypes.CDLL(library, os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _call(name: str, *arguments: Any) -> Any:
    """Call a function of NVRTC; return the value after its status, a tuple if there are several, None if there is none.

    Raises NvrtcError for a status other than success.
    """
    status, *values = getattr(_library(), name)(*arguments)
    if status:
        raise nvrtc_failure(status, name)
    if len(values) > 1:
        return tuple(values)
    return values[0] if values else None


def nvrtc_failure(status: Any, call: str = "") -> errors.NvrtcError:
    """Return the exception for a status of NVRTC, with the library's own text (nvrtcGetErrorString)."""
    from cuda.bindings import nvrtc  # a cached image needs no compiler

    missing, text = nvrtc.nvrtcGetErrorString(status)
    message = f"{status.name if missing else text.decode()} ({status.name})"
    return errors.NvrtcError(f"{call}: {message}" if call else message, status=status, call=call)


def library_version() -> tuple[int, int]:
    """Return the (major, minor) version of NVRTC (nvrtcVersion). Loads it."""
    major, minor = _call("nvrtcVersion")
    return major, minor


def library_path() -> str | None:
    """Return the path of the NVRTC library in use, or None if it is unknown. Loads it."""
    _library()
    from cuda.pathfinder import load_nvidia_dynamic_lib  # a cached image needs no compiler

    path: str | None = load_nvidia_dynamic_lib("nvrtc").abs_path
    return path


def has_compiled_for_debugger() -> bool:
    """Return whether NVRTC has compiled with -G in this process.

    From then on, NVRTC 13.5 generates slower code for kernels that take large structures by value, even without -G.
    """
    return _for_debugger


class NvrtcOutput(NamedTuple):
    """The result of one run of NVRTC.

    `ptx`, `cubin` and `ltoir` are empty unless the options request them. `lowered` has the symbol of each name
    expression, and `log` has the compiler's messages.
    """

    ptx: bytes
    cubin: bytes
    ltoir: bytes
    log: str
    lowered: dict[str, str]


def run_nvrtc(
    source: bytes,
    *,
    name: str,
    names: Sequence[str] = (),
    options: Sequence[str],
    headers: Mapping[str, bytes] = MappingProxyType({}),
) -> NvrtcOutput:
    """Compile a source called `name`, with name expressions, options and texts of headers that have been checked.

    Calls nvrtcCreateProgram, nvrtcAddNameExpression and nvrtcCompileProgram. Raises CompileError with the log and the
    source lines that the log names.
    """
    global _for_debugger
    alias = _alias(name)
    included = [header.encode("utf-8", "surrogateescape") for header in headers]
    handle = _call("nvrtcCreateProgram", source, alias.encode(), len(headers), [*headers.values()], included)
    try:
        for expression in names:
            _call("nvrtcAddNameExpression", handle, expression.encode())
        _for_debugger |= has_debug_option(options)
        try:
            _call("nvrtcCompileProgram", handle, len(options), [option.encode() for option in options])
        except errors.NvrtcError as error:
            raise _explained(error, {**headers, name: source}, name, handle) from None
        return NvrtcOutput(
            _ptx(handle, name),
            _bytes(handle, "CUBIN"),
            _bytes(handle, "LTOIR"),
            _log(handle, name),
            {expression: _call("nvrtcGetLoweredName", handle, expression.encode()).decode() for expression in names},
        )
    finally:
        _call("nvrtcDestroyProgram", handle)


def _explained(error: errors.NvrtcError, texts: Mapping[str, bytes], name: str, handle: Any) -> errors.NvrtcError:
    """Return the error of a failed compile with the compiler's log and the source lines that the log names.

    `texts` has the source, which is called `name`, and the headers that are not files.
    """
    log = _log(handle, name)
    if not log:
        return error
    # After an assembler error, the PTX passed here is the text that was rejected. After a compiler error, it is empty.
    placed = at_source_lines(log, _ptx(handle, name).decode(errors="replace"), name)
    text = diagnostics.explain(placed, functools.partial(_line, texts, name))
    if "--gpu-architecture" in log:
        supported = _call("nvrtcGetSupportedArchs")
        known = ", ".join(f"sm_{number}" for number in supported)
        major, minor = library_version()
        text += f"\n\nNVRTC {major}.{minor} knows the architectures {known}"
    return errors.CompileError(f"{name} does not compile\n\n{text}", status=error.status, call=error.call, log=log)


def _line(texts: Mapping[str, bytes], name: str, file: str, number: int) -> str | None:
    """Return one line of the source, of a header that is a text, or of a file."""
    if os.path.basename(file) == name:
        file = name
    if file in texts:
        text = texts[file].decode(errors="replace")
    else:
        try:
            with open(file, encoding="utf-8", errors="replace") as stream:
                text = stream.read()
        except (OSError, ValueError):  # ValueError for a name that the file system's encoding cannot represent
            return None
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else None


def _log(handle: Any, name: str) -> str:
    # The log ends with a NUL, but NULs also precede some errors of the assembler.
    log = _bytes(handle, "ProgramLog").replace(b"\0", b"").decode(errors="replace")
    return log.replace(_alias(name), name).strip()


def _ptx(handle: Any, name: str) -> bytes:
    """Return the PTX text without its terminating NUL."""
    ptx = _bytes(handle, "PTX").rstrip(b"\0")
    return ptx if _alias(name) == name else _FILE.sub(_without_alias, ptx)


def _bytes(handle: Any, kind: str) -> bytes:
    size = _call(f"nvrtcGet{kind}Size", handle)
    if size == 0:
        return b""
    # The binding overwrites this object in place. Python shares one-byte objects, but an empty log only writes a NUL
    # over the NUL that is already there.
    buffer = bytes(size)
    _call(f"nvrtcGet{kind}", handle, buffer)
    return buffer


def _alias(name: str) -> str:
    """Return the name to pass to NVRTC instead of a source's own name.

    NVRTC treats a name with a leading hyphen as an option, and writes quotation marks into its PTX unescaped, which the
    assembler then rejects.
    """
    return (f"./{name}" if name.startswith("-") else name).replace('"', _SUBSTITUTE)


def _without_alias(directive: re.Match[bytes]) -> bytes:
    """Return a `.file` directive of PTX with a source's own name; PTX spells quotation marks as octal escapes."""
    return directive[0].replace(b"/./-", b"/-").replace(b"\\%03o" % ord(_SUBSTITUTE), b"\\042")
