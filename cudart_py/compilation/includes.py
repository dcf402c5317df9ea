"""The local files that a source includes, found without a compiler.

A cached image is valid as long as these files are the same. NVRTC does not tell what it has read, and
what it asked for and did not find matters too, so the directives are read here. Everything is taken that
any search order could find: conditions are not evaluated, and a directive in a comment or in a string
counts as well. Too much costs a needless compile, too little a stale one. Where it cannot be told what
is included, because a macro says it, the scan is not certain, and such a source is compiled every time.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..files import read_file
from .requests import LONGEST, LONGEST_NAME, working_folder

__all__ = ["Inclusions", "long_line_name", "scan"]

# The compiler joins spliced lines before it looks at them.
_SPLICE = re.compile(rb"\\\r?\n")
# What may stand between the tokens of a directive. Comments are bounded, so that a text of nothing but
# openings takes no quadratic time; a longer one inside a directive makes the scan uncertain.
_BLANK = rb"(?:[ \t\v\f\r]++|/\*(?:[^*]|\*(?!/)){0,400}+\*/){0,100}+"
_HASH = rb"(?:\#|%:)"
# All that follows the hash is looked at and not passed over, for another directive may stand in it: what
# looks like a comment may be within a string.
_INCLUDE = re.compile(
    _HASH
    + rb"(?=%(blank)s(?:include(?:_next)?\b%(blank)s(?:\"(?P<quoted>[^\"\n]+)\"|<(?P<angled>[^>\n]+)>|(?P<other>.?))"
    rb"|(?P<unread>/\*)))" % {b"blank": _BLANK},
    re.DOTALL,
)
_ASKING = b"__has_include"
# Whether the compiler knows __has_include is asked before it is used, and asks for no file.
_KNOWN = re.compile(rb"\b(?:defined%(blank)s\(?|(?:el)?ifn?def\b)%(blank)s__has_include\b" % {b"blank": _BLANK})
_CONDITION = re.compile(_HASH + _BLANK + rb"(?:el)?if\b([^\n]*)")
# A macro of another header may stand for __has_include: parentheses around a name tell it too.
_ASKED = re.compile(rb"(?:(__has_include)%(blank)s)?+\(%(blank)s(?:\"([^\"\n]+)\"|<([^>\n]+)>)" % {b"blank": _BLANK})
# What a file may hold whose meaning is not told by its directives: trigraphs, which can spell `#` and the
# backslash; NULs; pieces that macros may paste together to __has_include; and the time of the compile.
_UNCERTAIN = re.compile(
    rb"\?\?[=/]|\0|\b(?:"
    + b"|".join(_ASKING[:length] for length in range(1, len(_ASKING)))
    + rb"|__DATE__|__TIME__|__TIMESTAMP__)\b"
)
# Where a macro may name the file to include: in its definition or in its arguments.
_MACRO = re.compile(_HASH + _BLANK + rb"(?:define|include(?:_next)?)\b([^\n]*)")
_MACRO_NAME = re.compile(rb"\"([^\"\n]+)\"|<([^>\n]+)>|([^\s\"<>(),=]+)")
# A name of a file that NVRTC must not be given, in a directive or in a macro that one may use.
_LONG_LITERAL = re.compile(rb"\"(?:[^\"\\\n]|\\.){%d}" % (LONGEST_NAME + 1))
_LINE = re.compile(_HASH + _BLANK + rb"(?:line\b|\d)([^\n]*)")
_MACRO_IN_LINE = re.compile(rb"^[^\"]*[A-Za-z_]")


class Inclusions(NamedTuple):
    """The files that a source includes: local files as (path, digest) pairs, and names found nowhere local.

    `certain` is false where a macro decides what is included, so that there may be more.
    """

    files: tuple[tuple[str, str], ...]
    external: tuple[str, ...]
    certain: bool


class _Names(NamedTuple):
    """The names in one text: those included or asked for, and those that its macros may stand for."""

    included: list[str]
    in_macros: list[str]
    certain: bool


def scan(text: bytes, folder: str, include: Sequence[str], options: Sequence[str], first: Sequence[str]) -> Inclusions:
    """Follow every `#include` of a source in `folder` through local files.

    `include` are the folders searched, `options` those of the compiler, which may define macros, `first`
    names that are included before the source (`--pre-include`).

    Raises ValueError for a pipe, a device or an endless file among them, at which the compiler would hang, and for a
    `#line` directive whose name would corrupt its memory.
    """
    # NVRTC searches the including file's folder, the source's folder and then the given ones. Real paths
    # end what includes itself by ever longer ones.
    source_folder = os.path.realpath(folder)
    searched = (source_folder, *map(os.path.realpath, include))
    definitions = "\n".join(f"#define {option}" for option in options).encode("utf-8", "surrogateescape")
    files: dict[str, str] = {}
    external: set[str] = set()
    seen: set[tuple[str, str]] = set()
    pending = [(working_folder(), name) for name in first]
    in_macros: list[tuple[str, str]] = []
    certain = True

    def take(content: bytes, place: str) -> None:
        nonlocal certain
        if long_line_name(content + b"\n" + definitions):
            where = "has" if content is text else f"includes a file of {place!r} that has"
            raise ValueError(
                f"compile: argument 'source' {where} a #line directive with a name of more than {LONGEST_NAME} bytes"
            )
        names = _names_in(content)
        pending.extend((place, name) for name in names.included)
        in_macros.extend((place, name) for name in names.in_macros)
        certain = certain and names.certain

    def follow() -> None:
        while pending:
            place, name = pending.pop()
            if (place, name) in seen:
                continue
            seen.add((place, name))
            found = False
            for candidate in dict.fromkeys((place, *searched)):
                path = os.path.join(candidate, name)
                if path not in files:
                    content = _content(path)
                    if content is None:
                        continue
                    files[path] = hashlib.blake2b(content, digest_size=16).hexdigest()
                    take(content, os.path.realpath(os.path.dirname(path)))
                found = True
            if not found:
                external.add(name)

    take(text, source_folder)
    take(definitions, source_folder)
    follow()
    names = tuple(sorted(external))
    if not certain:
        # The list stays incomplete; what macros name is looked at because of what would hang the compiler.
        pending += in_macros
        follow()
    return Inclusions(tuple(sorted(files.items())), names, certain)


def long_line_name(text: bytes) -> bool:
    """Return whether a `#line` directive of a text has a name longer than `LONGEST_NAME`, perhaps by a macro."""
    joined = _SPLICE.sub(b"", text)
    if not _LONG_LITERAL.search(joined):
        return False
    return any(_LONG_LITERAL.search(rest) or _MACRO_IN_LINE.search(rest) for rest in _LINE.findall(joined))


def _names_in(text: bytes) -> _Names:
    joined = _SPLICE.sub(b"", text)
    certain = not _UNCERTAIN.search(joined)
    included: list[bytes] = []
    for match in _INCLUDE.finditer(joined):
        name = match["quoted"] or match["angled"]
        if name is None:
            certain = False
        else:
            included.append(name)
    unknown = _KNOWN.sub(b"", joined)
    asked = 0
    for condition in _CONDITION.findall(unknown):
        for asking, quoted, angled in _ASKED.findall(condition):
            asked += bool(asking)
            included.append(quoted or angled)
    # Asked for elsewhere, it is in a macro, and may look in the folder of another file.
    certain = certain and asked == unknown.count(_ASKING)
    in_macros = [
        quoted or angled or word
        for line in _MACRO.findall(joined)
        for quoted, angled, word in _MACRO_NAME.findall(line)
    ]
    return _Names(list(map(os.fsdecode, included)), list(map(os.fsdecode, in_macros)), certain)


def _content(path: str) -> bytes | None:
    """Return what the compiler would read at a path; None where it finds nothing."""
    if "\0" in path:
        return None
    try:
        return read_file(path, LONGEST)
    except OSError:
        return None
    except ValueError as error:
        raise ValueError(f"compile: argument 'source' includes what cannot be read: {error}") from None
