"""The ranks of an MPI program, such as `mpiexec -n 4 library-tour run halo` starts: processes that end together."""

from __future__ import annotations

import functools
import os
import socket
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

import cudart_py as cuda

# Environment variables that MPICH's mpiexec, Open MPI's mpiexec and PMIx (as in Slurm) set in the processes they start.
STARTED = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
# Seconds that mpiexec is given to read what a rank has written.
FORWARDED = 1.0


class MissingMpiError(ImportError):
    """The process is one of several ranks and cannot reach the others; the message says what to install."""


class Place(NamedTuple):
    """The host and the device of a rank. `device` is equal for ranks that share a device, and only for those."""

    rank: int
    host: str
    device: str
    name: str


def started_by_mpi() -> bool:
    """Check whether mpiexec or an equivalent launcher has started this process."""
    return any(name in os.environ for name in STARTED)


@functools.cache
def world() -> Ranks | None:
    """Return the ranks that were started together, or None in a process that was started alone.

    Raises MissingMpiError if mpiexec has started this process, and mpi4py or its MPI library is missing.
    """
    if not started_by_mpi():
        return None
    try:
        from mpi4py import MPI  # the import initialises MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError if mpi4py finds no MPI library
        raise MissingMpiError(
            "mpiexec has started this process, which needs mpi4py and an MPI library to reach the others: install the "
            f"extra 'mpi' (pip install 'cudart-py[mpi]'), or mpi4py built for the machine's own MPI ({error})"
        ) from error
    ranks = Ranks(MPI.COMM_WORLD)
    return ranks if ranks.count > 1 else None


@dataclass(frozen=True)
class Ranks:
    """All ranks of an mpi4py communicator, seen from one of them."""

    comm: Any

    @property
    def rank(self) -> int:
        """The rank of this process, counted from 0."""
        return int(self.comm.rank)

    @property
    def count(self) -> int:
        """The number of ranks."""
        return int(self.comm.size)

    def own_device(self) -> cuda.Device:
        """Return this rank's device; a host's devices are assigned to its ranks round-robin."""
        from mpi4py import MPI  # installed, since there are ranks

        host = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        number = int(host.rank)
        host.Free()
        every = cuda.devices()
        return every[number % len(every)]

    def takes_device_memory(self) -> bool:
        """Check whether MPI reports that it accepts device pointers (its memory kinds, since MPI 4.1)."""
        kinds: str = self.comm.Get_info().get("mpi_memory_alloc_kinds") or ""
        return "cuda" in kinds and "interop" in cuda.capabilities()

    def all_sums(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the element-wise sum of all ranks' arrays, in host memory."""
        from mpi4py import MPI  # installed, since there are ranks

        sums = numbers.copy()
        self.comm.Allreduce(MPI.IN_PLACE, sums)
        return sums

    def most(self, number: float) -> float:
        """Return the largest of all ranks' numbers, on every rank; all ranks must call this."""
        return float(max(self.comm.allgather(float(number))))

    def warn_of_same_devices(self, device: cuda.Device) -> None:
        """Warn on rank 0 if several ranks share a device; all ranks must call this."""
        places = self.comm.gather(place(self.rank, device))
        for line in same_devices(places or []):
            warnings.warn(line, stacklevel=2)

    def shared_device(self, device: cuda.Device) -> str:
        """Return a sentence that names ranks that share a device, or ""; all ranks must call this."""
        return next(iter(same_devices(self.comm.allgather(place(self.rank, device)))), "")

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """End all ranks if one ends the block with an exception, since the others would wait for it forever."""
        try:
            yield
        except BaseException as error:
            self.end(f"{type(error).__name__}: {error}")
            raise

    def end(self, reason: str) -> None:
        """End all ranks immediately (MPI_Abort), and say why on standard error."""
        sys.stdout.flush()
        sys.stderr.write(f"rank {self.rank} of {self.count} on {socket.gethostname()} ends all ranks: {reason}\n")
        sys.stderr.flush()
        # The abort ends mpiexec too, which loses any output of its ranks that it has not read by then.
        time.sleep(FORWARDED)
        self.comm.Abort(1)


def place(rank: int, device: cuda.Device) -> Place:
    """Return the host and the device of a rank."""
    # A driver that runs kernels in the process has separate devices in each process.
    process = f" of process {os.getpid()}" if "in_process" in cuda.capabilities() else ""
    return Place(rank, socket.gethostname(), f"{device.properties.uuid}{process}", f"device {device.ordinal}")


def same_devices(places: Sequence[Place]) -> list[str]:
    """Return one sentence for each device that several ranks share; it names the device and the ranks."""
    found: dict[tuple[str, str], list[Place]] = {}
    for each in places:
        found.setdefault((each.host, each.device), []).append(each)
    return [
        f"ranks {', '.join(str(each.rank) for each in group)} share {group[0].name} ({device}) of {host} and slow each "
        "other down: start as many ranks on a host as it has GPUs, or let CUDA_VISIBLE_DEVICES give each its own"
        for (host, device), group in found.items()
        if len(group) > 1
    ]
