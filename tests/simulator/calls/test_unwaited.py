"""The end of a program that never waited for its kernels: one line says so."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from cudart_py.simulator import driver
from tests.simulator.kernels import function, launch
from tests.simulator.support import Player, ok

SENTENCE = "cudart_py: the program has ended and never waited for "


def last_words(capsys: pytest.CaptureFixture[str]) -> str:
    driver.note_exit()
    return capsys.readouterr().err


def test_one_line_names_what_was_never_waited_for(
    module: Any, play: Player, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    # A program that an exception ends says no more.
    monkeypatch.setattr(sys, "last_type", ZeroDivisionError, raising=False)
    assert last_words(capsys) == ""


PROGRAM = """
import numpy as np, cudart_py as cuda
kernel = cuda.compile("template <class T> __global__ void set(T* x) { *x = 1; }", names=["set<int>"])["set<int>"]
kernel[1, 1](cuda.zeros(1, np.int32))
"""


def test_the_end_of_a_program_says_it_unless_it_waits(python: Any) -> None:
    """The exit of a program waits for host functions, and for the device with them."""
    (line,) = python(PROGRAM, CUDART_PY_DRIVER="simulator").stderr.splitlines()
    assert line.startswith(f"{SENTENCE}the launch of kernel set<int>, grid (1, 1, 1)")
    assert not python(PROGRAM + "cuda.legacy_default.add_callback(lambda: 0)", CUDART_PY_DRIVER="simulator").stderr
