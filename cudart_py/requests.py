"""What the arguments of a compile ask for, checked before anything is compiled."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Request", "make_request", "spell_architecture", "strings"]

# The oldest architecture that every NVRTC of CUDA 13 knows.
_DEFAULT_ARCHITECTURE = "sm_75"
_SOURCE_NAME = "kernel.cu"

# Patterns, compiled where one is used: most compiles use one of them.
_ARCHITECTURE = r"sm_\d{2,3}[af]?"
_STANDARD = r"c\+\+\d\d"
_MACRO = r"[A-Za-z_]\w*(\([\w\s,.]*\))?"
# Spellings of options that arguments stand for, or that take away what the result is made of.
_TAKEN = {
    "--gpu-architecture": "arch",
    "-arch": "arch",
    "--std": "std",
    "-std": "std",
}
_REFUSED = {
    "--dlink-time-opt": "makes no machine code; use Program for link-time code",
    "-dlto": "makes no machine code; use Program for link-time code",
    "--fdevice-syntax-only": "makes no machine code; use Program to check syntax",
    "-fdevice-syntax-only": "makes no machine code; use Program to check syntax",
    "--optix-ir": "makes no machine code; use Program",
    "-optix-ir": "makes no machine code; use Program",
}
_FOLDER_OPTIONS = ("--include-path", "-I")
_FIRST_OPTIONS = ("--pre-include", "-include")
_DEBUG_OPTIONS = {"--device-debug", "-G"}
# Options that write files, which a hit in the cache would not, or read others than headers.
_FILE_OPTION = r"-{1,2}(pch|create-pch|use-pch|pch-dir|time|fdevice-time-trace)\b.*|.*(-optf|--options-file)\b.*"


class Request(NamedTuple):
    """A checked compile: the source and its name, and options for NVRTC.

    `folder` is where the source's own includes are looked up, `folders` are searched after it, `first`
    are included before it. `output_options` matter for the images and not for types. `cacheable` is
    false where options read or write files, so that the compiler has to run.
    """

    source: bytes
    name: str
    folder: str
    names: tuple[str, ...]
    arch: str
    folders: tuple[str, ...]
    first: tuple[str, ...]
    options: tuple[str, ...]
    output_options: tuple[str, ...]
    cacheable: bool


def make_request(
    source: str | os.PathLike[str],
    *,
    names: Sequence[str],
    arch: str | int | tuple[int, int] | None,
    std: str | int | None,
    fast_math: bool,
    include: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    define: Mapping[str, object] | None,
    options: Sequence[str],
) -> Request:
    """Check the arguments of `compile_image`; TypeError and ValueError name the argument."""
    text, name, folder = _read(source)
    architecture = spell_architecture(arch)
    folders = _folders(include)
    if isinstance(source, os.PathLike):
        folders += (folder,)  # so that <neighbour.cuh> is found as "neighbour.cuh" is
    given = strings(options, "options")
    _check_options(given, std)
    own = [f"--gpu-architecture={architecture}"]
    if std is not None:
        own.append(f"--std={_standard(std)}")
    if fast_math:
        own.append("--use_fast_math")
    own += [f"--include-path={path}" for path in folders]
    own += _macros(define or {})
    # The assembler refuses line information beside full debug information.
    output = [] if _DEBUG_OPTIONS & set(given) else ["--generate-line-info"]
    # What NVRTC keeps itself comes back without the assembler's report; keeping is this package's business.
    output.append("--no-cache")
    return Request(
        text,
        name,
        folder,
        _names(names),
        architecture,
        (*folders, *map(_absolute, _values(given, _FOLDER_OPTIONS))),
        _values(given, _FIRST_OPTIONS),
        (*own, *given),
        (*output, "--ptxas-options=-v"),
        not any(re.fullmatch(_FILE_OPTION, option.strip(), re.DOTALL) for option in given),
    )


def _absolute(path: str | os.PathLike[str]) -> str:
    """Return the path from the root on, with its `..`, which lead elsewhere behind a symbolic link."""
    return os.path.join(os.getcwd(), os.fsdecode(path))


def _read(source: str | os.PathLike[str]) -> tuple[bytes, str, str]:
    """Return the source's text, the name that messages use, and the folder of its own includes."""
    if isinstance(source, os.PathLike):
        path = _absolute(source)
        with open(path, "rb") as stream:
            text = stream.read()
        name, folder = path, os.path.dirname(path)
    elif isinstance(source, str):
        if "\n" not in source and source.endswith((".cu", ".cuh")) and os.path.exists(source):
            raise ValueError(f"source is text, and {source!r} is a file: pass pathlib.Path({source!r})")
        text, name, folder = source.encode(), _SOURCE_NAME, os.getcwd()
    else:
        raise TypeError(f"source is CUDA C++ text (str) or a path, not {type(source).__name__}")
    if b"\0" in text:
        raise ValueError("source has a NUL character")
    return text, name, folder


