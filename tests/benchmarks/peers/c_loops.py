"""Loops in C over calls of the driver, compiled with a C compiler (CC, cc, gcc, clang or nvcc)."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["compile_c"]

SOURCE = Path(__file__).with_name("sources") / "loops.c"


def compile_c() -> ctypes.CDLL | None:
    """Compile the C loops, or say why not. Each returns the seconds of `count` calls, or minus the driver's status."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        print(f"no C loop: {error}")
        return None
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang", "nvcc"))), None)
    if compiler is None:
        print("no C compiler was found: no C loop")
        return None
    path = Path(tempfile.mkdtemp()) / "loops.so"
    flags = ["-Xcompiler", "-fPIC"] if Path(compiler).name == "nvcc" else ["-fPIC"]
    command = [compiler, "-O2", "-shared", *flags, "-o", str(path), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{compiler} failed, no C loop: {done.stderr.strip()[:500]}")
        return None
    library = ctypes.CDLL(str(path))
    p, u64, size, i = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int
    u, real = ctypes.c_uint, ctypes.c_float
    types = {
        "launch": [p, real, u64, u64, u64, u, p, i],
        "record": [p, p, i],
        "fill": [u64, size, p, i],
        "upload": [u64, p, size, p, i],
        "download": [p, u64, size, p, i],
        "copy": [u64, u64, size, p, i],
        "allocate": [size, p, i],
        "graph": [p, p, i],
        "graph_done": [p, p, i],
        "launches_done": [p, u, u, u64, real, real, i, i, p, i],
    }
    for name, arguments in types.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_double
    return library
