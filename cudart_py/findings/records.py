"""Records of findings: the mistakes and faults of kernels that the simulator reports, each with its place in a source.

The simulator passes each record to the functions that `listen` has added. They receive it even if the program hides
warnings, and whether the checks warn or raise an exception.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

# The kinds of findings, with a description of the mistake.
KINDS = {
    "race": "Data race: two accesses to the same memory, at least one of them a write, are not ordered.",
    "uninitialised": "Uninitialised memory is read.",
    "bounds": "Out of bounds: an address is not inside an allocation or a variable of its memory space.",
    "divergence": "Not all threads of a block reach the same barrier.",
    "mask": "A member mask does not match the threads that execute the instruction.",
    "argument": "An argument of a library call has a value that the documentation does not allow.",
    "fault": "A kernel, or other work of a device, was stopped by a fault.",
}
_PLACE = re.compile(
    r"kernel (?P<kernel>.+?)(?: \(in [^\n]+?\))? at (?:(?P<file>[^\n]+?):(?P<line>\d+)|PTX line \d+)(?: \([^\n]*?\))?: "
)
_INSTRUCTION = re.compile(r", instruction '[^\n]*'$")
_CODE = re.compile(r"^    \d+ \| (.*)$", re.MULTILINE)
_ORIGIN = re.compile(
    r"^    (?P<source>.+) was compiled at (?P<file>.+?):(?P<line>\d+)(?:, and begins at line (?P<begin>\d+) .+)?$",
    re.MULTILINE,
)
# The earlier access of a race: a kernel's has its line, and other work has the line that queued it.
_EARLIER = re.compile(r", which .+? (?:wrote|read)(?: at| \(queued at) (?P<file>[^\n]+?):(?P<line>\d+)\b")
_QUEUED = re.compile(r"was queued at (.+):(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """A mistake that the simulator has found, or a fault.

    `kind` is a key of `KINDS`, and `text` is the whole report. `kernel` is the kernel's C++ name. `file` and `line` are
    the place in the source that the compiler was given, and `code` is the text of this line. `site` is the file and the
    line of the call that the program waited in. For a source that the program has as text, `source` is the name of the
    source, `origin` the file and the line that compiled it, and `begin` the line of that file at which the text begins.
    Names are "" and lines are 0 if they are not known. `severity` is "warning" if the program only receives a warning.
    """

    kind: str
    text: str
    kernel: str = ""
    file: str = ""
    line: int = 0
    code: str = ""
    origin: tuple[str, int] = ("", 0)
    site: tuple[str, int] = ("", 0)
    source: str = ""
    begin: int = 0
    severity: Literal["error", "warning"] = "error"

    @property
    def message(self) -> str:
        """The first line of the report, without the kernel, the place, the instruction and the kind."""
        first = self.text.partition("\n")[0]
        place = _PLACE.match(first)
        what = _INSTRUCTION.sub("", first[place.end() :] if place else first)
        return what.removeprefix(f"{self.kind}: ")

    def in_a_file(self) -> tuple[str, int]:
        """Return the absolute path of an existing file and the line in it where a reader finds the mistake.

        It is the place in the source; see `place_in_a_file`. For other findings, it is the line of the program that
        waited. Returns ("", 0) if the file does not exist.
        """
        candidates = (self.place_in_a_file(self.file, self.line), self.origin, self.site)
        path, line = next((each for each in candidates if each[0] and os.path.isfile(each[0])), ("", 0))
        return (os.path.abspath(path), line) if path else ("", 0)

    def earlier_in_a_file(self) -> tuple[str, int]:
        """Return the place of the other access of a race as `in_a_file` does, or ("", 0) if it is not known."""
        earlier = _EARLIER.search(self.message)
        path, line = self.place_in_a_file(earlier["file"], int(earlier["line"])) if earlier else ("", 0)
        return (os.path.abspath(path), line) if path and os.path.isfile(path) else ("", 0)

    def place_in_a_file(self, file: str, line: int) -> tuple[str, int]:
        """Return the file and the line for a place that the report names.

        A source that the program has as text is part of the program's file, if that file contains the whole text.
        Otherwise, such as for a formatted string, the place is not known, and ("", 0) is returned: a line that looks
        the same may be in another kernel.
        """
        if file != self.source:
            return file, line
        return (self.origin[0], self.begin + line - 1) if self.begin else ("", 0)


def read_report(kind: str, text: str, site: str = "", severity: Literal["error", "warning"] = "error") -> Finding:
    """Return the record of a report as the simulator writes it; `site` is the waiting call as ``file:line``."""
    place, code = _PLACE.match(text), _CODE.search(text)
    if place is None:
        # Work other than kernels, such as a copy, has the line that queued it.
        queued = _QUEUED.search(text.partition("\n")[0])
        return Finding(kind, text, site=(queued[1], int(queued[2])) if queued else _split(site), severity=severity)
    origin = _ORIGIN.search(text)
    return Finding(
        kind,
        text,
        place["kernel"],
        place["file"] or "",
        int(place["line"] or 0),
        code[1] if code else "",
        (origin["file"], int(origin["line"])) if origin else ("", 0),
        _split(site),
        origin["source"] if origin else "",
        int(origin["begin"] or 0) if origin else 0,
        severity,
    )


def _split(site: str) -> tuple[str, int]:
    path, _, line = site.rpartition(":")
    return (path, int(line)) if path and line.isdecimal() else ("", 0)


_listeners: list[Callable[[Finding], None]] = []


def note(finding: Finding) -> None:
    """Pass a finding to the functions that listen."""
    for listener in _listeners:
        listener(finding)


def has_listeners() -> bool:
    """Return whether any function listens."""
    return bool(_listeners)


def listen(listener: Callable[[Finding], None]) -> None:
    """Add a function that receives each finding from now on."""
    _listeners.append(listener)


@contextlib.contextmanager
def collected() -> Iterator[list[Finding]]:
    """Collect the findings of a `with` block in a list."""
    found: list[Finding] = []
    # A bound method differs at each access, and the same one must be removed.
    listener = found.append
    _listeners.append(listener)
    try:
        yield found
    finally:
        _listeners.remove(listener)
