"""Compile CUDA C++ to images with all information that a checked launch needs, cached on disk.

A cache hit does not load the compiler. Otherwise one NVRTC call for a real architecture generates both the PTX and the
machine code. The same call also queries the types that mangled names do not contain, those of extern "C" kernels and of
variables, if their declarations are found in the source's text. A second call, which runs only the compiler's front
end, queries the other types.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .. import errors
from ..base import arguments
from ..host.files import read_file
from . import cache as disk
from . import exports, headers, includes
from .assembler import read_attributes
from .diagnostics import warnings_of
from .images import CompiledImage, KernelAttributes, describe, normalised, restore
from .names.demangling import demangle
from .names.signatures import element_dtype, needs_compiler
from .programs import has_compiled_for_debugger, library_path, library_version, run_nvrtc
from .queries import type_queries
from .queries.declarations import Declarations, read_declarations
from .remedies import remedies
from .requests import Request, has_link_time_option, make_request, without_file_options, working_folder

# Environment variables that affect where NVRTC and headers are found.
_ENVIRONMENT = ("CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")
# Matches the type of a const variable; its name has internal linkage.
_CONSTANT = re.compile(r"\bconst(?: \[.*)?$")


def compile_image(
    source: str | os.PathLike[str],
    *,
    names: Sequence[str] = (),
    arch: str | int | tuple[int, int] | None = None,
    std: str | int | None = None,
    fast_math: bool = False,
    include: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    headers: Mapping[str, str] | None = None,
    define: Mapping[str, object] | None = None,
    options: Sequence[str] = (),
    cache: bool = True,
    name: str | None = None,
    call: str = "compile_image",
) -> CompiledImage:
    """Compile CUDA C++ for one architecture, or take the result from the cache.

    - `source`: a path to a file, or a str with the source itself.
    - `names`: name expressions of templates to instantiate.
    - `arch`: the architecture ("sm_90", 90, (9, 0), "compute_90"), by default the oldest that CUDA 13 supports.
    - `std`: the language standard ("c++17").
    - `include`: folders to search.
    - `headers`: texts of headers, keyed by the names with which the source includes them.
    - `define`: macros with their values, None for a macro without a value.
    - `options`: further NVRTC options, passed unchanged.
    - `name`: the name of the source in messages and line information, by default its path, or "kernel.cu" for text.

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
        headers=headers,
        define=define,
        options=options,
        name=name,
    )
    arguments.flag(call, "cache", cache)
    inclusions = _scan(request)
    # Only the compiler knows which file a macro includes, so such a source is compiled every time.
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
        # Not stored: either this process now generates slower code than another would, or a header was edited during
        # the compile, and it is not known which version the compiler read.
        return image
    disk.store(key, describe(image), [image.ptx, image.cubin, image.ltoir], _witnesses(files))
    return image


def _witnesses(files: Iterable[str]) -> list[disk.Witness]:
    """Return the witnesses of files that the names of installed wheels do not cover."""
    return [witness for witness in map(disk.witness, files) if witness and not headers.is_from_wheel(witness[0])]


def _scan(request: Request) -> includes.Inclusions:
    return includes.scan(
        request.source,
        request.folder,
        request.folders,
        request.options,
        request.first,
        call=request.call,
        headers=request.headers,
    )


def _key_parts(request: Request, inclusions: includes.Inclusions) -> Iterable[str | bytes]:
    yield request.source
    # Names and options are lists. Their lengths keep an item of one list from being taken for an item of the next.
    groups: tuple[Sequence[str | bytes], ...] = (
        (request.name, request.arch),
        request.names,
        request.options,
        [text for header in request.headers.items() for text in header],
        [text for file in inclusions.files for text in file],
        inclusions.external,
        headers.installed_wheels(),
        [f"{name}={os.environ.get(name, '')}" for name in _ENVIRONMENT],
    )
    for group in groups:
        yield str(len(group))
        yield from group


