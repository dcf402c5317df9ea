"""The kernels and variables of an image and their names, parsed from the declarations in its PTX.

Function bodies are not parsed, because only a driver needs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .images import Variable, normalised
from .names.demangling import argument_list, declared_name, demangle
from .names.signatures import Signature, element_dtype, item_bytes, make_parameters

_ENTRY = re.compile(r"^(?:\.(?:visible|weak|extern)\s+)?\.entry\s+([\w$]+)\s*\(([^)]*)\)", re.MULTILINE)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s+(?:\.ptr\b[^,\[]*?\s)?(?P<name>[\w$]+)"
    r"(?:\[(?P<count>\d+)\])?"
)
_VARIABLE = re.compile(
    r"^(?:\.(?:visible|weak|common)\s+)?\.(?P<space>global|const)\s+"
    r"(?P<managed>\.attribute\(\.managed\)\s+)?(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s+(?P<name>[\w$]+)"
    r"(?P<array>\[(?P<count>\d+)\])?\s*[;=]",
    re.MULTILINE,
)
# The namespaces that NVRTC adds to names with internal linkage.
_INTERNAL = re.compile(r"(?:\(anonymous namespace\)|_INTERNAL_\w+?|_GLOBAL__N_\w+?)::")
# Namespaces of CUDA's own headers. They have hundreds of constants, which no program looks up by name.
_LIBRARY = re.compile(r"(?:cuda|cub|thrust|nv|nvcuda|cooperative_groups)::")
_ARRAY_TYPE = re.compile(r"^(?P<element>.*?) ?(?P<extents>(?:\[\d+\])+)$")


def simplified(name: str) -> str:
    """Return a name without the internal-linkage namespaces, which callers cannot spell."""
    return _INTERNAL.sub("", name)


def read_signatures(ptx: str, function_types: Mapping[str, str] | None = None) -> dict[str, Signature]:
    """Return the signatures of the kernels in a PTX text, keyed by entry name.

    `function_types` maps entries whose names do not contain their types to function types from the compiler, such as
    `void (float, float*)`.
    """
    signatures = {}
    for entry, text in _ENTRY.findall(ptx):
        layout = [_layout(match) for match in _PARAMETER.finditer(text)]
        declaration = demangle(entry)
        name = simplified(declared_name(declaration)) if declaration else entry
        told = (function_types or {}).get(entry)
        types = argument_list(told or declaration or "")
        signatures[entry] = Signature(entry, name, make_parameters(types, layout, resolved=bool(told)))
    return signatures


def _layout(match: re.Match[str]) -> tuple[str, int, int]:
    item = item_bytes(match["type"])
    size = item * int(match["count"] or 1)
    return match["type"], size, int(match["align"] or item)


def read_variables(ptx: str, types: Mapping[str, str] | None = None) -> dict[str, Variable]:
    """Return the module-scope variables of a PTX text, keyed by symbol, without the variables of CUDA's own headers.

    `types` maps symbols to types from the compiler, such as `float [16]`.
    """
    variables = {}
    for match in _VARIABLE.finditer(ptx):
        symbol = match["name"]
        name = simplified(demangle(symbol) or symbol)
        if _LIBRARY.match(name):
            continue
        item = item_bytes(match["type"])
        size = item * int(match["count"] or 1)
        space = "managed" if match["managed"] else match["space"]
        type = (types or {}).get(symbol, "")
        variables[symbol] = Variable(
            symbol, name, size, int(match["align"] or item), space, type, *_dtype_and_shape(type, size)
        )
    return variables


def _dtype_and_shape(type: str, size: int) -> tuple[str | None, tuple[int, ...]]:
    array = _ARRAY_TYPE.match(type)
    dtype = element_dtype(array["element"] if array else type) if type else None
    if dtype is None or dtype == "bfloat16":  # NumPy has no such dtype
        return None, (size,)
    extents = re.findall(r"\d+", array["extents"]) if array else []
    return dtype, tuple(int(extent) for extent in extents)


def lookup_table(
    declared: Iterable[tuple[str, str]], spelled: Mapping[str, str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return a map from every name that a caller may use to its symbols; an ambiguous name has more than one.

    `declared` has (symbol, C++ name) pairs. Each is found by its symbol, by its C++ name with and without template
    arguments, and for functions by the name with its argument list, `f(int)`. `spelled` maps the caller's own name
    expressions to symbols. Keys are normalised.
    """
    table: dict[str, tuple[str, ...]] = {}
    for symbol, name in declared:
        declaration = demangle(symbol)
        names = [symbol, name, _without_template_arguments(name)]
        if declaration:
            names += [simplified(declaration), simplified(declaration).removeprefix("void ")]
        for key in dict.fromkeys(map(normalised, names)):
            table[key] = (*table.get(key, ()), symbol)
    for expression, symbol in (spelled or {}).items():
        # The caller's own name expressions are never ambiguous, because the compiler has resolved them.
        table[normalised(expression)] = (symbol,)
    return table


def _without_template_arguments(name: str) -> str:
    if not name.endswith(">"):
        return name
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        depth += (name[position] == ">") - (name[position] == "<")
        if depth == 0:
            return name[:position]
    return name
