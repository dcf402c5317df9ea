"""Use managed memory, whose pages move between the host and the device: on access, by prefetching, or as advised.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run managed
    managed: Managed memory: page faults, prefetches and advice
    size 65,539: elements in the array
                                    steps  loads  instructions  check
    ──────────────────────────────────────────────────────────────────
    copied from pinned memory           1  2,049        69,757  right
    managed, page faults                1  2,049        69,757  right
    managed, prefetched                 1  2,049        69,757  right
    managed, kept on the host           1  2,049        69,757  right
    prefetch, then long kernel      1,024  2,049     3,735,418  right
    prefetch during long kernel     1,024  2,051     3,739,246  right
    managed, already on the device      1  2,049        69,757  right
    two devices, one array
    advice, queried                                             right
    host reads too early                                        caught
    host writes too early                                       caught
    two devices, one array: Skipped: needs a second device. Each device would then
    process half of an array, without any explicit copies.
    advice, queried: preferred location: host; accessed by: device 0.
    host reads too early: 1,000 of 1,000 elements still have their values from
    before the launch, which has only been queued.
    host writes too early: 1,000 of 1,000 results were computed from values that the
    host wrote after the launch.
    The host reads an array whose pages are on the device
                 check
    ──────────────────
    page faults  right
    prefetched   right
    read mostly  right
    Managed memory consists of pages that the driver moves between the host and the
    devices. The kernel executes the same loads wherever the pages are. A load from
    a page on the host causes a page fault: the warp waits until the driver has
    moved the page. A prefetch moves many pages at a time, without faults, while
    other work runs.
    The 'steps' column shows how many steps the kernel computes per element. The
    long kernel's 1,024 steps take about as long as the array takes to cross the
    link. Prefetching in pieces while the kernel runs is therefore faster than
    prefetching everything first.
    Pages whose preferred location is the host stay there, and each load crosses the
    link. That suits data that is read once. Read-mostly pages are copied instead of
    moved, so the host and the device each read their own copy; a write discards the
    other copies. In the second table, a single host thread reads the array, and
    that limits the rate.
    The host sees a kernel's results only after waiting for the kernel. It must not
    change the input of a queued kernel, because no copy of the input has been made.
    The managed array takes 0.3 MiB of the device's 16,384 MiB. A managed array may
    be larger than device memory. The driver then moves pages back to the host to
    free space, and every pass over the array moves each page across the link again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..device_code import blocks_for, load
from ..limits import link_limit
from ..stop import Check, Result, Row, Size, Timeline
from ..variants import Variant, measure
from ..wrong import all_shown_wrong

TITLE = "Managed memory: page faults, prefetches and advice"
SIZE = Size("elements in the array", full=2**26 + 3, small=2**16 + 3, least=8)
BLOCK = 256
FACTOR, SUMMAND = 1664525, 1013904223
# The long kernel computes for about as long as its input takes to cross the link.
SHORT, LONG = 1, 1024
PIECES = 8
OWN_PAGES = 2 << 20  # bytes; smaller arrays share pages with others, and advice applies to pages
EXPLAINED_BY = ("loads", "instructions")
NOTES = (
    "Managed memory consists of pages that the driver moves between the host and the devices. The kernel executes the "
    "same loads wherever the pages are. A load from a page on the host causes a page fault: the warp waits until the "
    "driver has moved the page. A prefetch moves many pages at a time, without faults, while other work runs.",
    "The 'steps' column shows how many steps the kernel computes per element. The long kernel's 1,024 steps take "
    "about as long as the array takes to cross the link. Prefetching in pieces while the kernel runs is therefore "
    "faster than prefetching everything first.",
    "Pages whose preferred location is the host stay there, and each load crosses the link. That suits data that is "
    "read once. Read-mostly pages are copied instead of moved, so the host and the device each read their own copy; a "
    "write discards the other copies. In the second table, a single host thread reads the array, and that limits the "
    "rate.",
    "The host sees a kernel's results only after waiting for the kernel. It must not change the input of a queued "
    "kernel, because no copy of the input has been made.",
)
NEEDS_FAULTS = (
    "This device does not support page faults (concurrent_managed_access is False): each launch moves all managed "
    "pages to the device, and prefetches are not available."
)

Words = NDArray[np.uint32]
Spans = list[tuple[cuda.Event, cuda.Event]]


def reference(x: Words, steps: int) -> Words:
    """Return the elements after `steps` steps, combined into one multiplication and one addition."""
    factor, summand = 1, 0
    for _ in range(steps):
        factor, summand = FACTOR * factor % 2**32, (FACTOR * summand + SUMMAND) % 2**32
    return x * np.uint32(factor) + np.uint32(summand)


def kernel_over(x: Any, y: Any, steps: int, stream: cuda.Stream = cuda.legacy_default) -> cuda.BoundLaunch:
    """Return a launch on the current device; its kernel stores the advanced elements of `x` in `y`."""
    kernel = load("managed")["advance"][blocks_for(x.size, BLOCK), BLOCK, 0, stream]
    return kernel.bind(x, y, x.size, FACTOR, SUMMAND, steps)


def managed_copy(x: Words) -> Words:
    """Return a copy in managed memory, whose pages are on the host because the host has written them."""
    array: Words = cuda.managed_empty(max(x.size, OWN_PAGES // x.itemsize), x.dtype)[: x.size]
    array[:] = x
    return array


def run(device: cuda.Device, size: int) -> Result:
    """Check and time each way for a kernel to read the host's data, and for the host to read data on the device."""
    host: Words = cuda.pinned_empty(size, np.uint32)
    host[:] = np.random.default_rng().integers(0, 2**32, size, np.uint32)
    x, y, copied = managed_copy(host), cuda.empty(size, np.uint32), cuda.empty(size, np.uint32)
    expected = {steps: reference(host, steps) for steps in (SHORT, LONG)}
    limit = link_limit(host.nbytes)

    def variant(name: str, launch: Callable[[], object], steps: int = SHORT, **options: Any) -> Variant:
        return Variant(
            name=name, launch=launch, output=y, expected=expected[steps], amount=host.nbytes,
            columns={"steps": steps}, **options,
        )  # fmt: skip  # grouped by meaning

    def copy_first() -> None:
        cuda.memcpy(copied, host, stream=cuda.legacy_default)
        over_copy()

    over_copy, over_pages = kernel_over(copied, y, SHORT), kernel_over(x, y, SHORT)
    explicit = variant("copied from pinned memory", copy_first)
    wrong = all_shown_wrong({"host reads too early": read_early, "host writes too early": write_early})
    if not device.properties.concurrent_managed_access:
        rows = measure([explicit, variant("managed, moved by the launch", over_pages)], limit, EXPLAINED_BY)
        return Result([*rows, *wrong], limit, notes=[NEEDS_FAULTS])

    def to_host() -> None:
        cuda.prefetch(x, "host")

    def prefetched(steps: int) -> Callable[[], None]:
        launch = kernel_over(x, y, steps)

        def work() -> None:
            cuda.prefetch(x)
            launch()

        return work

    far = managed_copy(host)
    cuda.advise(far, "set_preferred_location", "host")
    cuda.advise(far, "set_accessed_by", device)
    pieces = Pieces(x, y)
    over_the_link = [
        explicit,
        variant("managed, page faults", over_pages, before=to_host),
        variant("managed, prefetched", prefetched(SHORT), before=to_host),
        variant("managed, kept on the host", kernel_over(far, y, SHORT)),
        variant("prefetch, then long kernel", prefetched(LONG), LONG, before=to_host),
        variant("prefetch during long kernel", pieces.advance, LONG, before=to_host),
    ]
    rows = measure(over_the_link, limit, EXPLAINED_BY)
    # The link limits neither an array that is already on the device nor, below, the single host thread that reads.
    rows += measure([variant("managed, already on the device", over_pages)], None, EXPLAINED_BY)
    tables = {"The host reads an array whose pages are on the device": measure(read_by_host(x, host), None)}
    rows += [*on_two_devices(device, x, expected[SHORT]), advice(far, device), *wrong]
    larger = (
        f"The managed array takes {host.nbytes / 2**20:,.1f} MiB of the device's "
        f"{device.memory_info.total / 2**20:,.0f} MiB. A managed array may be larger than device memory. The driver "
        "then moves pages back to the host to free space, and every pass over the array moves each page across the "
        "link again."
    )
    pictures = [pieces.timeline(to_host)] if timing.available() else []
    return Result(rows, limit, pictures=pictures, notes=[*NOTES, larger], tables=tables)


