"""Loading: create a module from source, by linking images, or from one image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import errors
from ..compilation.images import CompiledImage
from ..compilation.linking.definitions import LINK_TIME_CODE, runs_on
from ..context.device import current_device
from ..driver import backend, enums
from ..driver.unwrap import failure
from ..hints import answers_keywords
from ..host.callers import call_site
from ..host.files import read_file
from .module import Module, image_bytes


def compile_image(
    source: str | Path,
    *,
    names: Sequence[str] = (),
    arch: Any = None,
    std: str | None = None,
    fast_math: bool = False,
    include: Sequence[str | Path] = (),
    headers: Mapping[str, str] | None = None,
    define: Mapping[str, Any] | None = None,
    options: Sequence[str] = (),
    cache: bool = True,
    name: str | None = None,
) -> CompiledImage:
    """Compile CUDA C++ with NVRTC, like `compile`, and return the image without loading it.

    Pass the image to `load` or `link`, or read its code: PTX, a cubin or link-time code. The arguments and errors are
    those of `compile`. With `arch`, no device is needed. The image for a real architecture contains PTX and machine
    code, and the image for a virtual architecture contains only PTX. For `link`, the code must be relocatable
    (`options=["-rdc=true"]`) or link-time code (`options=["-rdc=true", "-dlto"]`).
    """
    from ..compilation import compiler  # imported late because its modules take milliseconds to import

    return compiler.compile_image(
        source,
        names=names,
        arch=current_device().compute_capability if arch is None else arch,
        std=std,
        fast_math=fast_math,
        include=include,
        headers=headers,
        define=define,
        options=options,
        cache=cache,
        name=name,
    )


def compile_nvvm(
    source: str | bytes | Path,
    *,
    arch: Any = None,
    libraries: Sequence[str | bytes | Path] = (),
    options: Sequence[str] = (),
    name: str | None = None,
) -> CompiledImage:
    """Compile NVVM IR, which compilers of other languages generate, with libNVVM (nvvmCompileProgram).

    - `source`: the IR as text (`str`), as text or bitcode (`bytes`), or the `Path` of a file with either.
    - `arch`: the architecture, as for `compile`. Below compute capability 10.0, libNVVM reads the IR of LLVM 7, with
      typed pointers; from 10.0 on, it reads that of a current LLVM.
    - `libraries`: further modules, such as libdevice. From bitcode, only the functions that `source` uses are compiled.
    - `options`: further options of libNVVM. With "-gen-lto", the result is link-time code for `link`, which drops
      kernels that are not listed in `@llvm.used`.
    - `name`: the name of the source in messages, by default its path, or "module.ll".

    Pass the image to `load` or `link`. Its kernels have no C++ types, so launches take typed scalars, as for images
    that were not compiled here. The result is not cached. Raises CompileError, with the log, if the IR cannot be
    compiled, NotSupportedError if libNVVM is not installed (`pip install 'cuda-toolkit[nvvm]==13.*'`), and TypeError or
    ValueError for invalid arguments.
    """
    from ..compilation import nvvm  # as in compile_image

    capability = current_device().compute_capability if arch is None else arch
    return nvvm.compile_nvvm(source, arch=capability, libraries=libraries, options=options, name=name)


@answers_keywords("compile")
def compile(
    source: str | Path,
    *,
    names: Sequence[str] = (),
    arch: Any = None,
    std: str | None = None,
    fast_math: bool = False,
    include: Sequence[str | Path] = (),
    headers: Mapping[str, str] | None = None,
    define: Mapping[str, Any] | None = None,
    options: Sequence[str] = (),
    cache: bool = True,
    name: str | None = None,
) -> Module:
    """Compile CUDA C++ with NVRTC and load it on the current device.

    - `source`: a `Path` names a source file; a `str` is the source itself.
    - `names`: the templates to instantiate, as name expressions: `["reduce<float, 256>"]`.
    - `arch`: the architecture to compile for, by default that of the device. For a virtual architecture, such as
      "compute_80", the driver compiles the PTX.
    - `std`: the C++ standard, such as "c++20".
    - `fast_math`: compile with `--use_fast_math`.
    - `include`: the folders in which to look for headers.
    - `headers`: a mapping from the names of headers, as the source includes them, to their texts. The compiler prefers
      them to files.
    - `define`: a mapping from macros to values, None for a macro without a value.
    - `options`: further options, which are passed to NVRTC unchanged.
    - `cache`: the result is cached on disk, and the cache key covers the source, the options and the included headers.
      With False, the source is always compiled. A source in which macros determine what is included is also always
      compiled.
    - `name`: the name of the source in messages and reports, by default its path, or "kernel.cu" for text.

    Raises CompileError, with the log and the source lines, if the source cannot be compiled, and TypeError or
    ValueError for invalid arguments.
    """
    from ..compilation import compiler  # as in compile_image

    image = compiler.compile_image(
        source,
        names=names,
        arch=current_device().compute_capability if arch is None else arch,
        std=std,
        fast_math=fast_math,
        include=include,
        headers=headers,
        define=define,
        options=options,
        cache=cache,
        name=name,
        call="compile",
    )
    return load_compiled("compile", image, call_site() if isinstance(source, str) else "")


def load_compiled(call: str, compiled: CompiledImage, origin: str = "") -> Module:
    """Load the code of an image that the driver runs; `origin` is the line that compiled a source given as text."""
    return Module(code_of(call, compiled, origin), compiled)


def code_of(call: str, compiled: CompiledImage, origin: str = "") -> bytes:
    """Return the code of an image that the driver runs on the current device: machine code or PTX."""
    device = current_device()
    major, minor = device.compute_capability
    if compiled.ltoir:
        raise ValueError(
            f"{call}: the image is link-time code alone, which must be linked: cuda.link([image]) loads it"
        )
    if not runs_on(compiled.arch, f"sm_{major}{minor}a", is_machine_code=bool(compiled.cubin)):
        raise failure(
            enums.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU,
            "cuModuleLoadData",
            f"The code is for {compiled.arch}, and device {device.ordinal} is sm_{major}{minor}: leave 'arch' out",
        )
    if compiled.cubin and backend.chosen().image_kind == "cubin":
        return compiled.cubin
    if not compiled.ptx:
        raise errors.NotSupportedError(
            "this driver runs PTX, which linked machine code does not contain: link only PTX, images from "
            "compile_image, or link-time code"
        )
    from ..compilation import compiler  # as in compile_image

    return compiler.ptx_with_source(compiled, origin)


def link(images: Sequence[CompiledImage | bytes | Path], *, options: Sequence[str] = ()) -> Module:
    """Link images that were compiled separately and load the result on the current device (nvJitLink).

    Each image is either a result of `compile_image` with relocatable code (`-rdc=true`) or link-time code (`-dlto`), or
    a cubin, PTX, a fatbin or a library of device code, as bytes or as the path of a file. Raises LinkError, with the
    linker's log, if the images cannot be linked: for example, because two of them define the same symbol. Raises
    TypeError or ValueError for invalid arguments.
    """
    from ..compilation.linking.linking import link_images  # as in compile_image

    return load_compiled("link", link_images(images, arch=current_device().compute_capability, options=options))


def load(image: bytes | bytearray | memoryview | Path | CompiledImage) -> Module:
    """Load a cubin, PTX, a fatbin or a compiled image on the current device (cuModuleLoadData).

    `image` is the image itself or the path of a file. Launches of a `CompiledImage` are checked like launches of a
    module from `compile`. The parameter types of other images are unknown: their launches accept typed scalars (NumPy's
    or ctypes'), arrays and `Pointer`, and check only sizes. Raises TypeError or ValueError if `image` is not an image,
    and ImageError if the driver cannot load it.
    """
    data = read_image("load", image)
    return load_compiled("load", data) if isinstance(data, CompiledImage) else Module(data)


def read_image(call: str, image: bytes | bytearray | memoryview | Path | CompiledImage) -> bytes | CompiledImage:
    """Return a call's argument `image`: a CompiledImage unchanged, and any other image as bytes that end with a NUL."""
    if isinstance(image, CompiledImage):
        return image
    if not isinstance(image, Path):
        return _loadable(call, image_bytes(call, image, "bytes, a Path or a CompiledImage"))
    try:
        data = read_file(image)
    except ValueError as error:
        raise ValueError(f"{call}: argument 'image' cannot be read: {error}") from None
    return _loadable(call, image_bytes(call, data))


def _loadable(call: str, code: bytes) -> bytes:
    """Return an image; raise ValueError for link-time code, which no driver can load."""
    if code.startswith(LINK_TIME_CODE):
        raise ValueError(
            f"{call}: argument 'image' is link-time code, which must be linked: cuda.link([image]) loads it"
        )
    return code
