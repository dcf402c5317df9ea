"""Measure copies between host and device beside CuPy's and the driver's, in one process, and judge them.

    python scripts/copy_bars.py [--mib 1024] [--rounds 9] [--json FILE]
    python scripts/copy_bars.py --recorded FILE

Pinned copies are compared with CuPy's of the same size, pageable ones with the driver's own (cuMemcpyHtoD and
cuMemcpyDtoH). Both take turns, each is waited for, and the fastest round counts, since what else runs on a machine only
adds to it. What is copied is checked. The exit status is 1 when a bar is missed, 2 when none is but something was left
out.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import bars
import numpy as np
from bars import Verdict, optional

import cudart_py as cuda
from cudart_py.driver.seam import raw

MIB = 1 << 20
Copy = Callable[[], object]


class Comparison(NamedTuple):
    """Two ways of one copy, and how much faster than theirs ours has to be."""

    what: str
    theirs: str
    ours: Copy
    other: Copy | None
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
            assert copy_up is not None
            assert copy_down is not None
            copy_up()
            copy_down()
            cuda.current_device().synchronize()
            if not np.array_equal(target, source):
                raise SystemExit("a pageable copy is wrong")
    return [up, down]


def pinned(nbytes: int) -> list[Comparison]:
    """Compare with CuPy's copies of page-locked memory; without CuPy there is nothing to compare with."""
    stream = cuda.Stream(non_blocking=True)
    device, host = cuda.empty(nbytes, np.uint8, stream=stream), cuda.pinned_empty(nbytes, np.uint8)
    host[:] = np.random.default_rng().integers(0, 256, nbytes, np.uint8)

    def copy(dst: cuda.DeviceArray | np.ndarray, src: cuda.DeviceArray | np.ndarray) -> None:
        cuda.memcpy(dst, src, stream=stream)
        stream.synchronize()

    expected = host.copy()
    copy(device, host)
    host[:] = 0
    copy(host, device)
    if not np.array_equal(host, expected):
        raise SystemExit("a pinned copy is wrong")
    up, down = cupy_pinned(host) if "interop" in cuda.capabilities() else (None, None)
    return [
        Comparison("pinned upload", "CuPy", lambda: copy(device, host), up, 0.98),
        Comparison("pinned download", "CuPy", lambda: copy(host, device), down, 0.98),
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
    """Return the seconds of one copy that nothing is queued before or behind."""
    begin = time.perf_counter()
    copy()
    cuda.legacy_default.synchronize()
    return time.perf_counter() - begin


def measure(nbytes: int, rounds: int) -> list[dict[str, Any]]:
    """Return the bytes a second of each comparison and its bar; without CuPy a line that says what is left out."""
    rows: list[dict[str, Any]] = []
    for one in pageable(nbytes) + pinned(nbytes):
        if one.other is None:
            rows.append({"what": one.what, "missing": f"{one.theirs} is not here"})
            continue
        times = [(seconds(one.ours), seconds(one.other)) for _ in range(rounds)]
        ours, theirs = (nbytes / min(column) for column in zip(*times, strict=True))
        rows.append({"what": one.what, "name": one.theirs, "ours": ours, "theirs": theirs, "bar": one.bar})
    return rows


def judge(row: dict[str, Any]) -> tuple[Verdict, tuple[str, ...]]:
    """Return what became of a bar, and the row of the table."""
    if "missing" in row:
        return Verdict.NOT_JUDGED, (row["what"], "", row["missing"], "", "", Verdict.NOT_JUDGED)
    ratio = row["ours"] / row["theirs"]
    verdict = Verdict.of(ratio >= row["bar"])
    speeds = (f"{1e-9 * row['ours']:.2f} GB/s", f"{row['name']} {1e-9 * row['theirs']:.2f} GB/s")
    return verdict, (row["what"], *speeds, f"{ratio:.3f}", f"{row['bar']:g}", verdict)


def main() -> int:
    """Measure, print a line for each copy, and return the exit status."""
    parser = bars.parser(__doc__, page=False)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.recorded:
        record = bars.recall(options.recorded)
    else:
        with cuda.Device(0) as device:
            where = f"{bars.conditions(device, 'cupy-cuda13x')}; {options.mib} MiB"
            record = {"where": where, "rows": measure(options.mib * MIB, options.rounds)}
    judged = [judge(row) for row in record["rows"]]
    table = bars.table(("copy", "here", "theirs", "ratio", "bar", ""), [row for _, row in judged], right=" rrrr")
    print(f"{record['where']}\n\n{table}")
    bars.keep(options.json, record)
    return bars.exit_status(verdict for verdict, _ in judged)


if __name__ == "__main__":
    sys.exit(main())
