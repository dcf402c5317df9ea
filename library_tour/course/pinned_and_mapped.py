"""Give kernels data from the host: copied from pageable or pinned memory, or read in place from mapped memory.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run pinned_and_mapped
    pinned_and_mapped: Host memory: pageable, pinned, or mapped into the device
    size 131,077: elements in host memory
                            link MB  loads  sectors/load  load efficiency  check
    ─────────────────────────────────────────────────────────────────────────────
    pinned, copy alone        0.524                                        right
    pageable, copied          0.524  4,097          4.00          100.0 %  right
    pinned, copied            0.524  4,097          4.00          100.0 %  right
    mapped, in place          0.524  4,097          4.00          100.0 %  right
    registered, in place      0.524  4,097          5.00           80.0 %  right
    mapped, 16-byte loads     0.524  1,026          16.0          100.0 %  right
    mapped, write-combined    0.524  4,097          4.00          100.0 %  right
    pageable, in place                                                     right
    mapped, read too early                                                 caught
    pageable, in place: argument 0 of add_up (unsigned int const*) takes a device
    pointer, not a host array of dtype uint32 and shape (131077,); copy it with
    cudart_py.to_device
    mapped, read too early: 4,096 of 4,096 elements have not been written yet.
    Read 8 times
                      link MB   loads  sectors/load  load efficiency  check
    ───────────────────────────────────────────────────────────────────────
    pageable, copied    0.524  32,776          4.00          100.0 %  right
    pinned, copied      0.524  32,776          4.00          100.0 %  right
    mapped, in place     4.19  32,776          4.00          100.0 %  right
    Read and written back
                      link MB  loads  sectors/load  load efficiency  check
    ──────────────────────────────────────────────────────────────────────
    pageable, copied     1.05  4,097          4.00          100.0 %  right
    pinned, copied       1.05  4,097          4.00          100.0 %  right
    mapped, in place     1.05  4,097          4.00          100.0 %  right
    Pageable memory may move, so copies to and from it go through pinned memory.
    Pinned memory stays in place, and the device copies it directly. Mapped memory
    needs no copy: every load and store of a kernel crosses the link. That suits
    data that is read once. Data that is read often belongs in device memory. A
    kernel's loads cross the link in requests of at most 128 bytes, and are
    therefore slightly slower than a copy. Wider loads make no difference, because
    the link is the limit.
    The 'link MB' column shows how much data crosses the link. The rates in GB/s are
    based on the bytes that kernels read and write. A kernel that reads a copy 8
    times reads 8 times as many bytes as cross the link. Copies to the device and
    back run one after another, whereas loads from and stores to mapped memory use
    both directions of the link at the same time.
    Registering an array pins and maps its pages. Such an array need not be aligned
    to 32 bytes. If it is not, each load of a warp touches a fifth sector and takes
    two requests over the link. Write-combined memory bypasses the host's caches. On
    an H200, the device reads it as fast as other mapped memory. The host should
    write such memory sequentially, and never read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import refusal
from ..device_code import blocks_for, load
from ..limits import link_limit
from ..stop import Curve, Result, Row, Size
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "Host memory: pageable, pinned, or mapped into the device"
SIZE = Size("elements in host memory", full=2**25 + 5, small=2**17 + 5)
BLOCK = 256
OFTEN = 8  # reads of each element
CURVE = (1, 2, 3, 4, 6, 8, 12, 16)  # reads of each element
FACTOR = 2654435761
EXPLAINED_BY = ("loads", "sectors/load", "load efficiency")

Words = NDArray[np.uint32]


def total(x: Words, reads: int) -> Words:
    """Return the sum of all elements, each read `reads` times, modulo 2^32, as an array of one element."""
    return np.array([reads * int(x.sum(dtype=np.uint64)) % 2**32], np.uint32)


class Kinds(NamedTuple):
    """The same data in each kind of host memory."""

    pageable: Words
    pinned: Words
    mapped: Words

    @classmethod
    def of(cls, elements: Words) -> Kinds:
        """Return the data in pageable memory, and copies of it in pinned and in mapped memory."""
        pinned = cuda.pinned_empty(elements.shape, elements.dtype)
        mapped = cuda.pinned_empty(elements.shape, elements.dtype, mapped=True)
        pinned[:] = mapped[:] = elements
        return cls(elements, pinned, mapped)


def run(device: cuda.Device, size: int) -> Result:
    """Read host data once and often, and write results back, with each kind of memory."""
    kinds = Kinds.of(np.random.default_rng().integers(0, 2**32, size, np.uint32))
    registered = kinds.pageable.copy()
    limit = link_limit(registered.nbytes)
    reading = Reading(device, kinds.pageable)
    combined = cuda.pinned_empty(size, np.uint32, mapped=True, write_combined=True)
    combined[:] = kinds.pageable
    with cuda.register_host(registered):
        once = [
            reading.copy_alone("pinned, copy alone", kinds.pinned),
            *reading.variants(kinds, 1),
            reading.variant("registered, in place", registered, 1),
            reading.variant("mapped, 16-byte loads", kinds.mapped, 1, kernel="add_up_wide"),
            reading.variant("mapped, write-combined", combined, 1),
        ]
        rows = measure(once, limit, EXPLAINED_BY)
    rows += [
        pageable_argument(kinds.pageable),
        shown_wrong("mapped, read too early", read_too_early),
    ]
    tables = {
        f"Read {OFTEN} times": measure(reading.variants(kinds, OFTEN), limit, EXPLAINED_BY),
        "Read and written back": measure(list(reading.round_trips(kinds)), limit, EXPLAINED_BY),
    }
    pictures = [reading.curve(kinds)] if timing.available() else []
    notes = [
        "Pageable memory may move, so copies to and from it go through pinned memory. Pinned memory stays in place, "
        "and the device copies it directly. Mapped memory needs no copy: every load and store of a kernel crosses the "
        "link. That suits data that is read once. Data that is read often belongs in device memory. A kernel's loads "
        "cross the link in requests of at most 128 bytes, and are therefore slightly slower than a copy. Wider loads "
        "make no difference, because the link is the limit.",
        "The 'link MB' column shows how much data crosses the link. The rates in GB/s are based on the bytes that "
        "kernels read and write. A kernel that reads a copy 8 times reads 8 times as many bytes as cross the link. "
        "Copies to the device and back run one after another, whereas loads from and stores to mapped memory "
        "use both directions of the link at the same time.",
        "Registering an array pins and maps its pages. Such an array need not be aligned to 32 bytes. If it is not, "
        "each load of a warp touches a fifth sector and takes two requests over the link. Write-combined memory "
        "bypasses the host's caches. On an H200, the device reads it as fast as other mapped memory. The host should "
        "write such memory sequentially, and never read it.",
    ]
    return Result(rows, limit, pictures=pictures, notes=notes, tables=tables)


class Reading:
    """Kernels over host data, in place or with copies."""

    def __init__(self, device: cuda.Device, elements: Words) -> None:
        self._module = load("pinned_and_mapped")
        resident = device.sm_count * (device.properties.max_threads_per_sm // BLOCK)
        self._grid = min(resident, blocks_for(elements.size, BLOCK))
        self._elements, self._size = elements, elements.size
        self._copy, self._result = (cuda.empty_like(elements) for _ in range(2))
        self._total = cuda.empty(1, np.uint32)

    def variants(self, kinds: Kinds, reads: int) -> list[Variant]:
        """Return the sum of all elements, each read `reads` times, with each kind of memory."""
        return [
            self.variant("pageable, copied", kinds.pageable, reads, copied=True),
            self.variant("pinned, copied", kinds.pinned, reads, copied=True),
            self.variant("mapped, in place", kinds.mapped, reads),
        ]

    def variant(self, name: str, host: Words, reads: int, *, copied: bool = False, kernel: str = "add_up") -> Variant:
        """Return one way to sum the elements, with the bytes that cross the link."""
        return Variant(
            name=name,
            launch=self.sums(host, reads, copied=copied, kernel=kernel),
            output=self._total,
            expected=total(self._elements, reads),
            amount=host.nbytes * reads,
            columns={"link MB": 1e-6 * host.nbytes * (1 if copied else reads)},
        )

    def sums(self, host: Words, reads: int, *, copied: bool, kernel: str = "add_up") -> Callable[[], None]:
        """Return the work of summing all elements `reads` times, after a copy if there is one."""
        launch = self._module[kernel][self._grid, BLOCK].bind(self._copy if copied else host, self._total, self._size)

        def work() -> None:
            cuda.memset(self._total, 0)
            if copied:
                cuda.memcpy(self._copy, host, stream=cuda.legacy_default)
            for _ in range(reads):
                launch()

        return work

    def copy_alone(self, name: str, host: Words) -> Variant:
        """Return the copy to the device without a kernel."""
        return Variant(
            name=name,
            launch=partial(cuda.memcpy, self._copy, host, stream=cuda.legacy_default),
            output=self._copy,
            expected=self._elements,
            amount=host.nbytes,
            columns={"link MB": 1e-6 * host.nbytes},
        )

    def round_trips(self, kinds: Kinds) -> Iterator[Variant]:
        """Yield the variants that multiply each element by a factor and return the results to the host."""
        scale, stream = self._module["scale"][self._grid, BLOCK], cuda.legacy_default
        on_device = scale.bind(self._copy, self._result, FACTOR, self._size)
        targets = Kinds.of(np.empty_like(kinds.pageable))

        def copied(source: Words, target: Words) -> None:
            cuda.memcpy(self._copy, source, stream=stream)
            on_device()
            cuda.memcpy(target, self._result, stream=stream)

        works: dict[str, Callable[[], object]] = {
            "pageable, copied": partial(copied, kinds.pageable, targets.pageable),
            "pinned, copied": partial(copied, kinds.pinned, targets.pinned),
            "mapped, in place": scale.bind(kinds.mapped, targets.mapped, FACTOR, self._size),
        }
        for (name, work), target in zip(works.items(), targets, strict=True):
            yield Variant(
                name=name,
                launch=partial(finished, work),
                output=target,
                expected=kinds.pageable * np.uint32(FACTOR),
                timed=work,
                amount=2 * target.nbytes,
                columns={"link MB": 2e-6 * target.nbytes},
            )

    def curve(self, kinds: Kinds) -> Curve:
        """Return a curve of the time until all sums are done against the number of reads per element."""
        sources = {
            "pageable, copied": (kinds.pageable, True),
            "pinned, copied": (kinds.pinned, True),
            "mapped, in place": (kinds.mapped, False),
        }
        lines = {
            name: [
                (reads, timing.waiting_ms(partial(finished, self.sums(host, reads, copied=copied)))) for reads in CURVE
            ]
            for name, (host, copied) in sources.items()
        }
        return Curve("reads", "reads of each element", "ms", lines)


def finished(work: Callable[[], object]) -> None:
    """Do the work and wait for it, as the host must before it reads results in mapped memory."""
    work()
    cuda.legacy_default.synchronize()


def pageable_argument(elements: Words) -> Row:
    """Pass an array in pageable memory to a kernel."""
    kernel = load("pinned_and_mapped")["add_up"]
    check = refusal(
        "a kernel refuses pageable memory", TypeError, lambda: kernel[1, BLOCK](elements, None, elements.size)
    )
    return Row("pageable, in place", check=check, note=check.detail)


def read_too_early() -> str:
    """Read mapped memory on the host without waiting for the kernel that writes it."""
    source, target = (cuda.pinned_empty(2**12, np.uint32, mapped=True) for _ in range(2))
    source[:], target[:] = np.arange(1, source.size + 1), 0
    load("pinned_and_mapped")["scale"][1, BLOCK](source, target, FACTOR, source.size)
    missing = np.count_nonzero(target == 0)
    return f"{missing:,} of {target.size:,} elements have not been written yet." if missing else ""
