"""From CUDA C++ to images with everything that a checked launch needs to know, cached on disk.

This module answers from the cache where it can, and loads no compiler then; `building` compiles.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from . import arguments, includes, wheels
from . import cache as disk
from .image import CompiledImage, describe, restore
from .requests import Request, make_request

__all__ = ["compile_image"]

# Variables that steer where NVRTC and headers are found.
_ENVIRONMENT = ("CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")


def compile_image(
    source: str | os.PathLike[str],
    *,
    names: Sequence[str] = (),
    arch: str | int | tuple[int, int] | None = None,
    std: str | int | None = None,
    fast_math: bool = False,
    include: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    define: Mapping[str, object] | None = None,
    options: Sequence[str] = (),
    cache: bool = True,
) -> CompiledImage:
    """Compile CUDA C++ for one architecture, or take the result from the cache.

    A path is read, a str is source. `names` are name expressions of templates to instantiate, `arch` a
    real architecture ("sm_90", 90 or (9, 0); the oldest that CUDA 13 knows unless given), `std` the
    language standard ("c++17"), `include` folders to search, `define` macros with their values (None
    for a bare one), `options` further NVRTC options, passed as they are.

    Raises TypeError and ValueError that name the argument, and CompileError with the compiler's log.
    """
    request = make_request(
        source, names=names, arch=arch, std=std, fast_math=fast_math, include=include, define=define, options=options
    )
    arguments.flag("compile", "cache", cache)
    inclusions = _scan(request)
    # What a macro includes is known to the compiler alone, so such a source is compiled every time.
    if not (cache and request.cacheable and inclusions.certain):
        return _build(request, inclusions)[0]
    key = disk.make_key(_key_parts(request, inclusions))
    found = disk.load(key, restore)
    if found is not None:
        return found
    image, files = _build(request, inclusions)
    if _scan(request) != inclusions:
        # A header was edited meanwhile, and nobody knows which of its contents the compiler saw.
        return image
    witnesses = [witness for witness in map(disk.witness, files) if witness and not wheels.is_from_wheel(witness[0])]
    disk.store(key, describe(image), [image.ptx, image.cubin], witnesses)
    return image


def _scan(request: Request) -> includes.Inclusions:
    return includes.scan(request.source, request.folder, request.folders, request.options, request.first)


def _key_parts(request: Request, inclusions: includes.Inclusions) -> Iterable[str | bytes]:
    yield request.source
    # Names and options are lists: their lengths keep one from passing for the other.
    for group in (
        (request.name, request.arch),
        request.names,
        request.options,
        [text for file in inclusions.files for text in file],
        inclusions.external,
        wheels.distributions(),
        [f"{name}={os.environ.get(name, '')}" for name in _ENVIRONMENT],
    ):
        yield str(len(group))
        yield from group


def _build(request: Request, inclusions: includes.Inclusions) -> tuple[CompiledImage, list[str]]:
    from . import building

    return building.build(request, inclusions)
