"""Format a kernel's output: apply C's format strings to the argument buffer that ``vprintf`` receives.

The buffer holds the promoted arguments one after another, each aligned to its own size, as in a C structure:
4 bytes for ``int`` and shorter types, 8 for ``long``, ``long long``, ``double`` and pointers. The C library does the
rest, as it does for a device's output.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_DIRECTIVE = re.compile(
    r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|-?\d*))?(hh|h|ll|l|L|q|j|z|t)?([diouxXeEfFgGaAcspn%])", re.DOTALL
)
_LONG = {"l", "ll", "L", "q", "j", "z", "t"}
# The types that C's printf expects, keyed by the format characters of the struct module.
_TYPES: dict[str, Any] = {"i": ctypes.c_int, "q": ctypes.c_longlong, "d": ctypes.c_double, "Q": ctypes.c_void_p}
# The size in bytes of the buffer for a text; a longer text is formatted again.
_ROOM = 1024
_snprintf = ctypes.CDLL(None).snprintf


class _Argument(NamedTuple):
    """One value in the buffer: its offset, its format character of the struct module, and its conversion."""

    offset: int
    code: str
    conversion: str

    def read(self, buffer: bytes, string: Callable[[int], str]) -> Any:
        [value] = struct.unpack_from("<" + self.code, buffer, self.offset)
        if self.conversion == "s":
            return ctypes.c_char_p(string(value).encode() if value else None)
        return _TYPES[self.code](value)


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
        self._arguments: list[_Argument] = []
        self._form = "".join(self._parse(text)).encode()

    def render(self, buffer: bytes, string: Callable[[int], str]) -> str:
        """Format one thread's arguments; ``string`` reads the string at an address, for ``%s``."""
        arguments = [argument.read(buffer, string) for argument in self._arguments]
        room = ctypes.create_string_buffer(_ROOM)
        length = _snprintf(room, len(room), self._form, *arguments)
        if length >= len(room):
            room = ctypes.create_string_buffer(length + 1)
            _snprintf(room, len(room), self._form, *arguments)
        return room.raw[:length].decode(errors="replace")

    def _parse(self, text: str) -> Iterator[str]:
        """Yield the parts of the format for C, and find the arguments."""
        end = 0
        for match in _DIRECTIVE.finditer(text):
            # Text that is not a directive is printed unchanged.
            yield text[end : match.start()].replace("%", "%%")
            end = match.end()
            flags, width, precision, length, conversion = match.groups()
            if conversion == "%":
                yield "%%"
                continue
            taken = [self._take("i") for word in (width, precision) if word == "*"]
            taken.append(self._take(_code(conversion, length or ""), conversion))
            # The device doesn't store a count; the argument is skipped.
            if conversion == "n":
                continue
            self._arguments += taken
            # C ignores a negative precision.
            given = "" if precision is None or precision.startswith("-") else f".{precision}"
            # Only integers have several sizes in the buffer.
            size = length or "" if conversion in "diouxX" else ""
            yield f"%{flags}{width or ''}{given}{size}{conversion}"
        yield text[end:].replace("%", "%%")

    def _take(self, code: str, conversion: str = "") -> _Argument:
        size = struct.calcsize("<" + code)
        offset = -(-self.size // size) * size
        self.size = offset + size
        self.count += 1
        return _Argument(offset, code, conversion)


def _code(conversion: str, length: str) -> str:
    """Return the format character of the struct module for a conversion's argument in the buffer."""
    if conversion in "eEfFgGaA":
        return "d"
    if conversion in "spn":
        return "Q"
    return "q" if length in _LONG else "i"