def spell_architecture(arch: str | int | tuple[int, int] | None) -> str:
    """Spell an architecture as sm_90."""
    match arch:
        case None:
            return _DEFAULT_ARCHITECTURE
        case bool():
            pass
        case int():
            return spell_architecture(f"sm_{arch}")
        case (int(major), int(minor)):
            return spell_architecture(f"sm_{major}{minor}")
        case str():
            if re.fullmatch(_ARCHITECTURE, arch):
                return arch
            raise ValueError(f'arch {arch!r} is not a real architecture such as "sm_90", 90 or (9, 0)')
    raise TypeError(f'arch is a str such as "sm_90", an int such as 90 or a pair such as (9, 0), not {arch!r}')


def _standard(std: str | int) -> str:
    text = f"c++{std:02d}" if isinstance(std, int) and not isinstance(std, bool) else std
    if not isinstance(text, str):
        raise TypeError(f'std is a language standard such as "c++17" or 17, not {std!r}')
    if not re.fullmatch(_STANDARD, text):
        raise ValueError(f'std {std!r} is not a language standard such as "c++17" or 17')
    return text


def _folders(include: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    values = [include] if isinstance(include, str | os.PathLike) else list(include)
    folders = []
    for value in values:
        if not isinstance(value, str | os.PathLike):
            raise TypeError(f"include is a folder or a sequence of folders, and {value!r} is none")
        path = _absolute(value)
        if not os.path.isdir(path):
            raise ValueError(f"include has {os.fspath(value)!r}, which is not a folder")
        folders.append(path)
    return tuple(folders)


def _macros(define: Mapping[str, object]) -> list[str]:
    if not isinstance(define, Mapping):
        raise TypeError(f"define is a mapping of macro names to values, not {type(define).__name__}")
    options = []
    for name, value in define.items():
        if not isinstance(name, str) or not re.fullmatch(_MACRO, name):
            raise ValueError(f"define has {name!r}, which is not the name of a macro")
        if value is None:
            options.append(f"--define-macro={name}")
            continue
        if not isinstance(value, str | int | float):
            raise TypeError(f"define[{name!r}] is a str, a number or None, not {type(value).__name__}")
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if "\n" in text:
            raise ValueError(f"define[{name!r}] has a line break")
        options.append(f"--define-macro={name}={text}")
    return options


def _names(names: Sequence[str]) -> tuple[str, ...]:
    result = strings(names, "names")
    for name in result:
        if not name.strip():
            raise ValueError("names has an empty name expression")
    return tuple(dict.fromkeys(result))


def _check_options(options: tuple[str, ...], std: str | int | None) -> None:
    for option in options:
        spelling = re.split(r"[=\s]", option, maxsplit=1)[0]
        argument = _TAKEN.get(spelling)
        if argument == "arch" or (argument == "std" and std is not None):
            raise ValueError(f"options has {option!r}, which the argument {argument} decides")
        if spelling in _REFUSED:
            raise ValueError(f"options has {option!r}, which {_REFUSED[spelling]}")


def _values(options: tuple[str, ...], spellings: tuple[str, ...]) -> tuple[str, ...]:
    """Collect the values of options given as `--name=value`, `--name value`, `-Ivalue` or in two items."""
    values = []
    for position, option in enumerate(options):
        written = option.strip()  # as the compiler does
        spelling = next((text for text in spellings if written.startswith(text)), None)
        if spelling is None:
            continue
        value = written[len(spelling) :].lstrip("= \t")
        if not value and position + 1 < len(options):
            value = options[position + 1].strip()
        if value:
            values.append(value)
    return tuple(values)


def strings(values: Sequence[str], argument: str) -> tuple[str, ...]:
    """Return the values as a tuple; a TypeError names the argument when they are not all strings."""
    if isinstance(values, str | bytes):
        raise TypeError(f"{argument} is a sequence of strings, not one string: write [{values!r}]")
    result = tuple(values)
    for value in result:
        if not isinstance(value, str):
            raise TypeError(f"{argument} is a sequence of strings, and {value!r} is of type {type(value).__name__}")
    return result
