"""The local files that a source includes, found without a compiler.

A cached image is valid as long as these files are unchanged. NVRTC does not report the files that it has read. Files
that it looked for and did not find matter as well. So this module scans the directives itself. The scan collects every
file that any search order could find. Conditions are not evaluated, and a directive in a comment or in a string counts
as well. One file too many costs a needless compile, but one too few could return a stale image from the cache. If a
macro determines the included file, the scan is not certain, and the source is compiled every time.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..host.files import read_file
from .requests import LONGEST, LONGEST_NAME, working_folder

# The compiler joins lines that end in a backslash before it looks for directives.
_SPLICE = re.compile(rb"\\\r?\n")
# White space and comments between the tokens of a directive. The length of comments is bounded, because otherwise a
# text of repeated "/*" would take quadratic time. A longer comment inside a directive makes the scan uncertain.
_BLANK = rb"(?:[ \t\v\f\r]++|/\*(?:[^*]|\*(?!/)){0,400}+\*/){0,100}+"
_HASH = rb"(?:\#|%:)"
# The text after the hash is matched by a lookahead, which does not consume it, because it may contain another
# directive: what looks like a comment may be inside a string.
_INCLUDE = re.compile(
    _HASH
    + rb"(?=%(blank)s(?:include(?:_next)?\b%(blank)s(?:\"(?P<quoted>[^\"\n]+)\"|<(?P<angled>[^>\n]+)>|(?P<other>.?))"
    rb"|(?P<unread>/\*)))" % {b"blank": _BLANK},
    re.DOTALL,
)
_ASKING = b"__has_include"
# A test for whether the compiler supports __has_include, which does not look for a file.
_KNOWN = re.compile(rb"\b(?:defined%(blank)s\(?|(?:el)?ifn?def\b)%(blank)s__has_include\b" % {b"blank": _BLANK})
_CONDITION = re.compile(_HASH + _BLANK + rb"(?:el)?if\b([^\n]*)")
# A macro of another header may stand for __has_include, so parentheses around a file name count too.
_ASKED = re.compile(rb"(?:(__has_include)%(blank)s)?+\(%(blank)s(?:\"([^\"\n]+)\"|<([^>\n]+)>)" % {b"blank": _BLANK})
# Text that makes the scan uncertain: trigraphs, which can spell `#` and the backslash; NULs; and macros for the time of
# the compile.
_UNCERTAIN = re.compile(rb"\?\?[=/]|\0|\b(?:__DATE__|__TIME__|__TIMESTAMP__)\b")
# Pieces from which macros may paste __has_include, which make it uncertain as well.
_PIECE = re.compile(rb"\b(?:" + b"|".join(_ASKING[:length] for length in range(1, len(_ASKING))) + rb")\b")
# Literals and comments, in which a piece means nothing: PTX has operands named `_`. Numbers are matched because their
# digits may be separated by quotation marks. A quotation mark without its match is an error, or in text that the
# compiler skips or does not expand.
_NO_TOKENS = re.compile(
    rb"\.?\d(?:'?[\w.])*+"
    rb"|\"(?:[^\"\\\n]|\\.)*+\"?"
    rb"|'(?:[^'\\\n]|\\.)*+'?"
    rb"|//[^\n]*"
    rb"|/\*(?:.*?\*/|.*)",
    re.DOTALL,
)
_RAW_STRING = b'R"'
# Directives in which a macro may name the file to include, in its definition or in its arguments.
_MACRO = re.compile(_HASH + _BLANK + rb"(?:define|include(?:_next)?)\b([^\n]*)")
_MACRO_NAME = re.compile(rb"\"([^\"\n]+)\"|<([^>\n]+)>|([^\s\"<>(),=]+)")
# File names that are too long for NVRTC: a string literal, or a word that a macro may turn into one.
_LONG_LITERAL = re.compile(rb"\"(?:[^\"\\\n]|\\.){%d}" % (LONGEST_NAME + 1))
_WORD = rb"[^\s\",;(){}*]"
_LONG_WORD = re.compile(rb"(?<!%b)%b{%d}" % (_WORD, _WORD, LONGEST_NAME + 1))
# A `#line` directive. A comment that is longer than `_BLANK` allows, or continues in the next line, may hide one.
_LINE = re.compile(_HASH + _BLANK + rb"(?:line\b|\d|(?=/\*))([^\n]*)")
_MACRO_IN_LINE = re.compile(rb"[^\"]*?(?:/\*|(?<![\w$])(?!__(?:LINE|FILE)__\b)[A-Za-z_$\\\x80-\xff])")
# With C++14 and older, NVRTC still knows trigraphs.
_TRIGRAPHS = ((b"??=", b"#"), (b"??/", b"\\"))
# The maximum number of characters of a path in PTX, which spells each non-ASCII byte with four characters. NVRTC
# corrupts its memory if a path needs more than about 15,800. A name in a directive is prefixed with the working folder.
_LONGEST_PATH = 15_000
_LONGEST_FOLDER = _LONGEST_PATH - 4 * LONGEST_NAME


class Inclusions(NamedTuple):
    """The files that a source includes: local files as (path, digest) pairs, and names of files that are not local.

    `certain` is false if a macro determines what is included; there may then be more files.
    """

    files: tuple[tuple[str, str], ...]
    external: tuple[str, ...]
    certain: bool


class _Names(NamedTuple):
    """The file names in one text: those in `#include` and __has_include, and those that its macros may stand for."""

    included: list[str]
    in_macros: list[str]
    certain: bool


def _begins(text: bytes, position: int) -> bool:
    """Return whether a position is preceded in its line only by white space, or by text that ends with a comment."""
    before = text[text.rfind(b"\n", 0, position) + 1 : position].strip()
    return not before or before.endswith(b"*/")


class _LineNames:
    """Finds long names in `#line` directives of texts that are compiled together, which may share macros.

    Long names that macros put together from short pieces are not found.
    """

    def __init__(self) -> None:
        self._has_macro = self._has_long_text = False

    def may_be_long(self, text: bytes) -> bool:
        """Add a text; return whether a directive in the texts so far may have a name longer than `LONGEST_NAME`."""
        is_long = self._look_at(text)
        plain = text
        for trigraph, character in _TRIGRAPHS:
            plain = plain.replace(trigraph, character)
        return is_long or (plain != text and self._look_at(plain))

    def _look_at(self, text: bytes) -> bool:
        joined = _SPLICE.sub(b"", text)
        # A directive may also begin after a comment that contains a hash.
        directives = [
            match[1] for match in _LINE.finditer(joined) if b"*/" in match[1] or _begins(joined, match.start())
        ]
        by_macro = [rest for rest in directives if _MACRO_IN_LINE.match(rest)]
        self._has_macro |= bool(by_macro)
        if max(map(len, joined.split(b"\n"))) > LONGEST_NAME:  # few files have such a line, and splitting is fast
            self._has_long_text |= bool(_LONG_LITERAL.search(joined) or _LONG_WORD.search(joined))
        if self._has_macro and self._has_long_text:
            return True
        if any(map(_LONG_LITERAL.search, directives)):
            return True
        # A macro may combine all of its arguments into one name; comments are not arguments.
        return any(len(rest) > LONGEST_NAME and b"/*" not in rest for rest in by_macro)


def scan(
    text: bytes,
    folder: str,
    include: Sequence[str],
    options: Sequence[str],
    first: Sequence[str],
    *,
    call: str,
    headers: Mapping[str, bytes] = MappingProxyType({}),
) -> Inclusions:
    """Follow every `#include` of a source in `folder` through local files.

    `include` has the folders to search, `options` the compiler's options, which may define macros, `first` the names of
    files that are included before the source (`--pre-include`), and `headers` the texts that the compiler uses instead
    of files.

    Raises ValueError that names `call` for an included pipe, device or endless file, because the compiler would hang.
    Also raises ValueError if a name in a `#line` directive, the path of an included file or the working folder is so
    long that it would corrupt the compiler's memory.
    """
    # NVRTC searches the folder of the including file, the source's folder, and then the `include` folders. Real paths
    # are used because the scan then ends even if a file includes itself through ever longer paths.
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
            if name in headers:
                # The compiler prefers it to files, but looks for the files that it includes where they would be.
                take(headers[name], os.path.realpath(os.path.join(source_folder, os.path.dirname(name))))
                continue
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
        # The list stays incomplete. Files that macros may name are checked only because some would hang the compiler.
        pending += in_macros
        follow()
    return Inclusions(tuple(sorted(files.items())), names, certain)


def _spelled_length(path: str) -> int:
    encoded = os.fsencode(path)
    return len(encoded) + 3 * sum(byte > 127 for byte in encoded)


def _names_in(text: bytes) -> _Names:
    joined = _SPLICE.sub(b"", text)
    # The end of a raw string is not worth looking for.
    tokens = joined if _RAW_STRING in joined else _NO_TOKENS.sub(b" ", joined)
    certain = not (_UNCERTAIN.search(joined) or _PIECE.search(tokens))
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
    # Any other __has_include is in a macro, and may search the folder of another file.
    certain = certain and asked == unknown.count(_ASKING)
    in_macros = [
        quoted or angled or word
        for line in _MACRO.findall(joined)
        for quoted, angled, word in _MACRO_NAME.findall(line)
    ]
    return _Names(list(map(os.fsdecode, included)), list(map(os.fsdecode, in_macros)), certain)


def _content(call: str, path: str) -> bytes | None:
    """Return the content that the compiler would read at a path, or None if it finds no file."""
    if "\0" in path:
        return None
    try:
        return read_file(path, LONGEST)
    except OSError:
        return None
    except ValueError as error:
        raise ValueError(f"{call}: argument 'source' includes a file that cannot be read: {error}") from None
