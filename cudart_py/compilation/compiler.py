"""From CUDA C++ to images with everything that a checked launch needs to know, cached on disk.

A result that is in the cache loads no compiler. Otherwise one NVRTC call for a real architecture makes the PTX and the
machine code, and tells the types of the extern "C" kernels and variables that the source's text declares. For those
that macros or headers declare there is another call, which stops after the compiler's front end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from .. import arguments, errors
from . import cache as disk
from . import exports, headers, includes, questions
from .diagnostics import read_resources, warnings_of
from .images import CompiledImage, Resources, describe, normalised, restore
from .programs import Program, has_compiled_for_debugger, library_path, library_version
from .remedies import remedies
from .requests import Request, make_request, working_folder
from .signatures import needs_compiler

__all__ = ["compile_image"]

# Variables that steer where NVRTC and headers are found.
_ENVIRONMENT = ("CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")


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
) -> CompiledImage:
    """Compile CUDA C++ for one architecture, or take the result from the cache.

    A path is read, a str is source. `names` are name expressions of templates to instantiate, `arch` a
    real architecture ("sm_90", 90 or (9, 0); the oldest that CUDA 13 knows unless given), `std` the
    language standard ("c++17"), `include` folders to search, `define` macros with their values (None
    for a bare one), `options` further NVRTC options, passed as they are. `name` is what messages and line information
    call the source, by default its path, or "kernel.cu" for text.

    Raises TypeError and ValueError that name the argument, and CompileError with the compiler's log.
    """
    request = make_request(
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
    arguments.flag("compile", "cache", cache)
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
    output = _output(request, options, found)
    ptx, log = output.ptx, output.log
    function_types, variable_types = _types(request, options, output)
    signatures = exports.read_signatures(ptx, function_types)
    variables = exports.read_variables(ptx, variable_types)
    resources = read_resources(log)
    declared = [(item.entry, item.name) for item in signatures.values()]
    declared += [(item.symbol, item.name) for item in variables.values()]
    image = CompiledImage(
        request.name,
        request.arch,
        _annotated(ptx, resources).encode(),
        output.cubin,
        signatures,
        variables,
        exports.lookup_table(declared, output.symbols),
        resources,
        warnings_of(log, found.folders),
        _text(request),
    )
    return image, [*found.version_files, *([library] if library else [])]


class _Output(NamedTuple):
    """What a compile makes; `symbols` are those of the user's name expressions, `types` what was asked for besides."""

    ptx: str
    cubin: bytes
    log: str
    symbols: dict[str, str]
    types: dict[str, str]


def _output(request: Request, options: Sequence[str], found: headers.Headers) -> _Output:
    """Compile, and ask for the types of what the source's text declares."""
    asked = questions.of_text(_text(request))
    while True:
        try:
            return _run(request, options, asked)
        except errors.CompileError as error:
            if not asked:
                raise _with_remedies(error, request, found) from None
            # The text misleads, as one does that the preprocessor leaves out; or the source is wrong, and is told best
            # with nothing asked.
            asked = _without_bad(asked, error.log)


def _run(request: Request, options: Sequence[str], asked: Sequence[str]) -> _Output:
    source = request.source + questions.SOURCE.encode() if asked else request.source
    names = list(dict.fromkeys([*request.names, *map(questions.expression, asked)]))
    with _ScannedProgram(
        source, name=request.name, names=names, options=[*options, *request.output_options]
    ) as program:
        program.compile()
        lowered = program.lowered_names
        return _Output(
            program.ptx.decode(),
            program.cubin,
            program.log,
            {name: lowered[name] for name in request.names},
            questions.answers(asked, lowered),
        )


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


def _types(request: Request, options: Sequence[str], output: _Output) -> tuple[dict[str, str], dict[str, str]]:
    """Return the types that mangled names do not tell, by entry and by symbol."""
    spelled = {symbol: expression.strip().removeprefix("&") for expression, symbol in output.symbols.items()}
    entries = {
        entry: questions.of_kernel(spelled.get(entry, signature.name))
        for entry, signature in exports.read_signatures(output.ptx).items()
        if any(needs_compiler(parameter) for parameter in signature.parameters)
    }
    variables = {
        symbol: questions.of_variable(spelled.get(symbol, variable.name), managed=variable.space == "managed")
        for symbol, variable in exports.read_variables(output.ptx).items()
        if questions.can_be_asked(variable.name)
    }
    unknown = dict.fromkeys([*entries.values(), *variables.values()])
    types = output.types | _ask(request, options, [question for question in unknown if question not in output.types])
    return (
        {entry: types[question] for entry, question in entries.items() if question in types},
        {symbol: types[question] for symbol, question in variables.items() if question in types},
    )


def _ask(request: Request, options: Sequence[str], asked: Sequence[str]) -> dict[str, str]:
    """Return the types that the compiler's front end finds.

    A type that cannot be spelled at file scope (an overload, an extern "C" kernel inside a namespace) stays without an
    answer.
    """
    while asked:
        program = _ScannedProgram(
            request.source + questions.SOURCE.encode(),
            name=request.name,
            names=[questions.expression(question) for question in asked],
            options=[*options, "--fdevice-syntax-only"],
        )
        with program:
            try:
                program.compile()
            except errors.CompileError as error:
                asked = _without_bad(asked, error.log)
                continue
            return questions.answers(asked, program.lowered_names)
    return {}


def _without_bad(asked: Sequence[str], log: str) -> list[str]:
    """Return what may be asked again, since one bad expression spoils all: nothing if the log quotes none of them."""
    text = normalised(log)
    good = [question for question in asked if normalised(questions.expression(question)) not in text]
    return good if len(good) < len(asked) else []
