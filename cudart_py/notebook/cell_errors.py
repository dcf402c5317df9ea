"""Errors of the compiler, shown below a cell with the lines of the cell around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import errors

# Lines of the cell shown before and after a line with an error.
_NEAR = 2
_RED, _FAINT, _BOLD, _PLAIN = "\033[31m", "\033[2m", "\033[1m", "\033[0m"


class CellError(errors.CompileError):
    """CUDA C++ in a cell that cannot be compiled. IPython shows it without a traceback, since Python did nothing wrong.

    `cell` is the name of the cell's source in messages, and `lines` are the lines of the source.
    """

    def __init__(self, error: errors.CompileError, cell: str, lines: list[str], *, colored: bool) -> None:
        super().__init__(str(error), status=error.status, call=error.call, log=error.log)
        self._cell = cell
        self._lines = lines
        self._colored = colored

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows."""
        return marked(str(self), self._cell, self._lines, colored=self._colored).split("\n")


def marked(text: str, cell: str, lines: list[str], *, colored: bool = True) -> str:
    """Return the compiler's messages, in which a line of the cell is shown with the lines around it and an arrow.

    `text` has blocks separated by blank lines. The first line of a block may name a line of the cell, and then the
    block's last line may have a caret below a character. With `colored`, the lines have a terminal's colours.
    """
    place = re.compile(rf"{re.escape(cell)}\((\d+)\): ((?:catastrophic )?\w+.*)")
    blocks = []
    for block in text.split("\n\n"):
        first, *rest = block.split("\n")
        match = place.fullmatch(first)
        if match is None or not 1 <= int(match[1]) <= len(lines):
            blocks.append(block)
            continue
        # The caret's line is "    |     ^", whose margin is as wide as that of the quoted line.
        caret = next((line.partition("| ")[2] for line in rest if line.strip("| ^") == "" and "^" in line), "")
        blocks.append("\n".join(_marked_line(match[2], int(match[1]), caret, lines)))
    result = "\n\n".join(blocks)
    return result if colored else re.sub(r"\033\[\d+m", "", result)


def _marked_line(message: str, line: int, caret: str, lines: list[str]) -> Iterator[str]:
    is_error = "error" in message.partition(":")[0]
    yield f"{_BOLD}line {line}: {message}{_PLAIN}"
    for number in range(max(1, line - _NEAR), min(len(lines), line + _NEAR) + 1):
        text = lines[number - 1]
        if number != line:
            # The first line is the magic's own, and IPython appends a line feed to the last.
            if text or 1 < number < len(lines):
                yield f"{_FAINT}      {number:4d} {text}{_PLAIN}"
            continue
        # Only the arrow is red: JupyterLab shows errors on a red ground, on which red text is hard to read.
        color = _RED if is_error else _BOLD
        yield f"{color}---->{_PLAIN}{_BOLD} {number:4d} {text}{_PLAIN}"
        if caret:
            yield f"{_BOLD}           {caret}{_PLAIN}"
