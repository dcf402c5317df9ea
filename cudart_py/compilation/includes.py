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

from ..host.files import read_file
from .requests import LONGEST, LONGEST_NAME, working_folder

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
# A name of a file that NVRTC must not be given: a literal, or a word that a macro may make a literal of.
_LONG_LITERAL = re.compile(rb"\"(?:[^\"\\\n]|\\.){%d}" % (LONGEST_NAME + 1))
_WORD = rb"[^\s\",;(){}*]"
_LONG_WORD = re.compile(rb"(?<!%b)%b{%d}" % (_WORD, _WORD, LONGEST_NAME + 1))
# A comment that is longer than `_BLANK` allows, or goes on in the next line, may hide the rest of the directive.
_LINE = re.compile(_HASH + _BLANK + rb"(?:line\b|\d|(?=/\*))([^\n]*)")
_MACRO_IN_LINE = re.compile(rb"[^\"]*?(?:/\*|(?<![\w$])(?!__(?:LINE|FILE)__\b)[A-Za-z_$\\\x80-\xff])")
# With C++14 and older, NVRTC still knows trigraphs.
_TRIGRAPHS = ((b"??=", b"#"), (b"??/", b"\\"))
# The most characters of a path in PTX, which spells a byte that is not ASCII with four. NVRTC corrupts its memory where
# a name takes more than some 15,800; a name in a directive is spelled with the working folder before it.
_LONGEST_PATH = 15_000
_LONGEST_FOLDER = _LONGEST_PATH - 4 * LONGEST_NAME


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


def _begins(text: bytes, position: int) -> bool:
    """Return whether nothing but blanks and comments stands before a position in its line."""
    before = text[text.rfind(b"\n", 0, position) + 1 : position].strip()
    return not before or before.endswith(b"*/")


class _LineNames:
    """Names for `#line` directives in the texts that are compiled together: a macro of one may name another's file.

    Long names that macros make of short pieces are not found.
    """

    def __init__(self) -> None:
        self._has_macro = self._has_long_text = False

    def may_be_long(self, text: bytes) -> bool:
        """Add a text; return whether a directive of those added so far may have a name longer than `LONGEST_NAME`."""
        is_long = self._look_at(text)
        plain = text
        for trigraph, character in _TRIGRAPHS:
            plain = plain.replace(trigraph, character)
        return is_long or (plain != text and self._look_at(plain))

    def _look_at(self, text: bytes) -> bool:
        joined = _SPLICE.sub(b"", text)
        # A directive may also follow a hash that stands in a comment.
        directives = [
            match[1] for match in _LINE.finditer(joined) if b"*/" in match[1] or _begins(joined, match.start())
        ]
        by_macro = [rest for rest in directives if _MACRO_IN_LINE.match(rest)]
        self._has_macro |= bool(by_macro)
        if max(map(len, joined.split(b"\n"))) > LONGEST_NAME:  # most files have no such line, and splitting is quick
            self._has_long_text |= bool(_LONG_LITERAL.search(joined) or _LONG_WORD.search(joined))
        if self._has_macro and self._has_long_text:
            return True
        if any(map(_LONG_LITERAL.search, directives)):
            return True
        # A macro may make a name of all its arguments; comments are not arguments.
        return any(len(rest) > LONGEST_NAME and b"/*" not in rest for rest in by_macro)


def scan(
    text: bytes,
    folder: str,
    include: Sequence[str],
    options: Sequence[str],
    first: Sequence[str],
    *,
    call: str,
) -> Inclusions:
    """Follow every `#include` of a source in `folder` through local files.

    `include` are the folders searched, `options` those of the compiler, which may define macros, `first`
    names that are included before the source (`--pre-include`).

    Raises ValueError, which names `call`, for a pipe, a device or an endless file among them, at which the compiler
    would hang, and for a name in a `#line` directive, an included file or a working folder that would corrupt its
    memory.
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
    line_names = _LineNames()
    certain = True

    if _spelled_length(working_folder()) > _LONGEST_FOLDER:
        raise ValueError(f"{call}: the path of the working folder is too long for NVRTC's line information")

    def take(content: bytes, place: str) -> None:
        nonlocal certain
        if line_names.may_be_long(content):
            own = content is text or content is definitions
            where = "has" if own else f"includes a file of {place!r} that has"
            raise ValueError(
                f"{call}: argument 'source' {where} a #line directive with a name of more than {LONGEST_NAME} bytes, "
                "or the text that a macro may put there. Shorten the name"
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
                    content = _content(call, path)
                    if content is None:
                        continue
                    if _spelled_length(path) > _LONGEST_PATH:
                        raise ValueError(
                            f"{call}: argument 'source' includes a file whose path is too long for NVRTC's line "
                            f"information: {path!r}"
                        )
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


def _spelled_length(path: str) -> int:
    encoded = os.fsencode(path)
    return len(encoded) + 3 * sum(byte > 127 for byte in encoded)


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


def _content(call: str, path: str) -> bytes | None:
    """Return what the compiler would read at a path; None where it finds nothing."""
    if "\0" in path:
        return None
    try:
        return read_file(path, LONGEST)
    except OSError:
        return None
    except ValueError as error:
        raise ValueError(f"{call}: argument 'source' includes what cannot be read: {error}") from None
