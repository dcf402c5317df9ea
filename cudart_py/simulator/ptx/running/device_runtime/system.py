"""Calls of a kernel to the device runtime: printf, the heap, assert, textures, surfaces, and graph conditions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compiling.opcode_table.opcodes import form_of
from ...operations.mipmaps import by_levels, level_of
from ...operations.surfaces import locate
from ...operations.textures import GEOMETRIES, Texture, gather, offsets_in_tiles, sample, touched
from ..specials import coordinates
from .printf import Format
from .runtime import RuntimeCalls

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from ..groups import Group
    from ..launch import LaunchState

# The size in bytes of an output in the device's buffer without its arguments: a header and the address of the format.
_RECORD = 16

Array = NDArray[Any]


class Lanes(NamedTuple):
    """The lanes of a group, at some positions, that access a texture or surface."""

    group: Group
    site: Instruction
    places: Array


class System:
    """The functions of the device's runtime."""

    def __init__(self, state: LaunchState) -> None:
        self._state = state
        self.runtime = RuntimeCalls(state)

    def _text(self, group: Group, address: int, site: Instruction) -> str:
        """Read the null-terminated string at a generic address."""
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
        """Print a message about the failed assertion for each lane, and raise Fault to end the launch."""
        state = self._state

        def first(value: Any) -> int:
            return int(value[0] if value.__class__ is np.ndarray else value)

        text = self._text(group, first(message), site)
        where = f"{self._text(group, first(file), site)}:{first(line)}: {self._text(group, first(function), site)}"
        threads = state.threads
        for lane in group.lane_numbers:
            block, thread = divmod(int(lane), threads)
            b = state.launch.block_index(block + group.chunk.first)
            t = coordinates(thread, state.launch.block)
            place = f"block: [{b[0]},{b[1]},{b[2]}], thread: [{t[0]},{t[1]},{t[2]}]"
            group.chunk.printed.append((block, f"{where}: {place} Assertion `{text}` failed.\n", 0))
        raise group.fault("CUDA_ERROR_ASSERT", f"assertion `{text}` failed ({where})", site)

    def vprintf(self, group: Group, format_: Any, arguments: Any, *, site: Instruction) -> Array:
        """Print for each lane in order; return the number of arguments, as the device does."""
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
        """Return one row per lane in `places`: the first `size` bytes of its buffer, rounded up to whole words."""
        words = -(-size // 4)
        if not words:
            return np.zeros((len(places), 0), np.uint8)
        memory = self._state.memory_access
        # The other lanes read the buffer of the first chosen lane, because their own buffers contain the arguments of
        # other formats.
        chosen = addresses.copy()
        chosen[:] = addresses[places[0]]
        chosen[places] = addresses[places]
        place = memory.generic(group, chosen)
        columns = [memory.load(place, 4 * word, "u4", 2, site) for word in range(words)]
        return np.stack([column[places] for column in columns], axis=1).view(np.uint8)

    def malloc(self, group: Group, size: Any, *, site: Instruction) -> Array:
        """Allocate on the device's heap, lane by lane; return 0 for a size of 0 and when the heap is exhausted."""
        memory = self._state.memory
        sizes = np.broadcast_to(size, group.n)
        out = np.zeros(group.n, np.uint64)
        for lane, wanted in enumerate(sizes):
            out[lane] = memory.allocate(int(wanted)) if wanted else 0
        return out

    def free(self, group: Group, pointer: Any, *, site: Instruction) -> None:
        """Return memory to the device's heap, lane by lane; null pointers are ignored."""
        state = self._state
        for lane, address in enumerate(np.broadcast_to(pointer, group.n)):
            if address and not state.memory.release(int(address)):
                what = f"free({int(address):#x}), which malloc didn't return: {state.memory.describe(int(address))}"
                raise group.fault("CUDA_ERROR_ILLEGAL_ADDRESS", what, site, lane)
        state.memory_access.look_up()

    def set_condition(self, group: Group, handle: Any, value: Any, *, site: Instruction) -> None:
        """Set the values of a graph's conditions, lane by lane."""
        state = self._state
        handles, values = np.broadcast_to(handle, group.n), np.broadcast_to(value, group.n)
        for lane, (one, wanted) in enumerate(zip(handles, values, strict=True)):
            try:
                state.memory.set_condition(int(one), int(wanted))
            except KeyError:
                what = f"{int(one):#x} is not a condition of a graph"
                raise group.fault("CUDA_ERROR_ILLEGAL_ADDRESS", what, site, lane) from None

    def texture(
        self,
        group: Group,
        handle: Any,
        coordinates: tuple[Array, ...],
        dtype: str,
        site: Instruction,
        *,
        level: Array | None = None,
        gradients: tuple[tuple[Array, ...], tuple[Array, ...]] | None = None,
        component: int | None = None,
    ) -> list[Array]:
        """Sample a texture object for each lane; lanes may use different objects.

        In a layered texture, the index of the layer comes before the coordinates. A mipmap's level is `level`, or
        follows from the `gradients` of the coordinates. With a `component`, the fetch gathers this channel of four
        texels.
        """
        out = [np.empty(group.n, dtype) for _ in range(4)]
        for texture, lanes, place in self._objects(group, handle, coordinates, site):
            wanted = level[lanes.places] if level is not None else None
            if gradients is not None:
                wanted = level_of(texture, [[axis[lanes.places] for axis in one] for one in gradients])
            fetch = partial(self._fetch, lanes, dtype, component)
            for channel, found in zip(out, by_levels(texture, place, wanted, fetch), strict=True):
                channel[lanes.places] = found
        return out

    def _fetch(
        self,
        lanes: Lanes,
        dtype: str,
        component: int | None,
        levels: list[Texture],
        weights: list[Array],
        chosen: Array,
        place: list[Array],
    ) -> list[Array]:
        """Fetch for the lanes at the chosen positions: from one texture, or filtered between two levels.

        With a component, gather this channel instead.
        """
        memory, data = self._state.memory, []
        lanes = lanes._replace(places=lanes.places[chosen])
        for texture in levels:
            start = texture.address - memory.base
            if self._state.observer is not None:
                read = touched(texture, place, gathers=component is not None)
                stored = offsets_in_tiles(texture, read)
                texels = np.where(stored < 0, stored, stored + start)
                self._state.observer.texture(lanes.group, lanes.places, texels, lanes.site)
                for corner in read.T:
                    self._observe(lanes, texture.address + corner, corner >= 0, texture.texel)
            data.append(memory.bytes[start : start + texture.size])
        if component is not None:
            return gather(levels[0], data[0], place, dtype, component)
        return sample(levels, data, weights, place, dtype)

    def _observe(
        self, lanes: Lanes, addresses: Array, taking: Array, size: int, values: tuple[Array, ...] = ()
    ) -> None:
        """Let the observer see the accesses to a texture or surface of the lanes that are `taking` part."""
        state, some, (group, site, places) = self._state, np.flatnonzero(taking), lanes
        if state.observer is not None and len(some):
            kind = "st" if form_of(site).row.name == "sust" else "ld"
            address = state.memory_access.global_(group, addresses[some])
            written = tuple(value[some] for value in values)
            state.observer.object_access(group, kind, places[some], address, size, site, written)

    def surface(
        self,
        group: Group,
        handle: Any,
        coordinates: tuple[Array, ...],
        dtype: str,
        values: tuple[Any, ...],
        site: Instruction,
    ) -> list[Array]:
        """Write consecutive elements to a surface object for each lane, or read them if there are no `values`.

        Lanes may use different objects; the last of several lanes at one place wins.
        """
        memory, form = self._state.memory, form_of(site)
        columns = [np.broadcast_to(value, group.n) for value in values]
        columns = columns or [np.zeros(group.n, dtype) for _ in range(form.vector)]
        size = np.dtype(dtype).itemsize * len(columns)
        for surface, lanes, place in self._objects(group, handle, coordinates, site):
            places = lanes.places
            offsets, outside = locate(surface, place, size)
            if form.boundary == "trap" and outside.any():
                lane = int(outside.argmax())
                what = f"an access outside of a surface, at {_named(place, lane, form.geometry)}"
                raise group.fault("CUDA_ERROR_ILLEGAL_ADDRESS", what, site, int(places[lane]))
            misplaced = offsets % (size) != 0
            if misplaced.any():
                lane = int(misplaced.argmax())
                where = _named(place, lane, form.geometry)
                what = (
                    f"an access of {size} bytes to a surface, at {where}: x counts bytes, and must be a "
                    f"multiple of {size}"
                )
                raise group.fault("CUDA_ERROR_MISALIGNED_ADDRESS", what, site, int(places[lane]))
            taking = ~outside if form.boundary == "zero" else np.ones_like(outside)
            stored = tuple(column[places] for column in columns) if values else ()
            self._observe(lanes, surface.address + offsets, taking, size, stored)
            start = surface.address - memory.base
            data = memory.bytes[start : start + surface.size].view(dtype)
            first, some = offsets[taking] // data.itemsize, places[taking]
            for element, column in enumerate(columns):
                if values:
                    data[first + element] = column[some]
                else:
                    column[some] = data[first + element]
        return columns

    def _objects(
        self, group: Group, handle: Any, coordinates: tuple[Array, ...], site: Instruction
    ) -> Iterator[tuple[Any, Lanes, list[Array]]]:
        """Yield the textures or surfaces that lanes use, each with these lanes and their coordinates."""
        handles = np.broadcast_to(handle, group.n)
        for value in np.unique(handles):
            lanes = Lanes(group, site, np.flatnonzero(handles == value))
            yield self.find(int(value), lanes), lanes, [axis[lanes.places] for axis in coordinates]

    def find(self, handle: int, lanes: Lanes) -> Any:
        """Return a texture or surface object, after checking its memory and that the instruction fits its geometry."""
        state, (group, site, places), form = self._state, lanes, form_of(lanes.site)
        kind, geometry = "texture" if form.row.access == "tex" else "surface", form.geometry
        position = int(places[0])
        try:
            found = (state.memory.texture if kind == "texture" else state.memory.surface)(handle)
        except KeyError:
            what = f"{handle:#x} is not a {kind} object"
            raise group.fault("CUDA_ERROR_ILLEGAL_ADDRESS", what, site, position) from None
        starts, ends = state.memory.extents()
        index = int(np.searchsorted(starts, found.address, "right")) - 1
        if index < 0 or found.address + found.size > ends[index]:
            where = state.memory.describe(found.address)
            what = f"the memory of {kind} {handle:#x} has been freed: {where}"
            raise group.fault("CUDA_ERROR_ILLEGAL_ADDRESS", what, site, position)
        if found.geometry != geometry:
            what = (
                f"an access to a {kind} of {GEOMETRIES[geometry]}, and this one has {GEOMETRIES[found.geometry]}: CUDA "
                "does not define the result"
            )
            raise group.unsupported(what, site, position)
        return found


def _named(place: list[Array], lane: int, geometry: str) -> str:
    """Format a lane's named coordinates for a message."""
    names = ("layer", "x", "y") if geometry[0] == "a" else ("x", "y", "z")
    return ", ".join(f"{name} = {axis[lane]}" for name, axis in zip(names, place, strict=False))
