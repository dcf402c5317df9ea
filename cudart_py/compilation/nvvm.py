"""Compile NVVM IR, which compilers of other languages generate, with libNVVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import errors
from ..base import arguments
from ..host.files import read_file
from .images import CompiledImage
from .linking.linking import link_images
from .requests import LONGEST, source_name, spell_architecture, texts

Module = str | bytes | os.PathLike[str]

_CALL = "compile_nvvm"
_LINK_TIME_OPTION = "-gen-lto"
_DEFAULT_NAME = "module.ll"
_BITCODE = b"BC\xc0\xde"


def compile_nvvm(
    source: Module,
    *,
    arch: str | int | tuple[int, int] | None = None,
    libraries: Sequence[Module] = (),
    options: Sequence[str] = (),
    name: str | None = None,
) -> CompiledImage:
    """Compile NVVM IR for one architecture; see `cudart_py.images.compile_nvvm`."""
    title, content = _read("source", source)
    title = source_name(_CALL, title if name is None else name)
    architecture = spell_architecture(_CALL, arch)
    if isinstance(libraries, str | bytes) or not isinstance(libraries, Sequence):
        raise arguments.wrong_type(_CALL, "libraries", "a sequence of modules, such as a list", libraries)
    others = [_read(f"libraries[{position}]", library) for position, library in enumerate(libraries)]
    user_options = texts(_CALL, "options", options)
    for option in user_options:
        if option.startswith("-arch"):
            raise ValueError(f"{_CALL}: argument 'options' has {option!r}, which the argument 'arch' sets")
    virtual = architecture.replace("sm_", "compute_")
    code, log = _run((title, content), others, [f"-arch={virtual}", *user_options])
    if _LINK_TIME_OPTION in user_options:
        return CompiledImage(title, architecture, b"", b"", code, {}, {}, {}, {}, log)
    linked = link_images([code.rstrip(b"\0")], arch=architecture.replace("compute_", "sm_"))
    machine_code = b"" if architecture == virtual else linked.cubin
    return replace(linked, name=title, arch=architecture, cubin=machine_code, log=log)


def _read(argument: str, module: Module) -> tuple[str, bytes]:
    """Return the name and the content of a module."""
    if isinstance(module, bytes):
        return _DEFAULT_NAME, module
    if isinstance(module, str):
        return _DEFAULT_NAME, arguments.text(_CALL, argument, module).encode()
    if not isinstance(module, os.PathLike):
        raise arguments.wrong_type(_CALL, argument, "NVVM IR as text or bitcode, or a path", module)
    path = arguments.text(_CALL, argument, os.fsdecode(module))
    try:
        return path, read_file(path, LONGEST)
    except ValueError as error:
        raise ValueError(f"{_CALL}: argument {argument!r} cannot be read: {error}") from None


def _library() -> Any:
    """Return the bindings of libNVVM, or raise NotSupportedError if the library is missing."""
    from cuda.bindings import nvvm  # imported late: few programs need it

    try:
        nvvm.version()
    except RuntimeError as error:  # cuda.pathfinder's DynamicLibNotFoundError
        raise errors.NotSupportedError(
            f"{_CALL}: the libNVVM library was not found: pip install 'cuda-toolkit[nvvm]==13.*', or install a CUDA 13 "
            "toolkit",
            call="nvvmVersion",
        ) from error
    return nvvm


def _run(
    source: tuple[str, bytes], libraries: Sequence[tuple[str, bytes]], options: Sequence[str]
) -> tuple[bytes, str]:
    """Compile once; return the code and the compiler's messages."""
    nvvm = _library()
    program = nvvm.create_program()
    try:
        try:
            title, content = source
            nvvm.add_module_to_program(program, content, len(content), title)
            for title, content in libraries:
                # Of bitcode, libNVVM can take only the functions that the source uses.
                is_lazy = content.startswith(_BITCODE)
                add = nvvm.lazy_add_module_to_program if is_lazy else nvvm.add_module_to_program
                add(program, content, len(content), title)
            nvvm.verify_program(program, len(options), options)
            nvvm.compile_program(program, len(options), options)
        except nvvm.nvvmError as error:
            log = _text(nvvm, program)
            message = f"{source[0]} does not compile\n\n{log or error}"
            raise errors.CompileError(message, status=error.status, call="nvvmCompileProgram", log=log) from None
        code = bytearray(nvvm.get_compiled_result_size(program))
        nvvm.get_compiled_result(program, code)
        return bytes(code), _text(nvvm, program)
    finally:
        nvvm.destroy_program(program)


def _text(nvvm: Any, program: int) -> str:
    log = bytearray(nvvm.get_program_log_size(program))
    nvvm.get_program_log(program, log)
    return log.rstrip(b"\0").decode(errors="replace").strip()
