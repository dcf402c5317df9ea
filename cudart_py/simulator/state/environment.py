"""Numbers and words that the environment sets."""

from __future__ import annotations

import os


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


def one_of(variable: str, words: tuple[str, ...]) -> str:
    """Return the word in an environment variable, the first one if it isn't set, or raise ValueError that names it."""
    text = os.environ.get(variable) or words[0]
    if text not in words:
        raise ValueError(f"{variable}={text!r} is none of {', '.join(words)}")
    return text
