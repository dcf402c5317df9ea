"""Copy between host and device in both directions, with every kind of host memory.

On the simulator, which checks results but does not measure time:

    $ library-tour run copies
    copies: Copies between host and device: pageable or pinned memory
    size 4,194,309: bytes to copy
                              check
    ───────────────────────────────
    pageable to device        right
    pinned to device          right
    write-combined to device  right
    device to pageable        right
    device to pinned          right
    device to device          right
    host to host              right
    When the call returns, the copy is
                              kind            memcpy  in a stream  check
    ────────────────────────────────────────────────────────────────────
    pageable to device        HostToDevice    done    queued       right
    pinned to device          HostToDevice    done    queued       right
    write-combined to device  HostToDevice    done    queued       right
    device to pageable        DeviceToHost    done    done         right
    device to pinned          DeviceToHost    done    queued       right
    device to device          DeviceToDevice  queued  queued       right
    host to host              HostToHost      done    done         right
    Sources and directions
                               check
    ─────────────────────────────────
    pageable, changed at once  right
    pinned, changed at once    caught
    wrong direction            caught
    read-only target           right
    pinned, changed at once: the call returned before the copy ran, so 4,096 of the
    4,096 bytes that arrived are those of the later change.
    wrong direction: cuMemcpyHtoDAsync: invalid argument (CUDA_ERROR_INVALID_VALUE)
    read-only target: memcpy: argument 'dst' is read-only
    Bandwidths given in the lectures
                       course GB/s
    ──────────────────────────────
    link, PCIe 5                32
    host, DDR5                 102
    device, RTX 2070S          448
    device, RTX 5090         1,790
    The device copies pinned memory directly. Data in pageable memory is copied
    through pinned memory, piece by piece.
    One lecture calls cudaMemcpy asynchronous, and another calls it synchronous. The
    right answer depends on the memory: a copy between device arrays is only queued,
    and a copy to or from host memory is done when the call returns. In a stream
    (cudaMemcpyAsync), a copy to or from pinned memory is only queued, and the
    source must not change until the copy has run. A pageable source has been read
    completely when the call returns, although the copy itself may still be queued.
    With a pageable target, the call waits until the copy is done.
    In C, the 'kind' argument states the direction. The 'kind' column shows its
    value for each copy. With cudaMemcpyDefault, the driver infers the direction
    from the addresses. cudart-py infers it from the arrays. The direction can then
    be wrong only if a host address is passed off as a device address, and the
    driver refuses that.
    According to the lectures' figures, device memory is 4 to 18 times as fast as
    host memory, which is 3 times as fast as the link. The link's 32 GB/s
    corresponds to 8 lanes of PCIe 5 in one direction; 16 lanes carry 63 GB/s. A
    copy within the same memory both reads and writes it, so its bytes count twice.
    A single thread does not reach the full bandwidth of host memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, on_host, on_return, poison, refusal
from ..limits import link_limit
from ..stop import Check, Curve, Result, Row, Size
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "Copies between host and device: pageable or pinned memory"
SIZE = Size("bytes to copy", full=2**28 + 5, small=2**22 + 5)

# The lectures' figure in GB/s, and the row that measures the same here.
COURSE_RATES = {
    "link, PCIe 5": (32, "pinned to device"),
    "host, DDR5": (102, "host to host"),
    "device, RTX 2070S": (448, "device to device"),
    "device, RTX 5090": (1790, "device to device"),
}
LATE = 4096  # bytes of a copy whose source is changed too early

Array = cuda.DeviceArray | NDArray[np.uint8]
Ways = dict[str, tuple[Array, Array]]


def make_ways(data: NDArray[np.uint8]) -> tuple[Ways, Ways]:
    """Return the target and source of each copy: first the copies over the link, then the copies within one memory."""
    pinned, pinned_target = (cuda.pinned_empty(data.shape, data.dtype) for _ in range(2))
    combined = cuda.pinned_empty(data.shape, data.dtype, write_combined=True)
    pinned[:] = combined[:] = data
    on_device, target = cuda.to_device(data), cuda.empty_like(data)
    link: Ways = {
        "pageable to device": (target, data),
        "pinned to device": (target, pinned),
        "write-combined to device": (target, combined),
        "device to pageable": (np.empty_like(data), on_device),
        "device to pinned": (pinned_target, on_device),
    }
    return link, {"device to device": (target, on_device), "host to host": (np.empty_like(data), data)}


def run(device: cuda.Device, size: int) -> Result:
    """Check every kind of copy, synchronous and in a stream; time the copies, and how soon their calls return."""
    data = np.random.default_rng().integers(0, 256, size, np.uint8)
    link, beside = make_ways(data)
    ways = link | beside

    checks = []
    for name, (target, source) in ways.items():
        poison(target)
        cuda.memcpy(target, source, stream=cuda.legacy_default)
        cuda.legacy_default.synchronize()
        checks.append(compare(f"{name} in a stream arrives", on_host(target), data))

    def variants(some: Ways, nbytes: int) -> list[Variant]:
        return [
            Variant(
                name=name, launch=partial(cuda.memcpy, *way), output=way[0], expected=data, amount=nbytes,
                timed=partial(cuda.memcpy, *way, stream=cuda.legacy_default),
            )
            for name, way in some.items()
        ]  # fmt: skip  # rows of a table

    limit = link_limit(size)
    rows = measure(variants(link, size), limit) + measure(variants(beside, 2 * size), None)
    if not timing.available():
        rows = [replace(row, work=moved(*ways[row.name])) for row in rows]
    pictures = []
    if timing.available():
        right = {row.name for row in rows if row.check and row.check.holds}
        rows = [with_call(row, *ways[row.name]) if row.name in right else row for row in rows]
        pictures = [bandwidths({name: way for name, way in link.items() if name in right}, size)]
    tables = {
        "When the call returns, the copy is": [returned(name, *way) for name, way in ways.items()],
        "Sources and directions": [
            changed_at_once(),
            shown_wrong("pinned, changed at once", changed_too_early),
            shown_wrong("wrong direction", wrong_direction),
            into_read_only(data),
        ],
        "Bandwidths given in the lectures": [beside_course(name, rows) for name in COURSE_RATES],
    }
    notes = [
        "The device copies pinned memory directly. Data in pageable memory is copied through pinned memory, piece by "
        "piece.",
        "One lecture calls cudaMemcpy asynchronous, and another calls it synchronous. The right answer depends on the "
        "memory: a copy between device arrays is only queued, and a copy to or from host memory is done when the call "
        "returns. In a stream (cudaMemcpyAsync), a copy to or from pinned memory is only queued, and the source must "
        "not change until the copy has run. A pageable source has been read completely when the call returns, although "
        "the copy itself may still be queued. With a pageable target, the call waits until the copy is done.",
        "In C, the 'kind' argument states the direction. The 'kind' column shows its value for each copy. With "
        "cudaMemcpyDefault, the driver infers the direction from the addresses. cudart-py infers it from the arrays. "
        "The direction can then be wrong only if a host address is passed off as a device address, and the driver "
        "refuses that.",
        "According to the lectures' figures, device memory is 4 to 18 times as fast as host memory, which is 3 times "
        "as fast as the link. The link's 32 GB/s corresponds to 8 lanes of PCIe 5 in one direction; 16 lanes carry 63 "
        "GB/s. A copy within the same memory both reads and writes it, so its bytes count twice. A single thread does "
        "not reach the full bandwidth of host memory.",
    ]
    return Result(rows, limit, checks, pictures, notes, tables)


def moved(target: Array, source: Array) -> dict[str, float]:
    """Return the bytes that a copy reads or writes in each memory, and those that cross the link."""
    places = [side(array) for array in (target, source)]
    found = {f"bytes in {place.lower()} memory": places.count(place) * target.nbytes for place in ("Host", "Device")}
    return {"bytes over the link": target.nbytes if len(set(places)) == 2 else 0, **found}


def returned(name: str, target: Array, source: Array) -> Row:
    """Return a row that says whether a copy is done or only queued when its call returns, without and with a stream."""
    alone = on_return(partial(cuda.memcpy, target, source))
    in_stream = on_return(partial(cuda.memcpy, target, source, stream=cuda.legacy_default))
    kind = f"{side(source)}To{side(target)}"
    check = Check(f"{name}: a copy without a stream is done on return", alone == "done" or kind == "DeviceToDevice")
    return Row(name, {"kind": kind, "memcpy": alone, "in a stream": in_stream}, check)


def side(array: Array) -> str:
    """Return the side on which an array's memory is, as in the names of cudaMemcpyKind."""
    return "Device" if cuda.pointer_attributes(array).kind == "device" else "Host"


