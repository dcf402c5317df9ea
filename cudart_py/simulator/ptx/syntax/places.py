"""The source locations of instructions, the text of those lines, and the calls that led there."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from ....host.embedded_text import first_line_of
from .instructions import Instruction

_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|(.))")
_ESCAPED_BLANKS = {b"n": b"\n", b"t": b"\t"}
_BUILT_IN = "__nv_nvrtc_builtin_header.h"


class SourceText(NamedTuple):
    """The source that a module was compiled from.

    `name` is the name that the compiler was given. `origin` is the line of the program that compiled the source, as
    ``file:line``, or "" if the source is a file. `folder` is the working directory of the compilation.
    """

    name: str
    text: str
    origin: str
    folder: str


def _unescaped(name: str) -> str:
    """Return a file's name without escapes; PTX writes bytes that are not ASCII as octal numbers."""

    def spelled(match: re.Match[bytes]) -> bytes:
        number, letter = match.groups()
        return bytes([int(number, 8) & 0xFF]) if number else _ESCAPED_BLANKS.get(letter, letter)

    return _ESCAPE.sub(spelled, name.encode()).decode(errors="replace") if "\\" in name else name


def _is_in_folder(path: str, source: SourceText) -> bool:
    """Return whether a path is a source's relative name within the working directory of its compilation.

    An included file may have the same name in another directory. The compiler takes its directory from $PWD, which may
    contain symbolic links.
    """
    if not path.endswith(os.sep + source.name):
        return False
    # As bytes, because the locale's encoding may lack characters of these names.
    named, compiled_in = (
        os.path.realpath(folder.encode("utf-8", "surrogateescape"))
        for folder in (path.removesuffix(source.name), source.folder)
    )
    return named == compiled_in


class Places:
    """The source files of a module by number, with the texts that are available; file 0 is the PTX text."""

    def __init__(self) -> None:
        self.files: dict[int, str] = {}
        self._texts: dict[int, list[str]] = {}
        self._name = self._origin = ""

    def add(self, number: int, path: str) -> None:
        """Add a file under its name as PTX spells it; the compiler's built-in header has no directory."""
        path = _unescaped(path)
        name = os.path.basename(path)
        self.files[number] = name if name == _BUILT_IN else path

    def keep(self, source: SourceText) -> None:
        """Keep the text of the module's source, and name the source as its compiler did."""
        for number, path in self.files.items():
            if path == source.name or _is_in_folder(path, source):
                self.files[number] = source.name
                self._texts[number] = source.text.splitlines()
                self._name, self._origin = source.name, source.origin
                return

    def name(self, file: int, line: int) -> str:
        """Return a source position as ``file:line``."""
        return f"{self.files[file]}:{line}" if file in self.files else f"PTX line {line}"

    def of(self, site: Instruction) -> str:
        """Return an instruction's location; for one that was inlined from another file, both locations."""
        inner = self.name(site.file, site.line)
        return inner if site.file == site.user[0] else f"{self.name(*site.user)} (inlined from {inner})"

    def reached(self, site: Instruction, calls: Iterable[Instruction], home: int) -> tuple[str, str]:
        """Return the location and source text of an instruction, or of the call that led to it from the kernel's file.

        `calls` are the calls on the call stack, innermost first, and `home` is the kernel's file. The text begins with
        a line break, and is "" if it isn't available.
        """
        if site.user[0] != home:
            found = [call for call in calls if call.user[0] == home]
            if not (found or site.user[0]):
                found = [call for call in calls if call.user[0]]
            if found:
                led = found[0].user
                return f"{self.name(*led)} (which calls {self.of(site)})", self._quote(*led)
        named = (site.file, site.line) if site.file == site.user[0] else site.user
        return self.of(site), self._quote(*named)

    def _quote(self, file: int, line: int) -> str:
        texts = self._texts.get(file)
        if texts is not None:
            text = texts[line - 1] if 0 < line <= len(texts) else ""
        else:
            path = self.files.get(file, "")
            text = linecache.getline(path, line) if os.path.isfile(path) else ""
        return f"\n    {line} | {text.strip()}" if text.strip() else ""

    @property
    def compiled_at(self) -> tuple[str, int]:
        """Return the program's file and line that compiled a source that isn't a file; ("", 0) for a file."""
        path, _, line = self._origin.rpartition(":")
        return (path, int(line)) if line.isdecimal() else ("", 0)

    @cached_property
    def begins_at(self) -> int:
        """The line at which the source begins in the program's file that compiled it; 0 if it isn't there."""
        path, line = self.compiled_at
        if not path:
            return 0
        (lines,) = self._texts.values()
        return first_line_of("\n".join(lines), path, line)

    @property
    def origin(self) -> str:
        """Return a line break and the line that compiled a source that isn't a file; "" for a file.

        If the source is a literal in the program's file, the text also says where it begins.
        """
        if not self._origin:
            return ""
        begins = f", and begins at line {self.begins_at} of this file" if self.begins_at else ""
        return f"\n    {self._name} was compiled at {self._origin}{begins}"

    @property
    def texts(self) -> dict[str, str]:
        """Return the text of the source, keyed by its name, if it isn't a file."""
        return {self.files[number]: "\n".join(lines) for number, lines in self._texts.items() if self._origin}
