"""From CUDA C++ to images with everything that a checked launch needs to know, cached on disk.

A result that is in the cache loads no compiler. Otherwise one NVRTC call for a real architecture makes both the PTX and
the machine code. A second, which stops after the compiler's front end, asks for the types that names do not tell: those
of extern "C" kernels and of variables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .. import arguments, errors
from . import cache as disk
from . import exports, headers, includes
from .demangling import declared_name, demangle
from .diagnostics import read_resources, warnings_of
from .images import CompiledImage, Resources, describe, normalised, restore
from .programs import Program, has_compiled_for_debugger, library_path, library_version
from .remedies import remedies
from .requests import Request, make_request, working_folder
from .signatures import needs_compiler

__all__ = ["compile_image"]

# Variables that steer where NVRTC and headers are found.
_ENVIRONMENT = ("CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")
# A name that no user's source contains, so that it cannot collide.
_PROBE = "cudart_py_type_of_3f9c1e"
_PROBE_SOURCE = f"""
template <class {_PROBE}_argument> __global__ void {_PROBE}({_PROBE}_argument*) {{}}
template <class {_PROBE}_argument> struct {_PROBE}_bare;
template <class {_PROBE}_argument> struct {_PROBE}_bare<{_PROBE}_argument&> {{ typedef {_PROBE}_argument type; }};
"""


class _ScannedProgram(Program):
    """A program of a source whose files `compile_image` has scanned: headers of the toolkit take a second."""

    def _refuse_long_names(self, source: bytes) -> None:
        pass


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
    name: str | None = None,
    call: str = "compile_image",
) -> CompiledImage:
    """Compile CUDA C++ for one architecture, or take the result from the cache.

    A path is read, a str is source. `names` are name expressions of templates to instantiate, `arch` a
    real architecture ("sm_90", 90 or (9, 0); the oldest that CUDA 13 knows unless given), `std` the
    language standard ("c++17"), `include` folders to search, `define` macros with their values (None
    for a bare one), `options` further NVRTC options, passed as they are. `name` is what messages and line information
    call the source, by default its path, or "kernel.cu" for text.

    Raises TypeError and ValueError that name the `call` and the argument, and CompileError with the compiler's log.
    """
    request = make_request(
        call,
        source,
        names=names,
        arch=arch,
        std=std,
        fast_math=fast_math,
        include=include,
        define=define,
        options=options,
        name=name,
    )
    arguments.flag(call, "cache", cache)
    inclusions = _scan(request)
    # What a macro includes is known to the compiler alone, so such a source is compiled every time.
    if not (cache and request.cacheable and inclusions.certain):
        return _compile(request, inclusions)[0]
    disk.check_environment()
    key = disk.make_key(_key_parts(request, inclusions))
    found = disk.load(key, restore)
    if found is not None:
        return replace(found, source=_text(request))
    is_sound = not has_compiled_for_debugger()
    image, files = _compile(request, inclusions)
    if not is_sound or _scan(request) != inclusions:
        # The code is worse than another process would make it, or a header was edited meanwhile, and which of its
        # contents the compiler read is not known.
        return image
    witnesses = [witness for witness in map(disk.witness, files) if witness and not headers.is_from_wheel(witness[0])]
    disk.store(key, describe(image), [image.ptx, image.cubin], witnesses)
    return image


def _scan(request: Request) -> includes.Inclusions:
    return includes.scan(
        request.source, request.folder, request.folders, request.options, request.first, call=request.call
    )


def _key_parts(request: Request, inclusions: includes.Inclusions) -> Iterable[str | bytes]:
    yield request.source
    # Names and options are lists: their lengths keep one from passing for the other.
    for group in (
        (request.name, request.arch),
        request.names,
        request.options,
        [text for file in inclusions.files for text in file],
        inclusions.external,
        headers.installed_wheels(),
        [f"{name}={os.environ.get(name, '')}" for name in _ENVIRONMENT],
    ):
        yield str(len(group))
        yield from group


def _compile(request: Request, inclusions: includes.Inclusions) -> tuple[CompiledImage, list[str]]:
    """Compile without the cache; return the image and the files whose change makes it stale."""
    library = library_path()
    found = headers.Headers((), (), ())
    if inclusions.external or not inclusions.certain:
        found = headers.find(library_version(), library)
    options = [*request.options, *(f"--include-path={folder}" for folder in found.folders)]
    with _ScannedProgram(
        request.source,
        name=request.name,
        names=request.names,
        options=[*options, *request.output_options],
    ) as program:
        try:
            program.compile()
        except errors.CompileError as error:
            raise _with_remedies(error, request, found) from None
        ptx = program.ptx.decode()
        cubin = program.cubin
        log = program.log
        lowered = program.lowered_names
    function_types, variable_types = _ask_types(request, options, ptx, lowered)
    signatures = exports.read_signatures(ptx, function_types)
    variables = exports.read_variables(ptx, variable_types)
    resources = read_resources(log)
    declared = [(item.entry, item.name) for item in signatures.values()]
    declared += [(item.symbol, item.name) for item in variables.values()]
    image = CompiledImage(
        request.name,
        request.arch,
        _annotated(ptx, resources).encode(),
        cubin,
        signatures,
        variables,
        exports.lookup_table(declared, lowered),
        resources,
        warnings_of(log, found.folders),
        _text(request),
    )
    return image, [*found.version_files, *([library] if library else [])]


def _with_remedies(error: errors.CompileError, request: Request, found: headers.Headers) -> errors.CompileError:
    texts = remedies(error.log, request.source.decode(errors="replace"), request.name, found)
    message = "\n\n".join([str(error), *(f"Remedy: {text}." for text in texts)])
    return errors.CompileError(message, status=error.status, call=error.call, log=error.log)


def _text(request: Request) -> str:
    return request.source.decode(errors="replace")


def ptx_with_source(image: CompiledImage, origin: str) -> bytes:
    """Return an image's PTX with its source as a comment, for the reports of a driver that can show lines.

    `origin` is the program's line that compiled a source that is no file, as ``file:line``, "" for a file.
    """
    if not image.source:
        return image.ptx
    return image.ptx + f"// cudart-py: source {json.dumps([image.name, image.source, origin])}\n".encode()


def _annotated(ptx: str, resources: Mapping[str, Resources]) -> str:
    """Add what only the compile knows to the PTX, as comments: for reports, and for a driver without an assembler."""
    # The compiler puts its working folder before the source's name.
    comments = [f"// cudart-py: folder {json.dumps(working_folder())}\n"]
    comments += [
        f"// cudart-py: registers {entry}={used.registers} spills={used.spill_stores} stack={used.stack}\n"
        for entry, used in resources.items()
    ]
    return ptx.rstrip() + "\n\n" + "".join(comments)


def _ask_types(
    request: Request, options: Sequence[str], ptx: str, lowered: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the types that mangled names do not tell, by entry and by symbol: the compiler is asked for them."""
    spelled = {symbol: expression.strip().removeprefix("&") for expression, symbol in lowered.items()}
    questions = {}
    entries = exports.read_signatures(ptx)
    for entry, signature in entries.items():
        if any(needs_compiler(parameter) for parameter in signature.parameters):
            questions[entry] = f"decltype({spelled.get(entry, signature.name)})"
    for symbol, variable in exports.read_variables(ptx).items():
        questions[symbol] = f"decltype({spelled.get(symbol, variable.name)})"
        if variable.space == "managed":  # which may stand in decltype within parentheses alone, as a reference
            questions[symbol] = f"{_PROBE}_bare<decltype(({variable.name}))>::type"
    answers = _types_of(request, options, questions)
    return (
        {symbol: type for symbol, type in answers.items() if symbol in entries},
        {symbol: type for symbol, type in answers.items() if symbol not in entries},
    )


def _types_of(request: Request, options: Sequence[str], questions: Mapping[str, str]) -> dict[str, str]:
    """Resolve each type: a template's instance for it carries the type in its name.

    A type that cannot be spelled at file scope (an overload, an extern "C" kernel inside a
    namespace) stays without an answer.
    """
    expressions = {symbol: f"{_PROBE}<{type}>" for symbol, type in questions.items()}
    while expressions:
        program = _ScannedProgram(
            request.source + _PROBE_SOURCE.encode(),
            name=request.name,
            names=list(dict.fromkeys(expressions.values())),
            options=[*options, "--fdevice-syntax-only"],
        )
        with program:
            try:
                program.compile()
            except errors.CompileError as error:
                # One bad expression spoils all: the log quotes those, and the others are asked again.
                log = normalised(error.log)
                good = {symbol: text for symbol, text in expressions.items() if normalised(text) not in log}
                expressions = good if len(good) < len(expressions) else {}
                continue
            lowered = program.lowered_names
        declarations = ((symbol, demangle(lowered[text])) for symbol, text in expressions.items())
        return {
            symbol: declared_name(declaration)[len(_PROBE) + 1 : -1].strip()
            for symbol, declaration in declarations
            if declaration
        }
    return {}
