"""Link PTX texts into one, for a driver that executes PTX, as nvJitLink links machine code.

The caller makes sure that every reference has a definition, and that no two texts define the same symbol, unless all
but one of the definitions are weak or common.
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
# Linkages that allow several definitions. They are equivalent, so the linker uses any of them, unless there is one with
# another linkage, which takes precedence.
_REPEATABLE = ("weak", "common")
# The version of a link of no texts, which is the first for compute capability 9.0.
_OLDEST_VERSION = (7, 8)


def link_ptx(texts: Sequence[str], arch: str) -> str:
    """Return one PTX text for an architecture with all definitions of several texts of relocatable code.

    Names without external linkage that several texts use, such as those of static functions, get a suffix per text.
    """
    versions = ((int(major), int(minor)) for text in texts for major, minor in _VERSION.findall(text))
    version = max(versions, default=_OLDEST_VERSION)
    declared = [{_name(match) for match in _DECLARATION.finditer(text)} for text in texts]
    parts = [f".version {version[0]}.{version[1]}\n.target {arch}\n.address_size 64\n"]
    known = set().union(*map(strong_definitions, texts))
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
    """Return the symbols that a text defines and that no other text may define."""
    return _defined(text, lambda linkage, kind: linkage == "visible")


def external_names(text: str) -> set[str]:
    """Return the symbols that a text shares with other texts, which it defines or declares."""
    return {_name(match) for match in _DECLARATION.finditer(text) if match["linkage"] is not None}


def linked_definitions(text: str) -> set[str]:
    """Return the symbols that link-time code defines, read from the unoptimised PTX that nvJitLink generated from it.

    These are its kernels and variables, and the functions that its own kernels use. The linker has removed `.visible`
    from the functions, so they look like static functions. Static functions cannot clash, because their names contain
    `_INTERNAL_` and are unique.
    """
    return _defined(text, lambda linkage, kind: linkage == "visible" or (linkage is None and kind == "func"))


def _defined(text: str, counts: Callable[[str | None, str], bool]) -> set[str]:
    """Return the names of a text's definitions, not its declarations, for which `counts(linkage, kind)` is true."""
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
    """Return a text without weak and common definitions whose names are `known`; add the text's own to `known`."""
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
    """Return the end of the definition whose name ends at `position`; None for a declaration of a function."""
    opening = re.compile(r"[{;]").search(text, position)
    if opening is None:
        return None
    if opening[0] == ";":
        # Either a variable without an initializer, or a function without a body, which has parameters in parentheses.
        return None if ")" in text[position : opening.start()] else opening.end()
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, opening.start()):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            end = brace.end()
            closing = re.compile(r"\s*;").match(text, end)
            return closing.end() if closing and "=" in text[position : opening.start()] else end
    return None
