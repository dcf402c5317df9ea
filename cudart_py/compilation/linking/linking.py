"""Link several images into one with nvJitLink, so that separately compiled code can call each other.

Inputs are relocatable machine code and PTX (`compile_image` with `-rdc=true`), link-time code (`-dlto`), fatbins and
libraries of device code. A driver that runs PTX, such as the simulator, also needs the result as PTX. The result has
PTX if all inputs are link-time code, or if each is PTX or was compiled here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ... import errors
from ...base import arguments
from ...host.files import read_file
from .. import exports
from ..fatbins.compression import DecompressorMissingError, FatbinError
from ..fatbins.container import MAGIC as FATBIN
from ..images import CompiledImage, KernelAttributes, Variable
from ..names.demangling import demangle
from ..names.signatures import Signature
from ..remedies import DEVICE_RUNTIME
from ..requests import spell_architecture, texts
from .definitions import (
    BINARY,
    LINK_TIME_CODE,
    MACHINE_CODE,
    architecture,
    definitions,
    is_ptx,
    ptx_in_fatbin,
    runs_on,
)
from .ptx_linking import link_ptx, linked_definitions

_TAKEN = ("-arch", "-ptx")
_UNDEFINED = re.compile(r"Undefined reference to '([^']+)'")
# Lines of the log that the error message replaces: undefined references, which often name the wrong image, and the
# final ERROR line.
_SAID_BETTER = re.compile(r"^(?:error\s*:\s*Undefined reference to '[^']+'.*|ERROR \d+: .*)$\n?", re.MULTILINE)
_RELOCATABLE = "compile_image(source, options=['-rdc=true'])"
# Without optimisation, because inlined functions would disappear from the listing.
_LISTED = ("-lto", "-ptx", "-O0")
_SOURCES = (".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp")
_DEVICE_RUNTIME = "libcudadevrt.a"
_DEVICE_RUNTIME_PREFIX = "__cudaCDP"
# A symbol that no program defines.
_NOWHERE = "cudart_py_defined_nowhere"

Image = CompiledImage | bytes | os.PathLike[str]


def link_images(
    images: Sequence[Image], *, arch: str | int | tuple[int, int] | None = None, options: Sequence[str] = ()
) -> CompiledImage:
    """Link images for one architecture and return the machine code: nvJitLinkComplete.

    An image is bytes, the path of a file, or a CompiledImage of relocatable code. `arch` defaults to the architecture
    of the compiled images, and `options` are passed to nvJitLink unchanged. The result has PTX if all images are
    link-time code, or if each is PTX or a compiled image with PTX. Its signatures come from the images and from that
    PTX.

    Raises TypeError and ValueError that name the argument. Raises LinkError if a symbol is defined by two images or by
    none, and with the linker's log for other failures.
    """
    inputs = _read(images)
    target = _target(images, arch)
    user_options = texts("link", "options", options)
    for option in user_options:
        if option.startswith(_TAKEN):
            raise ValueError(f"link: argument 'options' must not contain {option!r}, which cudart_py sets itself")
    codes = [code for _, code in inputs]
    has_link_time_code = any(code.startswith(LINK_TIME_CODE) for code in codes)
    _refuse_repeated(inputs, target)
    link_options = [*(["-lto"] if has_link_time_code else []), *user_options]
    cubin, log = _link(inputs, target, link_options, "cubin")
    ptx = b""
    if all(code.startswith(LINK_TIME_CODE) for code in codes):
        ptx = _link(inputs, target, [*link_options, "-ptx"], "ptx")[0].rstrip(b"\0")
    else:
        # A driver that runs PTX itself contains the runtime's functions with which kernels launch kernels.
        needed = [pair for pair in zip(images, codes, strict=True) if not _is_device_runtime(pair[0])]
        found = [_ptx_of(image, code, target) for image, code in needed]
        if all(found):
            ptx = link_ptx([text.decode(errors="replace") for text in found], target).encode()
    return _described(images, codes, ptx, cubin, target, log)


def _read(images: Sequence[Image]) -> list[tuple[str, bytes]]:
    """Return a (name, bytes) pair for each input; messages use the name."""
    if isinstance(images, bytes | bytearray | str) or not isinstance(images, Sequence):
        raise arguments.wrong_type("link", "images", "a sequence of images, such as [image]", images)
    inputs = []
    for position, image in enumerate(images):
        if isinstance(image, CompiledImage):
            name, code = image.name, image.cubin or image.ltoir or image.ptx
        elif isinstance(image, bytes):
            name, code = f"image {position}", image
        elif isinstance(image, os.PathLike):
            name = arguments.text("link", f"images[{position}]", os.fsdecode(image))
            try:
                code = read_file(name)
            except ValueError as error:
                raise ValueError(f"link: argument 'images[{position}]' cannot be read: {error}") from None
        else:
            raise arguments.wrong_type("link", f"images[{position}]", "bytes, a path or a compiled image", image)
        if not _is_image(code):
            if name.endswith(_SOURCES):
                rule = f"be an image, and {name} is CUDA C++"
                raise arguments.unusable("link", f"images[{position}]", rule, remedy=f"pass {_RELOCATABLE}")
            rule = "be a cubin, PTX, link-time code, a fatbin or a library"
            raise arguments.unusable("link", f"images[{position}]", rule)
        inputs.append((name, code))
    if not inputs:
        raise arguments.unusable("link", "images", "contain at least one image")
    return inputs


def _is_device_runtime(image: Image) -> bool:
    """Return whether an input is CUDA's library of the runtime for kernels."""
    return isinstance(image, os.PathLike) and os.path.basename(os.fsdecode(image)) == _DEVICE_RUNTIME


