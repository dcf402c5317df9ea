"""Compile the part of a stop's device code that is for the host's C++ compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

from .device_code import find

HOST_COMPILER = "c++"


def load_host(stem: str, *options: str) -> ctypes.CDLL | None:
    """Compile `kernels/<stem>.cu` as C++ with -O2 and more options; return the library, or None without a compiler."""
    if shutil.which(HOST_COMPILER) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        made, library = Path(folder, "host.o"), Path(folder, "host.so")
        command = [HOST_COMPILER, "-x", "c++", "-O2", "-fPIC", *options, "-c", str(find(stem)), "-o", str(made)]
        subprocess.run(command, check=True)
        # Link without the options, because -ffast-math would make the whole process flush denormals to zero.
        subprocess.run([HOST_COMPILER, "-shared", made, "-o", library], check=True)
        return ctypes.CDLL(str(library))
