"""The memory layout of a batch of transforms, in the terms of cufftPlanMany."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import arguments

Axes = int | Sequence[int] | None


class Layout(NamedTuple):
    """The layout of the input or the output of a transform.

    Element (i, j, k) of transform number b is at b distance + ((i embed[1] + j) embed[2] + k) stride, in elements.
    `embed[0]` has no meaning. `plain` means that all elements are contiguous.
    """

    embed: tuple[int, ...]
    stride: int
    distance: int
    batch: int
    plain: bool


def whole_axes(call: str, axes: Any) -> int | tuple[int, ...]:
    """Return an axis or several axes as ints; raise TypeError for anything else."""
    several = axes.ndim > 0 if isinstance(axes, np.ndarray) else isinstance(axes, Sequence)
    if several and not isinstance(axes, str | bytes):
        return tuple(arguments.integer(call, f"axes[{place}]", axis) for place, axis in enumerate(axes))
    return arguments.integer(call, "axes", axes)


def as_axes(call: str, axes: int | Sequence[int] | None, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the axes to transform, in ascending order and counted from 0; None means all axes.

    Raises ValueError unless they are 1 to 3 consecutive axes, and TypeError for axes that are not integers.
    """
    ndim = len(shape)
    if not ndim:
        raise arguments.unusable(call, "x", "have at least one dimension", shape)
    numbers = None if axes is None else whole_axes(call, axes)
    chosen = range(ndim) if numbers is None else (numbers,) if isinstance(numbers, int) else numbers
    outside = [axis for axis in chosen if not -ndim <= axis < ndim]
    if outside:
        raise arguments.unusable(
            call, "axes", f"be dimensions of 'x', which has {ndim}", arguments.describe(outside[0])
        )
    result = tuple(sorted(axis % ndim for axis in chosen))
    if not 1 <= len(result) <= 3 or result != tuple(range(result[0], result[0] + len(result))):
        raise arguments.unusable(
            call, "axes", "be 1, 2 or 3 consecutive dimensions", f"{axes} of 'x', which has {ndim}"
        )
    return result


def describe(
    call: str, name: str, shape: Sequence[int], strides: Sequence[int], itemsize: int, axes: tuple[int, ...]
) -> Layout:
    """Return the layout of an array with strides in bytes. The axes that are not transformed form the batch.

    The batch axes must all come before the transformed axes or all after them, and the transforms must be evenly
    spaced. Raises ValueError naming the operand for arrays that cuFFT cannot describe.
    """
    if any(step < 0 for step in strides):
        rule = "have strides that are not negative"
        raise arguments.unusable(call, name, rule, f"strides of {tuple(strides)} bytes", "pass a copy")
    if any(step % itemsize for step in strides):
        rule = f"have strides that are multiples of its {itemsize}-byte elements"
        raise arguments.unusable(call, name, rule, f"strides of {tuple(strides)} bytes")
    steps = [step // itemsize for step in strides]
    last = axes[-1]
    stride = steps[last] if shape[last] > 1 else 1
    embed = [shape[axes[0]]]
    outer_steps = [0] * len(axes)
    outer_steps[-1] = stride
    for place in range(len(axes) - 1, 0, -1):
        axis, inner = axes[place - 1], outer_steps[place]
        # The stride of an axis of length 1 has no meaning.
        step = steps[axis] if shape[axis] > 1 else inner * shape[axes[place]]
        if step % inner or step < inner * shape[axes[place]]:
            rule = (
                f"have a whole number of rows, {shape[axes[place]]} elements {inner} apart, in each step of axis {axis}"
            )
            raise arguments.unusable(call, name, rule, f"a step of {step} elements")
        embed.insert(1, step // inner)
        outer_steps[place - 1] = step
    batch, distance = _batch(call, name, shape, steps, axes)
    length = math.prod(shape[axis] for axis in axes)
    plain = stride == 1 and embed[1:] == [shape[axis] for axis in axes[1:]] and (batch == 1 or distance == length)
    return Layout(tuple(embed), stride, distance if batch > 1 else length, batch, plain)


def _batch(call: str, name: str, shape: Sequence[int], steps: Sequence[int], axes: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of transforms, and the distance in elements from one to the next."""
    others = [axis for axis in range(len(shape)) if axis not in axes and shape[axis] > 1]
    if not others:
        return 1, 0
    if others[0] < axes[0] and others[-1] > axes[-1]:
        raise arguments.unusable(
            call, "axes", f"be the first or the last axes of {name!r}, so that transforms are evenly spaced",
            f"{axes} of the shape {tuple(shape)}",
        )  # fmt: skip  # grouped by meaning
    for outer, inner in itertools.pairwise(others):
        if steps[outer] != steps[inner] * shape[inner]:
            elements = steps[inner] * shape[inner]
            rule = f"have evenly spaced transforms, with {elements} elements per step of axis {outer}"
            raise arguments.unusable(call, name, rule, steps[outer])
    return math.prod(shape[axis] for axis in others), steps[others[-1]]


def fits_in_place(real: Layout, halved: Layout) -> bool:
    """Return whether a transform between real numbers and the first half of their spectrum can work in place.

    Each row of real numbers must be padded to hold the complex results: by two elements if its length is even, by one
    if it is odd.
    """
    rows = real.embed[-1] == 2 * halved.embed[-1] if len(real.embed) > 1 else True
    middle = real.embed[1:-1] == halved.embed[1:-1]
    return (
        real.stride == halved.stride == 1 and rows and middle and (
            real.batch == 1 or real.distance == 2 * halved.distance
        )
    )  # fmt: skip  # grouped by meaning
