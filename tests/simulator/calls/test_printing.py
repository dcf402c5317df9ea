"""The output of kernels, and the warning if a program ends without having waited for its kernels."""

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
def speak() -> cuda.Kernel:
    return cuda.compile(SOURCE)["speak"]


def _closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


class Broken(io.StringIO):
    """A stream that fails like a pipe without a reader."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [None, _closed(), Broken()], ids=["none", "closed", "broken"])
def test_text_that_nobody_takes_is_dropped_and_the_kernel_runs(speak, monkeypatch, stream):
    out = cuda.zeros(2, np.int32)
    monkeypatch.setattr(sys, "stdout", stream)
    speak[1, 2](out)
    cuda.Device(0).synchronize()
    assert out.to_host().tolist() == [1, 1]


@pytest.mark.needs("in_process")  # a GPU's driver prints through C's buffers
def test_text_that_cannot_be_encoded_is_escaped(speak, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    speak[1, 2](cuda.zeros(2, np.int32))
    cuda.Device(0).synchronize()
    assert raw.getvalue() == b"caf\\xe9 0\ncaf\\xe9 1\n"


# Each call of printf has 64 arguments of 8 bytes, so 512 bytes per lane and iteration.
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


SENTENCE = "cudart-py: the program ended without waiting for "


def last_words(capsys: pytest.CaptureFixture[str]) -> str:
    driver.note_exit()
    return capsys.readouterr().err


def test_one_line_names_what_was_never_waited_for(module, play, capsys, monkeypatch):
    bump, name = function(module, "bump"), f"{SENTENCE}the launch of kernel bump, grid (1, 1, 1), block (1, 1, 1)"
    assert last_words(capsys) == ""
    launch(bump)
    assert last_words(capsys).startswith(f"{name}, so")
    launch(bump)
    assert last_words(capsys).startswith(f"{name} and 1 more")
    play("sync device")
    assert last_words(capsys) == ""
    play("begin s")
    ok(driver.cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, play["s"], 0, 0))
    ok(driver.cuGraphLaunch(ok(driver.cuGraphInstantiate(play("end s"), 0)), play["s"]))
    assert last_words(capsys).startswith(f"{SENTENCE}the launch of a graph of 1 node")
    # A program that ends with an exception prints no warning.
    monkeypatch.setattr(sys, "last_type", ZeroDivisionError, raising=False)
    assert last_words(capsys) == ""


PROGRAM = """
import numpy as np, cudart_py as cuda
kernel = cuda.compile("template <class T> __global__ void set(T* x) { *x = 1; }", names=["set<int>"])["set<int>"]
kernel[1, 1](cuda.zeros(1, np.int32))
"""


def test_the_end_of_a_program_says_it_unless_it_waits(python: Any) -> None:
    """A program with a host function prints no warning, because its exit waits for host functions and the device."""
    (line,) = python(PROGRAM, CUDART_PY_DRIVER="simulator").stderr.splitlines()
    assert line.startswith(f"{SENTENCE}the launch of kernel set<int>, grid (1, 1, 1)")
    assert not python(
        PROGRAM + "cuda.legacy_default.launch_host_function(lambda: 0)", CUDART_PY_DRIVER="simulator"
    ).stderr


SYMBOL = """
import numpy as np, cudart_py as cuda
source = "__constant__ int c[4]; extern \\"C\\" __global__ void read(int* x) { *x = c[1]; }"
module = cuda.compile(source)
stream = cuda.Stream(non_blocking=True)
module.symbol("c").copy_from(np.full(4, 5, np.int32)STREAM)
x = cuda.zeros(1, np.int32, stream=stream)
module["read"][1, 1, 0, stream](x)
print(x.item())
"""


def test_the_end_of_a_program_reports_a_race_with_a_copy_that_it_never_waits_for(python: Any) -> None:
    for mode in ("warn", "error"):
        done = python(SYMBOL.replace("STREAM", ""), CUDART_PY_DRIVER="simulator", CUDART_PY_SANITIZER=mode)
        (line,) = done.stderr.splitlines()
        assert "race: a copy writes global memory" in line
        assert "kernel read in another stream" in line
    ordered = python(SYMBOL.replace("STREAM", ", stream=stream"), CUDART_PY_DRIVER="simulator")
    assert (ordered.stdout, ordered.stderr) == ("5\n", "")
