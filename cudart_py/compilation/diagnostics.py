"""The compiler's log in a readable form: with numbered source lines, and without messages of no use to the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_DIAGNOSTIC = re.compile(r"^(?P<file>[^\n]+?)\((?P<line>\d+)\): (?P<what>(?:catastrophic )?\w+.*)$")
_MISSING_HEADER = re.compile(r'^([^\n]+?)\(\d+\):[^\n]*(?:could not|cannot) open source file "([^"]+)"', re.MULTILINE)
# NVRTC writes the name expressions into this file, and reports at least two errors for an expression that it rejects.
NAME_MAP = "__nv_name_map"
_EXPRESSION = re.compile(r'#pragma nv_mangled_name (.*)|Input name expression was: " ?(.*?)"')
_UNKNOWN_NAME = re.compile(rf'^{NAME_MAP}\(\d+\): error: identifier "(\w+)" is undefined', re.MULTILINE)
_NUMBER_OF_ERRORS = re.compile(r"\d+ errors? detected")
_STATISTICS = re.compile(r"^ptxas (?:info +:|  +\.)")
_REMARK = "Remark: The warnings can be suppressed"


def missing_header(log: str) -> tuple[str, str] | None:
    """Return a file and the header that it includes, if the compiler stopped because it could not open that header."""
    match = _MISSING_HEADER.search(log)
    return (match[1], match[2]) if match else None


def unknown_names(log: str) -> list[str]:
    """Return the distinct names in name expressions that the compiler does not know."""
    return list(dict.fromkeys(_UNKNOWN_NAME.findall(log)))


def warnings_of(log: str, library_folders: Sequence[str] = ()) -> str:
    """Return the log without the assembler's statistics and without warnings inside libraries' headers."""
    kept = []
    for block in _blocks(log):
        match = _DIAGNOSTIC.match(block[0])
        inside = match is not None and match["file"].startswith(tuple(f"{folder}/" for folder in library_folders))
        if not inside and not block[0].startswith(_REMARK):
            kept.append("\n".join(block))
    return "\n\n".join(kept)


def _blocks(log: str) -> list[list[str]]:
    """Split the log into blocks, each of which ends at a blank line or before the next diagnostic."""
    blocks: list[list[str]] = [[]]
    for line in log.splitlines():
        if _STATISTICS.match(line):
            continue
        if not line.strip() or _DIAGNOSTIC.match(line):
            blocks.append([])
        if line.strip():
            blocks[-1].append(line.rstrip())
    return [block for block in blocks if block]


def _by_expression(blocks: list[list[str]]) -> list[list[str]]:
    """Return the blocks with only the first error per name expression, which is located by its text in `names=`."""
    refused: dict[str, list[list[str]]] = {}
    for block in blocks:
        match = _DIAGNOSTIC.match(block[0])
        if match is not None and match["file"] == NAME_MAP:
            refused.setdefault(match["line"], []).append(block)
    if not refused:
        return blocks
    first = []
    for same in refused.values():
        expression = _EXPRESSION.search("\n".join(line for block in same for line in block))
        what = same[0][0].partition("): ")[2]
        first.append([f"names=[{_quoted(expression)}]: {what}"])
    leaving = [block for same in refused.values() for block in same]
    return [*(block for block in blocks if block not in leaving and not _NUMBER_OF_ERRORS.match(block[0])), *first]


def _quoted(expression: re.Match[str] | None) -> str:
    return "..." if expression is None else f'"{(expression[1] or expression[2]).strip()}"'


def explain(log: str, source_line: Callable[[str, int], str | None]) -> str:
    """Return the log with every location shown as a numbered source line with a caret below.

    `source_line` returns the text of a line of a file, for compilers that do not quote the line themselves.
    """
    shown = []
    for block in _by_expression(_blocks(warnings_of(log))):
        match = _DIAGNOSTIC.match(block[0])
        if match is None:
            shown.append("\n".join(block))
            continue
        number = match["line"]
        margin = " " * len(number)
        rest = block[1:]
        quoted = len(rest) >= 2 and rest[1].strip() == "^"
        if quoted:
            place = [f"  {number} | {rest[0][2:]}", f"  {margin} | {rest[1][2:]}"]
            rest = rest[2:]
        else:
            line = source_line(match["file"], int(number))
            place = [] if line is None else [f"  {number} | {line}"]
        shown.append("\n".join([block[0], *place, *rest]))
    return "\n\n".join(shown)
