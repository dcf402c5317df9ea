"""Allocate and free temporary arrays in stream order, from a pool of device memory.

On the simulator, which checks results but does not measure time:

    $ library-tour run stream_ordered
    stream_ordered: Stream-ordered memory: allocate and free without waiting
    size 262,147: elements per temporary array
                               waits  check
    ────────────────────────────────────────
    synchronous calls              8  right
    pool, memory returned          8  right
    pool, memory kept              8  right
    pool, kept, no waits           0  right
    one array for all steps        0  right
    two streams with an event      0  right
    used without a wait               caught
    freed too early                   caught
    used without a wait: kernel add_to at kernels/stream_ordered.cu:21: race: it
    reads 4 bytes of global memory at 0x7f… (0 bytes into the 16380-byte
    allocation at 0x7f…, allocated at
    library_tour/course/stream_ordered.py:278), which kernel store_multiple in
    another stream, block (0, 0, 0), thread (0, 0, 0) wrote at
    kernels/stream_ordered.cu:14, and nothing orders the two accesses, this one in
    stream 0x5… and the other in stream 0x5…: use the same stream for both
    (stream=s), or make one stream wait for the other; block (0, 0, 0), thread (0,
    0, 0), instruction 'ld.global.u32 %r7, [%rd5]'
        21 | total[i] += term[i];
    freed too early: 4,095 of 4,095 elements are wrong.
    kernel add_to at kernels/stream_ordered.cu:21: race: it reads 4 bytes of global
    memory at 0x7f… (0 bytes into the 16380-byte allocation at
    0x7f…, allocated at library_tour/course/stream_ordered.py:259), which a
    fill in another stream wrote (queued at
    library_tour/course/stream_ordered.py:260), and nothing orders the two accesses,
    this one in stream 0x5… and the other in stream 0x5…: use the same stream for
    both (stream=s), or make one stream wait for the other; block (0, 0, 0), thread
    (0, 0, 0), instruction 'ld.global.u32 %r7, [%rd5]'
        21 | total[i] += term[i];
    Pool memory
                          used MiB  peak used MiB  reserved MiB  check
    ──────────────────────────────────────────────────────────────────
    four arrays                256            256           256  right
    three freed                 64            256           256  right
    threshold of 0 bytes        64            256            64  right
    all freed, trimmed           0            256             0  right
    more than max_size                                           right
    more than max_size: cuMemAllocFromPoolAsync: 67,108,864 bytes of device memory
    were requested; 17,109,613,056 of 17,179,869,184 are free; the pool holds at
    most 67,108,864 (CUDA_ERROR_OUT_OF_MEMORY)
    Each of 8 steps allocates an array, uses it in two kernels and frees it. The
    synchronous calls work like cudaMalloc and cudaFree: to free the memory, the
    host waits until the device has finished. Arrays from a pool are allocated and
    freed as work in a stream. The host need not wait, and the stream's next array
    gets the same memory, because all kernels that used it come earlier in the
    stream. The 'waits' column shows how many times the host waits for the device.
    When the host waits, a pool returns unused memory above its release threshold to
    the device, and the next step must allocate and map memory again. With a
    threshold of 0 bytes, every step pays for that. On an H200, this is slower than
    synchronous calls. A pool that keeps its memory allocates it once. In the second
    table, 'used' memory belongs to arrays, and 'reserved' memory is all the memory
    that the pool has taken from the device.
    Stream order applies within one stream. Another stream must wait for the first
    one, with an event, before it uses the array, and the stream that uses the array
    last must free it. If the first stream frees it before the second one has read
    it, the next array gets its memory. Without a wait, the result may be right by
    chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, on_host, refusal
from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..stop import Check, Curve, Result, Row, Size
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "Stream-ordered memory: allocate and free without waiting"
SIZE = Size("elements per temporary array", full=2**26 + 3, small=2**18 + 3)
STEPS = 8
BLOCK = 256
MIB = 2**20
CHUNK = 64 * MIB  # bytes of each array in the table of a pool's memory
CURVE = tuple(4**power for power in range(6, 16))  # bytes, the sizes along the curve

Words = NDArray[np.uint32]


def reference(x: Words) -> Words:
    """Return x + 2 x + ... + STEPS x, modulo 2^32."""
    return x * np.uint32(sum(range(1, STEPS + 1)))


def run(device: cuda.Device, size: int) -> Result:
    """Check and time one temporary array per step; show a pool's memory, and mistakes between two streams."""
    host = np.random.default_rng().integers(0, 2**32, size, np.uint32)
    limit = copy_limit(device)
    with cuda.MemoryPool() as keeping, cuda.MemoryPool(release_threshold=0) as returning:
        rows = measure(list(make_variants(host, keeping, returning)), limit)
        pictures = [costs(keeping, returning)] if timing.available() else []
        if timing.available():
            rows.append(Row("allocate, free 1 MiB", timing.rates(timing.call_ms(partial(in_pool, MIB, keeping)))))
    rows += [
        two_streams(host),
        shown_wrong("used without a wait", used_without_wait),
        shown_wrong("freed too early", given_away),
    ]
    tables = {"Pool memory": list(pool_rows(device))}
    notes = [
        "Each of 8 steps allocates an array, uses it in two kernels and frees it. The synchronous calls work like "
        "cudaMalloc and cudaFree: to free the memory, the host waits until the device has finished. Arrays from a "
        "pool are allocated and freed as work in a stream. The host need not wait, and the stream's next array gets "
        "the same memory, because all kernels that used it come earlier in the stream. The 'waits' column shows how "
        "many times the host waits for the device.",
        "When the host waits, a pool returns unused memory above its release threshold to the device, and the next "
        "step must allocate and map memory again. With a threshold of 0 bytes, every step pays for that. On an H200, "
        "this is slower than synchronous calls. A pool that keeps its memory allocates it once. In the second table, "
        "'used' memory belongs to arrays, and 'reserved' memory is all the memory that the pool has taken from the "
        "device.",
        "Stream order applies within one stream. Another stream must wait for the first one, with an event, before it "
        "uses the array, and the stream that uses the array last must free it. If the first stream frees it before the "
        "second one has read it, the next array gets its memory. Without a wait, the result may be right by chance.",
    ]
    return Result(rows, limit, pictures=pictures, notes=notes, tables=tables)