def _ptx_of(image: Image, code: bytes, target: str) -> bytes:
    """Return the PTX of an input; empty if it has only machine code or link-time code."""
    if isinstance(image, CompiledImage):
        return image.ptx
    if code.startswith(FATBIN):
        try:
            return ptx_in_fatbin(code, target)
        except (FatbinError, DecompressorMissingError):
            return b""  # nvJitLink, which has linked it, decompresses it itself
    return code.rstrip(b"\0") if is_ptx(code) else b""


def _is_image(code: bytes) -> bool:
    return code.startswith(BINARY) or is_ptx(code)


def _target(images: Sequence[Image], arch: str | int | tuple[int, int] | None) -> str:
    if arch is not None:
        return spell_architecture("link", arch)
    known = sorted({image.arch for image in images if isinstance(image, CompiledImage)})
    if len(known) != 1:
        found = f"the images are for {' and '.join(known)}" if known else "the images do not specify it"
        raise ValueError(f"link: argument 'arch' is needed: {found}")
    return known[0]


def _library() -> Any:
    from cuda.bindings import nvjitlink  # imported late because few programs link

    return nvjitlink


def _refuse_repeated(inputs: Sequence[tuple[str, bytes]], target: str) -> None:
    """Raise LinkError if two images define the same symbol.

    nvJitLink 13.5 would choose one of the definitions without an error, or crash if the process has linked link-time
    code before. Only if all images are link-time code does it report repeated definitions itself.
    """
    owners: dict[str, int] = {}
    for position, (_, code) in enumerate(inputs):
        for symbol in sorted(definitions(code)):
            if owners.setdefault(symbol, position) != position:
                raise _repeated(inputs, symbol, owners[symbol], position)
    if owners:
        for position, (_, code) in enumerate(inputs):
            if code.startswith(LINK_TIME_CODE):
                for symbol in _defined_in_link_time_code(code, owners, target):
                    raise _repeated(inputs, symbol, *sorted((owners[symbol], position)))


def _repeated(inputs: Sequence[tuple[str, bytes]], symbol: str, *positions: int) -> errors.LinkError:
    declaration = demangle(symbol)
    name = f"{declaration} ({symbol})" if declaration else symbol
    places = " and in ".join(f"images[{position}], {inputs[position][0]}," for position in positions)
    return errors.LinkError(
        f"link: argument 'images' defines {name} twice: in {places.rstrip(',')}. Declare it extern in one of them",
        call="nvJitLinkAddData",
    )


def _defined_in_link_time_code(code: bytes, symbols: Iterable[str], target: str) -> list[str]:
    """Return the elements of `symbols` that link-time code defines, found by two links: only nvJitLink can read it."""
    try:
        listed = linked_definitions(_link([("code", code)], target, _LISTED, "ptx")[0].decode(errors="replace"))
    except errors.LinkError:
        return []  # linking all images will report the reason
    # The listing does not include functions that no kernel of the code uses.
    unlisted = [symbol for symbol in symbols if symbol not in listed]
    return [symbol for symbol in symbols if symbol in listed] + _defined_functions(code, unlisted, target)


def _defined_functions(code: bytes, symbols: Sequence[str], target: str) -> list[str]:
    """Return the elements of `symbols` that are functions defined in link-time code.

    The code is linked with a PTX text that uses all symbols; a symbol that is not reported as undefined is defined in
    the code. No symbol may be a variable of the code, because nvJitLink 13.5 crashes if a PTX text declares a variable
    as a function.
    """
    uses = "".join(f"mov.u64 %a, {symbol};\nst.global.u64 [%p], %a;\n" for symbol in (*symbols, _NOWHERE))
    declared = "".join(f".extern .func {symbol} ();\n" for symbol in (*symbols, _NOWHERE))
    text = (
        f".version 7.0\n.target sm_75\n.address_size 64\n{declared}"
        f".visible .entry {_NOWHERE}_either(.param .u64 p)\n"
        f"{{\n.reg .u64 %a, %p;\nld.param.u64 %p, [p];\n{uses}ret;\n}}\n"
    )
    try:
        _link([("code", code), ("uses", text.encode())], target, ["-lto"], "cubin")
    except errors.LinkError as error:
        lacking = set(_UNDEFINED.findall(error.log))
        # If this one is not reported, the link failed for another reason, which linking all images will report.
        return [symbol for symbol in symbols if symbol not in lacking] if _NOWHERE in lacking else []
    return []


