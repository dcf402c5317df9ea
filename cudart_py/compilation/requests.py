"""The arguments of a compile, checked before anything is compiled."""

from __future__ import annotations

import contextlib
import os
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..base import arguments
from ..host.files import read_file

# The maximum size in bytes of a source or a header; a longer file must have been named by mistake.
LONGEST = 1 << 26
# The maximum size in bytes of a source's name. NVRTC corrupts its memory if a name needs more than about 12,000
# characters in PTX, which spells each non-ASCII byte with four characters and puts the working folder before the name.
LONGEST_NAME = 1023

# The oldest architecture that every NVRTC of CUDA 13 knows.
_DEFAULT_ARCHITECTURE = "sm_75"
_SOURCE_NAME = "kernel.cu"
_NOWHERE = os.devnull

# These patterns are compiled at their first use, because most compiles use only one of them.
_ARCHITECTURE = r"(sm|compute)_\d{2,3}[af]?"
_STANDARD = r"c\+\+\d\d"
_MACRO = r"[A-Za-z_]\w*(\([\w\s,.]*\))?"
# Options for which `compile` has an argument, and below them options whose output can be neither loaded nor linked.
_TAKEN = {
    "--gpu-architecture": "arch",
    "-arch": "arch",
    "--std": "std",
    "-std": "std",
}
_REFUSED = {
    "--fdevice-syntax-only": "generates no code: leave it out, the errors are the same",
    "-fdevice-syntax-only": "generates no code: leave it out, the errors are the same",
    "--optix-ir": "generates code only for OptiX: call NVRTC's functions in cuda.bindings.nvrtc, with cuda.check",
    "-optix-ir": "generates code only for OptiX: call NVRTC's functions in cuda.bindings.nvrtc, with cuda.check",
}
_FOLDER_OPTIONS = ("--include-path", "-I")
_FIRST_OPTIONS = ("--pre-include", "-include")
# Control characters, and Unicode's line and paragraph separators.
_CONTROL = re.compile(r"[\0-\x1f\x7f-\x9f\u2028\u2029]")
_DEBUG_OPTIONS = {"--device-debug", "-G"}
_LINK_TIME_OPTIONS = {"--dlink-time-opt", "-dlto"}
# Options for the compiler's own files: precompiled headers and timings.
_OWN_FILE_OPTION = r"-{1,2}(pch|create-pch|use-pch|pch-dir|time|fdevice-time-trace)\b.*"
# Options that write files, which would not be written on a cache hit, or that read files other than headers.
_FILE_OPTION = rf"{_OWN_FILE_OPTION}|.*(-optf|--options-file)\b.*"


# The open blocks of `compile_for_debugger`.
_debugged: list[None] = []


@contextlib.contextmanager
def compile_for_debugger() -> Iterator[None]:
    """Compile sources with -G inside the block."""
    _debugged.append(None)
    try:
        yield
    finally:
        _debugged.pop()


class Request(NamedTuple):
    """The checked arguments of a compile: the requesting call, the source and its name, and options for NVRTC.

    The source's includes are searched among the names of `headers`, which maps them to texts, in `folder`, and then in
    `folders`. The files `first` are included before the source.
    `output_options` affect the images but not the types. `cacheable` is false if options read or write files; the
    compiler must then run every time.
    """

    call: str
    source: bytes
    name: str
    folder: str
    names: tuple[str, ...]
    arch: str
    headers: Mapping[str, bytes]
    folders: tuple[str, ...]
    first: tuple[str, ...]
    options: tuple[str, ...]
    output_options: tuple[str, ...]
    cacheable: bool


def make_request(
    call: str,
    source: str | os.PathLike[str],
    *,
    names: Sequence[str],
    arch: str | int | tuple[int, int] | None,
    std: str | int | None,
    fast_math: bool,
    include: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    headers: Mapping[str, str] | None,
    define: Mapping[str, object] | None,
    options: Sequence[str],
    name: str | None,
) -> Request:
    """Check the arguments of `call`, such as "compile"; raise TypeError or ValueError naming it and the argument."""
    text, called, folder = _read(call, source)
    if name is None and len(called.encode()) > LONGEST_NAME:
        raise ValueError(
            f"{call}: argument 'source' must be a path of at most {LONGEST_NAME} bytes, got {len(called.encode())}. "
            "Pass name= with a shorter name for messages"
        )
    called = source_name(call, called if name is None else name)
    architecture = spell_architecture(call, arch)
    folders = _folders(call, include)
    if isinstance(source, os.PathLike):
        folders += (folder,)  # so that <neighbour.cuh> is found like "neighbour.cuh"
    given = texts(call, "options", options)
    _check_options(call, given, std)
    if _debugged and not has_debug_option(given) and not has_link_time_option(given):
        given = (*given, "-G")
    own = [f"--gpu-architecture={architecture}"]
    if std is not None:
        own.append(f"--std={_standard(call, std)}")
    if arguments.flag(call, "fast_math", fast_math):
        own.append("--use_fast_math")
    own += [f"--include-path={path}" for path in folders]
    own += _macros(call, define)
    # The assembler rejects line information together with full debug information.
    output = [] if has_debug_option(given) else ["--generate-line-info"]
    # Results from NVRTC's own cache lack the assembler's report, and this package has its own cache.
    output.append("--no-cache")
    return Request(
        call,
        text,
        called,
        folder,
        _names(call, names),
        architecture,
        _headers(call, headers),
        (*folders, *searched_folders(given)),
        included_first(given),
        (*own, *given),
        (*output, "--ptxas-options=-v"),
        not any(re.fullmatch(_FILE_OPTION, option.strip(), re.DOTALL) for option in given),
    )