def make_variants(host: Words, keeping: cuda.MemoryPool, returning: cuda.MemoryPool) -> Iterator[Variant]:
    """Yield one variant per way of allocating the temporary arrays."""
    size = host.size
    x, total, whole = cuda.to_device(host), cuda.empty_like(host), cuda.empty_like(host)
    module = load("stream_ordered")
    store, add = (module[name][blocks_for(size, BLOCK), BLOCK] for name in ("store_multiple", "add_to"))

    def variant(name: str, allocate: Callable[[], cuda.DeviceArray], waits: int = 0, *, wait: bool = False) -> Variant:
        def steps() -> None:
            for factor in range(1, STEPS + 1):
                term = allocate()
                store(x, term, factor, size)
                add(total, term, size)
                if term is not whole:
                    term.close()
                if wait:
                    cuda.legacy_default.synchronize()

        return Variant(
            name=name,
            prepare=partial(cuda.memset, total, 0),
            launch=steps,
            output=total,
            expected=reference(host),
            amount=5 * host.nbytes * STEPS,  # each step reads three arrays and writes two
            columns={"waits": waits},
        )

    # A padded array with one row: unlike the other allocations, its calls, cuMemAllocPitch and cuMemFree, are not
    # stream-ordered.
    yield variant("synchronous calls", partial(cuda.empty_pitched, (1, size), np.uint32), STEPS)
    from_pools = [partial(cuda.empty, size, np.uint32, pool=pool) for pool in (returning, keeping)]
    yield variant("pool, memory returned", from_pools[0], STEPS, wait=True)
    yield variant("pool, memory kept", from_pools[1], STEPS, wait=True)
    yield variant("pool, kept, no waits", from_pools[1])
    yield variant("one array for all steps", lambda: whole)


def two_streams(host: Words) -> Row:
    """Use one stream's array in a second stream. The second stream waits for the first and frees the array."""
    size = host.size
    module = load("stream_ordered")
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    x, total = cuda.to_device(host), cuda.zeros(size, np.uint32)
    cuda.legacy_default.synchronize()
    term = cuda.empty(size, np.uint32, stream=first)
    module["store_multiple"][blocks_for(size, BLOCK), BLOCK, 0, first](x, term, 1, size)
    second.wait(first)
    module["add_to"][blocks_for(size, BLOCK), BLOCK, 0, second](total, term, size)
    term.close(stream=second)
    second.synchronize()
    return Row(
        "two streams with an event", {"waits": 0}, compare("the second stream read the array", on_host(total), host)
    )


