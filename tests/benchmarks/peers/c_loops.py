"""Loops in C over calls of the driver, which the scripts that compare the host's time measure beside ours.

They are compiled with the C compiler that there is (CC, cc, gcc, clang or nvcc).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["compile_c"]

LOOPS = (
    *("launch", "record", "fill", "upload", "download", "copy", "allocate", "graph"),
    *("graph_done", "launches_done"),
)
C_LOOPS = r"""
#include <stddef.h>
#include <time.h>
#include <dlfcn.h>
typedef unsigned long long address;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void *find(const char *name) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name); }
#define LOOP(call) \
    double start = now(); \
    for (int i = 0; i < count; i++) { int status = call; if (status) return -status; } \
    return now() - start;
double launch(void *f, float a, address x, address y, address z, unsigned n, void *stream, int count) {
    int (*fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
        find("cuLaunchKernel");
    void *arguments[] = {&a, &x, &y, &z, &n};
    LOOP(fn(f, 4, 1, 1, 256, 1, 1, 0, stream, arguments, NULL))
}
double record(void *event, void *stream, int count) {
    int (*fn)(void *, void *) = find("cuEventRecord");
    LOOP(fn(event, stream))
}
double fill(address x, size_t n, void *stream, int count) {
    int (*fn)(address, unsigned, size_t, void *) = find("cuMemsetD32Async");
    LOOP(fn(x, 0, n, stream))
}
double upload(address x, void *host, size_t bytes, void *stream, int count) {
    int (*fn)(address, void *, size_t, void *) = find("cuMemcpyHtoDAsync_v2");
    LOOP(fn(x, host, bytes, stream))
}
double download(void *host, address x, size_t bytes, void *stream, int count) {
    int (*fn)(void *, address, size_t, void *) = find("cuMemcpyDtoHAsync_v2");
    LOOP(fn(host, x, bytes, stream))
}
double copy(address y, address x, size_t bytes, void *stream, int count) {
    int (*fn)(address, address, size_t, void *) = find("cuMemcpyDtoDAsync_v2");
    LOOP(fn(y, x, bytes, stream))
}
double allocate(size_t bytes, void *stream, int count) {
    int (*make)(address *, size_t, void *) = find("cuMemAllocAsync");
    int (*drop)(address, void *) = find("cuMemFreeAsync");
    address p;
    LOOP(make(&p, bytes, stream) || drop(p, stream))
}
double graph(void *executable, void *stream, int count) {
    int (*fn)(void *, void *) = find("cuGraphLaunch");
    LOOP(fn(executable, stream))
}
// With the wait for the device, which both functions below have.
double graph_done(void *executable, void *stream, int count) {
    int (*fn)(void *, void *) = find("cuGraphLaunch"), (*wait)(void *) = find("cuStreamSynchronize");
    LOOP(fn(executable, stream) || wait(stream))
}
static int cool(int (*fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                          void **, void **),
                void *f, unsigned blocks, unsigned block, void **arguments, int steps, void *stream) {
    for (int i = 0; i < steps; i++) {
        int status = fn(f, blocks, 1, 1, block, 1, 1, 0, stream, arguments, NULL);
        if (status) return status;
    }
    return 0;
}
double launches_done(void *f, unsigned blocks, unsigned block, address x, float ambient, float part, int n, int steps,
                     void *stream, int count) {
    int (*fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
        find("cuLaunchKernel");
    int (*wait)(void *) = find("cuStreamSynchronize");
    void *arguments[] = {&x, &ambient, &part, &n};
    LOOP(cool(fn, f, blocks, block, arguments, steps, stream) || wait(stream))
}
"""


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
    folder = Path(tempfile.mkdtemp())
    (folder / "loops.c").write_text(C_LOOPS)
    flags = ["-Xcompiler", "-fPIC"] if Path(compiler).name == "nvcc" else ["-fPIC"]
    command = [compiler, "-O2", "-shared", *flags, "-o", str(folder / "loops.so"), str(folder / "loops.c"), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{compiler} failed, no C loop: {done.stderr.strip()[:500]}")
        return None
    library = ctypes.CDLL(str(folder / "loops.so"))
    p, u64, size, i = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int
    library.launch.argtypes = [p, ctypes.c_float, u64, u64, u64, ctypes.c_uint, p, i]
    library.record.argtypes = [p, p, i]
    library.fill.argtypes = [u64, size, p, i]
    library.upload.argtypes = [u64, p, size, p, i]
    library.download.argtypes = [p, u64, size, p, i]
    library.copy.argtypes = [u64, u64, size, p, i]
    library.allocate.argtypes = [size, p, i]
    library.graph.argtypes = [p, p, i]
    library.graph_done.argtypes = [p, p, i]
    unsigned, real = ctypes.c_uint, ctypes.c_float
    library.launches_done.argtypes = [p, unsigned, unsigned, u64, real, real, i, i, p, i]
    for name in LOOPS:
        getattr(library, name).restype = ctypes.c_double
    return library
