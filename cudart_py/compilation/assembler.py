"""The messages of ptxas, the assembler: the resource usage of each kernel, and errors mapped to source lines.

ptxas reads PTX. Its errors name a line of the PTX, a symbol, or neither.
"""

from __future__ import annotations

import os
import re

from .images import KernelAttributes
from .names.demangling import demangle
from .requests import working_folder

_COMPILING = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")

_ERROR = re.compile(
    r"^ptxas (?:application ptx input, line (?P<line>\d+); )?(?:error|fatal)\s*: (?P<text>.*)$", re.MULTILINE
)
_SYMBOL = re.compile(r"'([A-Za-z_$][\w$]*)'")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOCATION = re.compile(r"^\s*\.loc\s+(?P<file>\d+)\s+(?P<line>[1-9]\d*)\s")
_OCTAL = re.compile(rb"\\([0-7]{3})")
# Comments, and declarations of symbols that other code defines.
_NOT_CODE = ("//", ".extern")


def read_attributes(log: str) -> dict[str, KernelAttributes]:
    """Parse the assembler's statistics (`--ptxas-options=-v`); return the attributes keyed by entry."""
    attributes: dict[str, KernelAttributes] = {}
    entry = function = ""
    frame = (0, 0, 0)
    for line in log.splitlines():
        if compiling := _COMPILING.search(line):
            entry, frame = compiling[1], (0, 0, 0)
        elif properties := _PROPERTIES.search(line):
            function = properties[1]
        elif (stack := _STACK.search(line)) and function == entry:
            frame = (int(stack[1]), int(stack[2]), int(stack[3]))
        elif (used := _USED.search(line)) and entry:
            local, stores, loads = frame
            shared = _SHARED.search(line)
            attributes[entry] = KernelAttributes(
                int(used[1]), int(shared[1]) if shared else 0, local, spill_store_bytes=stores, spill_load_bytes=loads
            )
    return attributes


def at_source_lines(log: str, ptx: str, name: str) -> str:
    """Return a compiler's log in which the assembler's errors refer to lines of the source.

    `ptx` is the text that the assembler rejected, with line information, and `name` is the source's name. Errors
    without a known source line stay as they are.
    """
    lines = ptx.splitlines()
    own = os.path.join(working_folder(), name)
    files = {number: _spelled(path) for number, path in _FILE.findall(ptx)}

    def placed(error: re.Match[str]) -> str:
        text = _SYMBOL.sub(lambda symbol: f"'{demangle(symbol[1]) or symbol[1]}'", error["text"])
        if error["line"]:
            position = int(error["line"]) - 1
            text += f", in the PTX {lines[position].strip()!r}" if position < len(lines) else ""
            location = _location_before(lines, position)
        else:
            location = _location_of(lines, _SYMBOL.findall(error["text"]))
        if location is None or location["file"] not in files:
            return error[0]
        file = files[location["file"]]
        return f"{name if file == own else file}({location['line']}): error: {text}"

    return _ERROR.sub(placed, log)


def _spelled(path: str) -> str:
    """Return a file's path from its spelling in PTX, where non-ASCII bytes are octal escapes."""
    return os.fsdecode(_OCTAL.sub(lambda octal: bytes([int(octal[1], 8)]), path.encode()))


def _location_before(lines: list[str], position: int) -> re.Match[str] | None:
    """Return the last `.loc` directive at or before a line of PTX, or None."""
    return next(filter(None, map(_LOCATION.match, reversed(lines[: position + 1]))), None)


def _location_of(lines: list[str], symbols: list[str]) -> re.Match[str] | None:
    """Return the `.loc` directive for the definition of a kernel, or for the first use of another symbol."""
    for symbol in symbols:
        word = re.compile(rf"(?<![\w$]){re.escape(symbol)}(?![\w$])")
        for position, line in enumerate(lines):
            if line.lstrip().startswith(_NOT_CODE) or not word.search(line):
                continue
            if ".entry" in line:
                return next(filter(None, map(_LOCATION.match, lines[position:])), None)
            return _location_before(lines, position)
    return None
