"""The conversions of a kernel's printf match those of the C library."""

import ctypes
import itertools
import math
import struct
from typing import Any

import pytest

from cudart_py.simulator.ptx.running.device_runtime.printf import Format

INTEGERS = [0, 1, -1, 42, -42, 2**31 - 1, -(2**31)]
LONGS = [0, 7, -7, 2**63 - 1, -(2**63)]
REALS = [0.0, -0.0, 1.0, -2.5, 1e-5, 123456789.125, 1e300, 5e-324, math.inf, -math.inf, math.nan, 0.1, 255.9]
FLAGS = ["", "-", "+", " ", "0", "#", "-#", "+0", "0#", " 0", "-0"]
SIZES = ["", "8", "3", ".0", ".2", "9.4", "."]
# By conversions: the widths and precisions to try, the struct format code, the C type, and the values.
KINDS: dict[str, tuple[list[str], str, type[Any], list[Any]]] = {
    "d i o u x X hd hi hhd hu hhu hx": (SIZES, "<i", ctypes.c_int, INTEGERS),
    "c": (["", "4"], "<i", ctypes.c_int, [65, 122]),
    "ld lld zd li lo llu lx llX zu": ([*SIZES, "24"], "<q", ctypes.c_longlong, LONGS),
    "e E f F g G a A": ([*SIZES, "30", "30.15"], "<d", ctypes.c_double, REALS),
}


def c_text(text: str, argument: object) -> str:
    buffer = ctypes.create_string_buffer(2000)
    ctypes.CDLL(None).snprintf(buffer, 2000, text.encode(), argument)
    return buffer.value.decode("latin-1")


@pytest.mark.parametrize("conversions", KINDS)
def test_flags_width_and_precision_do_what_the_c_library_does(conversions):
    sizes, code, kind, values = KINDS[conversions]
    for conversion, flags, size, value in itertools.product(conversions.split(), FLAGS, sizes, values):
        text = f"<%{flags}{size}{conversion}>"
        assert Format(text).render(struct.pack(code, value), str) == c_text(text, kind(value)), (text, value)


@pytest.mark.parametrize(
    ("form", "code", "arguments", "count", "text"),
    [
        # Width and precision from arguments, including negative ones.
        ("[%*.*f]", "<iid", (12, 3, 2.0 / 3), 3, "[       0.667]"),
        ("[%*d]", "<ii", (-5, 7), 2, "[7    ]"),
        ("[%.*d]", "<ii", (-5, 7), 2, "[7]"),
        # An argument of 4 bytes before one of 8 bytes leaves a gap.
        ("%*.*d%f", "<iii4xd", (3, 2, 1, 2.5), 4, " 012.500000"),
        ("%d %f %c%hd %llx", "<i4xdiiQ", (-3, 0.5, 65, 70000, 2**40), 5, "-3 0.500000 A4464 10000000000"),
        ("%s|%.2s|%p %%", "<QQQ", (1000, 2000, 0xABC), 3, "text1000|te|0xabc %"),
        # Text that is not a directive is printed unchanged.
        ("100%y %k %", "<", (), 0, "100%y %k %"),
        ("%s %p", "<QQ", (0, 0), 2, "(null) (nil)"),
    ],
)
def test_arguments_are_aligned_to_their_size(form, code, arguments, count, text):
    data, made = struct.pack(code, *arguments), Format(form)
    assert (made.size, made.count) == (len(data), count)
    assert made.render(data, lambda address: f"text{address}") == text