def _compile(request: Request, inclusions: includes.Inclusions) -> tuple[CompiledImage, list[str]]:
    """Compile without the cache; return the image and the files whose modification makes it stale."""
    library = library_path()
    found = headers.Headers((), (), ())
    if inclusions.external or not inclusions.certain:
        found = headers.find(library_version(), library)
    options = [*request.options, *(f"--include-path={folder}" for folder in found.folders)]
    try:
        output = _compile_once(request, options, found.folders)
    except errors.CompileError as error:
        raise _with_remedies(error, request, found) from None
    ptx, log = output.ptx, output.log
    function_types, variable_types = _types(request, inclusions, options, output)
    signatures = exports.read_signatures(ptx, function_types)
    variables = exports.read_variables(ptx, variable_types)
    attributes = read_attributes(log)
    declared = [(item.entry, item.name) for item in signatures.values()]
    declared += [(item.symbol, item.name) for item in variables.values()]
    image = CompiledImage(
        request.name,
        request.arch,
        _annotated(ptx, attributes).encode(),
        output.cubin,
        output.ltoir,
        signatures,
        variables,
        exports.lookup_table(declared, output.lowered),
        attributes,
        warnings_of(log, found.folders),
        _text(request),
    )
    return image, [*found.version_files, *([library] if library else [])]


class _Output(NamedTuple):
    """The result of one run of the compiler.

    `lowered` has the symbols of the caller's name expressions, and `types` the known types by query.
    """

    ptx: str
    cubin: bytes
    ltoir: bytes
    log: str
    lowered: dict[str, str]
    types: dict[str, str]


def _compile_once(request: Request, options: Sequence[str], folders: Sequence[str]) -> _Output:
    """Compile with queries for the types of declarations in the source's text; `folders` have the toolkit's headers.

    If the queries may have affected the result, the source is compiled again without them. The images and the log are
    thus always those of the unmodified source.
    """
    # Link-time code has no parameter layout, and types are useless without one.
    declared = None if has_link_time_option(request.options) else read_declarations(request.source, folders)
    types: dict[str, str] = {}
    if declared is not None and (declared.kernels or declared.variables or declared.managed):
        try:
            output = _run_with_queries(request, options, declared)
        except errors.CompileError:
            pass  # the run without queries reports the errors of the source itself
        else:
            if _is_as_declared(output, declared):
                types = output.types
                if not type_queries.concerns_queries(output.log):
                    return _with_constants(output, declared)
    output = _run(request, options, request.source)._replace(types=types)
    return output if declared is None else _with_constants(output, declared)


def _with_constants(output: _Output, declared: Declarations) -> _Output:
    """Add the types of constants from the text, because a query would suppress warnings about unused constants."""
    variables = exports.read_variables(output.ptx).values()
    names = Counter(variable.name for variable in variables)
    types = {
        type_queries.type_of(variable.name): declared.constants[variable.name]
        for variable in variables
        if variable.name in declared.constants
        and names[variable.name] == 1
        and variable.name == (demangle(variable.symbol) or variable.symbol)
        and variable.size == np.dtype(element_dtype(declared.constants[variable.name])).itemsize
    }
    return output._replace(types=output.types | types)


def _run_with_queries(request: Request, options: Sequence[str], declared: Declarations) -> _Output:
    source = request.source[: declared.end] + type_queries.DECLARED.encode() + request.source[declared.end :]
    queries = [type_queries.type_of(name) for name in [*declared.kernels, *declared.variables]]
    queries += [type_queries.type_of(name, managed=True) for name in declared.managed]
    # If a name is not a type, a pointer to it is an error, which leads to a run without queries.
    pointers = [f"{type}*" for type in declared.types]
    return _run(request, options, source, list(dict.fromkeys([*queries, *pointers])))


def _is_as_declared(output: _Output, declared: Declarations) -> bool:
    """Return whether the compiler sees the declarations as the text does; if not, queries may suppress warnings."""
    symbols = [*exports.read_signatures(output.ptx), *exports.read_variables(output.ptx)]
    names = {demangle(symbol) or symbol for symbol in symbols}
    variables = [type_queries.type_of(name) for name in declared.variables]
    return names.issuperset([*declared.kernels, *declared.variables, *declared.managed]) and not any(
        _CONSTANT.search(output.types.get(query, "")) for query in variables
    )


def _run(request: Request, options: Sequence[str], source: bytes, queries: Sequence[str] = ()) -> _Output:
    """Run the compiler once; raise CompileError with its log if it fails."""
    names = list(dict.fromkeys([*request.names, *map(type_queries.expression, queries)]))
    all_options = [*options, *request.output_options]
    output = run_nvrtc(source, name=request.name, names=names, options=all_options, headers=request.headers)
    return _Output(
        output.ptx.decode(),
        output.cubin,
        output.ltoir,
        output.log,
        {name: output.lowered[name] for name in request.names},
        type_queries.read_types(queries, output.lowered),
    )