def _link(inputs: Sequence[tuple[str, bytes]], target: str, options: Sequence[str], result: str) -> tuple[bytes, str]:
    """Link once; return the result ("cubin" or "ptx") and the linker's messages."""
    linker = _library()
    all_options = [f"-arch={target}", *options]
    try:
        handle = linker.create(len(all_options), all_options)
    except linker.nvJitLinkError as error:
        raise errors.LinkError(
            f"nvJitLink refuses the options {' '.join(all_options)}: {error}",
            status=error.status,
            call="nvJitLinkCreate",
        ) from None
    except RuntimeError as error:  # cuda.pathfinder's DynamicLibNotFoundError
        raise errors.LinkError(
            "the nvJitLink library was not found: install the wheel nvidia-nvjitlink for CUDA 13, or a CUDA 13 toolkit",
            call="nvJitLinkCreate",
        ) from error
    try:
        try:
            for name, code in inputs:
                # The linker reads PTX up to a NUL.
                data = code + b"\0" if is_ptx(code) and not code.endswith(b"\0") else code
                linker.add_data(handle, linker.InputType.ANY, data, len(data), name)
            linker.complete(handle)
        except linker.nvJitLinkError as error:
            log = _text(linker.get_error_log_size, linker.get_error_log, handle)
            others = [f"{name} is for {own}" for name, own in _of_other_architectures(inputs, target)]
            reason = f": {', '.join(others)}, and the link is for {target}" if others else ""
            parts = [_SAID_BETTER.sub("", log).strip(), _undefined(log, inputs)]
            said = "\n\n".join(filter(None, parts)) or log or str(error)
            raise errors.LinkError(
                f"the images do not link{reason}\n\n{said}",
                status=error.status,
                call="nvJitLinkComplete",
                log=log,
            ) from None
        size = getattr(linker, f"get_linked_{result}_size")
        read = getattr(linker, f"get_linked_{result}")
        return _bytes(size, read, handle), _text(linker.get_info_log_size, linker.get_info_log, handle)
    finally:
        linker.destroy(handle)


def _undefined(log: str, inputs: Sequence[tuple[str, bytes]]) -> str:
    """Return one line per symbol that no image defines, with the images known to use it, and a line of advice."""
    lines = []
    symbols = list(dict.fromkeys(_UNDEFINED.findall(log)))
    for symbol in symbols:
        name = demangle(symbol) or symbol
        word = re.compile(rb"(?<![\w$])" + re.escape(symbol.encode()) + rb"(?![\w$])")
        users = [image for image, code in inputs if word.search(code)]
        used = f", which {' and '.join(users)} {'uses' if len(users) == 1 else 'use'}" if users else ""
        lines.append(f"No image defines {name}{used}.")
    if any(symbol.startswith(_DEVICE_RUNTIME_PREFIX) for symbol in symbols):
        lines.append(f"Kernels that launch kernels need {DEVICE_RUNTIME}.")
    elif lines:
        lines.append(f"Add the image that does. Its source must be compiled with {_RELOCATABLE}.")
    return "\n".join(lines)


def _of_other_architectures(inputs: Sequence[tuple[str, bytes]], target: str) -> list[tuple[str, str]]:
    """Return the names and architectures of the images that cannot be linked for a target."""
    known = [(name, code, architecture(code)) for name, code in inputs]
    return [
        (name, own)
        for name, code, own in known
        if own is not None and not runs_on(own, target, is_machine_code=code.startswith(MACHINE_CODE))
    ]


def _bytes(size: Any, read: Any, handle: int) -> bytes:
    buffer = bytearray(size(handle))
    if buffer:
        read(handle, buffer)
    return bytes(buffer)


def _text(size: Any, read: Any, handle: int) -> str:
    return _bytes(size, read, handle).rstrip(b"\0").decode(errors="replace").strip()


def _described(
    images: Sequence[Image], codes: Sequence[bytes], ptx: bytes, cubin: bytes, arch: str, log: str
) -> CompiledImage:
    signatures: dict[str, Signature] = {}
    variables: dict[str, Variable] = {}
    for text in (*filter(is_ptx, codes), ptx):
        signatures |= exports.read_signatures(text.decode(errors="replace"))
        variables |= exports.read_variables(text.decode(errors="replace"))
    attributes: dict[str, KernelAttributes] = {}
    for image in images:
        if isinstance(image, CompiledImage):
            signatures |= image.signatures
            variables |= image.variables
            attributes |= image.attributes
    declared = [(item.entry, item.name) for item in signatures.values()]
    declared += [(item.symbol, item.name) for item in variables.values()]
    names = exports.lookup_table(declared)
    return CompiledImage("linked", arch, ptx, cubin, b"", signatures, variables, names, attributes, log)
