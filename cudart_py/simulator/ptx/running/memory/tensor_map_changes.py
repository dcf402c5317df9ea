"""Changes of tensor maps by kernels: ``tensormap.replace`` and ``tensormap.cp_fenceproxy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...operations import tensor_maps
from ...operations.tensor_maps import ALIGNMENT, BYTES
from ..groups import split
from .addresses import Address, Mixed

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from ..groups import Group

_WORD, _SHIFT = 8, 3
_WARP = 32


class TensorMapChanges:
    """The changes of tensor maps by a chunk's groups."""

    def replace(
        self,
        group: Group,
        tensor: tuple[Address | Mixed, int],
        field: str,
        ordinal: int,
        values: Any,
        site: Instruction,
    ) -> None:
        """Change a field of each lane's tensor map, or the element of a field with this number."""
        (address, start), memory, observer = tensor, group.chunk.memory, group.chunk.state.observer
        for offset, dtype, changed in tensor_maps.changes(field, ordinal, values):
            place = start + offset
            if observer is not None:
                observer.access(group, "st", address, place, dtype.itemsize, site, (changed,))
            memory.store(address, place, dtype.str[1:], dtype.itemsize.bit_length() - 1, changed, site)

    def copy(self, group: Group, space: tuple[str, str], places: tuple[Any, Any], site: Instruction) -> None:
        """Copy the 128 bytes of one tensor map per warp, between addresses in two spaces."""
        observer = group.chunk.state.observer
        _, first = np.unique(group.lane_numbers // _WARP, return_index=True)
        one = group if len(first) == group.n else split(group, [first], [group.pc])[0]
        to, source = (
            group.chunk.memory.place(one, name, np.broadcast_to(place, group.n)[first])
            for name, place in zip(space, places, strict=True)
        )
        for start in range(0, BYTES, ALIGNMENT):
            if observer is not None:
                observer.access(one, "ld", source, start, ALIGNMENT, site, ())
            words = group.chunk.memory.load_vector(source, start, "u8", _SHIFT, ALIGNMENT // _WORD, site)
            if observer is not None:
                observer.access(one, "st", to, start, ALIGNMENT, site, tuple(words))
            group.chunk.memory.store_vector(to, start, "u8", _SHIFT, words, site)
