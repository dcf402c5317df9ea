"""Atomic operations of many lanes on one memory, as if the lanes came one after another (``atom``, ``red``).

Memory is a one-dimensional array viewed as the operation's type. ``index`` contains one element index (int64) per lane,
in lane order, and may repeat. The results equal those of sequential execution in that order to the last bit, including
sums of floats. A stable sort groups the lanes that share an element. The operation is then accumulated within long
groups, or performed in rounds, for the n-th lane of every element in round n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..arrays.floats import LEAST_NORMAL_F32
from ..instructions import warps
from ..instructions.warps import HALVES

Array = NDArray[Any]
Update = Callable[..., Array]

# NumPy's own functions for `instructions.warps.combine`, which also reduce and accumulate.
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip  # rows of a table
# An ulp of a float32 number is more than 2**-24 of its magnitude, so the ulps of numbers of this size are normal.
_LEAST_SAFE = LEAST_NORMAL_F32 * np.float32(2**24)
_KINDS = {"f": "f", "i": "s", "u": "u"}


def apply(operation: str, view: Array, index: Array, *operands: Array, type_: str = "", ftz: bool = False) -> Array:
    """Perform an atomic operation and return the value that each lane found (``atom``).

    ``operation`` is add, min, max, inc, dec, exch, cas, and, or, xor. ``operands`` are the instruction's operands: one,
    or two for cas (the expected value and the new one). ``type_`` is the instruction's type; it matters for the half
    types (f16, bf16, f16x2, bf16x2), whose arrays are bit patterns. ``ftz`` flushes operands and sums of float32, as
    the hardware does in global memory but not in shared memory.
    """
    if len(operands) != 1 + (operation == "cas"):
        raise ValueError(f"atomic {operation} of {len(operands)} operands")
    if index.size == 0:
        return view[index]
    given = [np.broadcast_to(np.asarray(x, view.dtype), index.shape) for x in operands]
    halves = type_ in HALVES
    kind = type_ if halves else f"{_KINDS[view.dtype.kind]}{8 * view.dtype.itemsize}"
    ftz = ftz and operation == "add" and _may_flush(view, index, given[-1])
    # This function computes the new element from the old one and the operands.
    update = array_function(warps.updated, *[kind] * (1 + len(operands)), told=(operation, kind, ftz))
    if index.size == 1 or (index[1:] > index[:-1]).all():
        return _distinct(view, index, given, update)
    groups = _Groups(index)
    if groups.longest == 1:
        return _distinct(view, index, given, update)
    base = view[groups.elements]
    *expected, arranged = (operand[groups.order] for operand in given)
    if operation == "cas":
        found = _compare_and_swap(view, groups, expected[0], arranged)
    else:
        if operation == "exch":
            left = arranged
        elif operation in ("inc", "dec"):
            left = _counted(operation, base, groups, arranged, update)
        elif halves or ftz:
            left = _rounds(base, groups, arranged, update)
        else:
            left = _accumulated(UFUNCS[operation], base, groups, arranged, update)
        view[groups.elements] = left[groups.starts + groups.counts - 1]
        # Each lane finds the value that the lane before it has left; a group's first lane finds the value in memory.
        found = np.empty_like(left)
        found[1:] = left[:-1]
        found[groups.starts] = base
    result = np.empty_like(found)
    result[groups.order] = found
    return result


def reduce_only(
    operation: str, view: Array, index: Array, operand: Array, *, type_: str = "", ftz: bool = False
) -> None:
    """Perform an atomic operation that returns nothing (``red``); the arguments are the same as for ``apply``."""
    ufunc = UFUNCS.get(operation)
    if ufunc is None or type_ in HALVES:
        apply(operation, view, index, operand, type_=type_, ftz=ftz)
        return
    operand = np.asarray(operand, view.dtype)
    if ftz and _may_flush(view, index, operand):
        apply(operation, view, index, operand, ftz=True)
    else:
        ufunc.at(view, index, operand)


def _may_flush(view: Array, index: Array, operand: Array) -> bool:
    """Return whether an addend or an intermediate sum could be subnormal.

    A sum is a multiple of the smallest ulp of all addends, so it can't be subnormal if these ulps are normal numbers.
    """
    if view.dtype != np.float32:
        return False
    sizes = (np.abs(view[index]), np.abs(operand))
    return any(((size < _LEAST_SAFE) & (size > 0)).any() for size in sizes)


def _distinct(view: Array, index: Array, operands: Sequence[Array], update: Update) -> Array:
    """Perform the operation for lanes of which no two share an element."""
    found: Array = view[index]
    view[index] = update(found, *operands)
    return found


def _stable_order(key: Array) -> Array:
    """Return the stable order of non-negative keys, sorted 16 bits at a time: NumPy has a fast radix sort for those."""
    order: Array | None = None
    shift, greatest = 0, int(key.max())
    while greatest >> shift:
        digits = (key >> shift).astype(np.uint16)
        step = np.argsort(digits if order is None else digits[order], kind="stable")
        order = step if order is None else order[step]
        shift += 16
    return np.arange(key.size) if order is None else order


class _Groups:
    """The lanes grouped by element; each group keeps the lane order."""

    def __init__(self, index: Array) -> None:
        self.order = _stable_order(index - index.min())
        arranged = index[self.order]
        first = np.empty(index.size, np.bool_)
        first[0] = True
        np.not_equal(arranged[1:], arranged[:-1], out=first[1:])
        self.starts = np.flatnonzero(first)
        self.elements = arranged[self.starts]
        self.counts = np.diff(self.starts, append=index.size)
        self.longest = int(self.counts.max())
        self.group = np.cumsum(first) - 1
        self.rank = np.arange(index.size) - self.starts[self.group]


# Each of the following functions returns the values that the lanes leave in their elements, in the order of the groups.
# `base` contains the previous values in memory, by group.


def _counted(operation: str, base: Array, groups: _Groups, bound: Array, update: Update) -> Array:
    """Count up or down and wrap at a bound: one formula if all lanes have the same bound, else rounds."""
    if (bound != bound[0]).any():
        return _rounds(base, groups, bound, update)
    top = bound[0].astype(np.uint64)
    start = base.astype(np.uint64)
    span = top + np.uint64(1)
    # A value above the bound goes to the start of the cycle in one step, as the last value of the cycle does.
    position = np.where(start > top, top, start if operation == "inc" else top - start)
    place: Array = (position[groups.group] + groups.rank.astype(np.uint64) + np.uint64(1)) % span
    return (place if operation == "inc" else top - place).astype(base.dtype)


def _accumulated(ufunc: np.ufunc, base: Array, groups: _Groups, operand: Array, update: Update) -> Array:
    """Accumulate group by group if groups are few and long, else in rounds."""
    if len(groups.elements) > groups.longest:
        return _rounds(base, groups, operand, update)
    left = np.empty_like(operand)
    for start, count, first in zip(groups.starts, groups.counts, base, strict=True):
        # `accumulate` goes strictly from left to right.
        left[start : start + count] = ufunc.accumulate(np.append(first, operand[start : start + count]))[1:]
    return left


def _rounds(base: Array, groups: _Groups, operand: Array, update: Update) -> Array:
    """Perform the operation for the first lane of every group, then for the second lanes, and so on."""
    left = np.empty_like(operand)
    # Groups are in descending order of size, so the groups with an n-th lane are always the first ones.
    by_size = np.argsort(-groups.counts, kind="stable")
    starts = groups.starts[by_size]
    current = base[by_size]
    # For each round, the number of groups that still have a lane.
    alive = groups.counts.size - np.searchsorted(np.sort(groups.counts), np.arange(groups.longest), side="right")
    for number, count in enumerate(alive.tolist()):
        positions = starts[:count] + number
        left[positions] = current[:count] = update(current[:count], operand[positions])
    return left


def _compare_and_swap(view: Array, groups: _Groups, compare: Array, operand: Array) -> Array:
    """Perform one successful swap per group at a time; the lanes between two swaps find the same value.

    A swap that stores the value that it found changes nothing, and counts as one of the lanes in between.
    """
    found = np.empty_like(operand)
    current = view[groups.elements]
    waiting = np.arange(operand.size)
    changing = compare != operand
    while waiting.size:
        group = groups.group[waiting]
        hits = np.flatnonzero((compare[waiting] == current[group]) & changing[waiting])
        hit_groups, first = np.unique(group[hits], return_index=True)
        winners = waiting[hits[first]]
        limit = np.full(current.size, operand.size)
        limit[hit_groups] = winners
        served = waiting <= limit[group]
        found[waiting[served]] = current[group[served]]
        current[hit_groups] = operand[winners]
        waiting = waiting[~served]
    view[groups.elements] = current
    return found
