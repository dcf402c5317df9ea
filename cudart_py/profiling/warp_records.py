"""Records of one warp of a launch: its memory accesses, its shuffles and its active lanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Addresses = NDArray[np.int64]
LANES = 32


@dataclass(frozen=True, repr=False, eq=False)  # comparing arrays does not return a single bool
class WarpAccess:
    """One access of a warp to memory.

    `operation` is "load", "store" or "atomic", `space` is "global", "shared", "local" or "const", and `size` is the
    size of a lane's access in bytes. `addresses` contains the address of each of the 32 lanes as int64, or -1 for an
    inactive lane. Addresses of shared memory are relative to the start of the block's shared memory, whose first 1,024
    bytes CUDA reserves, and addresses of local memory to the start of the thread's local memory. For shared memory,
    `wavefronts`, with the shape (32, words), contains the index of the wavefront that serves each 4-byte word of each
    lane, or -1 for an inactive lane. It is None for other spaces.
    """

    file: str
    line: int
    operation: str
    space: str
    size: int
    addresses: Addresses
    wavefronts: NDArray[np.int64] | None = None

    @property
    def active(self) -> NDArray[np.bool_]:
        """Whether each of the 32 lanes is active, as bool."""
        return self.addresses >= 0

    def __repr__(self) -> str:
        lanes = np.count_nonzero(self.active)
        return f"<WarpAccess {self.file}:{self.line}, {self.space} {self.operation} by {lanes} lanes>"


@dataclass(frozen=True, repr=False, eq=False)
class WarpShuffle:
    """One shuffle of a warp; `sources` contains the source lane of each of the 32 lanes, or -1 for an inactive lane."""

    file: str
    line: int
    sources: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<WarpShuffle {self.file}:{self.line}>"


@dataclass(frozen=True, repr=False, eq=False)
class WarpStep:
    """A run of instructions from one line, executed one after another by the same lanes.

    `lanes` says whether each of the 32 lanes was active, as bool.
    """

    file: str
    line: int
    instructions: int
    lanes: NDArray[np.bool_]

    def __repr__(self) -> str:
        active = np.count_nonzero(self.lanes)
        return f"<WarpStep {self.file}:{self.line}, {self.instructions} instructions by {active} lanes>"


@dataclass(frozen=True, repr=False, eq=False)
class WarpRecord:
    """The record of one warp of a launch: its steps and accesses, in order.

    `warp` is the index of the warp, counted over the blocks of the launch. The record contains the first 16 accesses of
    each instruction and the first 1,024 steps of the warp; `complete` says whether these are all.
    """

    warp: int
    accesses: tuple[WarpAccess, ...]
    shuffles: tuple[WarpShuffle, ...]
    steps: tuple[WarpStep, ...]
    complete: bool

    def __repr__(self) -> str:
        return f"<WarpRecord of warp {self.warp}, {len(self.accesses)} accesses, {len(self.steps)} steps>"


def record_of(recorder: Any) -> WarpRecord:
    """Return the record of a launch from the driver's recorder."""
    return WarpRecord(
        recorder.warp,
        tuple(WarpAccess(*access) for access in recorder.accesses),
        tuple(WarpShuffle(*shuffle) for shuffle in recorder.shuffles),
        tuple(WarpStep(*step) for step in recorder.steps),
        recorder.complete,
    )