def pool_rows(device: cuda.Device) -> Iterator[Row]:
    """Yield rows that show a pool's memory as arrays come and go, and one row for an allocation that it refuses."""
    with cuda.MemoryPool() as pool:

        def row(name: str, used: int) -> Row:
            device.synchronize()
            holds = pool.used == used <= pool.reserved
            detail = f"{pool.used} bytes are used and {pool.reserved} are reserved; the arrays occupy {used}"
            held = {"used MiB": pool.used, "peak used MiB": pool.used_high, "reserved MiB": pool.reserved}
            values = {column: nbytes // MIB for column, nbytes in held.items()}
            return Row(name, values, Check(f"{name}: the pool counts its arrays' bytes", holds, detail))

        arrays = [cuda.empty(CHUNK, np.uint8, pool=pool) for _ in range(4)]
        yield row("four arrays", 4 * CHUNK)
        for array in arrays[:3]:
            array.close()
        yield row("three freed", CHUNK)
        pool.release_threshold = 0
        yield row("threshold of 0 bytes", CHUNK)
        arrays[3].close()
        device.synchronize()
        pool.trim()
        yield row("all freed, trimmed", 0)
    with cuda.MemoryPool(max_size=CHUNK) as small:
        array = cuda.empty(CHUNK, np.uint8, pool=small)
        full = refusal("no more than max_size", cuda.OutOfMemoryError, partial(cuda.empty, CHUNK, np.uint8, pool=small))
        yield Row("more than max_size", check=full, note=full.detail)
        array.close()


def in_pool(nbytes: int, pool: cuda.MemoryPool) -> None:
    """Allocate an array from a pool and free it, in the default stream."""
    cuda.empty(nbytes, np.uint8, pool=pool).close()


def costs(keeping: cuda.MemoryPool, returning: cuda.MemoryPool) -> Curve:
    """Return a curve of the host's time for an allocation and a free against the size."""

    def waited(nbytes: int) -> None:
        in_pool(nbytes, returning)
        cuda.legacy_default.synchronize()

    ways: dict[str, Callable[[int], object]] = {
        "synchronous calls": lambda nbytes: cuda.empty_pitched((1, nbytes), np.uint8).close(),
        "pool, memory returned": waited,
        "pool, memory kept": lambda nbytes: in_pool(nbytes, keeping),
    }
    lines = {
        name: [(nbytes, 1e3 * timing.call_ms(partial(way, nbytes))) for nbytes in CURVE] for name, way in ways.items()
    }
    return Curve("calls", "bytes", "µs to allocate and free", lines, logarithmic="xy")


def used_without_wait() -> str:
    """Read an array in a stream that does not wait for the stream that allocates and writes it.

    The result is right by chance, because the host waits for the first stream before it reads the total.
    """
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    return second_reads(first, second, lambda term: first.synchronize(), waits=False)


def given_away() -> str:
    """Free an array in its own stream, which does not wait for the reading stream, and reuse the memory."""
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)

    def replace(term: cuda.DeviceArray) -> None:
        term.close()
        other = cuda.empty(term.size, np.uint32, stream=first)
        cuda.memset(other, 0, stream=first)
        first.synchronize()

    return second_reads(first, second, replace)


def second_reads(
    first: cuda.Stream,
    second: cuda.Stream,
    meanwhile: Callable[[cuda.DeviceArray], None],
    *,
    waits: bool = True,
) -> str:
    """Write an array in the first stream, and add it to a total in the second; report the number of wrong elements."""
    host = np.arange(1, 2**12, dtype=np.uint32)
    module = load("stream_ordered")
    x, total = cuda.to_device(host), cuda.zeros(host.size, np.uint32)
    cuda.legacy_default.synchronize()
    term = cuda.empty(host.size, np.uint32, stream=first)
    grid = blocks_for(host.size, BLOCK)
    module["store_multiple"][grid, BLOCK, 0, first](x, term, 1, host.size)
    if waits:
        second.wait(first)
    module["add_to"][grid, BLOCK, 0, second](total, term, host.size)
    meanwhile(term)
    wrong = np.count_nonzero(total.to_host(stream=second) != host)
    return f"{wrong:,} of {host.size:,} elements are wrong." if wrong else ""
