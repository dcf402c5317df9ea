"""Libraries that are compiled for comparisons, such as loops in C over driver calls."""

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .report import attempt

SOURCES = Path(__file__).with_name("sources")


@functools.cache
def compile_library(name: str, compilers: tuple[str, ...], *options: str) -> ctypes.CDLL:
    """Compile one of the sources with the first of these compilers that is installed."""
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if compiler is None:
        raise RuntimeError(f"there is no {' and no '.join(compilers)}")
    path = Path(tempfile.mkdtemp()) / "library.so"
    flags = ["-shared", *(["-Xcompiler"] if Path(compiler).name == "nvcc" else []), "-fPIC", "-o", str(path)]
    command = [compiler, *flags, str(SOURCES / name), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{compiler}: {done.stdout.strip()[-300:]}")
    return ctypes.CDLL(str(path))


def compile_c() -> ctypes.CDLL | None:
    """Compile the C loops; if that fails, print the reason and return None.

    Each loop returns the time of `count` calls in seconds, or the negated status if the driver returned an error.
    """
    if attempt("the C loop", ctypes.CDLL, "libcuda.so.1") is None:
        return None
    compilers = (os.environ.get("CC", "cc"), "gcc", "clang", "nvcc")
    library: ctypes.CDLL | None = attempt("the C loop", compile_library, "loops.c", compilers, "-O2", "-ldl")
    if library is None:
        return None
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
