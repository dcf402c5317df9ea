"""Helpers for stops with several devices: the devices, their access to each other, expected results, and times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import cudart_py as cuda

from .ranks import Ranks
from .stop import Row

# Number of workers in a process that has only one device.
WORKERS = 4
NEEDS = (
    "This process has one device. For several devices, use a machine with several GPUs, "
    "`CUDART_PY_SIMULATOR_DEVICES=4` on the simulator, or several processes: `mpiexec -n 4 library-tour run {}`."
)
# A time on several devices is the mean of as many runs as take SECONDS together, but at most MOST_RUNS.
SECONDS, MOST_RUNS = 0.2, 1000


def places_from(device: cuda.Device, together: Ranks | None) -> list[cuda.Device]:
    """Return the device of each worker of this process, beginning with the given one.

    An MPI rank is one worker on its own device. Otherwise each device has one worker, or a single device has all.
    """
    if together:
        return [device]
    every = [device, *(other for other in cuda.devices() if other is not device)]
    return every if len(every) > 1 else every * WORKERS


def on_one_device(places: Sequence[cuda.Device], together: Ranks | None, stop: str, workers: str) -> list[str]:
    """Return a note if all workers of a stop are on one device of this process, else an empty list."""
    if together or len(set(places)) > 1:
        return []
    return [f"All {len(places)} {workers} are on one device. {NEEDS.format(stop)}"]


@contextmanager
def peer_access(devices: Sequence[cuda.Device]) -> Iterator[bool]:
    """Enable peer access between the devices in the block, where possible; yield whether all pairs have it."""
    pairs = [(one, other) for one in devices for other in devices if one is not other]
    possible = [(one, other) for one, other in pairs if one.can_access_peer(other)]
    with ExitStack() as stack:
        for one, other in possible:
            if not one.peer_enabled(other):
                one.enable_peer(other)
                stack.callback(one.disable_peer, other)
        stack.callback(wait_for, devices)  # called first when the block ends
        yield len(possible) == len(pairs)


def wait_for(devices: Sequence[cuda.Device]) -> None:
    """Wait for all work of the devices."""
    for device in devices:
        device.synchronize()


def right_everywhere(rows: Sequence[Row], ranks: Ranks | None) -> set[str]:
    """Return the names of the rows whose check did not fail on any rank; all ranks must call this.

    Ranks time a variant together, so they must agree on whether to time it, although only some may have its check.
    """
    wrong = {row.name for row in rows if row.check and not row.check.holds}
    if ranks:
        wrong = set().union(*ranks.comm.allgather(wrong))
    return {row.name for row in rows} - wrong


def mean_ms(work: Callable[[], object], devices: Sequence[cuda.Device], ranks: Ranks | None = None) -> float:
    """Return the mean host time in ms of `work`, queued repeatedly on several devices; of ranks, the slowest one's."""

    def seconds(runs: int) -> float:
        wait_for(devices)
        if ranks:
            ranks.comm.Barrier()
        start = time.perf_counter()
        for _ in range(runs):
            work()
        wait_for(devices)
        taken = time.perf_counter() - start
        return ranks.most(taken) if ranks else taken

    seconds(1)  # warm up: the first run has extra costs
    runs = min(MOST_RUNS, max(1, int(SECONDS / seconds(1))))
    return 1e3 * seconds(runs) / runs
