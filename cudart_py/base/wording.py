"""Words of messages that depend on numbers."""

from __future__ import annotations

_WITH_ES = ("s", "x", "ch", "sh")


def counted(number: int, noun: str) -> str:
    """Return a number with a regular noun, which is in the plural unless the number is 1: "1 launch", "2 launches"."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es" if noun.endswith(_WITH_ES) else f"{noun}s"
    return f"{number:,} {plural}"
