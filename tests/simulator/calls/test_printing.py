"""What kernels print: to a standard output that takes it or does not, and more than the device's buffer holds."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import cudart_py as cuda

SOURCE = r"""
extern "C" __global__ void speak(int *out) { printf("caf\xc3\xa9 %d\n", (int)threadIdx.x); out[threadIdx.x] = 1; }
"""
SMALLEST = 512 << 10


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    return cuda.compile(SOURCE)


def _closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


class Broken(io.StringIO):
    """A pipe that nobody reads."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [None, _closed(), Broken()], ids=["none", "closed", "broken"])
def test_text_that_nobody_takes_is_dropped_and_the_kernel_runs(module, monkeypatch, stream):
    out = cuda.zeros(2, np.int32)
    monkeypatch.setattr(sys, "stdout", stream)
    module["speak"][1, 2](out)
    cuda.Device(0).synchronize()
    assert out.to_host().tolist() == [1, 1]


@pytest.mark.needs("in_process")  # a GPU's driver prints through C's buffers
def test_text_that_cannot_be_encoded_is_escaped(module, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    module["speak"][1, 2](cuda.zeros(2, np.int32))
    cuda.Device(0).synchronize()
    assert raw.getvalue() == b"caf\\xe9 0\ncaf\\xe9 1\n"


# The limit can be set only before code that prints is loaded, so in a process of its own.
CHATTER = r"""
import contextlib, io
import cudart_py as cuda
SOURCE = 'extern "C" __global__ void chatter(int n) { for (int i = 0; i < n; i++) printf("<%d>", i); }'
device = cuda.Device(0)
device.limits.printf_fifo_size = 0
print(device.limits.printf_fifo_size)
chatter = cuda.compile(SOURCE)["chatter"]
for count in (1_000, 30_000, 1_000):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        chatter[1, 1](count)
        device.synchronize()
    print(text.getvalue().strip("<>").replace("><", " "))
"""


@pytest.mark.needs("in_process")  # as above; besides, a GPU's driver prints while the kernel runs
def test_what_is_beyond_the_buffer_overwrites_the_oldest(python):
    size, *lines = python(CHATTER).stdout.splitlines()
    few, many, again = ([int(number) for number in line.split()] for line in lines)
    assert int(size) == SMALLEST
    assert few == again == list(range(1_000))
    assert 1_000 < len(many) < 30_000
    assert many == list(range(30_000 - len(many), 30_000))