def _read(call: str, source: str | os.PathLike[str]) -> tuple[bytes, str, str]:
    """Return the source's text, its name in messages, and the folder of its own includes."""
    if isinstance(source, os.PathLike):
        path = _path(call, source, "source")
        try:
            text = read_file(path, LONGEST)
        except ValueError as error:
            raise ValueError(f"{call}: argument 'source' cannot be read: {error}") from None
        if b"\0" in text:
            raise ValueError(f"{call}: argument 'source' is {path!r}, which contains a NUL character")
        return text, path, os.path.dirname(path)
    if not isinstance(source, str):
        raise arguments.wrong_type(call, "source", "CUDA C++ text (str) or a path", source)
    text = arguments.text(call, "source", source).encode()
    if "\n" not in source and source.endswith((".cu", ".cuh")) and os.path.exists(source):
        raise ValueError(f"{call}: argument 'source' is text, and {source!r} is a file: pass pathlib.Path({source!r})")
    return text, _SOURCE_NAME, working_folder()


def _path(call: str, path: str | os.PathLike[str], argument: str) -> str:
    """Return an absolute path. Each `..` is kept, because after a symbolic link it does not undo the last part."""
    text = arguments.text(call, argument, os.fsdecode(path))
    if not os.path.isabs(text) and working_folder() == _NOWHERE:
        raise ValueError(
            f"{call}: argument {argument!r} is the relative path {text!r}, and the working folder was deleted: pass "
            "an absolute path"
        )
    return os.path.join(working_folder(), text)


def working_folder() -> str:
    """Return the working folder; if it was deleted, a path below which no file can exist."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return _NOWHERE


def source_name(call: str, value: object, argument: str = "name") -> str:
    """Check and return a source's name for messages and line information: one line of at most `LONGEST_NAME` bytes.

    With an empty name, or one with control characters, the line information would be useless.
    """
    name = arguments.text(call, argument, value)
    if not name:
        raise arguments.wrong_value(call, argument, "at least one character long", name)
    if _CONTROL.search(name):
        raise arguments.wrong_value(call, argument, "without control characters", name)
    if len(name.encode()) > LONGEST_NAME:
        raise arguments.wrong_value(call, argument, f"at most {LONGEST_NAME} bytes long", name)
    return name


def has_debug_option(options: Sequence[str]) -> bool:
    """Return whether the options request code and information for a debugger."""
    return any(option.strip() in _DEBUG_OPTIONS for option in options)


def has_link_time_option(options: Sequence[str]) -> bool:
    """Return whether the options request only link-time code."""
    return any(option.strip() in _LINK_TIME_OPTIONS for option in options)


def searched_folders(options: Sequence[str]) -> tuple[str, ...]:
    """Return the include folders that the options name."""
    return tuple(os.path.join(working_folder(), path) for path in _values(options, _FOLDER_OPTIONS))


def included_first(options: Sequence[str]) -> tuple[str, ...]:
    """Return the names of files that the options include before the source."""
    return _values(options, _FIRST_OPTIONS)


def without_file_options(options: Sequence[str]) -> list[str]:
    """Return the options without those for the compiler's own files: precompiled headers and timings."""
    return [option for option in options if not re.fullmatch(_OWN_FILE_OPTION, option.strip(), re.DOTALL)]


def spell_architecture(call: str, arch: str | int | tuple[int, int] | None) -> str:
    """Return an architecture in NVRTC's spelling: sm_90, or compute_90 for a virtual one."""
    spelled = ""
    match arch:
        case None:
            return _DEFAULT_ARCHITECTURE
        case str():
            spelled = arch
        case int() if not isinstance(arch, bool):
            if 0 < arch < 1000:
                spelled = f"sm_{arch}"
        case tuple() | list() if [type(part) for part in arch] == [int, int]:
            major, minor = arch
            if 0 < major < 100 and 0 <= minor < 10:
                spelled = f"sm_{major}{minor}"
        case _:
            wanted = 'a str such as "sm_90", an int such as 90 or a pair such as (9, 0)'
            raise arguments.wrong_type(call, "arch", wanted, arch)
    if not re.fullmatch(_ARCHITECTURE, spelled):
        raise arguments.wrong_value(call, "arch", 'an architecture such as "sm_90", 90, (9, 0) or "compute_90"', arch)
    return spelled


