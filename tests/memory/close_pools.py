"""Close memory pools while frees of their memory are in flight, in every order: no process may crash.

    python tests/memory/close_pools.py [--processes 100] [--pools 100]

Each process creates and closes its pools in one order. It checks a copy after each pool, because NVIDIA's driver
crashes in a later copy if a pool was destroyed too early. `--order NAME` runs one order in this process.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import cudart_py as cuda

SIZE = 1000
LIMIT_S = 300

Streams = list[cuda.Stream]


def array_first(streams: Streams, at: int) -> None:
    """Close the array, then the pool."""
    pool = cuda.MemoryPool()
    cuda.zeros(SIZE, np.uint8, pool=pool).close()
    pool.close()


def pool_first(streams: Streams, at: int) -> None:
    """Close the pool, then the array."""
    pool = cuda.MemoryPool()
    array = cuda.zeros(SIZE, np.uint8, pool=pool)
    pool.close()
    array.close()


def view_last(streams: Streams, at: int) -> None:
    """Drop the pool and the array, then a view of the array."""
    view = cuda.zeros(SIZE, np.uint8, pool=cuda.MemoryPool())[10:]
    view.fill(3)
    del view


def dropped(streams: Streams, at: int) -> None:
    """Drop everything without closing it, in a reference cycle."""
    pool = cuda.MemoryPool()
    cycle: list[object] = [pool, cuda.zeros(SIZE, np.uint8, pool=pool)]
    cycle.append(cycle)


def several_streams(streams: Streams, at: int) -> None:
    """Free memory of a pool in several streams, one of which is closed before the pool."""
    pool = cuda.MemoryPool()
    with cuda.Stream(non_blocking=True) as last:
        for stream in (*streams, last):
            cuda.zeros(SIZE, np.uint8, stream=stream, pool=pool).close()
    pool.close()


def trimmed(streams: Streams, at: int) -> None:
    """Trim the pool between the free and the close."""
    pool = cuda.MemoryPool(release_threshold=0)
    cuda.zeros(SIZE, np.uint8, stream=streams[at % 2], pool=pool).close()
    pool.trim()
    pool.close()


def of_the_device(streams: Streams, at: int) -> None:
    """Make a pool the device's current one, and replace it while an array of it is alive."""
    device = cuda.Device(0)
    cuda.MemoryPool().make_current()
    array = cuda.zeros(SIZE, np.uint8, stream=streams[at % 2])
    cuda.MemoryPool.default(device).make_current()
    array.close()


def captured(streams: Streams, at: int) -> None:
    """Close an array of a pool during a capture, and drop the graph while its launches may be in flight."""
    pool = cuda.MemoryPool()
    array, other = (cuda.zeros(SIZE, np.uint8, stream=streams[0], pool=pool) for _ in range(2))
    streams[1].wait(streams[0])
    with streams[1].capture() as graph:
        array.close(stream=streams[1])
        other.fill(7, stream=streams[1])
        with cuda.graphs.empty(SIZE, np.uint8, stream=streams[1]) as scratch:
            scratch.fill(1, stream=streams[1])
    executable = graph.instantiate()
    for _ in range(3):
        executable.launch(streams[1])
    del executable, graph
    other.close(stream=streams[1])
    pool.close()


def left_alive(streams: Streams, at: int) -> None:
    """Leave pools and arrays alive until the interpreter exits."""
    pool = cuda.MemoryPool()
    kept.append((pool, cuda.zeros(SIZE, np.uint8, pool=pool)))
    cuda.zeros(SIZE, np.uint8, pool=pool).close()


def reset(streams: Streams, at: int) -> None:
    """Reset the device with frees in flight, if the driver supports it."""
    array_first(streams, at)
    if "reset" in cuda.capabilities():
        cuda.reset()
        streams[:] = make_streams()


# The orders that leave no pool alive and the process usable.
COMPLETE = (array_first, pool_first, view_last, dropped, several_streams, trimmed, of_the_device, captured)
ORDERS = {order.__name__: order for order in (*COMPLETE, left_alive, reset)}
kept: list[object] = []


def make_streams() -> Streams:
    """Return two streams that do not synchronize with the legacy default stream."""
    return [cuda.Stream(non_blocking=True) for _ in range(2)]


def run(order: str, pools: int) -> None:
    """Close pools in the given order, and check that copies still work."""
    streams, close = make_streams(), ORDERS[order]
    host = np.arange(SIZE, dtype=np.int32)
    for at in range(pools):
        close(streams, at)
        with cuda.to_device(host) as array:
            np.testing.assert_array_equal(array.to_host(), host)
    cuda.Device(0).synchronize()


def ended(order: str, pools: int) -> str:
    """Run an order in a new process; return a description of its failure, or "" if it succeeded."""
    command = [sys.executable, __file__, "--order", order, "--pools", str(pools)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"did not end within {LIMIT_S} s"
    if not done.returncode and not done.stdout + done.stderr:
        return ""
    return f"ended with {done.returncode}: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}"


def main() -> int:
    """Run the processes, or one order in this process; return 1 if a process failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--pools", type=int, default=100)
    parser.add_argument("--order", choices=ORDERS)
    options = parser.parse_args()
    if options.order:
        run(options.order, options.pools)
        return 0
    orders = [list(ORDERS)[at % len(ORDERS)] for at in range(options.processes)]
    with ThreadPoolExecutor(min(12, os.cpu_count() or 1)) as executor:
        results = executor.map(lambda order: ended(order, options.pools), orders)
        died = [f"{order} {how}" for order, how in zip(orders, results, strict=True) if how]
    print(*died, f"{len(died)} of {len(orders)} processes that closed {options.pools} pools each died", sep="\n")
    return min(len(died), 1)


if __name__ == "__main__":
    sys.exit(main())
