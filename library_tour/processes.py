"""Processes that run stops, each forked from one that has imported their modules and has made no CUDA call.

A fork of a process that uses CUDA could not use it.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import cudart_py as cuda
from cudart_py.driver.backend import ENVIRONMENT_VARIABLE
from cudart_py.host.programs import Program

from . import stops
from .processors import processors
from .ranks import started_by_mpi
from .runner import Outcome, run_stop

# The modules that all stops import at their first calls, in addition to their own.
_PRELOADED = ("cudart_py.simulator.driver", "cudart_py.simulator.ptx.native.engine", "cuda.bindings.nvrtc")


@contextmanager
def outcomes_of(names: Sequence[str], device: cuda.Device, size: int | None) -> Iterator[Iterator[Outcome]]:
    """Yield an iterator that runs stops on a device, and returns their outcomes in order.

    Without a GPU, whose times other work would change, as many stops run at a time as there are processors. If one of
    their processes is killed, the iterator raises BrokenProcessPool.
    """
    alone = len(names) < 2 or processors() < 2 or "gpu_timing" in cuda.capabilities()
    # An MPI rank can reach the others only from its own process. Commands such as `cudart-py profile` also observe only
    # that process.
    if alone or started_by_mpi() or Program.running:
        yield (run_stop(name, device, size) for name in names)
        return
    # Unless a driver was chosen, this process has reported that there is no GPU. The others need not repeat it.
    environment = {**os.environ, ENVIRONMENT_VARIABLE: "simulator"}
    with pool([__name__, *map(stops.module_name, names)], environment) as executor:
        # Not executor.map, which cancels its tasks after Ctrl-C. The pool's thread fails if tasks whose processes end
        # have been cancelled.
        tasks = [executor.submit(_run, name, device.ordinal, size) for name in names]
        yield (task.result() for task in tasks)


@contextmanager
def pool(
    modules: Sequence[str], environment: Mapping[str, str], *, one_task_each: bool = False
) -> Iterator[ProcessPoolExecutor]:
    """Open a pool with a process per processor, each of which begins with the modules imported.

    The processes have the given environment variables. With `one_task_each`, each task has a process of its own. An
    exception in the block, such as Ctrl-C, ends the processes.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*modules, *_PRELOADED])
    others = set(multiprocessing.active_children())
    tasks = 1 if one_task_each else None
    with ProcessPoolExecutor(
        processors(), context, _begin, (dict(environment),), max_tasks_per_child=tasks
    ) as executor:
        try:
            yield executor
        except BaseException:
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


def _begin(environment: Mapping[str, str]) -> None:
    """Prepare a process of the pool, before its first CUDA call."""
    # Ctrl-C interrupts the process that waits for this one, and ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    raise_collection_threshold()


def raise_collection_threshold() -> None:
    """Make Python collect garbage less often than after every 700 new objects, most of which are still in use."""
    gc.set_threshold(20_000, 10, 10)


def _run(name: str, ordinal: int, size: int | None) -> Outcome:
    return run_stop(name, cuda.Device(ordinal), size)
