"""Source text inside the file of a program that has it as a string."""

from __future__ import annotations

from pathlib import Path


def first_line_of(text: str, path: str, near: int) -> int:
    r"""Return the line of a file at which a text begins, or 0 if the file does not contain the whole text.

    The first line of the text may follow other characters, such as quotes, and other characters may follow the last
    one. Indentation may differ, and a backslash of the text may be two in the file. If the file contains the text
    several times, the occurrence that is nearest to the line `near` counts.
    """
    try:
        lines = [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return 0
    parts = [line.strip() for line in text.splitlines()]
    # Blank lines at both ends of the text are not compared, because the quotes of a string may replace them.
    before = next((number for number, part in enumerate(parts) if part), len(parts))
    parts = "\n".join(parts).strip().split("\n")
    found = [number for number in range(len(lines) - len(parts) + 1) if _is_at(parts, lines, number)]
    first = [number + 1 - before for number in found if parts[0] and number >= before]
    return min(first, key=lambda number: abs(number - near), default=0)


def _is_at(parts: list[str], lines: list[str], number: int) -> bool:
    """Return whether a file contains the stripped lines of a text from a given line on, counted from 0."""
    if len(parts) == 1:
        return any(parts[0] in line for line in _spellings(lines[number]))
    last = number + len(parts) - 1
    return (
        any(line.endswith(parts[0]) for line in _spellings(lines[number]))
        and all(part in _spellings(line) for part, line in zip(parts[1:-1], lines[number + 1 : last], strict=True))
        and any(line.startswith(parts[-1]) for line in _spellings(lines[last]))
    )


def _spellings(line: str) -> tuple[str, str]:
    """Return a line of a program as it is in a raw string, and as it is in another string."""
    return line, line.replace("\\\\", "\\")
