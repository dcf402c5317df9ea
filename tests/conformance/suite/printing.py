"""Kernels that print, fail an assertion or trap; each runs in a separate process, whose output is captured."""

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import cudart_py as cuda

from . import values
from .frame import ROOT, module

KERNELS = ("formats", "lanes", "passing_assertion", "failing_assertion", "trapping")
_ASSERTION = re.compile(r"printing\.cu:(\d+):.*?block: \[(.*?)\], thread: \[(.*?)\] Assertion `(.*?)` failed")


def child(kernel: str) -> None:
    """Launch a kernel, and print the status that synchronising returns."""
    status = "CUDA_SUCCESS"
    with cuda.Device(0) as device:
        numbers = cuda.to_device(np.array([6, 1234, -77, 5, *values.below(501, 92, 1000)], np.int32))
        try:
            module("printing")[kernel][3, 32](numbers)
            device.synchronize()
        except cuda.CudaError as error:
            status = error.status.name
            sys.stderr.write(f"{error}\n")
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)  # a driver prints through the C library, and os._exit would discard its buffer
    os.write(1, f"status {status}\n".encode())
    # The context of a failed kernel cannot be cleaned up, so skip Python's normal exit.
    os._exit(0)


def start(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def run(kernel: str, start: Callable[[str], subprocess.CompletedProcess[str]] = start) -> dict[str, Any]:
    """Run a kernel in a process that `start` starts.

    Return its printed lines (sorted for `lanes`), its status, and failed assertions.
    """
    program = f"import sys; sys.path.append({str(ROOT)!r}); from suite.printing import child; child({kernel!r})"
    done = start(program)
    lines = done.stdout.splitlines()
    if done.returncode or not lines or not lines[-1].startswith("status "):
        raise RuntimeError(f"the process of {kernel} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    failures = {":".join(match) for match in _ASSERTION.findall(done.stdout + done.stderr)}
    printed = [line for line in lines[:-1] if not _ASSERTION.search(line)]
    return {
        "printed": sorted(printed) if kernel == "lanes" else printed,
        "status": lines[-1].removeprefix("status "),
        "assertions": sorted(failures),
    }
