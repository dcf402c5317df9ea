"""What kernels print: to a standard output that takes it or does not, and more than the device's buffer holds."""

from __future__ import annotations

import ctypes
import io
import re
import sys
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

import cudart_py as cuda
from cudart_py.simulator import driver
from tests.simulator.kernels import function, launch, loaded
from tests.simulator.support import ok

SOURCE = r"""
extern "C" __global__ void speak(int *out) { printf("caf\xc3\xa9 %d\n", (int)threadIdx.x); out[threadIdx.x] = 1; }
"""


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


# Each of 32 lanes prints numbers of 512 bytes together.
CHATTER = f"""
extern "C" __global__ void chatter(int n) {{
    for (int i = 0; i < n; i++) printf("<%lld>{"%lld" * 63}", 32ll * i + threadIdx.x{", 0ll" * 63});
}}
"""


def test_what_is_beyond_the_buffer_overwrites_the_oldest(context: Any, capsys: pytest.CaptureFixture[str]) -> None:
    limit = bindings.CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE
    ok(driver.cuCtxSetLimit(limit, 0))
    assert ok(driver.cuCtxGetLimit(limit)) == 512 << 10
    kernel = function(loaded(CHATTER), "chatter")
    found = []
    for count in (4, 40, 4):
        launch(kernel, ctypes.c_int(count), block=(32, 1, 1))
        ok(driver.cuCtxSynchronize())
        found.append([int(number) for number in re.findall(r"<(\d+)>", capsys.readouterr().out)])
    few, many, again = found
    assert few == again == list(range(128))
    assert 900 < len(many) <= 1024
    assert many == list(range(1280 - len(many), 1280))