def changed_at_once() -> Row:
    """Change a pageable source as soon as the call that copies it in a stream has returned."""
    source, target = np.ones(LATE, np.uint8), cuda.zeros(LATE, np.uint8)
    cuda.memcpy(target, source, stream=cuda.legacy_default)
    source.fill(2)
    return Row("pageable, changed at once", check=compare("the original bytes arrive", on_host(target), source // 2))


def changed_too_early() -> str:
    """Change a pinned source before its queued copy has run."""
    source, target = cuda.pinned_empty(LATE, np.uint8), cuda.zeros(LATE, np.uint8)
    source.fill(1)
    cuda.memcpy(target, source, stream=cuda.legacy_default)
    source.fill(2)
    wrong = np.count_nonzero(on_host(target) != 1)
    if not wrong:
        return ""
    return (
        f"the call returned before the copy ran, so {wrong:,} of the {LATE:,} bytes that arrived are those of the "
        "later change."
    )


def wrong_direction() -> str:
    """Copy to a host address as if it were a device address, like cudaMemcpyHostToDevice with a host target."""
    target = np.zeros(LATE, np.uint8)
    cuda.memcpy(cuda.DeviceArray.borrow(target.ctypes.data, target.shape, target.dtype), np.ones_like(target))
    return ""


def into_read_only(data: NDArray[np.uint8]) -> Row:
    """Copy into a read-only array, as may happen if target and source are swapped."""
    constant = data.view()
    constant.flags.writeable = False
    check = refusal("a read-only target is refused", ValueError, lambda: cuda.memcpy(constant, cuda.empty_like(data)))
    return Row("read-only target", check=check, note=check.detail)


def beside_course(name: str, rows: Sequence[Row]) -> Row:
    """Return a row with one of the lectures' bandwidths and the bandwidth measured here."""
    course, measured = COURSE_RATES[name]
    here = next(row.values for row in rows if row.name == measured)
    return Row(name, {"course GB/s": course} | ({"GB/s": here["GB/s"]} if "GB/s" in here else {}))


def with_call(row: Row, target: Array, source: Array) -> Row:
    """Return the row with the time until the call of a copy in a stream returns."""
    call = timing.host_ms(partial(cuda.memcpy, target, source, stream=cuda.legacy_default), wait=False)
    return replace(row, values={**row.values, "call ms": call})


def bandwidths(ways: Ways, size: int) -> Curve:
    """Return a curve of the bandwidth of synchronous copies against their size."""
    lengths = [*(4**power for power in range(5, 20) if 2 * 4**power < size), size]
    lines = {
        name: [
            (length, 1e-6 * length / timing.waiting_ms(partial(cuda.memcpy, target[:length], source[:length])))
            for length in lengths
        ]
        for name, (target, source) in ways.items()
    }
    return Curve("bandwidth", "bytes", "GB/s", lines, logarithmic="x")
