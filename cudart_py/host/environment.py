"""Settings from environment variables: numbers and words."""

from __future__ import annotations

import os

# Variables of earlier versions, with the names that replaced them.
_RENAMED = {
    "CUDART_PY_SIMULATOR_CHECKS": "CUDART_PY_SANITIZER",
    "CUDART_PY_SIMULATOR_CHECKS_MIB": "CUDART_PY_SANITIZER_MIB",
}


def refuse_old_names() -> None:
    """Raise ValueError if a renamed variable is set under its old name only.

    A program that has to run with older versions too may set both names.
    """
    for old, new in _RENAMED.items():
        if os.environ.get(old) and new not in os.environ:
            raise ValueError(f"{old} is now called {new}; set {new}={os.environ[old]!r} instead")


def whole_number(variable: str, default: int, least: int, most: int) -> int:
    """Return the integer in an environment variable, or `default` if it is not set or empty.

    Raise ValueError, with the name of the variable, for anything but an integer from `least` to `most`.
    """
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
    """Return the word in an environment variable, or the first of `words` if it is not set or empty.

    Raise ValueError, with the name of the variable, for any other word.
    """
    text = os.environ.get(variable) or words[0]
    if text not in words:
        raise ValueError(f"{variable}={text!r} is not one of {', '.join(words)}")
    return text
