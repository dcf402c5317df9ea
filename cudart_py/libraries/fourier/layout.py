"""The memory layout of a batch of transforms, in the terms of cufftPlanMany."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ...base import arguments

Axes = int | Sequence[int] | None

# The number of cuFFT calls into which a transform is split at most.
MOST_CALLS = 4096


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
        return tuple(arguments.integer(call, f"axes[{index}]", axis) for index, axis in enumerate(axes))
    return arguments.integer(call, "axes", axes)


def chosen_axes(call: str, axis: Any, axes: Any) -> tuple[str, int | tuple[int, ...] | None]:
    """Return the name of the argument that gives the axes, and these; raise ValueError if both arguments are given."""
    if axis is None:
        return "axes", None if axes is None else whole_axes(call, axes)
    chosen = arguments.integer(call, "axis", axis)
    if axes.__class__ is not int or axes != -1:
        raise arguments.wrong_value(call, "axis", "None where 'axes' is given", axis)
    return "axis", chosen


def as_axes(call: str, axes: int | Sequence[int] | None, shape: Sequence[int], name: str = "axes") -> tuple[int, ...]:
    """Return the axes to transform, in ascending order and counted from 0; None means all axes.

    Raises ValueError naming the argument unless they are 1 to 3 consecutive axes.
    """
    ndim = len(shape)
    if not ndim:
        raise arguments.unusable(call, "x", "have at least one dimension", shape)
    chosen = range(ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    outside = [axis for axis in chosen if not -ndim <= axis < ndim]
    if outside:
        rule = f"be from {-ndim} to {ndim - 1} for 'x' of shape {tuple(shape)}"
        raise arguments.unusable(call, name, rule, arguments.describe(outside[0]))
    result = tuple(sorted(axis % ndim for axis in chosen))
    if not 1 <= len(result) <= 3 or result != tuple(range(result[0], result[0] + len(result))):
        raise arguments.unusable(
            call, "axes", "be 1, 2 or 3 consecutive dimensions", f"{axes} of 'x', which has {ndim}",
            "for others, transform one axis after the other",
        )  # fmt: skip  # grouped by meaning
    return result


class Operand(NamedTuple):
    """An array to transform or to fill: its name in messages, shape, strides in bytes and size of an element."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


class Arrangement(NamedTuple):
    """A transform of several axes in terms of cuFFT: the layouts of both arrays, and one call per pair of `offsets`.

    The offsets, in bytes, lead from the first element of each array to the first elements of a call. There are several
    where the transforms of the whole array are not evenly spaced. `order` has the axes over which calls are repeated,
    those of the batch of a call, and the transformed ones.
    """

    source: Layout
    target: Layout
    offsets: tuple[tuple[int, int], ...]
    order: tuple[int, ...]

    @property
    def starts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The offsets of the first array, and those of the second."""
        first, second = zip(*self.offsets, strict=True)
        return first, second


def arrange(call: str, source: Operand, target: Operand, axes: tuple[int, ...]) -> Arrangement:
    """Return the layouts of two arrays. The axes that are not transformed form the batch.

    Raises ValueError naming the operand for arrays that cuFFT cannot describe.
    """
    steps = [_steps(call, operand) for operand in (source, target)]
    within, repeated = _batch(source.shape, steps, axes)
    count = math.prod(source.shape[axis] for axis in repeated)
    if count > MOST_CALLS:
        rule = f"form evenly spaced transforms, or at most {MOST_CALLS} groups of these"
        raise arguments.unusable(call, "x", rule, f"{count} groups for the shape {source.shape}", "pass x.copy()")
    positions = itertools.product(*(range(source.shape[axis]) for axis in repeated))
    offsets = tuple(
        tuple(
            sum(index * operand.strides[axis] for index, axis in zip(position, repeated, strict=True))
            for operand in (source, target)
        )
        for position in positions
    )
    layouts = [
        _describe(call, operand, along, within, axes) for operand, along in zip((source, target), steps, strict=True)
    ]
    single = [axis for axis in range(len(source.shape)) if axis not in (*repeated, *within, *axes)]
    order = (*single, *repeated, *within, *axes)
    return Arrangement(layouts[0], layouts[1], cast("tuple[tuple[int, int], ...]", offsets), order)


def padded_strides(shape: tuple[int, ...], itemsize: int, order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides in bytes of elements in this order of axes, whose rows begin at even elements."""
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis] + (shape[axis] % 2 if axis == order[-1] else 0)
    return tuple(strides)


def _steps(call: str, operand: Operand) -> list[int]:
    name, _, strides, itemsize = operand
    if any(step < 0 for step in strides):
        rule = "have strides that are not negative"
        raise arguments.unusable(call, name, rule, f"strides of {tuple(strides)} bytes", arguments.copy_of(name))
    if any(step % itemsize for step in strides):
        rule = f"have strides that are multiples of its {itemsize}-byte elements"
        raise arguments.unusable(call, name, rule, f"strides of {tuple(strides)} bytes")
    return [step // itemsize for step in strides]


def _describe(call: str, operand: Operand, steps: list[int], within: list[int], axes: tuple[int, ...]) -> Layout:
    """Return the layout of an array whose batch are the axes `within`."""
    name, shape, strides, _ = operand
    last = axes[-1]
    stride = steps[last] if shape[last] > 1 else 1
    if not stride:
        raise arguments.unusable(call, name, "have elements that do not overlap", f"strides of {strides} bytes")
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
    batch = math.prod(shape[axis] for axis in within)
    length = math.prod(shape[axis] for axis in axes)
    distance = steps[within[-1]] if within else length
    plain = stride == 1 and embed[1:] == [shape[axis] for axis in axes[1:]] and (batch == 1 or distance == length)
    return Layout(tuple(embed), stride, distance, batch, plain)


def _batch(shape: tuple[int, ...], steps: list[list[int]], axes: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Split the axes of the batch into those that one call covers, and those over which the calls are repeated.

    A call covers neighbouring axes along which the transforms are evenly spaced in both arrays.
    """
    others = [axis for axis in range(len(shape)) if axis not in axes and shape[axis] > 1]
    runs: list[list[int]] = []
    for axis in others:
        outer = runs[-1][-1] if runs else None
        if outer is not None and all(along[outer] == along[axis] * shape[axis] for along in steps):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    within = max(runs, key=lambda run: math.prod(shape[axis] for axis in run), default=[])
    return within, [axis for axis in others if axis not in within]


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
