"""NVRTC, the run-time compiler: its library, and one program with its options, its log and its images.

`cudart_py.compile` builds on this with defaults, header discovery, checked signatures and a cache;
`Program` is for those who want the compiler's own behaviour, its log and its images.
"""

from __future__ import annotations

import functools
import os
import re
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from .. import arguments, errors
from . import diagnostics
from .includes import scan
from .requests import (
    architecture_option,
    has_debug_option,
    has_line_option,
    included_first,
    searched_folders,
    source_name,
    spell_architecture,
    texts,
    working_folder,
)

_MAJOR = 13
# The control character that stands for a quotation mark in names, and PTX's directives that have names.
_SUBSTITUTE = "\x1a"
_FILE = re.compile(rb"^\s*\.file\b.*", re.MULTILINE)

# Whether a program of this process was compiled with -G.
_for_debugger = False


@functools.cache
def _library() -> Any:
    """Return the bindings of NVRTC, which is loaded once and only when something is really compiled."""
    from cuda.bindings import nvrtc  # a cached image needs no compiler

    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError as error:  # cuda.pathfinder's DynamicLibNotFoundError, which older ones lack
        raise errors.NvrtcError(
            "the NVRTC library was not found: install the wheel nvidia-cuda-nvrtc of CUDA 13 or a CUDA 13 toolkit",
            call="nvrtcVersion",
        ) from error
    if status:
        raise nvrtc_failure(status, "nvrtcVersion")
    if major != _MAJOR:
        raise errors.NvrtcError(
            f"this NVRTC is of CUDA {major}.{minor}, and cudart_py needs CUDA {_MAJOR}", call="nvrtcVersion"
        )
    return nvrtc


