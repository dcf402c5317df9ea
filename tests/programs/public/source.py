"""Remove the host code from a file of a suite, so that NVRTC can compile the rest.

A file is a sequence of directives and declarations. All directives are kept except `#pragma once` and includes of
headers that NVRTC does not have. Declarations are kept if they contain `__global__`, `__device__`, `__constant__` or
`__managed__`, and so are types, aliases, namespaces, constants and `constexpr` functions. All other declarations are
host code, and so is a declaration whose head contains a name in `omit`. The remaining text is unchanged, and keeps its
file name and line numbers.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

# Declarations that the host's headers would have contained.
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
# White space and comments before the first word.
_BETWEEN = re.compile(r"(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """Split a file into directives, declarations, and the beginnings and ends of namespaces and `extern "C"` blocks.

    Yield the kind of each piece, and its start and end. A piece may start with the comments before it.
    """
    start, depth, parentheses, groups = 0, 0, 0, 0
    for token in _TOKEN.finditer(text):
        mark, end = token["mark"], token.end()
        begun = _bare(text[start : token.start()]).strip()
        if token["directive"]:
            if not begun and not depth:
                yield "directive", start, end
                start = end
        elif mark in ("(", ")"):
            parentheses += 1 if mark == "(" else -1
        elif mark == "{":
            if not depth and not parentheses and _GROUP.match(begun):
                yield "begin", start, end
                start, groups = end, groups + 1
            else:
                depth += 1
        elif mark == "}" and not depth:
            if groups:
                yield "end", token.start(), end
                groups -= 1
            start = end
        elif mark == "}":
            depth -= 1
            if not depth and not parentheses and _ends_with_brace(text[start:end]):
                yield "declaration", start, end
                start = end
        elif mark == ";" and not depth and not parentheses:
            if begun:
                yield "declaration", start, end
            start = end


def device_code(text: str, file: str, omit: Sequence[str] = ()) -> str:
    """Return the device code of a file; a `#line` before each piece gives its position in the file."""
    out = []
    for kind, start, end in _pieces(text):
        leading = _BETWEEN.match(text, start)
        piece = text[leading.end() if leading else start : end]
        judge = {"directive": _directive_stays, "declaration": partial(_declaration_stays, omit)}.get(kind)
        if judge is None or judge(piece):
            out.append(f'#line {text.count(chr(10), 0, end - len(piece)) + 1} "{file}"\n{piece}\n')
    return "".join(out)


def _bare(text: str) -> str:
    """Return a text without comments and directives."""
    return _TOKEN.sub(lambda token: " " if token["comment"] or token["directive"] else token[0], text)


def _head(text: str) -> str:
    """Return the text before a declaration's first brace, without `template<...>`, `__align__(...)` and the like."""
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
    """Check whether a declaration ends with its closing brace, as functions do; others end with a semicolon."""
    head = _head(text)
    return "(" in head.partition("=")[0] or "operator" in head


def _directive_stays(text: str) -> bool:
    if re.match(r"\s*#\s*include\b", text):
        return bool(_HEADERS.match(text))
    return not re.match(r"\s*#\s*pragma\s+once\b", text)


def _declaration_stays(omit: Sequence[str], text: str) -> bool:
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
    # A pointer to constant data is itself a variable, and belongs to the host.
    return bool(_TYPE.search(declared) or (_CONSTANT.match(declared) and "*" not in declared))
