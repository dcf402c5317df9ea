"""Cut the host's parts out of a suite's file, so that NVRTC compiles what is left.

The rule: a file is a row of directives and declarations. Of the directives all stay but `#pragma once` and the
includes of headers that NVRTC isn't given. Of the declarations those stay that say `__global__`, `__device__`,
`__constant__` or `__managed__`, types, aliases, namespaces, constants and `constexpr` functions. All others are the
host's, and so is a declaration whose head names one of `omit`. What stays is unchanged and keeps its file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["PRELUDE", "Piece", "device_code", "pieces"]

# What the host's headers would have declared.
PRELUDE = """\
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t; typedef unsigned long long uintptr_t;
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define M_PI 3.14159265358979323846
#define INFINITY __int_as_float(0x7f800000)
"""

_TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<directive>^[ \t]*\#(?:\\\r?\n|/\*.*?\*/|[^\n])*)
      | (?P<mark>[{}();])""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_HEADERS = re.compile(
    r"\s*#\s*include\s*<(?:cooperative_groups|cub/|cuda/|cuda_(?:bf16|fp16|fp8)|curand_kernel|mma\.h)"
)
_GROUP = re.compile(r'^(?:inline\s+)?namespace\b[^;={]*$|^extern\s*"C"\s*$')
_MARKS = ("__global__", "__device__", "__constant__", "__managed__")
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")
_ALIAS = re.compile(r"typedef\b|using\b(?!\s+namespace\s+std\b|\s+std::)|namespace\b|static_assert\b")
_CONSTANT = re.compile(r"(?:static\s+|inline\s+)*(?:const|constexpr)\b")
_CONSTEXPR = re.compile(r"\bconstexpr\b")


@dataclass(frozen=True)
class Piece:
    """A piece of a file: a directive, a declaration, or the beginning or end of a namespace or of `extern "C"`."""

    kind: str
    text: str
    line: int


def pieces(text: str) -> Iterator[Piece]:
    """Divide a file into its pieces; comments between them belong to none."""
    start, depth, parentheses, groups = 0, 0, 0, 0
    for token in _TOKEN.finditer(text):
        begun = bool(_bare(text[start : token.start()]).strip())
        if token["comment"] or token["text"]:
            continue
        if token["directive"]:
            if not begun and not depth:
                yield _piece("directive", text, token.start(), token.end())
                start = token.end()
            continue
        mark = token["mark"]
        if mark in "()":
            parentheses += 1 if mark == "(" else -1
        elif mark == "{":
            if not depth and not parentheses and _GROUP.match(_bare(text[start : token.start()]).strip()):
                yield _piece("begin", text, start, token.end())
                start, groups = token.end(), groups + 1
            else:
                depth += 1
        elif mark == "}" and not depth:
            if groups:
                yield _piece("end", text, token.start(), token.end())
                groups -= 1
            start = token.end()
        elif mark == "}":
            depth -= 1
            if not depth and not parentheses and _ends_with_brace(text[start : token.end()]):
                yield _piece("declaration", text, start, token.end())
                start = token.end()
        elif not depth and not parentheses:
            if begun:
                yield _piece("declaration", text, start, token.end())
            start = token.end()


def device_code(text: str, *, file: str = "", omit: Sequence[str] = ()) -> str:
    """Return a file's device code, each piece behind a `#line` that says where it stands in the file."""
    out = []
    for piece in pieces(text):
        if piece.kind == "directive":
            stays = _directive_stays(piece.text)
        else:
            stays = piece.kind != "declaration" or _declaration_stays(piece.text, omit)
        if stays:
            out.append(f'#line {piece.line} "{file}"\n{piece.text}\n' if file else f"{piece.text}\n")
    return "".join(out)


def _piece(kind: str, text: str, start: int, end: int) -> Piece:
    lead = _leading(text[start:end])
    return Piece(kind, text[start + lead : end], text.count("\n", 0, start + lead) + 1)


def _leading(text: str) -> int:
    """Count the characters of blanks and comments before the first word."""
    match = re.match(r"(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*", text, re.DOTALL)
    return match.end() if match else 0


def _bare(text: str) -> str:
    """Return a text without its comments and directives."""
    return _TOKEN.sub(lambda token: " " if token["comment"] or token["directive"] else token[0], text)


def _head(text: str) -> str:
    """Return what stands before a declaration's first brace, without what `template`, `__align__` and such say."""
    head = _bare(text).partition("{")[0].strip()
    while head.startswith("template"):
        depth = 0
        for place in range(head.find("<"), len(head)):
            depth += (head[place] == "<") - (head[place] == ">")
            if not depth:
                break
        head = head[place + 1 :].strip()
    return re.sub(r"\b(?:__align__|alignas|__launch_bounds__|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)", "", head)


def _ends_with_brace(text: str) -> bool:
    """Tell functions, which end with their closing brace, from types and variables, which end with a semicolon."""
    head = _head(text)
    return "(" in head.partition("=")[0] or "operator" in head


def _directive_stays(text: str) -> bool:
    if re.match(r"\s*#\s*include\b", text):
        return bool(_HEADERS.match(text))
    return not re.match(r"\s*#\s*pragma\s+once\b", text)


def _declaration_stays(text: str, omit: Sequence[str]) -> bool:
    head, bare = _head(text), _bare(text)
    if any(re.search(rf"\b{re.escape(name)}\b", head) for name in omit):
        return False
    if any(re.search(rf"\b{re.escape(word)}\b", bare) for word in _MARKS):
        return True
    if _ALIAS.match(head) or _CONSTEXPR.search(head):
        return True
    declared = head.partition("=")[0]
    if "(" in declared:
        return False
    # A pointer to constants is itself a variable of the host.
    return bool(_TYPE.search(declared) or (_CONSTANT.match(declared) and "*" not in declared))
