"""PTX text without its comments: the ends of its statements and blocks, and the line of each position."""

from __future__ import annotations

import re
from bisect import bisect_right

from ..faults import PtxError

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|/\*|"[^"\n]*"', re.DOTALL)
# The lines of an inline assembly statement. LLVM numbers them from the line of the source where the statement is, so
# their locations are wrong for all but the first.
_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOCATION = re.compile(r"\.loc\b[^\n]*")
# Characters outside of ASCII may occur only in the names of files.
_FOREIGN = re.compile(r'"[^"\n]*"|[^\t\n\r\f\v -~]')
_BLANK = re.compile(r"\s*")
_NOT_NEWLINE = re.compile(r"[^\n]")
_STATEMENT_END = re.compile(r"[;{}]")
_BRACE = re.compile(r'[{}]|"[^"\n]*"')


class Source:
    """A module's text without comments and locations inside of inline assembly.

    Blanks take their place, so that positions and lines don't change.
    """

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        text = _INLINE.sub(lambda statement: _LOCATION.sub(_blanks, statement[0]), text)
        self.text = _COMMENT.sub(self._blanked, text)
        self.end = len(self.text.rstrip("\0 \t\r\n"))
        for match in _FOREIGN.finditer(self.text):
            if match[0][0] != '"':
                raise self.error(match.start(), f"the character {match[0]!r} isn't PTX")

    def _blanked(self, match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == '"':
            return found
        if found == "/*":
            raise self.error(match.start(), "the comment that begins here is never closed")
        return _blanks(match)

    def line(self, position: int) -> int:
        """Return the line number of a position, counted from 1."""
        return bisect_right(self._starts, position)

    def error(self, position: int, what: str) -> PtxError:
        """Return the error for the text at a position."""
        return PtxError(what, self.line(position))

    def excerpt(self, position: int) -> str:
        """Return the text at a position, shortened for a message."""
        return self.text[position : position + 60].strip().partition("\n")[0]

    def skip_blanks(self, position: int) -> int:
        """Return the position of the next character that isn't white space."""
        match = _BLANK.match(self.text, position)
        assert match is not None
        return match.end()

    def statement_end(self, position: int) -> int:
        """Return the position of the semicolon that ends the statement, skipping operands in braces."""
        depth = 0
        for match in _STATEMENT_END.finditer(self.text, position):
            if match[0] == "{":
                depth += 1
            elif match[0] == "}":
                depth -= 1
                if depth < 0:
                    break
            elif not depth:
                return match.start()
        raise self.error(position, f"{self.excerpt(position)!r} doesn't end with a semicolon")

    def close(self, position: int) -> int:
        """Return the position of the brace that matches the opening brace before `position`."""
        depth = 1
        for match in _BRACE.finditer(self.text, position):
            if match[0] == "{":
                depth += 1
            elif match[0] == "}":
                depth -= 1
                if not depth:
                    return match.start()
        raise self.error(position - 1, "the brace that opens here is never closed")


def _blanks(match: re.Match[str]) -> str:
    return _NOT_NEWLINE.sub(" ", match[0])
