"""The end of a program that never waited for its kernels: one line says so."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

BEGINNING = """
import numpy as np, cudart_py as cuda
kernel = cuda.compile("template <class T> __global__ void set(T* x) { *x = 1; }", names=["set<int>"])["set<int>"]
x = cuda.zeros(1, np.int32)
"""
Python = Callable[..., "CompletedProcess[str]"]


def ended(python: Python, program: str) -> list[str]:
    """Give the lines of standard error of a program that ends with status 0."""
    return python(BEGINNING + program, CUDART_PY_DRIVER="simulator").stderr.splitlines()


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("kernel[1, 1](x)", "the launch of kernel set<int>, grid (1, 1, 1), block (1, 1, 1)"),
        (
            "kernel[1, 1](x); kernel[2, 1](x)",
            "the launch of kernel set<int>, grid (1, 1, 1), block (1, 1, 1) and 1 more",
        ),
        (
            "s = cuda.Stream()\nwith s.capture() as g: kernel[1, 1, 0, s](x)\ng.instantiate().launch(s)",
            "the launch of a graph of 1 node",
        ),
    ],
)
def test_one_line_names_what_was_never_waited_for(python: Python, program: str, what: str) -> None:
    (line,) = ended(python, program)
    assert line.startswith(f"cudart_py: the program has ended and never waited for {what}")


@pytest.mark.parametrize(
    "program",
    [
        "",
        "kernel[1, 1](x); x.to_host()",
        "kernel[1, 1](x); cuda.Device(0).synchronize()",
        # The exit of the program waits for host functions, and for the device with them.
        "kernel[1, 1](x); cuda.legacy_default.add_callback(lambda: None)",
    ],
)
def test_nothing_is_said_where_nothing_is_left(python: Python, program: str) -> None:
    assert ended(python, program) == []


def test_a_program_that_an_exception_ends_says_no_more(python: Python) -> None:
    done = python(BEGINNING + "kernel[1, 1](x); 1 / 0", check=False, CUDART_PY_DRIVER="simulator")
    assert done.stderr.splitlines()[-1].startswith("ZeroDivisionError")
