"""PTX texts made one, for a driver that executes PTX: what nvJitLink does with machine code.

nvJitLink has linked the same inputs before, so every reference is known to have its one definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_VERSION = re.compile(r"^\.version\s+(\d+)\.(\d+)\s*$", re.MULTILINE)
_HEADER = re.compile(r"^\.(?:version|target|address_size)\b[^\n]*\n?", re.MULTILINE)
_DECLARATION = re.compile(
    r"^(?:\.(?P<linkage>visible|extern|weak|common)\s+)?\.(?P<kind>global|const|shared|func|entry)\b"
    r"(?:\s*\.attribute\s*\((?:[^()]|\([^()]*\))*\))?(?:[ \t]+\((?P<results>[^()]*)\))?(?P<rest>[^;{=(]*)",
    re.MULTILINE,
)
_NAME = re.compile(r"([A-Za-z_$%][\w$]*)\s*(?:\[\d*\]\s*)*$")
_FILE = re.compile(r"(\.(?:file|loc)[ \t]+|\binlined_at[ \t]+)(\d+)")
# Of these the linker takes any definition, since all are alike.
_REPEATABLE = ("weak", "common")


def link_ptx(texts: Sequence[str], arch: str) -> str:
    """Return one PTX text for an architecture with all that several texts of relocatable code define.

    Names without linkage that several texts have, such as those of static functions, get an ending of their own.
    """
    version = max((int(major), int(minor)) for text in texts for major, minor in _VERSION.findall(text))
    declared = [{_name(match) for match in _DECLARATION.finditer(text)} for text in texts]
    parts = [f".version {version[0]}.{version[1]}\n.target {arch}\n.address_size 64\n"]
    known: set[str] = set()
    files = 0
    for position, text in enumerate(texts):
        elsewhere = set().union(*declared[:position], *declared[position + 1 :])
        own = {_name(match) for match in _DECLARATION.finditer(text) if match["linkage"] is None}
        text = _renamed(_HEADER.sub("", text), own & elsewhere, f"__{position}")
        text = _without_repeated(text, known)
        count = max((int(number) for _, number in _FILE.findall(text)), default=0)
        parts.append(_renumbered(text, files))
        files += count
    return "\n".join(parts)


def strong_definitions(text: str) -> set[str]:
    """Return the symbols that a text defines and no other may."""
    return _defined(text, lambda linkage, kind: linkage == "visible")


def linked_definitions(text: str) -> set[str]:
    """Return the symbols of link-time code that PTX which nvJitLink made of it, without optimising, still defines.

    These are its kernels and variables, and the functions that its own kernels use. The linker has made the functions
    invisible, as static ones are, whose names it has made unique with `_INTERNAL_`.
    """
    return _defined(text, lambda linkage, kind: linkage == "visible" or (linkage is None and kind == "func"))


def _defined(text: str, counts: Callable[[str | None, str], bool]) -> set[str]:
    """Return the names of a text's definitions, not declarations, of some linkages and kinds."""
    return {
        _name(match)
        for match in _DECLARATION.finditer(text)
        if counts(match["linkage"], match["kind"]) and _end_of_definition(text, match.end()) is not None
    }


def _name(declaration: re.Match[str]) -> str:
    found = _NAME.search(declaration["rest"].rstrip())
    return found[1] if found else ""


def _renamed(text: str, names: set[str], ending: str) -> str:
    if not names:
        return text
    alternatives = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w$%.])(?:{alternatives})(?![\w$])", lambda match: match[0] + ending, text)


def _renumbered(text: str, first: int) -> str:
    return _FILE.sub(lambda match: f"{match[1]}{int(match[2]) + first}", text)


def _without_repeated(text: str, known: set[str]) -> str:
    """Leave out weak and common definitions that an earlier text has, whose names are `known`; note this text's."""
    kept = []
    end = 0
    for match in _DECLARATION.finditer(text):
        if match["linkage"] not in _REPEATABLE or match.start() < end:
            continue
        stop = _end_of_definition(text, match.end())
        if stop is None:
            continue
        name = _name(match)
        if name in known:
            kept.append(text[end : match.start()])
            end = stop
        known.add(name)
    kept.append(text[end:])
    return "".join(kept)


def _end_of_definition(text: str, position: int) -> int | None:
    """Return where a definition ends whose name ends at `position`; None for a declaration of a function."""
    opening = re.compile(r"[{;]").search(text, position)
    if opening is None:
        return None
    if opening[0] == ";":
        # A variable without a value; a function without a body has its parameters before the semicolon.
        return None if ")" in text[position : opening.start()] else opening.end()
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, opening.start()):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            end = brace.end()
            closing = re.compile(r"\s*;").match(text, end)
            return closing.end() if closing and "=" in text[position : opening.start()] else end
    return None