def _standard(call: str, std: str | int) -> str:
    if isinstance(std, bool) or not isinstance(std, str | int):
        raise arguments.wrong_type(call, "std", 'a language standard such as "c++17" or 17', std)
    text = f"c++{std:02d}" if isinstance(std, int) and 0 <= std < 100 else std
    if not isinstance(text, str) or not re.fullmatch(_STANDARD, text):
        raise arguments.wrong_value(call, "std", 'a language standard such as "c++17" or 17', std)
    return text


def _folders(call: str, include: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    if not isinstance(include, Sequence | os.PathLike):
        raise arguments.wrong_type(call, "include", "a folder or a sequence of folders", include)
    values = [include] if isinstance(include, str | os.PathLike) else list(include)
    folders = []
    for position, value in enumerate(values):
        if not isinstance(value, str | os.PathLike):
            raise arguments.wrong_type(call, f"include[{position}]", "the path of a folder", value)
        path = _path(call, value, "include")
        if not os.path.isdir(path):
            raise ValueError(f"{call}: argument 'include' has {os.fsdecode(value)!r}, which is not a folder")
        folders.append(path)
    return tuple(folders)


def _headers(call: str, headers: Mapping[str, str] | None) -> dict[str, bytes]:
    """Return the texts of headers, keyed by the names with which the source includes them."""
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise arguments.wrong_type(call, "headers", "a mapping of names to texts", headers)
    found = {}
    for name, content in headers.items():
        included = source_name(call, name, "headers")
        argument = f"headers[{included!r}]"
        if not isinstance(content, str):
            raise arguments.wrong_type(call, argument, "the text of a header (str)", content)
        found[included] = arguments.text(call, argument, content).encode()
        if len(found[included]) > LONGEST:
            raise ValueError(f"{call}: argument {argument!r} must be at most {LONGEST} bytes long")
    return found


def _macros(call: str, define: Mapping[str, object] | None) -> list[str]:
    if define is None:
        return []
    if not isinstance(define, Mapping):
        raise arguments.wrong_type(call, "define", "a mapping of macro names to values", define)
    return [f"--define-macro={_macro(call, name, value)}" for name, value in define.items()]


def _macro(call: str, name: object, value: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(_MACRO, name):
        raise ValueError(f"{call}: argument 'define' has {reprlib.repr(name)}, which is not the name of a macro")
    if value is None:
        return name
    argument = f"define[{name!r}]"
    if not isinstance(value, str | int | float):
        raise arguments.wrong_type(call, argument, "a str, a number or None", value)
    if isinstance(value, float):
        arguments.number(call, argument, value)
    try:
        text = str(int(value)) if isinstance(value, bool) else str(value)
    except ValueError:  # an int with more digits than Python converts
        raise arguments.wrong_value(call, argument, "an int that C++ can write", value) from None
    if "\n" in text or "\r" in text:
        raise arguments.wrong_value(call, argument, "without line breaks", value)
    return f"{name}={arguments.text(call, argument, text)}"


def _names(call: str, names: Sequence[str]) -> tuple[str, ...]:
    result = texts(call, "names", names)
    for position, name in enumerate(result):
        if not name.strip():
            raise arguments.wrong_value(call, f"names[{position}]", "a name expression", name)
    return tuple(dict.fromkeys(result))


def _check_options(call: str, options: tuple[str, ...], std: str | int | None) -> None:
    for option in options:
        spelling = re.split(r"[=\s]", option.strip(), maxsplit=1)[0]
        argument = _TAKEN.get(spelling)
        if argument == "arch" or (argument == "std" and std is not None):
            raise ValueError(f"{call}: argument 'options' has {option!r}, which the argument {argument!r} sets")
        if spelling in _REFUSED:
            raise ValueError(f"{call}: argument 'options' has {option!r}, which {_REFUSED[spelling]}")


def _values(options: Sequence[str], spellings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of options in the forms `--name=value`, `--name value`, `-Ivalue` or as two items."""
    values = []
    for position, option in enumerate(options):
        written = option.strip()  # the compiler strips it too
        spelling = next((text for text in spellings if written.startswith(text)), None)
        if spelling is None:
            continue
        value = written[len(spelling) :].lstrip("= \t")
        if not value and position + 1 < len(options):
            value = options[position + 1].strip()
        if value:
            # The compiler expects UTF-8, whatever the file system's encoding is.
            values.append(os.fsdecode(value.encode()))
    return tuple(values)


def texts(call: str, argument: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return a sequence of strings without NUL characters as a tuple."""
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Sequence):
        raise arguments.wrong_type(call, argument, "a sequence of strings, such as a list", values)
    return tuple(arguments.text(call, f"{argument}[{position}]", value) for position, value in enumerate(values))
