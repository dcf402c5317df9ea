"""Numbers that the environment sets."""

from __future__ import annotations

import os

__all__ = ["whole_number"]


def whole_number(variable: str, default: int, least: int, most: int) -> int:
    """Return the number in an environment variable, or raise ValueError that names it."""
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        value = int(text, 0)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise ValueError(f"{variable}={text!r} is not a whole number from {least} to {most}")
    return value
