"""Copies between host and device, compared with CuPy's and the driver's.

Copies of pinned memory are compared with CuPy's copies of the same size, and copies of pageable memory with the
driver's own (cuMemcpyHtoD and cuMemcpyDtoH). The two alternate, and each copy is timed until it has finished. The
fastest round counts, because other work on the machine only adds to a time. The copied elements are checked.
"""

import argparse
import ctypes
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda
from cudart_py.driver.calls import raw

from .report import Bar, Comparison, Report, conditions, optional

MIB = 1 << 20
Copy = Callable[[], object]


class Pair(NamedTuple):
    """One of our copies and a rival's, or None if the rival is not installed."""

    what: str
    rival: str
    ours: Copy
    theirs: Copy | None
    bar: Bar


def finished(copy: Copy) -> Copy:
    def to_the_end() -> None:
        copy()
        cuda.legacy_default.synchronize()

    return to_the_end


def check(up: Copy, down: Copy, host: np.ndarray, expected: np.ndarray) -> None:
    finished(up)()
    host[:] = 0
    finished(down)()
    if not np.array_equal(host, expected):
        raise SystemExit("a copy is wrong")


def pageable(nbytes: int) -> list[Pair]:
    device = cuda.empty(nbytes, np.uint8)
    source = np.random.default_rng().integers(0, 256, nbytes, np.uint8)
    target = source.copy()
    address = target.ctypes.data
    ups: list[Copy] = [
        lambda: cuda.memcpy(device, target),
        lambda: cuda.check(raw.cuMemcpyHtoD(device.pointer, address, nbytes)),
    ]
    downs: list[Copy] = [
        lambda: cuda.memcpy(target, device),
        lambda: cuda.check(raw.cuMemcpyDtoH(address, device.pointer, nbytes)),
    ]
    for up, down in itertools.product(ups, downs):
        check(up, down, target, source)
        cuda.memset(device, 0)
    bar = Bar.at_least(2.5)
    return [Pair("pageable upload", "driver", *ups, bar), Pair("pageable download", "driver", *downs, bar)]


def pinned(nbytes: int) -> list[Pair]:
    stream = cuda.Stream(non_blocking=True)
    device, host = cuda.empty(nbytes, np.uint8, stream=stream), cuda.pinned_empty(nbytes, np.uint8)
    host[:] = np.random.default_rng().integers(0, 256, nbytes, np.uint8)

    def copy(dst: Any, src: Any) -> None:
        cuda.memcpy(dst, src, stream=stream)
        stream.synchronize()

    ours = partial(copy, device, host), partial(copy, host, device)
    check(*ours, host, host.copy())
    cupy = optional("cupy") if "interop" in cuda.capabilities() else None
    theirs: tuple[Copy | None, ...] = (None, None)
    if cupy is not None:
        memory, there = cupy.cuda.alloc_pinned_memory(nbytes), cupy.empty(nbytes, np.uint8).data
        queue = cupy.cuda.Stream(non_blocking=True)
        np.frombuffer(memory, np.uint8, nbytes)[:] = host

        def cupy_copy(function: Callable[..., object]) -> None:
            function(ctypes.c_void_p(memory.ptr), nbytes, queue)
            queue.synchronize()

        theirs = partial(cupy_copy, there.copy_from_host_async), partial(cupy_copy, there.copy_to_host_async)
    names = ("pinned upload", "pinned download")
    return [Pair(what, "CuPy", *both, Bar.at_least(0.98)) for what, *both in zip(names, ours, theirs, strict=True)]


def seconds(copy: Copy) -> float:
    begin = time.perf_counter()
    copy()
    return time.perf_counter() - begin


def compare(nbytes: int, rounds: int) -> Iterator[Comparison]:
    for pair in pageable(nbytes) + pinned(nbytes):
        if pair.theirs is None:
            yield Comparison(pair.what, "GB/s", rival=pair.rival, bar=pair.bar, note="not here")
            continue
        copies = finished(pair.ours), finished(pair.theirs)
        times = [[seconds(copy) for copy in copies] for _ in range(rounds)]
        ours, theirs = (1e-9 * nbytes / min(column) for column in zip(*times, strict=True))
        yield Comparison(pair.what, "GB/s", ours, pair.rival, theirs, pair.bar)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=9)


def measure(options: argparse.Namespace) -> Report:
    with cuda.Device(0):
        where = f"{conditions('cupy-cuda13x')}; {options.mib} MiB"
        return Report.of("copies", where, compare(options.mib * MIB, options.rounds))
