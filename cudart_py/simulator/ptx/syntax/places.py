"""Places: where instructions stand in the source, the text of those lines, and the lines that led there."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from .instructions import Instruction

_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|(.))")
_ESCAPED_BLANKS = {b"n": b"\n", b"t": b"\t"}
_BUILT_IN = "__nv_nvrtc_builtin_header.h"


class SourceText(NamedTuple):
    """The source that a module was compiled from.

    `name` is what its compiler called it, `origin` the program's line that compiled a source that is no file, as
    ``file:line``, "" for a file. `folder` is the working folder of that compile.
    """

    name: str
    text: str
    origin: str
    folder: str


def _unescaped(name: str) -> str:
    """Return a file's name, of which PTX writes the bytes that are not ASCII as octal numbers."""

    def spelled(match: re.Match[bytes]) -> bytes:
        number, letter = match.groups()
        return bytes([int(number, 8) & 0xFF]) if number else _ESCAPED_BLANKS.get(letter, letter)

    return _ESCAPE.sub(spelled, name.encode()).decode(errors="replace") if "\\" in name else name


def _is_in_folder(path: str, source: SourceText) -> bool:
    """Return whether a path is a source's relative name after the folder of its compile.

    An included file may have the same name in another folder. The compiler spells its folder as $PWD does, perhaps with
    symbolic links.
    """
    if not path.endswith(os.sep + source.name):
        return False
    return os.path.realpath(path.removesuffix(source.name)) == os.path.realpath(source.folder)


class Places:
    """The files that a module's lines are of, by number, with the texts that are at hand; file 0 is the PTX text."""

    def __init__(self) -> None:
        self.files: dict[int, str] = {}
        self._texts: dict[int, list[str]] = {}
        self._name = self._origin = ""

    def add(self, number: int, path: str) -> None:
        """Enter a file by its name as PTX spells it; the compiler's built-in header lies in no folder."""
        path = _unescaped(path)
        name = os.path.basename(path)
        self.files[number] = name if name == _BUILT_IN else path

    def keep(self, source: SourceText) -> None:
        """Keep the text of the module's source, and call a source that is no file by its name alone."""
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
        """Return an instruction's position; of one that was inlined from another file, both positions."""
        inner = self.name(site.file, site.line)
        return inner if site.file == site.user[0] else f"{self.name(*site.user)} (inlined from {inner})"

    def reached(self, site: Instruction, calls: Iterable[Instruction], home: int) -> tuple[str, str]:
        """Return an instruction's position and the text there; in a function of another file, the line that led there.

        `calls` are the calls that the instruction is inside of, the innermost first, and `home` is the kernel's file.
        The text begins with a line break, and is "" where it isn't at hand.
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
    def origin(self) -> str:
        """Return which line compiled a source that is no file, behind a line break; "" for a file."""
        return f"\n    {self._name} was compiled at {self._origin}" if self._origin else ""

    @property
    def texts(self) -> dict[str, str]:
        """Return the text of the source by its name, where it is no file."""
        return {self.files[number]: "\n".join(lines) for number, lines in self._texts.items() if self._origin}
