"""Run random kernels and keep their results."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from . import values
from .frame import OPTIONS, Case, Out, launch
from .random_kernels import BLOCKS, COUNT, LANES, PER_SOURCE, WORDS, kernel_name, source


@functools.cache
def inputs() -> tuple[values.Array, values.Array, values.Array]:
    """Return the words, floats and doubles that every random kernel reads: special ones, ordinary ones, any bits."""
    n = LANES * BLOCKS
    integers = values.integer_triples(512, np.uint32)[2][-n:].copy()
    integers[:8] = [0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 31, 32, 255]
    floats = np.concatenate([values.FLOATS, values.near_one(401, n, np.float32, 12)])[:n]
    doubles = np.concatenate([values.DOUBLES, values.near_one(402, n, np.float64, 20)])[:n]
    # Neighbours in a warp should not all be special: deal them out.
    order = np.argsort(values.words(403, n), kind="stable")
    return integers, floats[order], doubles[order]


def case(seed: int) -> Case:
    """Return the case of a seed's kernel."""
    lanes = Out("out", "uint32", (4 * LANES * BLOCKS,))
    return Case("random", kernel_name(seed), BLOCKS, LANES, (*inputs(), lanes, Out("totals", "uint32", (32,))))


def digest(seed: int) -> int:
    """Return a checksum of a seed's kernel and its inputs."""
    return zlib.crc32(source([seed]).encode(), case(seed).digest)


def compiled(seeds: Sequence[int], *options: str) -> cuda.Module:
    """Compile the kernels of some seeds into one module."""
    return cuda.compile(source(seeds), options=(*OPTIONS, *options))


def result(module: cuda.Module, seed: int) -> NDArray[np.uint32]:
    """Run a seed's kernel and return its words."""
    arrays = launch(module[kernel_name(seed)], case(seed))
    words: NDArray[np.uint32] = np.concatenate([arrays["out"], arrays["totals"]])
    if words.size != WORDS:
        raise ValueError(f"{words.size} words instead of {WORDS}")
    return words


def batches() -> list[range]:
    """Return the recorded seeds, those of one source together."""
    return [range(first, first + PER_SOURCE) for first in range(0, COUNT, PER_SOURCE)]
