"""The ceilings of a device: the bandwidth of copies, reads and writes, and the rate of multiply-adds.

Each is the best of several implementations, measured like any other work.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...context.device import Device, current_device
from ...copies import memcpy, memset
from ...errors import NotSupportedError
from ...launch.loading import compile
from ...launch.module import Module
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...memory.pools import MemoryPool
from ...streams.stream import legacy_default
from ..clocks import ClockGuard
from ..sampling import MeasureOptions
from .samples import Plan, has_capability, take

Kind = Literal["copy", "read", "write", "fp32", "fp64"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SOURCE = Path(__file__).with_name("ceilings.cu")

_WORD = 16
_BLOCKS = (256, 512)
_LOADS = (4, 8, 16)
# Blocks per multiprocessor; 0 means one block per tile.
_RESIDENT = (0, 4, 8)
# Much larger than the caches, and so large that the start and the end of a kernel are a small part of its time.
_BUFFER_BYTES = 4 << 30
_CHAINS, _STEPS = 8, 16
_ARITHMETIC_BLOCK, _ARITHMETIC_BLOCKS_PER_SM, _ARITHMETIC_ROUNDS = 256, 8, 2048
# A trial takes some milliseconds per implementation. Its warm-up is short, since the first trial has raised the clocks.
_TRY = MeasureOptions(precision=0.002, min_samples=5, min_seconds=0.02, max_seconds=0.1, warm_up_seconds=0.02)
_FINAL = MeasureOptions(precision=0.0005, min_samples=10, min_seconds=0.1, max_seconds=0.5, warm_up_seconds=0.02)

_Way = Callable[[], object]


@dataclass(frozen=True)
class Ceilings:
    """The measured peak rates of a device, in bytes per second and operations per second.

    A copy counts both the bytes read and the bytes written. A multiply-add counts as two operations. `fp32` and `fp64`
    are rates without tensor cores.
    """

    copy: float
    read: float
    write: float
    fp32: float
    fp64: float

    def __str__(self) -> str:
        bandwidths = ", ".join(f"{name} {getattr(self, name) / 1e9:,.0f} GB/s" for name in KINDS[:3])
        rates = ", ".join(f"{name} {getattr(self, name) / 1e12:,.1f} TFLOP/s" for name in KINDS[3:])
        return f"{bandwidths}, {rates}"


def ceilings(device: Device | None = None) -> Ceilings:
    """Measure the peak rates of a device, by default the current device. This takes several seconds, once per process.

    Uses up to 8 GiB of device memory during the measurement. Raises NotSupportedError if the driver lacks the
    capability `gpu_timing`, since its event times are then not those of a GPU.
    """
    where = current_device() if device is None else arguments.instance("ceilings", "device", device, Device)
    return Ceilings(**{kind: measured_ceiling(where, kind) for kind in KINDS})


@functools.cache
def measured_ceiling(device: Device, kind: Kind) -> float:
    """Return one peak of a device in bytes or operations per second, measured at its first use."""
    arguments.choice("measure", "ceiling", kind, KINDS)
    if not has_capability("gpu_timing"):
        raise NotSupportedError("this driver's event times are not those of a GPU, so no peak can be measured")
    with activated(device):
        if kind in ("fp32", "fp64"):
            return _peak(*_arithmetic(device, kind))
        buffers = 2 if kind == "copy" else 1
        nbytes = _buffer_bytes(device.memory_info.free // (2 * buffers))
        # A separate pool returns the memory to the system; the device's default pool would keep it.
        with MemoryPool(device, release_threshold=0) as pool:
            arrays = [empty(nbytes // 4, np.uint32, pool=pool) for _ in range(buffers)]
            try:
                for array in arrays:
                    memset(array, 0)
                return _peak(_memory_ways(device, kind, arrays), buffers * nbytes)
            finally:
                for array in arrays:
                    array.close()
                device.synchronize()


def _buffer_bytes(limit: int) -> int:
    """Return the size of a buffer in bytes: a multiple of every tile, at most `limit` unless that is below one tile."""
    tile = max(_BLOCKS) * max(_LOADS) * _WORD
    return max(tile, min(_BUFFER_BYTES, limit) // tile * tile)


def _peak(ways: Iterator[_Way], amount: float) -> float:
    """Try each implementation briefly, then measure the best one properly; return its rate."""
    best = min(ways, key=lambda way: _seconds(way, _TRY))
    return amount / _seconds(best, _FINAL)


def _seconds(way: _Way, options: MeasureOptions) -> float:
    """Return the median time of one call in seconds, with the cache as the previous call left it."""
    taken = take((way,), legacy_default, Plan(flush_l2=False, batch=1, graph=False), options, ClockGuard())
    return statistics.median(taken.samples.seconds)


def _memory_ways(device: Device, kind: str, arrays: list[DeviceArray]) -> Iterator[_Way]:
    """Yield the implementations that copy, read or write the arrays: the driver's own call and kernel launches."""
    first, words = arrays[0], arrays[0].nbytes // _WORD
    module = _memory_module(kind)
    if kind == "copy":
        yield lambda: memcpy(arrays[1], first)
    elif kind == "write":
        yield lambda: memset(first, 1)
    sums = empty(words // (min(_BLOCKS) * min(_LOADS)), np.uint32)
    arguments = {"copy": (arrays[-1], first, words), "read": (first, words, sums), "write": (first, words, 1)}[kind]
    for loads in _LOADS:
        kernel = module[f"{kind}_words<{loads}>"]
        for block in _BLOCKS:
            for resident in _RESIDENT:
                tiles = words // (block * loads)
                grid = min(tiles, resident * device.sm_count) if resident else tiles
                yield kernel[grid, block].bind(*arguments)


def _memory_module(kind: str) -> Module:
    return compile(SOURCE, names=[f"{kind}_words<{loads}>" for loads in _LOADS])


def _arithmetic(device: Device, kind: str) -> tuple[Iterator[_Way], float]:
    """Return the one implementation of multiply-adds, and its number of operations."""
    number, dtype = {"fp32": ("float", np.float32), "fp64": ("double", np.float64)}[kind]
    name = f"multiply_add<{number}, {_CHAINS}, {_STEPS}>"
    kernel = compile(SOURCE, names=[name])[name]
    grid = _ARITHMETIC_BLOCKS_PER_SM * device.sm_count
    threads = grid * _ARITHMETIC_BLOCK
    out = empty(threads, dtype)
    bound = kernel[grid, _ARITHMETIC_BLOCK].bind(out, 0.999, 0.001, _ARITHMETIC_ROUNDS)
    return iter([bound]), 2.0 * threads * _CHAINS * _STEPS * _ARITHMETIC_ROUNDS
