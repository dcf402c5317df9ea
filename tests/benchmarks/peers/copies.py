"""Copies between host and device beside CuPy's and the driver's.

Copies of pinned memory are compared with CuPy's of the same size, those of pageable memory with the driver's own
(cuMemcpyHtoD and cuMemcpyDtoH). Both take turns and are waited for. The fastest round counts, since other work on the
machine only adds to a time. The copied elements are checked.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda
from cudart_py.driver.seam import raw

from .report import Bar, Comparison, Report, conditions, optional

MIB = 1 << 20
Copy = Callable[[], object]


class Pair(NamedTuple):
    """A copy of ours, and a rival's, None where the rival is not installed."""

    what: str
    rival: str
    ours: Copy
    theirs: Copy | None
    bar: Bar


def pageable(nbytes: int) -> list[Pair]:
    """Compare with the driver's copies of memory that is not page-locked."""
    device = cuda.empty(nbytes, np.uint8)
    source, target = np.random.default_rng().integers(0, 256, nbytes, np.uint8), np.empty(nbytes, np.uint8)
    ups: list[Copy] = [
        lambda: cuda.memcpy(device, source),
        lambda: cuda.check(raw.cuMemcpyHtoD(device.pointer, source.ctypes.data, nbytes)),
    ]
    downs: list[Copy] = [
        lambda: cuda.memcpy(target, device),
        lambda: cuda.check(raw.cuMemcpyDtoH(target.ctypes.data, device.pointer, nbytes)),
    ]
    for up in ups:
        for down in downs:
            cuda.memset(device, 0)
            target[:] = 0
            up()
            down()
            cuda.current_device().synchronize()
            if not np.array_equal(target, source):
                raise SystemExit("a pageable copy is wrong")
    bar = Bar.at_least(2.5)
    return [Pair("pageable upload", "driver", *ups, bar), Pair("pageable download", "driver", *downs, bar)]


def pinned(nbytes: int) -> list[Pair]:
    """Compare with CuPy's copies of page-locked memory."""
    stream = cuda.Stream(non_blocking=True)
    device, host = cuda.empty(nbytes, np.uint8, stream=stream), cuda.pinned_empty(nbytes, np.uint8)
    host[:] = np.random.default_rng().integers(0, 256, nbytes, np.uint8)

    def copy(dst: Any, src: Any) -> None:
        cuda.memcpy(dst, src, stream=stream)
        stream.synchronize()

    expected = host.copy()
    copy(device, host)
    host[:] = 0
    copy(host, device)
    if not np.array_equal(host, expected):
        raise SystemExit("a pinned copy is wrong")
    up, down = cupy_pinned(host) if "interop" in cuda.capabilities() else (None, None)
    bar = Bar.at_least(0.98)
    return [
        Pair("pinned upload", "CuPy", lambda: copy(device, host), up, bar),
        Pair("pinned download", "CuPy", lambda: copy(host, device), down, bar),
    ]


def cupy_pinned(host: np.ndarray) -> tuple[Copy | None, Copy | None]:
    """Return CuPy's copies of page-locked memory, up and down; None for both without CuPy."""
    cupy = optional("cupy")
    if cupy is None:
        return None, None
    nbytes = host.nbytes
    theirs = cupy.cuda.alloc_pinned_memory(nbytes)
    there, address = cupy.empty(nbytes, np.uint8), ctypes.c_void_p(theirs.ptr)
    np.frombuffer(theirs, np.uint8, nbytes)[:] = host
    queue = cupy.cuda.Stream(non_blocking=True)

    def up() -> None:
        there.data.copy_from_host_async(address, nbytes, queue)
        queue.synchronize()

    def down() -> None:
        there.data.copy_to_host_async(address, nbytes, queue)
        queue.synchronize()

    return up, down


def seconds(copy: Copy) -> float:
    """Return the seconds of one copy, with nothing queued before or after it."""
    begin = time.perf_counter()
    copy()
    cuda.legacy_default.synchronize()
    return time.perf_counter() - begin


def compare(nbytes: int, rounds: int) -> Iterator[Comparison]:
    """Yield each copy's rate beside the rival's."""
    for pair in pageable(nbytes) + pinned(nbytes):
        if pair.theirs is None:
            yield Comparison(pair.what, "GB/s", rival=pair.rival, bar=pair.bar, note="not here")
            continue
        times = [(seconds(pair.ours), seconds(pair.theirs)) for _ in range(rounds)]
        ours, theirs = (1e-9 * nbytes / min(column) for column in zip(*times, strict=True))
        yield Comparison(pair.what, "GB/s", ours, pair.rival, theirs, pair.bar)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=9)


def measure(options: argparse.Namespace) -> Report:
    with cuda.Device(0):
        where = f"{conditions('cupy-cuda13x')}; {options.mib} MiB"
        return Report.of("copies", where, compare(options.mib * MIB, options.rounds))