def _with_remedies(error: errors.CompileError, request: Request, found: headers.Headers) -> errors.CompileError:
    texts = remedies(error.log, request.source.decode(errors="replace"), request.name, found)
    message = "\n\n".join([str(error), *(f"Remedy: {text}." for text in texts)])
    return errors.CompileError(message, status=error.status, call=error.call, log=error.log)


def _text(request: Request) -> str:
    return request.source.decode(errors="replace")


def ptx_with_source(image: CompiledImage, origin: str) -> bytes:
    """Return an image's PTX with its source as a comment, for the reports of a driver that shows source lines.

    `origin` is the line of the program that compiled a source given as text, as ``file:line``, or "" for a file.
    """
    if not image.source:
        return image.ptx
    return image.ptx + f"// cudart-py: source {json.dumps([image.name, image.source, origin])}\n".encode()


def _annotated(ptx: str, attributes: Mapping[str, KernelAttributes]) -> str:
    """Add facts that only the compiler knows to the PTX, as comments for reports and for a driver without ptxas."""
    if not ptx:
        return ""
    # In line information, the compiler puts its working folder before the source's name.
    comments = [f"// cudart-py: folder {json.dumps(working_folder())}\n"]
    comments += [
        f"// cudart-py: registers {entry}={used.registers} spills={used.spill_store_bytes} stack={used.local_bytes}\n"
        for entry, used in attributes.items()
    ]
    return ptx.rstrip() + "\n\n" + "".join(comments)


def _types(
    request: Request, inclusions: includes.Inclusions, options: Sequence[str], output: _Output
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the types that mangled names do not contain: of kernels by entry, and of variables by symbol.

    Variables of the toolkit's headers, some of which declare dozens, are not queried.
    """
    spelled = {symbol: expression.strip().removeprefix("&") for expression, symbol in output.lowered.items()}
    entries = {
        entry: type_queries.type_of(spelled.get(entry, signature.name))
        for entry, signature in exports.read_signatures(output.ptx).items()
        if any(needs_compiler(parameter) for parameter in signature.parameters)
    }
    found = exports.read_variables(output.ptx)
    own = _text_of(request, inclusions)
    variables = {
        symbol: type_queries.type_of(spelled.get(symbol, variable.name), managed=variable.space == "managed")
        for symbol, variable in found.items()
        if type_queries.can_be_spelled(variable.name) and type_queries.may_declare(own, variable.name)
    }
    queries = dict.fromkeys([*entries.values(), *variables.values()])
    types = output.types | _ask(request, options, [query for query in queries if query not in output.types])
    return (
        {entry: types[query] for entry, query in entries.items() if query in types},
        {symbol: types[query] for symbol, query in variables.items() if query in types},
    )


def _text_of(request: Request, inclusions: includes.Inclusions) -> str | None:
    """Return all text of the program itself, without the toolkit's headers; None if its files are not known."""
    if not inclusions.certain:
        return None
    try:
        files = [read_file(path) for path, _ in inclusions.files]
    except (OSError, ValueError):  # a header was removed in the meantime
        return None
    included = [content.decode(errors="replace") for content in (*request.headers.values(), *files)]
    return "\n".join([_text(request), *included, *request.options])


def _ask(request: Request, options: Sequence[str], queries: Sequence[str]) -> dict[str, str]:
    """Query types from the compiler's front end.

    Types that cannot be spelled at file scope (of an overload, or of an extern "C" kernel inside a namespace) are left
    out of the result.
    """
    while queries:
        try:
            output = run_nvrtc(
                request.source + b"\n\n" + type_queries.DEFINED.encode(),
                name=request.name,
                names=[type_queries.expression(query) for query in queries],
                options=[*without_file_options(options), "--fdevice-syntax-only"],
                headers=request.headers,
            )
        except errors.CompileError as error:
            # One bad expression fails the whole run. The log quotes the bad expressions; the others are queried again.
            log = normalised(error.log)
            good = [query for query in queries if normalised(type_queries.expression(query)) not in log]
            queries = good if len(good) < len(queries) else []
        else:
            return type_queries.read_types(queries, output.lowered)
    return {}
