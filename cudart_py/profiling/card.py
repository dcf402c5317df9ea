"""The device model of estimates: the rates of an H200, the card that the simulator presents."""

from __future__ import annotations

from typing import NamedTuple


class Latencies(NamedTuple):
    """Cycles until a warp can use a result: of arithmetic, shared memory, a hit in L1, and device memory."""

    arithmetic: float
    shared: float
    l1: float
    memory: float


class Card(NamedTuple):
    """The rates and latencies of a card, which estimates and rooflines assume.

    `hertz` is the clock of the multiprocessors. Rates of one multiprocessor per cycle are `instructions`, `special` and
    `double` (warp instructions issued in all, and executed by the pipes XU and FP64), `wavefronts` of L1 and shared
    memory, and `sectors` of 32 bytes from the L2 cache. `memory` in bytes per second and `fp32` and `fp64` in FLOP/s
    are rates of the whole card. `blocks` is the number of blocks that the card starts per cycle, and `launch_seconds`
    the time from one launch to the next in a graph. `atomic_cycles` is the time between two atomics on one address of
    global memory, and `constant_cycles` that between two indexed constants on a multiprocessor. `resident_warps` and
    `resident_blocks` are the most that a multiprocessor holds.
    """

    name: str
    multiprocessors: int
    hertz: float
    instructions: float
    wavefronts: float
    sectors: float
    special: float
    double: float
    memory: float
    fp32: float
    fp64: float
    blocks: float
    launch_seconds: float
    atomic_cycles: float
    constant_cycles: float
    latencies: Latencies
    resident_warps: int
    resident_blocks: int


# The clock, the number of multiprocessors and their resources are attributes of the device. Compute capability 9.0 has
# four schedulers that issue one instruction each, serves 128 bytes of shared memory, and receives 64 bytes from L2 per
# cycle. Its arithmetic throughput is in the CUDA C++ Programming Guide: 16 special functions and 64 operations in
# double precision per cycle and multiprocessor. The others are from the recorded run of the tour (docs/h200.md): a
# copy, counting both directions; multiply-adds; blocks of 9 threads in launch_shapes; short launches of one graph in
# graphs; one atomic per element in reduction; a table of 32 words in constant_memory; and the latencies in occupancy.
H200 = Card(
    name="NVIDIA H200",
    multiprocessors=132,
    hertz=1.98e9,
    instructions=4,
    wavefronts=1,
    sectors=2,
    special=0.5,
    double=2,
    memory=4278e9,
    fp32=65.2e12,
    fp64=33.4e12,
    blocks=0.84,
    launch_seconds=1.1e-6,
    atomic_cycles=3.5,
    constant_cycles=17.6,
    latencies=Latencies(arithmetic=4.3, shared=23.1, l1=32.2, memory=662),
    resident_warps=64,
    resident_blocks=32,
)
