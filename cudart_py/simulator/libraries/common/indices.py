"""Checks of indices that a program has stored in device memory, since SciPy follows them outside its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .numbers import Numbers


def within(indices: Numbers, size: int) -> Numbers:
    """Return indices; raise IndexError unless all of them are from 0 to size - 1."""
    wrong = np.flatnonzero((indices < 0) | (indices >= size))
    if wrong.size:
        raise IndexError(f"index {indices[wrong[0]]}, of element {wrong[0]}, is not from 0 to {size - 1}")
    return indices


def compressed_rows(values: Numbers, indices: Numbers, offsets: Numbers, shape: tuple[int, int]) -> Any:
    """Return a matrix as a SciPy array in CSR format; raise IndexError if an index or an offset is out of range."""
    if offsets[0] != 0 or offsets[-1] > len(values) or np.diff(offsets).min(initial=0) < 0:
        raise IndexError(f"the offsets of the rows do not rise from 0 to at most {len(values)}, the number of values")
    return sparse.csr_array((values, within(indices, shape[1]), offsets), shape=shape)
