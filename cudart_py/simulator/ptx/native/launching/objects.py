"""Describe the textures and surfaces that lanes use to machine code, which asks for each when it first meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiling.opcode_table.opcodes import form_of
from ..layout import Context, ObjectWord
from .reports import asked

if TYPE_CHECKING:
    from ...operations.textures import Texture
    from ..machine import Kernel
    from .launch import NativeLaunch

_WORD = 0xFFFFFFFF


def describe_object(launch: NativeLaunch, number: int) -> None:
    """Add the texture or surface whose handle is in the context to the list of the site that needs it.

    The number is as in `asked`. Raise Fault for a handle that is not valid.
    """
    handle = int(launch.context[Context.ANSWER])
    site, group, places = asked(launch, number)
    form = form_of(site.instruction)
    at = (group, site.instruction, np.arange(len(places)))
    kind = "texture" if form.row.access == "tex" else "surface"
    found = group.chunk.system.find(kind, handle, form.geometry, at)
    memory = launch.state.memory
    words = np.zeros(ObjectWord.WORDS, np.uint64)
    words[ObjectWord.HANDLE], words[ObjectWord.ADDRESS] = handle, found.address
    words[ObjectWord.HOST] = memory.bytes.ctypes.data + found.address - memory.base
    if kind == "texture":
        _describe_texture(launch.kernel, found, form.types, words)
    else:
        extents = [found.row, found.height, found.depth, found.pitch, found.slice_pitch]
        words[ObjectWord.WIDTH : ObjectWord.WIDTH + len(extents)] = extents
    launch.add_object(number & _WORD, words)


def _describe_texture(kernel: Kernel, texture: Texture, types: tuple[str, ...], words: Any) -> None:
    how = texture.sampling(types[1] == "s32", types[0])
    words[ObjectWord.FETCH] = kernel.function(f"texture.{how.name}")
    if "counters" in kernel.watch:
        words[ObjectWord.LOCATE] = kernel.function(f"texels.{how.name}")
    if "checks" in kernel.watch:
        words[ObjectWord.CHECK] = kernel.function(f"fetched.{kernel.sites.shift}.{how.name}")
    words[ObjectWord.CORNERS] = how.corners
    extents, pitches = texture.measures
    words.view(np.float64)[ObjectWord.WIDTH : ObjectWord.WIDTH + 3] = extents
    words[ObjectWord.PITCH : ObjectWord.PITCH + 2] = pitches
    words.view(np.float64)[ObjectWord.BORDER : ObjectWord.BORDER + 4] = texture.border_color(how)
