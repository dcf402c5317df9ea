"""The local files that a source includes, found without a compiler.

A cached image is valid as long as these files are the same. Everything is taken that any search order
could find, and conditions are not evaluated: too much costs a needless compile, too little a stale one.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Inclusions", "scan"]

_INCLUDE = re.compile(
    rb"""^[ \t]*\#[ \t]*include(?:_next)?\b[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\S))"""
    rb"""|\b__has_include[ \t]*\([ \t]*["<]([^">\n]+)[">]""",
    re.MULTILINE | re.VERBOSE,
)


class Inclusions(NamedTuple):
    """What a source includes: local files as (path, digest) pairs, and names found nowhere local.

    `computed` tells that some `#include` takes a macro, so that the list cannot be trusted.
    """

    files: tuple[tuple[str, str], ...]
    external: tuple[str, ...]
    computed: bool


def scan(text: bytes, folder: str, include: Sequence[str], first: Iterable[str] = ()) -> Inclusions:
    """Follow every `#include` of a source in `folder` through local files.

    `include` are the folders searched, `first` names that are included before the source (`-include`).
    """
    files: dict[str, str] = {}
    external: set[str] = set()
    computed = False
    # NVRTC searches the including file's folder, the source's folder and then the given ones.
    pending: list[tuple[str, str]] = [(folder, name) for name in first]

    def follow(content: bytes, place: str) -> None:
        nonlocal computed
        for quoted, angled, other, asked in _INCLUDE.findall(content):
            if other:
                computed = True
            else:
                pending.append((place, os.fsdecode(quoted or angled or asked)))

    follow(text, folder)
    seen: set[tuple[str, str]] = set()
    while pending:
        place, name = pending.pop()
        if (place, name) in seen:
            continue
        seen.add((place, name))
        found = False
        for candidate in dict.fromkeys((place, folder, *include)):
            path = os.path.normpath(os.path.join(candidate, name))
            if path in files:
                found = True
                continue
            try:
                with open(path, "rb") as stream:
                    content = stream.read()
            except (OSError, ValueError):
                continue
            found = True
            files[path] = hashlib.blake2b(content, digest_size=16).hexdigest()
            follow(content, os.path.dirname(path))
        if not found:
            external.add(name)
    return Inclusions(tuple(sorted(files.items())), tuple(sorted(external)), computed)
