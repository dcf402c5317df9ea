"""Helpers for stops with several devices: the devices, their access to each other, expected results, and times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import cudart_py as cuda

from .ranks import Ranks
from .stop import Row

# Workers of a process that has one device only.
WORKERS = 4
NEEDS = (
    "This process has one device. For several devices, use a machine with several GPUs, "
    "`CUDART_PY_SIMULATOR_DEVICES=4` on the simulator, or several processes: `mpiexec -n 4 library-tour run {}`."
)
# What a time of several devices is the mean of: runs that together take so long, but no more than so many.
SECONDS, MOST_RUNS = 0.2, 1000


def places_from(device: cuda.Device, together: Ranks | None) -> list[cuda.Device]:
    """Return the device of each worker of this process, beginning with the given one.

    A rank is one worker on a device of its own. Else each device has one, or the only device has all of them.
    """
    if together:
        return [device]
    every = [device, *(other for other in cuda.devices() if other is not device)]
    return every if len(every) > 1 else every * WORKERS


def on_one_device(places: Sequence[cuda.Device], together: Ranks | None, stop: str, workers: str) -> list[str]:
    """Return the note of a stop that its workers are all on one device of this process; no note where they are not."""
    if together or len(set(places)) > 1:
        return []
    return [f"All {len(places)} {workers} are on one device. {NEEDS.format(stop)}"]


@contextmanager
def peer_access(devices: Sequence[cuda.Device]) -> Iterator[bool]:
    """Let the devices access each other's memory in the block, where they can; tell whether all do."""
    pairs = [(one, other) for one in devices for other in devices if one is not other]
    possible = [(one, other) for one, other in pairs if one.can_access_peer(other)]
    with ExitStack() as stack:
        for one, other in possible:
            if not one.peer_enabled(other):
                one.enable_peer(other)
                stack.callback(one.disable_peer, other)
        stack.callback(wait_for, devices)  # the first to be called
        yield len(possible) == len(pairs)


def wait_for(devices: Sequence[cuda.Device]) -> None:
    """Wait for all work of the devices."""
    for device in devices:
        device.synchronize()


def right_everywhere(rows: Sequence[Row], ranks: Ranks | None) -> set[str]:
    """Return the names of the rows without a check that failed, in this process or in any rank; all ranks call it.

    The ranks that time a variant together have to agree on it, although only some of them may have its check.
    """
    wrong = {row.name for row in rows if row.check and not row.check.holds}
    if ranks:
        wrong = set().union(*ranks.comm.allgather(wrong))
    return {row.name for row in rows} - wrong


def mean_ms(work: Callable[[], object], devices: Sequence[cuda.Device], ranks: Ranks | None = None) -> float:
    """Return the host's time of `work` on several devices, when it is queued again and again: the slowest rank's."""

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

    seconds(1)  # what only the first run takes
    runs = min(MOST_RUNS, max(1, int(SECONDS / seconds(1))))
    return 1e3 * seconds(runs) / runs
