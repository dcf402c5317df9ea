"""The device model of estimates: the rates of an H200, the card that the simulator presents."""

from __future__ import annotations

from typing import NamedTuple


class Card(NamedTuple):
    """The rates of a card, which estimates and rooflines assume.

    `hertz` is the clock of the multiprocessors. `instructions`, `wavefronts` and `sectors` are rates of one
    multiprocessor per cycle: warp instructions issued, wavefronts of L1 and shared memory, and 32-byte sectors from the
    L2 cache. `memory` is in bytes per second, and `fp32` and `fp64` are in FLOP/s, all for the whole card. `blocks` is
    the number of blocks that the card starts per cycle. `atomic_cycles` is the time between two atomics on one address
    of global memory, and `constant_cycles` that between two indexed constants on a multiprocessor.
    """

    name: str
    multiprocessors: int
    hertz: float
    instructions: float
    wavefronts: float
    sectors: float
    memory: float
    fp32: float
    fp64: float
    blocks: float
    atomic_cycles: float
    constant_cycles: float


# The clock and the number of multiprocessors are the device's attributes. Compute capability 9.0 has four schedulers
# that issue one instruction each, serves 128 bytes of shared memory, and receives 64 bytes from L2 per cycle. The other
# rates are from the recorded run of the tour (docs/h200.md): a copy, counting both directions; multiply-adds; blocks of
# 9 threads in launch_shapes; one atomic per element in reduction; and a table of 32 words in constant_memory.
H200 = Card(
    name="NVIDIA H200",
    multiprocessors=132,
    hertz=1.98e9,
    instructions=4,
    wavefronts=1,
    sectors=2,
    memory=4278e9,
    fp32=65.2e12,
    fp64=33.4e12,
    blocks=0.84,
    atomic_cycles=3.5,
    constant_cycles=17.6,
)
