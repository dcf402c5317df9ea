"""The glossary, and the links to it from the texts of a page, which link each term at its first use."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Code, links and indented blocks of Markdown, in which nothing is linked.
UNLINKED = r"```.*?```|``.*?``|`[^`]*`|\[[^\]]*\]\([^)]*\)|^(?: {4}|\t)[^\n]*$"

# Words that a stop's lesson uses in another sense, such as the grid of a differential equation or a Python block.
OTHER_SENSES: Mapping[str, Sequence[str]] = {
    "l2_persistence": ["block"],
    "texture": ["block"],
    "crank_nicolson": ["grid", "reduction"],
    "distributed_gemm": ["block", "grid"],
    "gemm": ["launch"],
    "sparse": ["grid"],
}

# Prefixes of names in CUDA C++, in lower case, and the terms that explain the names.
NAMES = {
    "__all_sync": "vote",
    "__any_sync": "vote",
    "__ballot_sync": "ballot",
    "__fma": "fused multiply-add",
    "__shfl_": "shuffle",
    "__syncthreads_": "barrier",
    "__threadfence": "fence",
    "atomic": "atomic",
    "cudaevent": "event",
    "cudagraph": "graph",
    "cudamallocasync": "memory pool",
    "cudamallochost": "pinned",
    "cudamallocmanaged": "managed memory",
    "cudamemprefetch": "prefetch",
    "cudastream": "stream",
    "warpsize": "warp",
}


class UnknownTermError(LookupError):
    """A word that the glossary does not have; the message names a similar term, or the command that prints all."""


@dataclass(frozen=True)
class Term:
    """A term with its definition in Markdown; `forms` are the words for it, and `anchor` is its place on the page."""

    heading: str
    definition: str

    @property
    def forms(self) -> list[str]:
        """The words for the term, in lower case."""
        return self.heading.lower().split(", ")

    @property
    def anchor(self) -> str:
        """The fragment of a link to the term's heading."""
        return anchor(self.heading)


def anchor(heading: str) -> str:
    """Return the fragment of a link to a heading, by the rule of Python-Markdown."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower())).strip("-")


def find(package: Path = Path(__file__).parent) -> Path:
    """Return the path of the glossary: a wheel carries it inside the package, a checkout in its documentation."""
    inside = package / "glossary.md"
    return inside if inside.is_file() else package.parent / "docs" / "glossary.md"


@functools.cache
def terms() -> Mapping[str, Term]:
    """Return the terms, keyed by each of their forms."""
    text = find().read_text(encoding="utf-8")
    sections = re.findall(r"^### ([^\n]+)\n\n(.+?)\s*(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    return {form: term for term in (Term(*section) for section in sections) for form in term.forms}


@functools.cache
def _pattern() -> re.Pattern[str]:
    # The longest form first: "bank conflict" before "bank".
    forms = "|".join(map(re.escape, sorted(terms(), key=len, reverse=True)))
    return re.compile(
        rf"(?P<unlinked>{UNLINKED})|(?<![\w-])(?P<form>{forms})(?P<plural>s?)(?![\w-])",
        re.MULTILINE | re.DOTALL | re.IGNORECASE,
    )


def used(texts: Sequence[str], stop: str) -> Sequence[Term]:
    """Return the terms that a stop's Markdown texts use, in order of first use."""
    links = Links("", stop)
    for text in texts:
        links.link(text)
    return links.linked


def explained(word: str) -> Term:
    """Return the term for a word, its plural, or a name in CUDA C++ such as `threadIdx.x` or `atomicMax`.

    A name belongs to the term whose definition contains it, or else to the one in `NAMES`. Raises UnknownTermError for
    a word that is not in the glossary.
    """
    form = " ".join(word.lower().split())
    for known in (form, form.removesuffix("s")):
        if known in terms():
            return terms()[known]
    name = re.sub(r"(\(\)|\.[xyzw])$", "", form)
    for term in terms().values():
        if name in (code.lower().removesuffix("()") for code in re.findall("`([^`]+)`", term.definition)):
            return term
    for letters, known in NAMES.items():
        if name.startswith(letters) and " " not in name:
            return terms()[known]
    near = difflib.get_close_matches(form, terms(), n=1)
    meant = f"; did you mean {near[0]}?" if near else "; `library-tour glossary` prints all terms"
    raise UnknownTermError(f"the glossary does not have {word!r}{meant}")


class Links:
    """Links from the texts of a stop's page to the glossary; `address` is the glossary's address relative to the page.

    Collapsed texts, such as hints, are not linked: a reader who leaves them collapsed would miss a term's first use.
    """

    def __init__(self, address: str, stop: str) -> None:
        self.linked: list[Term] = []  # in order of first use
        self._address = address
        self._unlinked = OTHER_SENSES.get(stop, ())

    def link(self, text: str) -> str:
        """Return a Markdown text with a link at the first use of each term that earlier texts have not linked."""
        return _pattern().sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        if match["unlinked"]:
            return match[0]
        form = match["form"].lower()
        term = terms()[form]
        if form in self._unlinked or term in self.linked:
            return match[0]
        self.linked.append(term)
        return f"[{match[0]}]({self._address}#{term.anchor})"
