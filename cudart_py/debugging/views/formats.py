"""The formats of gdb's print and x: a count, a letter, and the size of a unit of memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

# The letters, in gdb's words.
LETTERS = {
    "x": "hexadecimal",
    "d": "signed decimal",
    "u": "unsigned decimal",
    "o": "octal",
    "t": "binary",
    "z": "hexadecimal with leading zeros",
    "a": "address",
    "c": "character",
    "f": "floating point",
}
SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}
_FORMAT = re.compile(r"(\d*)([a-z]*)$")
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 27: "033", 39: "'", 92: "\\"}
_FIRST_PRINTED, _LAST_PRINTED, _LAST_SIGNED = 32, 126, 127


@dataclass(frozen=True)
class Format:
    """The format of values; a letter or a size that is "" has not been named."""

    count: int | None
    letter: str
    size: str


def read_format(text: str) -> Format:
    """Return the format that follows a slash; raises ValueError for letters that are not understood."""
    match = _FORMAT.match(text)
    letters = match[2] if match is not None else text
    kinds, sizes = [one for one in letters if one in LETTERS], [one for one in letters if one in SIZES]
    if match is None or len(kinds) + len(sizes) < len(letters) or len(kinds) > 1 or len(sizes) > 1:
        raise ValueError(f"/{text} is not a format: use one of {', '.join(LETTERS)}, and for memory b, h, w or g, too")
    return Format(int(match[1]) if match[1] else None, "".join(kinds), "".join(sizes))


def printed_letter(text: str) -> str:
    """Return the letter of a format of print, which has nothing else; raises ValueError for another format."""
    found = read_format(text)
    if found.count is not None or found.size:
        raise ValueError(f"/{text} is a format of memory: a format of a value is only a letter, such as /x")
    return found.letter


def formatted(number: Any, letter: str) -> str:
    """Return a NumPy number in a format, as gdb does: x, z, o, t, d and u show the bits, even those of a float."""
    size = number.dtype.itemsize
    is_float = number.dtype.kind == "f"
    if letter in "ca":
        number = np.int64(number) if is_float and np.isfinite(number) else number
        return _character(number) if letter == "c" else f"{int(number) & (1 << 64) - 1:#x}"
    bits = int.from_bytes(number.tobytes(), "little")
    if letter == "f":
        return _floating(number, bits, size)
    if letter == "d":
        return str(bits - (bits >> 8 * size - 1 << 8 * size))
    if letter == "z":
        return f"{bits:#0{2 + 2 * size}x}"
    if letter == "o":
        return f"0{bits:o}" if bits else "0"
    return f"{bits:#x}" if letter == "x" else f"{bits:b}" if letter == "t" else str(bits)


def float_text(number: Any) -> str:
    """Return a floating-point number: the shortest text for a double, and enough digits to tell most floats apart."""
    return repr(float(number)).removesuffix(".0") if number.itemsize > 4 else f"{number:.7g}"


def _floating(number: Any, bits: int, size: int) -> str:
    if number.dtype.kind == "f":
        return float_text(number)
    if size < SIZES["w"]:
        return str(int(number))
    return float_text(np.array(bits, f"u{size}").view(f"f{size}")[()])


def _character(number: Any) -> str:
    """Return a number as a character: its lowest byte, signed as the number is."""
    code = int(number) & 0xFF
    value = code - 256 if code > _LAST_SIGNED and number.dtype.kind == "i" else code
    if code in _ESCAPES:
        return f"{value} '\\{_ESCAPES[code]}'"
    text = chr(code) if _FIRST_PRINTED <= code <= _LAST_PRINTED else f"\\{code:03o}"
    return f"{value} '{text}'"
