"""The blocks in which a condition may hold, from its parts that contain only block indices and constants."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...debugging.expression_syntax import ExpressionError, Node, parse
from ...host.arithmetic import device_arithmetic
from ..ptx.running.specials import block_coordinate
from .expressions import evaluate_node
from .values import Value, extents_value, index_value

if TYPE_CHECKING:
    from ..ptx.running.launch import Launch


class BlockScope:
    """The names that have one value per block: blockIdx, blockDim and gridDim. Each block stands for a lane."""

    def __init__(self, launch: Launch, blocks: NDArray[np.int64]) -> None:
        self._launch = launch
        self.group = SimpleNamespace(lanes=blocks)
        axes = (block_coordinate(blocks, launch.grid, launch.cluster, axis) for axis in range(3))
        self._coordinates = np.stack([np.broadcast_to(axis, len(blocks)) for axis in axes], axis=1)

    def value(self, name: str) -> Value:
        """Return the value of a name; raises ExpressionError for one that may differ within a block."""
        if name == "blockIdx":
            return index_value(self._coordinates)
        if name in ("blockDim", "gridDim"):
            extents = self._launch.block if name == "blockDim" else self._launch.grid
            return extents_value(extents, len(self.group.lanes))
        raise ExpressionError(f"{name} may differ within a block")

    def are_at(self, index: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return the blocks that have an index, whose last coordinates may be left out if they are 0."""
        whole = (*index, *(0,) * (3 - len(index)))
        found: NDArray[np.bool_] = (self._coordinates == np.array(whole)).all(axis=1)
        return found

    def may_hold(self, condition: str) -> NDArray[np.bool_]:
        """Return the blocks in which a condition may hold for some thread."""
        chosen = np.ones(len(self.group.lanes), np.bool_)
        with device_arithmetic():
            for part in _parts(parse(condition)) if condition else ():
                try:
                    value = evaluate_node(part, self)
                    chosen &= value.data.astype(np.bool_) | ~value.known
                except ExpressionError:
                    continue
        return chosen


def _parts(node: Node) -> Iterator[Any]:
    """Yield the parts of a condition that must all hold."""
    if node[:2] == ("binary", "&&"):
        yield from _parts(node[2])
        yield from _parts(node[3])
    else:
        yield node
