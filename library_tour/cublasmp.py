"""Matrix products by cuBLASMp through nvmath.distributed, on cudart_py's arrays and streams, with one GPU per rank."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cudart_py as cuda

from .block_cyclic import BlockCyclic, Blocks, Layouts
from .libraries.high_level import lender, lent, runs_on_gpu
from .ranks import Ranks

INSTALL = (
    "Skipped: cuBLASMp needs ranks with one GPU each (mpiexec), and pip install 'nvmath-python[cu13-distributed]' "
    "mpi4py cupy-cuda13x"
)


class CublasMpRefusalError(RuntimeError):
    """cuBLASMp or nvmath has rejected a product, on all ranks alike; the message is the library's."""


class CublasMp:
    """The product of two distributed matrices; this process is one of the ranks that compute it together.

    cuBLASMp expects column-major matrices, and these are row-major. It therefore computes the transposed product of the
    transposed operands, which occupy the same memory. The constructor and `multiply` raise CublasMpRefusalError.
    """

    def __init__(self, ranks: Ranks, device: cuda.Device, layouts: Layouts) -> None:
        distributed = importlib.import_module("nvmath.distributed")
        advanced = importlib.import_module("nvmath.distributed.linalg.advanced")
        self.ranks, self.workers, self.devices = ranks, ranks.count, [device]
        self.blocks = [Blocks(device, ranks.rank, layouts)]
        with _refusals():
            if distributed.get_context() is None:
                distributed.initialize(device.ordinal, ranks.comm, backends=["nccl"])
        [own] = self.blocks
        turned = [_turned(layouts[number], distributed.distribution) for number in (1, 0, 2)]
        with device, _refusals():
            operands = [lent(array).T for array in (own.b, own.a, own.c)]
            self._matmul = advanced.Matmul(*operands, distributions=turned, beta=0.0, stream=own.compute.handle)
            try:
                self._matmul.plan(stream=own.compute.handle)
            except Exception:
                self._matmul.free()
                raise

    def multiply(self) -> None:
        """Queue the product in the stream of this rank's blocks; all ranks must call this."""
        [own] = self.blocks
        with own.device, _refusals():
            self._matmul.execute(stream=own.compute.handle)

    def close(self) -> None:
        """Release the resources that cuBLASMp holds for this product; all ranks must call this."""
        with self.blocks[0].device:
            self._matmul.free()


def in_strips(size: int, workers: int) -> Layouts:
    """Return layouts of square matrices for which cuBLASMp gathers A while it multiplies.

    A is split into strips of rows, B and C into strips of columns. cuBLASMp requires blocks of C with as many rows as
    those of A.
    """
    width, shape, rows, columns = max(1, -(-size // workers)), (size, size), (workers, 1), (1, workers)
    return (
        BlockCyclic(shape, (width, size), rows),
        BlockCyclic(shape, (size, width), columns),
        BlockCyclic(shape, (width, width), columns),
    )


def missing(ranks: Ranks | None, device: cuda.Device) -> str:
    """Return what this machine lacks for cuBLASMp and how to install it, or ""; all ranks must call this."""
    own = _missing_here()
    if ranks is None:
        return INSTALL
    # All ranks return the same answer, so that none waits for a rank that lacks something.
    return next(filter(None, ranks.comm.allgather(own)), "") or ranks.shared_device(device)


def _missing_here() -> str:
    if not runs_on_gpu() or lender() is None:
        return INSTALL
    try:
        importlib.import_module("nccl.core")
        importlib.import_module("nvmath.bindings.cublasMp").get_version()
    except (ImportError, RuntimeError) as error:  # RuntimeError if a shared library is not found
        return f"{INSTALL} ({type(error).__name__}: {str(error).splitlines()[0]})"
    return ""


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise any error as CublasMpRefusalError, because those of nvmath, cuBLASMp and NCCL share no base class."""
    try:
        yield
    except Exception as error:
        raise CublasMpRefusalError(f"{type(error).__name__}: {error}") from error


def _turned(layout: BlockCyclic, distribution: Any) -> Any:
    """Return nvmath's description of the transposed matrix's layout."""
    rows, columns = layout.grid
    grid = distribution.ProcessGrid(shape=(columns, rows), layout=distribution.ProcessGrid.Layout.COL_MAJOR)
    return distribution.BlockCyclic(grid, layout.block[::-1])
