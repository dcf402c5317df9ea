"""Numbers and words that the environment sets."""

from __future__ import annotations

import os

# Variables of earlier versions, with the names that replaced them.
_RENAMED = {
    "CUDART_PY_SIMULATOR_CHECKS": "CUDART_PY_SANITIZER",
    "CUDART_PY_SIMULATOR_CHECKS_MIB": "CUDART_PY_SANITIZER_MIB",
}


def refuse_old_names() -> None:
    """Raise ValueError for a variable that was renamed, unless the new one is set too, for use with either version."""
    for old, new in _RENAMED.items():
        if os.environ.get(old) and new not in os.environ:
            raise ValueError(f"{old} is now called {new}; set {new}={os.environ[old]!r} instead")


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
