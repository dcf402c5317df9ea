"""What a packer writes for a signature: where each argument lies, and in which form."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.compilation.signatures import Parameter, Signature
from cudart_py.launch.packing import make_packer

SIGNATURE = Signature(
    "k",
    "k",
    (
        Parameter("unsigned char", "integer", 1, 1, 0, "uint8"),
        Parameter("float*", "pointer", 8, 8, 8, "float32"),
        Parameter("double", "float", 8, 8, 16, "float64"),
        Parameter("S", "structure", 3, 1, 24),
        Parameter("bool", "bool", 1, 1, 27, "bool"),
        Parameter("long", "integer", 8, 8, 32, "int64"),
    ),
)


def packed(device, signature, *arguments):
    buffer = bytearray(b"\xaa" * signature.size)
    make_packer(signature.name, device, signature)(buffer, arguments, cuda.legacy_default)
    return bytes(buffer)


@pytest.mark.parametrize("count", [7, np.uint8(7)], ids=["as they are", "converted"])
def test_each_argument_lies_at_its_parameters_offset(device, count):
    x = cuda.zeros(3, np.float32)
    found = packed(device, SIGNATURE, count, x, 0.1, np.array([1, 2, 3], np.uint8).view("V3")[0], True, -5)
    fields = struct.unpack("<B7xQd3s?4xq", found)
    assert fields == (7, x.pointer, 0.1, b"\x01\x02\x03", True, -5)


def test_a_view_is_packed_as_its_first_elements_address(device):
    signature = Signature("k", "k", (Parameter("float*", "pointer", 8, 8, 0, "float32"),))
    x = cuda.zeros(8, np.float32)
    assert packed(device, signature, x[3:]) == struct.pack("<Q", x.pointer + 12)


def test_a_kernel_without_parameters_takes_no_argument(device):
    signature = Signature("k", "k", ())
    assert packed(device, signature) == b""
    with pytest.raises(TypeError, match=r"void k\(\) takes 0 arguments, and 1 were given"):
        packed(device, signature, 1)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_an_integer_keeps_to_its_types_range(device, dtype):
    limits = np.iinfo(dtype)
    size = np.dtype(dtype).itemsize
    signature = Signature("k", "k", (Parameter(dtype, "integer", size, size, 0, dtype),))
    for value in (int(limits.min), int(limits.max)):
        assert np.frombuffer(packed(device, signature, value), dtype)[0] == value
    for value in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(ValueError, match=rf"argument 0 of k \({dtype}\) takes integers from"):
            packed(device, signature, value)


def test_a_float_that_would_become_infinite_is_refused_and_infinity_is_not(device):
    signature = Signature("k", "k", (Parameter("float", "float", 4, 4, 0, "float32"),))
    assert packed(device, signature, float("inf")) == struct.pack("<f", float("inf"))
    with pytest.raises(ValueError, match="it is too large"):
        packed(device, signature, -3.5e38)


def test_a_bad_array_interface_names_the_kernel_and_the_argument(device):
    class Foreign:
        __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "version": 3}  # noqa: RUF012  # as libraries do

    signature = Signature("k", "k", (Parameter("float*", "pointer", 8, 8, 0, "float32"),))
    with pytest.raises(ValueError, match=r"k: argument 'arguments\[0\]' has a __cuda_array_interface__ without 'data'"):
        packed(device, signature, Foreign())
