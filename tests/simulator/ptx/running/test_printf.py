"""printf's conversions give what the C library's give."""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from typing import Any

import pytest

from cudart_py.simulator.ptx.running.printf import Format

INTEGERS = [0, 1, -1, 42, -42, 2**31 - 1, -(2**31)]
LONGS = [0, 7, -7, 2**63 - 1, -(2**63)]
REALS = [0.0, -0.0, 1.0, -2.5, 1e-5, 123456789.125, 1e300, 5e-324, math.inf, -math.inf, math.nan, 0.1, 255.9]
FLAGS = ["", "-", "+", " ", "0", "#", "-#", "+0", "0#", " 0", "-0"]
SIZES = ["", "8", "3", ".0", ".2", "9.4", "."]
# Conversions with the sizes that they are tried with, a code of struct, C's type and values.
KINDS: dict[str, tuple[list[str], str, type[Any], list[Any]]] = {
    "d i o u x X hd hi hhd hu hhu hx": (SIZES, "<i", ctypes.c_int, INTEGERS),
    "c": (["", "4"], "<i", ctypes.c_int, [65, 122]),
    "ld lld zd li lo llu lx llX zu": ([*SIZES, "24"], "<q", ctypes.c_longlong, LONGS),
    "e E f F g G a A": ([*SIZES, "30", "30.15"], "<d", ctypes.c_double, REALS),
}


def c_text(text: str, *arguments: object) -> str:
    """Ask the C library."""
    buffer = ctypes.create_string_buffer(2000)
    ctypes.CDLL(None).snprintf(buffer, 2000, text.encode(), *arguments)
    return buffer.value.decode("latin-1")


def ours(text: str, data: bytes) -> str:
    """Format with no strings to read."""
    return Format(text).render(data, lambda address: f"text{address}")


@pytest.mark.parametrize("conversions", KINDS)
def test_flags_width_and_precision_do_what_the_c_library_does(conversions: str) -> None:
    sizes, code, kind, values = KINDS[conversions]
    for conversion, flags, size, value in itertools.product(conversions.split(), FLAGS, sizes, values):
        text = f"<%{flags}{size}{conversion}>"
        assert ours(text, struct.pack(code, value)) == c_text(text, kind(value)), (text, value)


def test_stars_take_arguments() -> None:
    """Width and precision from arguments, negative ones too"""
    data = struct.pack("<iii4xd", 12, 3, 0, 2.0 / 3)
    assert ours("[%*.*f]", struct.pack("<iid", 12, 3, 2.0 / 3)) == "[       0.667]"
    assert ours("[%*d]", struct.pack("<ii", -5, 7)) == "[7    ]"
    assert ours("[%.*d]", struct.pack("<ii", -5, 7)) == "[7]"
    assert Format("%*.*d%f").size == len(data) == 24


def test_arguments_are_aligned_to_their_size() -> None:
    """A 4-byte argument before an 8-byte one leaves a gap"""
    form = Format("%d %f %c%hd %llx %s|%.2s|%p %%")
    data = struct.pack("<i4xdiiQQQQ", -3, 0.5, 65, 70000, 2**40, 1000, 2000, 0xABC)
    assert form.size == len(data)
    assert form.count == 8
    assert form.render(data, lambda address: f"text{address}") == "-3 0.500000 A4464 10000000000 text1000|te|0xabc %"


def test_what_is_no_directive_stays() -> None:
    """Unknown directives and a lone percent sign are printed as they stand; null pointers have names"""
    assert ours("100%y %k %", b"") == "100%y %k %"
    assert ours("%s %p", struct.pack("<QQ", 0, 0)) == "(null) (nil)"
