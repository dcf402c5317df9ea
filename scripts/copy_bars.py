"""Measure copies between host and device beside CuPy's and the driver's, in one process, and judge them.

    python scripts/copy_bars.py [--mib 1024] [--rounds 9] [--json OUT]

Pinned copies are compared with CuPy's of the same size, pageable ones with the driver's own (cuMemcpyHtoD and
cuMemcpyDtoH). Both take turns, each is waited for, and the fastest round counts, since what else runs on a machine only
adds to it. What is copied is checked. The exit status is 1 when a bar is missed, 2 when none is but something was left
out.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import cudart_py as cuda
from cudart_py._driver import raw

MIB = 1 << 20
Copy = Callable[[], object]


class Comparison(NamedTuple):
    """Two ways of one copy, and how much faster than theirs ours has to be."""

    what: str
    theirs: str
    ours: Copy
    other: Copy
    bar: float


def pageable(nbytes: int) -> list[Comparison]:
    """Compare with the driver's copies of memory that is not page-locked."""
    device = cuda.empty(nbytes, np.uint8)
    source, target = np.random.default_rng().integers(0, 256, nbytes, np.uint8), np.empty(nbytes, np.uint8)
    up = Comparison(
        "pageable upload", "driver", lambda: cuda.memcpy(device, source),
        lambda: cuda.check(raw.cuMemcpyHtoD(device.pointer, source.ctypes.data, nbytes)), 2.5,
    )  # fmt: skip  # grouped by meaning
    down = Comparison(
        "pageable download", "driver", lambda: cuda.memcpy(target, device),
        lambda: cuda.check(raw.cuMemcpyDtoH(target.ctypes.data, device.pointer, nbytes)), 2.5,
    )  # fmt: skip  # grouped by meaning
    for copy_up in (up.ours, up.other):
        for copy_down in (down.ours, down.other):
            cuda.memset(device, 0)
            target[:] = 0
            copy_up()
            copy_down()
            cuda.current_device().synchronize()
            if not np.array_equal(target, source):
                raise SystemExit("a pageable copy is wrong")
    return [up, down]


def pinned(nbytes: int) -> list[Comparison]:
    """Compare with CuPy's copies of page-locked memory."""
    import cupy

    stream = cuda.Stream(non_blocking=True)
    device, host = cuda.empty(nbytes, np.uint8, stream=stream), cuda.pinned_empty(nbytes, np.uint8)
    host[:] = np.random.default_rng().integers(0, 256, nbytes, np.uint8)
    theirs = cupy.cuda.alloc_pinned_memory(nbytes)
    there, address = cupy.empty(nbytes, np.uint8), ctypes.c_void_p(theirs.ptr)
    np.frombuffer(theirs, np.uint8, nbytes)[:] = host
    queue = cupy.cuda.Stream(non_blocking=True)

    def ours(dst: cuda.DeviceArray | np.ndarray, src: cuda.DeviceArray | np.ndarray) -> None:
        cuda.memcpy(dst, src, stream=stream)
        stream.synchronize()

    def up() -> None:
        there.data.copy_from_host_async(address, nbytes, queue)
        queue.synchronize()

    def down() -> None:
        there.data.copy_to_host_async(address, nbytes, queue)
        queue.synchronize()

    expected = host.copy()
    ours(device, host)
    host[:] = 0
    ours(host, device)
    if not np.array_equal(host, expected):
        raise SystemExit("a pinned copy is wrong")
    return [
        Comparison("pinned upload", "CuPy", lambda: ours(device, host), up, 0.98),
        Comparison("pinned download", "CuPy", lambda: ours(host, device), down, 0.98),
    ]


def seconds(copy: Copy) -> float:
    """Return the seconds of one copy that nothing is queued before or behind."""
    begin = time.perf_counter()
    copy()
    cuda.legacy_default.synchronize()
    return time.perf_counter() - begin


def main() -> int:
    """Measure, print a line for each copy, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args()
    nbytes, found, left_out = options.mib * MIB, [], 0
    with cuda.Device(0) as device:
        print(f"{device.name}, {options.mib} MiB")
        comparisons = pageable(nbytes)
        try:
            comparisons += pinned(nbytes)
        except ImportError as error:
            print(f"pinned copies are left out: {error}")
            left_out = 2
        for one in comparisons:
            times = [(seconds(one.ours), seconds(one.other)) for _ in range(options.rounds)]
            ours, other = (nbytes / min(column) / 1e9 for column in zip(*times, strict=True))
            kept = ours / other >= one.bar
            found.append({"what": one.what, "ours": ours, one.theirs: other, "bar": one.bar, "kept": kept})
            print(
                f"{'ok' if kept else 'MISSED'}: {one.what}: {ours:.2f} GB/s, {one.theirs} {other:.2f} GB/s: "
                f"{ours / other:.3f} of {one.bar:g}"
            )
    if options.json:
        options.json.write_text(json.dumps({"mib": options.mib, "found": found}, indent=2) + "\n")
    return 1 if any(not row["kept"] for row in found) else left_out


if __name__ == "__main__":
    sys.exit(main())
