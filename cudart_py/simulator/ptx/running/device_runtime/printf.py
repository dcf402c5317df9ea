"""Format a kernel's output: apply C's format strings to the argument buffer that ``vprintf`` receives.

The buffer holds the promoted arguments one after another, each aligned to its own size, as in a C structure:
4 bytes for ``int`` and shorter types, 8 for ``long``, ``long long``, ``double`` and pointers.
"""

from __future__ import annotations

import math
import re
import struct
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_DIRECTIVE = re.compile(
    r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|-?\d*))?(hh|h|ll|l|L|q|j|z|t)?([diouxXeEfFgGaAcspn%])", re.DOTALL
)
_LONG = {"l", "ll", "L", "q", "j", "z", "t"}
_INTEGER_BITS = {"hh": 8, "h": 16}


@dataclass(frozen=True)
class _Argument:
    """One value in the buffer."""

    offset: int
    code: str  # a format character of the struct module

    def read(self, buffer: bytes) -> int | float:
        value: int | float = struct.unpack_from("<" + self.code, buffer, self.offset)[0]
        return value


@dataclass(frozen=True)
class _Directive:
    """One conversion specification: its flags and the arguments that it takes."""

    flags: str
    width: int | _Argument
    precision: int | _Argument | None
    bits: int
    conversion: str
    value: _Argument