def _call(name: str, *arguments: Any) -> Any:
    """Call one of NVRTC's functions and return nothing, the value or a tuple of the values behind its status.

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
    from cuda.bindings import nvrtc  # as above

    missing, text = nvrtc.nvrtcGetErrorString(status)
    message = f"{status.name if missing else text.decode()} ({status.name})"
    return errors.NvrtcError(f"{call}: {message}" if call else message, status=status, call=call)


def library_version() -> tuple[int, int]:
    """Return the (major, minor) version of NVRTC (nvrtcVersion). Loads it."""
    major, minor = _call("nvrtcVersion")
    return major, minor


def library_path() -> str | None:
    """Return the path of the NVRTC library in use, None where it cannot be told. Loads it."""
    _library()
    from cuda.pathfinder import load_nvidia_dynamic_lib  # a cached image needs no compiler

    path: str | None = load_nvidia_dynamic_lib("nvrtc").abs_path
    return path


def has_compiled_for_debugger() -> bool:
    """Return whether NVRTC has compiled with -G in this process.

    From then on NVRTC 13.5 makes slower code of kernels that take large structures by value, also without that option.
    """
    return _for_debugger


class NvrtcProgram:
    """One CUDA C++ source given to NVRTC, as `images.Program` says: nvrtcCreateProgram.

    Without an architecture, of `arch` or among the options, it is compiled for NVRTC's own default.
    """

    def __init__(
        self,
        source: str | bytes,
        *,
        name: str = "kernel.cu",
        names: Sequence[str] = (),
        arch: str | int | tuple[int, int] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        text = _source_bytes(source)
        self.name = source_name("Program", name)
        self.names = texts("Program", "names", names)
        self.options = texts("Program", "options", options)
        named = architecture_option(self.options)
        if arch is not None and named is not None:
            raise ValueError(f"Program: argument 'options' has {named!r}, which the argument 'arch' decides")
        self._arch = None if arch is None else spell_architecture("Program", arch)
        self._refuse_long_names(text)
        self._source = text.decode(errors="replace")
        self._compiled = False
        self._alias = _alias(name)
        self._handle = _call("nvrtcCreateProgram", text, self._alias.encode(), 0, [], [])
        self._finalizer = weakref.finalize(self, _call, "nvrtcDestroyProgram", self._handle)
        self._finalizer.atexit = False
        for expression in self.names:
            _call("nvrtcAddNameExpression", self._handle, expression.encode())

    def _refuse_long_names(self, source: bytes) -> None:
        """Raise ValueError for names that would corrupt NVRTC's memory, which only line information contains."""
        if has_line_option(self.options):
            folder = os.path.join(working_folder(), os.path.dirname(self.name))
            folders, first = searched_folders(self.options), included_first(self.options)
            scan(source, folder, folders, self.options, first, call="Program")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str | tuple[Any, ...]:
        arguments.refuse_copy(self, "make another Program of the same source")

    def __repr__(self) -> str:
        state = "closed" if self.closed else "compiled" if self._compiled else "not compiled"
        return f"<Program {self.name!r}, {state}>"

    @property
    def handle(self) -> Any:
        """The nvrtcProgram, which raw calls of `cuda.bindings.nvrtc` take."""
        if self.closed:
            raise ValueError(f"the program {self.name!r} is closed")
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether the program has been freed."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Free the program; further calls do nothing: nvrtcDestroyProgram."""
        self._finalizer()

    def compile(self) -> None:
        """Compile the source: nvrtcCompileProgram.

        Raises CompileError with the log and the offending source lines.
        """
        global _for_debugger
        options = [option.encode() for option in (*self._architecture_options(), *self.options)]
        _for_debugger |= has_debug_option(self.options)
        try:
            _call("nvrtcCompileProgram", self.handle, len(options), options)
        except errors.NvrtcError as error:
            raise self._explained(error) from None
        self._compiled = True

    def _architecture_options(self) -> tuple[str, ...]:
        if architecture_option(self.options) is not None:
            return ()
        return () if self._arch is None else (f"--gpu-architecture={self._arch}",)

    def _explained(self, error: errors.NvrtcError) -> errors.NvrtcError:
        """Return the error of a compile with the compiler's log and the source lines that the log names."""
        log = self.log
        if not log:
            return error
        text = diagnostics.explain(log, self._line)
        if "--gpu-architecture" in log:
            supported = _call("nvrtcGetSupportedArchs")
            known = ", ".join(f"sm_{number}" for number in supported)
            major, minor = library_version()
            text += f"\n\nNVRTC {major}.{minor} knows the architectures {known}"
        return errors.CompileError(
            f"{self.name} does not compile\n\n{text}", status=error.status, call=error.call, log=log
        )

    def _line(self, file: str, number: int) -> str | None:
        """Return one line of the source or of a file that it includes."""
        if file == self.name or os.path.basename(file) == self.name:
            lines = self._source.splitlines()
        else:
            try:
                with open(file, encoding="utf-8", errors="replace") as stream:
                    lines = stream.read().splitlines()
            except (OSError, ValueError):  # the latter for a name that the file system's encoding cannot hold
                return None
        return lines[number - 1] if 0 < number <= len(lines) else None

    @property
    def log(self) -> str:
        """The compiler's messages, empty before `compile()`: nvrtcGetProgramLog."""
        return self._bytes("ProgramLog").decode(errors="replace").replace(self._alias, self.name).strip()

    @property
    def ptx(self) -> bytes:
        """The PTX text, without the closing NUL that C has: nvrtcGetPTX."""
        ptx = self._image("PTX").rstrip(b"\0")
        return ptx if self._alias == self.name else _FILE.sub(_without_alias, ptx)

    @property
    def cubin(self) -> bytes:
        """The machine code; there is none for a virtual architecture (compute_XX): nvrtcGetCUBIN."""
        return self._image("CUBIN")

    @property
    def ltoir(self) -> bytes:
        """The intermediate code that the option `-dlto` asks for: nvrtcGetLTOIR."""
        return self._image("LTOIR")

    @property
    def lowered_names(self) -> dict[str, str]:
        """The symbol of every name expression, by the expression: nvrtcGetLoweredName."""
        self._need_compiled()
        return {
            expression: _call("nvrtcGetLoweredName", self.handle, expression.encode()).decode()
            for expression in self.names
        }

    def _image(self, kind: str) -> bytes:
        self._need_compiled()
        return self._bytes(kind)

    def _need_compiled(self) -> None:
        _ = self.handle
        if not self._compiled:
            raise ValueError(f"the program {self.name!r} is not compiled: call compile() first")

    def _bytes(self, kind: str) -> bytes:
        size = _call(f"nvrtcGet{kind}Size", self.handle)
        if size == 0:
            return b""
        # The binding writes into this object in place. Made of NULs, so that the one-byte object, which
        # Python shares, keeps its value under the NUL of an empty log.
        buffer = bytes(size)
        _call(f"nvrtcGet{kind}", self.handle, buffer)
        return buffer.rstrip(b"\0") if kind == "ProgramLog" else buffer


def _alias(name: str) -> str:
    """Return the name that NVRTC is given in place of a source's own.

    It takes a leading hyphen for an option, and writes quotation marks into its PTX as they are, which the assembler
    then refuses.
    """
    return (f"./{name}" if name.startswith("-") else name).replace('"', _SUBSTITUTE)


def _without_alias(directive: re.Match[bytes]) -> bytes:
    """Return a `.file` directive of PTX with a source's own name; PTX spells quotation marks as octal numbers."""
    return directive[0].replace(b"/./-", b"/-").replace(b"\\%03o" % ord(_SUBSTITUTE), b"\\042")


def _source_bytes(source: str | bytes) -> bytes:
    if isinstance(source, str):
        return arguments.text("Program", "source", source).encode()
    if not isinstance(source, bytes):
        raise arguments.wrong_type("Program", "source", "the text of a program (str or bytes)", source)
    if b"\0" in source:
        raise arguments.wrong_value("Program", "source", "without NUL characters", source)
    return source