class Pieces:
    """An array in pieces: while the kernel advances one piece, the next one is prefetched in another stream."""

    def __init__(self, x: Words, y: cuda.DeviceArray) -> None:
        self.moving, self.computing = cuda.Stream(), cuda.Stream()
        starts = [piece * x.size // PIECES for piece in range(PIECES + 1)]
        parts = [slice(start, stop) for start, stop in pairwise(starts)]
        self.parts = [(x[part], kernel_over(x[part], y[part], LONG, self.computing)) for part in parts]

    def advance(self) -> tuple[Spans, Spans]:
        """Advance all elements; return the events around the prefetches, and those around the kernels."""
        prefetches: Spans = []
        kernels: Spans = []
        for part, launch in self.parts:
            start = self.moving.record()
            cuda.prefetch(part, stream=self.moving)
            prefetches.append((start, self.moving.record()))
            self.computing.wait(prefetches[-1][1])
            start = self.computing.record()
            launch()
            kernels.append((start, self.computing.record()))
        return prefetches, kernels

    def timeline(self, before: Callable[[], object]) -> Timeline:
        """Call `before` and then `advance`; return the timeline of `advance`."""
        before()
        cuda.current_device().synchronize()
        spans = dict(zip(("prefetch", "long kernel"), self.advance(), strict=True))
        cuda.current_device().synchronize()
        begin = spans["prefetch"][0][0]
        lanes = {name: [(start - begin, end - begin) for start, end in events] for name, events in spans.items()}
        return Timeline("overlap", lanes)


def read_by_host(x: Words, data: Words) -> list[Variant]:
    """Return one variant for each way in which the host can read pages that are on the device."""
    seen, mostly_read = np.empty(data.shape, data.dtype), managed_copy(data)
    cuda.advise(mostly_read, "set_read_mostly")

    def variant(name: str, array: Words, *, fetch: bool = False) -> Variant:
        def read() -> None:
            if fetch:
                cuda.prefetch(array, "host")
                cuda.legacy_default.synchronize()
            np.copyto(seen, array)

        return Variant(
            name=name, launch=read, output=seen, expected=data, amount=data.nbytes,
            before=lambda: cuda.prefetch(array),
        )  # fmt: skip  # grouped by meaning

    return [
        variant("page faults", x),
        variant("prefetched", x, fetch=True),
        variant("read mostly", mostly_read),
    ]


def on_two_devices(device: cuda.Device, x: Words, expected: Words) -> list[Row]:
    """If there are two devices, let each advance half of an array and store the results in half of another."""
    name = "two devices, one array"
    others = [other for other in cuda.devices() if other is not device and other.properties.concurrent_managed_access]
    if not others:
        needs = (
            "Skipped: needs a second device. Each device would then process half of an array, without any explicit "
            "copies."
        )
        return [Row(name, note=needs)]
    y: Words = cuda.managed_empty(x.shape, x.dtype)
    halves = []
    for each, part in zip((device, others[0]), (slice(0, x.size // 2), slice(x.size // 2, None)), strict=True):
        with each:
            halves.append((each, x[part], y[part], kernel_over(x[part], y[part], SHORT)))

    def work() -> None:
        for each, source, target, launch in halves:
            with each:
                cuda.prefetch(source)
                cuda.prefetch(target)
                launch()
        for each, *_ in halves:
            each.synchronize()

    variant = Variant(
        name=name, launch=work, output=y, expected=expected, amount=x.nbytes,
        before=lambda: cuda.prefetch(x, "host"), columns={"steps": SHORT},
    )  # fmt: skip  # grouped by meaning
    return measure([variant], None, EXPLAINED_BY)


def advice(far: Words, device: cuda.Device) -> Row:
    """Return a row that checks whether the driver reports the advice given for the array on the host."""
    known = cuda.managed_attributes(far)
    told = cuda.ManagedAttributes(False, "host", (device,), None)
    fact = "the driver reports the advice"
    note = f"preferred location: {known.preferred_location}; accessed by: {', '.join(map(place, known.accessed_by))}."
    return Row("advice, queried", check=Check(fact, known == told, str(known)), note=note)


def place(location: cuda.Device | str) -> str:
    """Return a location's name."""
    return location if isinstance(location, str) else f"device {location.ordinal}"


def read_early() -> str:
    """Read a kernel's result without waiting for the kernel."""
    x, y = managed_copy(np.arange(1, 1001, dtype=np.uint32)), managed_copy(np.zeros(1000, np.uint32))
    kernel_over(x, y, SHORT)()
    old = int(np.count_nonzero(y == 0))
    return (
        f"{old:,} of {y.size:,} elements still have their values from before the launch, which has only been queued."
        if old
        else ""
    )


def write_early() -> str:
    """Overwrite a kernel's input after the launch, which would be safe after a copy from pageable memory."""
    data = np.arange(1, 1001, dtype=np.uint32)
    x, y = managed_copy(data), cuda.empty(data.size, np.uint32)
    kernel_over(x, y, SHORT)()
    x[:] = 0
    wrong = int(np.count_nonzero(y.to_host() != reference(data, SHORT)))
    return (
        f"{wrong:,} of {y.size:,} results were computed from values that the host wrote after the launch."
        if wrong
        else ""
    )
