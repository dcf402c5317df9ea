"""The source lines of a kernel: their text, and the instructions at which they begin."""

from __future__ import annotations

import re
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from ....compilation.names.demangling import function_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...ptx.syntax.instructions import Function, Instruction
    from ...ptx.syntax.parser import Entry

_HEAD = re.compile(r"\b__(?:global|device)__\b")


class Place(NamedTuple):
    """A line of a source file, by the number that the module gives the file."""

    file: int
    line: int


def place_of(site: Instruction) -> Place:
    """Return an instruction's line; if it was inlined from another file, that of the call there."""
    return Place(site.file, site.line) if site.file == site.user[0] else Place(*site.user)


class Lines:
    """The lines of a kernel and of the functions that it calls."""

    def __init__(self, entry: Entry) -> None:
        self._places = entry.module.places
        self.bodies = [entry.body, *entry.called]
        self.entry = entry

    @property
    def has_source(self) -> bool:
        """Return whether the PTX names its source lines."""
        return any(site.file for site in self.entry.body.instructions)

    def name(self, file: int) -> str:
        """Return a file's name, as the compiler was given it, or the name of the PTX text."""
        return self._places.files.get(file, "PTX")

    def text(self, file: int) -> tuple[str, ...]:
        """Return a file's lines; none if the file is not available."""
        name = self._places.files.get(file, "")
        known = self._places.texts.get(name)
        return _lines_of(name) if known is None else tuple(known.splitlines())

    def source(self, body: Function) -> str:
        """Return the lines from a function's head, or the first line of its code, to the last line of its code.

        Code begins after the declarations of variables in a function without parameters.
        """
        file = next((site.user[0] for site in body.instructions if site.user[0]), 0)
        numbers = [place.line for site in body.instructions if (place := place_of(site)).file == file]
        text, first = self.text(file), min(numbers, default=1)
        heads = (number for number in range(first, 0, -1) if _HEAD.search("".join(text[number - 1 : number])))
        return "\n".join(text[next(heads, first) - 1 : max(numbers, default=0)])

    def shown_in(self, file: int) -> tuple[str, int]:
        """Return the path of the file that contains a source, and the distance of its line numbers there.

        A source that was given as text may be a literal in the program that compiled it. The path is "" if the source
        is not found in any file.
        """
        name = self._places.files.get(file, "")
        if name not in self._places.texts:
            return (name if self.text(file) else ""), 0
        begins = self._places.begins_at
        return (self._places.compiled_at[0], begins - 1) if begins else ("", 0)

    def is_shown_in(self, name: str, file: int) -> bool:
        """Return whether a name is the end of the path that `shown_in` returns for a file."""
        path, _ = self.shown_in(file)
        return bool(path) and _is_end(name, path)

    def begin(
        self, file: str, line: int, instance: Callable[[Function, int], object] = lambda *_: None
    ) -> tuple[int, list[Instruction]]:
        """Return the instructions, one per function, at which a line begins, or the next line that has code.

        `instance` distinguishes the copies of a function that are inlined into the same function.
        `file` is the end of a file's path, or of the path of a program that contains the source; see `shown_in`.
        Returns 0 and an empty list if no line has code.
        """
        numbers = {number for number, path in self._places.files.items() if _is_end(file, path)}
        if not numbers:
            if not self.is_shown_in(file, self.entry.home):
                return 0, []
            numbers, line = {self.entry.home}, line - self.shown_in(self.entry.home)[1]
        first: dict[int, dict[object, Instruction]] = {}
        for body in self.bodies:
            for index, site in enumerate(body.instructions):
                place = place_of(site)
                if index >= prologue(body) and place.file in numbers and place.line >= line:
                    first.setdefault(place.line, {}).setdefault((body.name, instance(body, index)), site)
        found = min(first, default=0)
        # A line after the end of a function would otherwise stop at the beginning of the next function.
        if found and found != line and not self._is_inside(numbers, line):
            return 0, []
        return found, list(first[found].values()) if found else []

    def function(self, name: str) -> list[Instruction]:
        """Return the first instructions of the functions with a C++ name, or with a name in PTX.

        The namespaces and classes of a C++ name, and the arguments of templates, may be left out.
        """
        found, name = [], name.replace(" ", "").removeprefix("::")
        for body in self.bodies:
            whole, plain = function_name(body.name).replace(" ", ""), self.called(body.name)
            if body.instructions and (
                name == body.name or any(f"::{one}".endswith(f"::{name}") for one in (whole, plain))
            ):
                found.append(body.instructions[prologue(body)])
        return found

    def called(self, name: str) -> str:
        """Return the C++ name of a function without arguments of templates and without parameters."""
        whole, kept, depth = function_name(name), "", 0
        for character in whole:
            depth += character == "<"
            kept += character if depth == 0 else ""
            depth -= character == ">"
        return kept

    def is_entry(self, site: Instruction) -> bool:
        """Return whether an instruction is a function's first one after the loads of its parameters."""
        body = self.body(site)
        return body.instructions[prologue(body)] is site

    def is_past_prologue(self, site: Instruction) -> bool:
        """Return whether an instruction comes after the loads of its function's parameters."""
        return self.index(site) >= prologue(self.body(site))

    def index(self, site: Instruction) -> int:
        """Return the index of an instruction in its function."""
        return self._indices[id(site)]

    def body(self, site: Instruction) -> Function:
        """Return the function that contains an instruction."""
        return next(body for body in self.bodies if body.name == site.function)

    @cached_property
    def _indices(self) -> dict[int, int]:
        return {id(site): number for body in self.bodies for number, site in enumerate(body.instructions)}

    def _is_inside(self, files: set[int], line: int) -> bool:
        for body in self.bodies:
            lines = [place.line for site in body.instructions if (place := place_of(site)).file in files]
            if lines and min(lines) - 1 <= line <= max(lines):
                return True
        return False


def prologue(body: Function) -> int:
    """Return the number of instructions at the start of a function that only load its parameters and its stack."""
    count = 0
    for site in body.instructions[:-1]:
        is_setup = site.opcode.startswith("ld.param") or "%SP" in site.text
        if not is_setup or place_of(site) != place_of(body.instructions[0]):
            break
        count += 1
    return count


def _is_end(file: str, path: str) -> bool:
    """Return whether a path is a file, or ends with its parts."""
    parts = PurePath(file).parts
    return PurePath(path).parts[-len(parts) :] == parts


@cache
def _lines_of(path: str) -> tuple[str, ...]:
    try:
        return tuple(Path(path).read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()
