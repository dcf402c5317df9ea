"""Answer the calls that a kernel makes to the system: printf, the heap and failed assertions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..faults import Fault, UnsupportedError
from ..operations.textures import Texture, sample, touched
from .printf import Format

if TYPE_CHECKING:
    from ..syntax.instructions import Instruction
    from .groups import Group
    from .launch import LaunchState

__all__ = ["System"]

# The bytes of an output in the device's buffer beside its arguments: a head and the place of the format.
_RECORD = 16
_GEOMETRIES = {
    "1d": "one dimension",
    "2d": "two dimensions",
    "3d": "three dimensions",
    "a1d": "layers of one dimension",
    "a2d": "layers of two dimensions",
}

Array = NDArray[Any]


class System:
    """The functions of the device's runtime."""

    def __init__(self, state: LaunchState) -> None:
        self._state = state

    def _text(self, group: Group, address: int, site: Instruction) -> str:
        """Read the text at a generic address up to its zero byte."""
        memory = self._state.memory_access
        data = bytearray()
        while True:
            place = memory.generic(group, np.full(1, address + len(data), np.uint64))
            byte = int(memory.load(place, 0, "u1", 0, site)[0])
            if not byte:
                return data.decode(errors="replace")
            data.append(byte)

    def assertfail(
        self, group: Group, message: Any, file: Any, line: Any, function: Any, size: Any, *, site: Instruction
    ) -> None:
        """Print what C's assert prints for each lane, and end the launch."""
        state = self._state

        def first(value: Any) -> int:
            return int(value[0] if value.__class__ is np.ndarray else value)

        text = self._text(group, first(message), site)
        where = f"{self._text(group, first(file), site)}:{first(line)}: {self._text(group, first(function), site)}"
        threads = state.threads
        block_shape, grid_shape = state.launch.block, state.launch.grid
        for lane in group.lane_numbers:
            block, thread = divmod(int(lane), threads)
            b = _coordinates(block + group.chunk.first, grid_shape)
            t = _coordinates(thread, block_shape)
            place = f"block: [{b[0]},{b[1]},{b[2]}], thread: [{t[0]},{t[1]},{t[2]}]"
            group.chunk.printed.append((block, f"{where}: {place} Assertion `{text}` failed.\n", 0))
        raise Fault("CUDA_ERROR_ASSERT", state.located(f"assertion `{text}` failed ({where})", site, group, 0))

    def vprintf(self, group: Group, format_: Any, arguments: Any, *, site: Instruction) -> Array:
        """Print for each lane in order; gives the number of arguments, as the device does."""
        out = np.empty(group.n, np.uint32)
        formats = np.broadcast_to(format_, group.n)
        buffers = np.broadcast_to(arguments, group.n)
        blocks = group.chunk.block_of_lane[group.lane_numbers]
        for address in np.unique(formats):
            places = np.flatnonzero(formats == address)
            parsed = Format(self._text(group, int(address), site))
            data = self._bytes(group, buffers, places, parsed.size, site)
            for place, row in zip(places, data, strict=True):
                text = parsed.render(row.tobytes(), lambda at: self._text(group, at, site))
                group.chunk.printed.append((int(blocks[place]), text, _RECORD + -(-parsed.size // 8) * 8))
            out[places] = parsed.count
        return out

    def _bytes(self, group: Group, addresses: Array, places: Array, size: int, site: Instruction) -> Array:
        """Read `size` bytes from each of some lanes' buffers, as rows."""
        words = -(-size // 4)
        if not words:
            return np.zeros((len(places), 0), np.uint8)
        memory = self._state.memory_access
        # The buffers of other lanes are not looked at: theirs may hold anything.
        chosen = addresses.copy()
        chosen[:] = addresses[places[0]]
        chosen[places] = addresses[places]
        place = memory.generic(group, chosen)
        columns = [memory.load(place, 4 * word, "u4", 2, site) for word in range(words)]
        return np.stack([column[places] for column in columns], axis=1).view(np.uint8)

    def malloc(self, group: Group, size: Any, *, site: Instruction) -> Array:
        """Allocate on the device's heap, lane by lane; gives 0 where it is exhausted."""
        memory = self._state.memory
        sizes = np.broadcast_to(size, group.n)
        out = np.zeros(group.n, np.uint64)
        for lane, wanted in enumerate(sizes):
            out[lane] = memory.allocate(int(wanted)) if wanted else 0
        self._state.memory_access.forget()
        return out

    def free(self, group: Group, pointer: Any, *, site: Instruction) -> None:
        """Return memory back to the device's heap, lane by lane; null pointers are ignored."""
        state = self._state
        for lane, address in enumerate(np.broadcast_to(pointer, group.n)):
            if address and not state.memory.release(int(address)):
                what = f"free({int(address):#x}), which malloc didn't give: {state.memory.describe(int(address))}"
                raise Fault("CUDA_ERROR_ILLEGAL_ADDRESS", state.located(what, site, group, lane))
        state.memory_access.forget()

    def texture(
        self, group: Group, handle: Any, geometry: str, coordinates: tuple[Array, ...], dtype: str, site: Instruction
    ) -> list[Array]:
        """Sample a texture object for each lane; lanes may hold different ones.

        `geometry` is the dimensions that the instruction names; the number of a layer comes before its coordinates.
        """
        handles = np.broadcast_to(handle, group.n)
        out = [np.empty(group.n, dtype) for _ in range(4)]
        for value in np.unique(handles):
            places = np.flatnonzero(handles == value)
            texture = self._texture(group, int(value), site, int(places[0]))
            memory = self._state.memory
            start = texture.address - memory.base
            if texture.geometry != geometry:
                what = (
                    f"a fetch from a texture of {_GEOMETRIES[geometry]}, and the texture has "
                    f"{_GEOMETRIES[texture.geometry]}: CUDA does not define the result"
                )
                raise UnsupportedError(self._state.located(what, site, group, int(places[0])))
            place = [axis[places] for axis in coordinates]
            if self._state.observer is not None:
                read = touched(texture, place)
                self._state.observer.texture(group, places, np.where(read < 0, read, read + start), site)
            channels = sample(texture, memory.bytes[start : start + texture.size], place, dtype)
            for channel, found in zip(out, channels, strict=True):
                channel[places] = found
        return out

    def _texture(self, group: Group, handle: int, site: Instruction, position: int) -> Texture:
        state = self._state
        try:
            texture: Texture = state.memory.texture(handle)
        except KeyError:
            what = f"{handle:#x} is no texture object"
            raise Fault("CUDA_ERROR_ILLEGAL_ADDRESS", state.located(what, site, group, position)) from None
        starts, ends = state.memory.extents()
        index = int(np.searchsorted(starts, texture.address, "right")) - 1
        if index < 0 or texture.address + texture.size > ends[index]:
            where = state.memory.describe(texture.address)
            what = f"the memory of texture {handle:#x} is gone: {where}"
            raise Fault("CUDA_ERROR_ILLEGAL_ADDRESS", state.located(what, site, group, position))
        return texture


def _coordinates(index: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    return index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1])