class Buffer:
    """The buffer of a launch's output: when it is full, the oldest output is overwritten, as on a device.

    The `size` of an output is the space that its format and arguments take on the device, not the length of its text.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._outputs: deque[tuple[str, int]] = deque()

    def add(self, text: str, size: int) -> None:
        """Append an output, dropping the oldest ones if the buffer is full."""
        self._outputs.append((text, size))
        self._left -= size
        while self._left < 0:
            self._left += self._outputs.popleft()[1]

    def empty(self, print_: Callable[[str], None]) -> None:
        """Print the outputs in the buffer, and empty it."""
        while self._outputs:
            text, size = self._outputs.popleft()
            self._left += size
            print_(text)


class Format:
    """A parsed format string.

    `size` is the size in bytes of its arguments in the buffer, and `count` is the number of arguments.
    """

    def __init__(self, text: str) -> None:
        self.size = 0
        self.count = 0
        self._pieces = list(self._parse(text))

    def render(self, buffer: bytes, string: Callable[[int], str]) -> str:
        """Format one thread's arguments; ``string`` reads the string at an address, for ``%s``."""
        return "".join(piece if isinstance(piece, str) else _convert(piece, buffer, string) for piece in self._pieces)

    def _parse(self, text: str) -> Iterator[str | _Directive]:
        end = 0
        for match in _DIRECTIVE.finditer(text):
            yield text[end : match.start()]
            end = match.end()
            flags, width, precision, length, conversion = match.groups()
            if conversion == "%":
                yield "%"
                continue
            yield _Directive(
                flags,
                self._take("i") if width == "*" else int(width or 0),
                self._take("i") if precision == "*" else None if precision is None else int(precision or 0),
                64 if length in _LONG else _INTEGER_BITS.get(length or "", 32),
                conversion,
                self._take(_code(conversion, length or "")),
            )
        # Text that is not a directive is printed unchanged.
        yield text[end:]

    def _take(self, code: str) -> _Argument:
        size = struct.calcsize("<" + code)
        offset = -(-self.size // size) * size
        self.size = offset + size
        self.count += 1
        return _Argument(offset, code)


def _code(conversion: str, length: str) -> str:
    """Return the format character of the struct module for a conversion's argument in the buffer."""
    if conversion in "eEfFgGaA":
        return "d"
    if conversion in "spn":
        return "Q"
    return "q" if length in _LONG else "i"


def _convert(directive: _Directive, buffer: bytes, string: Callable[[int], str]) -> str:
    flags, conversion = directive.flags, directive.conversion
    width = _number(directive.width, buffer)
    if width < 0:
        # C reads a negative width as the flag - and a width.
        flags, width = flags + "-", -width
    precision = None if directive.precision is None else _number(directive.precision, buffer)
    if precision is not None and precision < 0:
        precision = None
    value = directive.value.read(buffer)
    zeros = "0" in flags and "-" not in flags
    if isinstance(value, float):
        sign, body, finite = _real(value, flags, precision, conversion)
        zeros = zeros and finite
    elif conversion in "diouxX":
        sign, body = _integer(value, directive.bits, flags, precision, conversion)
        # The flag 0 has no effect together with a precision, as in C.
        zeros = zeros and precision is None
    else:
        zeros = False
        sign, body = "", _text(value, precision, conversion, string)
    if zeros:
        body = body.rjust(width - len(sign), "0")
    padded = sign + body
    return padded.ljust(width) if "-" in flags else padded.rjust(width)


def _number(source: int | _Argument, buffer: bytes) -> int:
    return source if isinstance(source, int) else int(source.read(buffer))


def _plus(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _integer(value: int, bits: int, flags: str, precision: int | None, conversion: str) -> tuple[str, str]:
    """Return the sign or prefix, and the digits."""
    value &= (1 << bits) - 1
    if conversion in "di":
        if value >> (bits - 1):
            value -= 1 << bits
        sign, digits = _plus(value < 0, flags), str(abs(value))
    else:
        sign, digits = "", format(value, {"u": "d"}.get(conversion, conversion))
        if "#" in flags and value and conversion in "xX":
            sign = "0" + conversion
    if precision is not None:
        # Zero with precision zero has no digits at all.
        digits = digits.rjust(precision, "0") if value or precision else ""
    if conversion == "o" and "#" in flags and not digits.startswith("0"):
        digits = "0" + digits
    return sign, digits


def _real(value: float, flags: str, precision: int | None, conversion: str) -> tuple[str, str, bool]:
    """Return the sign or prefix, the digits, and whether the number is finite."""
    sign = _plus(math.copysign(1.0, value) < 0, flags)
    size = abs(value)
    if not math.isfinite(size):
        name = "nan" if math.isnan(size) else "inf"
        return sign, name.upper() if conversion.isupper() else name, False
    if conversion in "aA":
        prefix, digits = _hexadecimal(size, precision, "#" in flags)
        if conversion == "A":
            prefix, digits = prefix.upper(), digits.upper()
        return sign + prefix, digits, True
    alternate = "#" if "#" in flags else ""
    return sign, f"%{alternate}.{6 if precision is None else precision}{conversion}" % size, True


def _hexadecimal(size: float, precision: int | None, point: bool) -> tuple[str, str]:
    """Return ``0x`` and the digits of C's ``%a``."""
    exponent = math.frexp(size)[1]
    # One bit precedes the point; for subnormal numbers it is 0, and the exponent is the smallest one.
    exponent = max(exponent - 1, -1022) if size else 0
    whole = int(math.ldexp(size, 52 - exponent)) if exponent > -1022 else int(size * 2.0**1000 * 2.0**74)
    places = 13
    if precision is not None and precision < 13:
        drop = 4 * (13 - precision)
        half, rest = 1 << (drop - 1), whole & ((1 << drop) - 1)
        whole >>= drop
        whole += rest > half or (rest == half and whole & 1)
        places = precision
    lead, digits = whole >> (4 * places), whole & ((1 << (4 * places)) - 1)
    text = f"{digits:0{places}x}" if places else ""
    text = text.rstrip("0") if precision is None else text.ljust(precision, "0")
    return "0x", f"{lead}{'.' if text or point else ''}{text}p{exponent:+d}"


def _text(value: int, precision: int | None, conversion: str, string: Callable[[int], str]) -> str:
    if conversion == "c":
        return chr(value & 0xFF)
    if conversion == "p":
        return hex(value) if value else "(nil)"
    if conversion == "n":
        # The device doesn't store a count; the argument is skipped.
        return ""
    found = string(value) if value else "(null)"
    return found if precision is None else found[:precision]
