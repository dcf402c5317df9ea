"""Answer the calls that machine code makes to Python while it runs.

Some execute instructions as the NumPy engine does: those that machine code can't execute, or only in simple cases. It
passes the registers that an instruction reads in the exchange buffer, and finds those that the instruction writes
there. Others describe textures and surfaces, or read clocks: machine code counts instructions only when it branches
back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...compiling.codegen import compile_instruction, exchanged_slots
from ...compiling.opcode_table.opcodes import form_of
from ...running.clock import CYCLES
from ...running.device_runtime.system import Lanes
from ...syntax.instructions import Call, Symbol
from ...syntax.special_names import CLOCKS
from ...syntax.types import dtype_of
from ..layout import LANES, Context, ObjectWord
from .reports import asked, with_memory
from .speculation import SpeculationFailed

if TYPE_CHECKING:
    from ...operations.textures import Texture
    from ...running.launch import LaunchState
    from ...syntax.instructions import Instruction
    from ..machine import Kernel
    from .launch import NativeLaunch

_WORD = 0xFFFFFFFF
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64)
# The number of warps whose waits for a clock are remembered.
_MOST_WARPS = 4096


class HostCalls:
    """A function that machine code calls with a number, at `address`; launches that run one after another share it.

    `launch` is the launch that answers the calls. Its `fail` gets the exceptions of its `answer`, because machine code
    can't propagate exceptions.
    """

    def __init__(self) -> None:
        self.launch: NativeLaunch | None = None
        answers = self._answers()
        next(answers)
        self._function = _PROTOTYPE(answers.send)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _answers(self) -> Generator[None, int]:
        """Answer each number that is sent to this generator.

        Python handles a signal that arrived while machine code ran as soon as it executes bytecode again. In a plain
        function, that would be before its ``try``: ctypes would drop the exception that the handler raises, and machine
        code would continue without an answer. A generator resumes inside its ``try``.
        """
        while True:
            try:
                while True:
                    number = yield
                    assert self.launch is not None
                    self.launch.answer(number)
            except GeneratorExit:
                return
            except BaseException as error:
                assert self.launch is not None
                self.launch.fail(error)


def execute(launch: NativeLaunch, number: int) -> None:
    """Execute an instruction for some lanes; the number is as in `asked`."""
    block = int(launch.context[Context.BLOCK])
    site, group, places = asked(launch, number)
    chunk = with_memory(launch, group).chunk
    code, function = group.code, _system_function(site.instruction)
    if launch.speculation is not None and function not in ("", "vprintf", "__assertfail"):
        # The effects of the call can't be undone. Output is kept until the end, and a failed assertion is the end.
        raise SpeculationFailed
    reads, writes = exchanged_slots(code, site.instruction)
    group.registers = [None] * len(code.types)
    inputs = [row.view(dtype_of(code.types[slot]))[places] for slot, row in zip(reads, launch.exchange, strict=False)]
    environment = launch.state.program.environment(launch.state.plan.uniform_specials, False)
    try:
        compile_instruction(code, site.instruction, environment)(group, group.registers, inputs)
    finally:
        launch.printed += [(block, text, size) for _, text, size in chunk.printed]
    if function in ("malloc", "free"):
        launch.buffers.place_extents(launch.state.memory.extents())
    for slot, row in zip(writes, launch.exchange, strict=False):
        row.view(dtype_of(code.types[slot]))[places] = group.registers[slot]


def _system_function(instruction: Instruction) -> str:
    """Return the name of the system function that an instruction calls, or "" for any other instruction."""
    call = instruction.operands[0] if instruction.operands else None
    return call.target.name if isinstance(call, Call) and isinstance(call.target, Symbol) else ""


def describe_object(launch: NativeLaunch, number: int) -> None:
    """Add the texture or surface whose handle is in the context to the list of the site that needs it.

    The number is as in `asked`. Raise Fault for a handle that is not valid.
    """
    handle = int(launch.context[Context.ANSWER])
    site, group, places = asked(launch, number)
    form = form_of(site.instruction)
    found = group.chunk.system.find(handle, Lanes(group, site.instruction, np.arange(len(places))))
    memory = launch.state.memory
    words = np.zeros(ObjectWord.WORDS, np.uint64)
    words[ObjectWord.HANDLE], words[ObjectWord.ADDRESS] = handle, found.address
    words[ObjectWord.HOST] = memory.bytes.ctypes.data + found.address - memory.base
    if form.row.access == "tex":
        _describe_texture(launch.kernel, found, form.types, words)
    else:
        extents = [found.row, found.height, found.depth, found.pitch, found.slice_pitch]
        words[ObjectWord.WIDTH : ObjectWord.WIDTH + len(extents)] = extents
    launch.add_object(number & _WORD, words)


def _describe_texture(kernel: Kernel, texture: Texture, types: tuple[str, ...], words: Any) -> None:
    how = texture.sampling(types[1] == "s32", types[0])
    counted = ("tiled" if texture.tiled else "linear") if "counters" in kernel.watch else ""
    shift = kernel.sites.shift if "checks" in kernel.watch else ""
    words[ObjectWord.FETCH] = kernel.function(f"texture.{counted}.{shift}.{how.name}")
    extents, pitches = texture.measures
    words.view(np.float64)[ObjectWord.WIDTH : ObjectWord.WIDTH + 3] = extents
    words[ObjectWord.PITCH : ObjectWord.PITCH + 2] = pitches
    words.view(np.float64)[ObjectWord.BORDER : ObjectWord.BORDER + 4] = texture.border_color(how)


class _Place(NamedTuple):
    """The number of instructions before one in the list of basic blocks, and the loop that waits for it, or -1."""

    before: int
    loop: int


class _Warp:
    """A warp that may wait for a clock; see `Clock.look`."""

    def __init__(self) -> None:
        self.wait: tuple[int, int, int] | None = None


def read_clock(launch: NativeLaunch, number: int) -> None:
    """Answer the reading of a clock register."""
    launch.clock.read(launch, number)


class LaunchClock:
    """The time of a launch: it advances with the instructions of all warps, and never goes back.

    The warps of a block run one after another and share the time, but each instruction takes at least one cycle.
    """

    def __init__(self, warps: int) -> None:
        self._rate = max(1, CYCLES // warps)
        self._places: dict[tuple[int, int], _Place] = {}
        # The cycles that had passed at the last reading, and the cycles to add to the count of instructions, which is
        # smaller in the next warp or block.
        self.elapsed = 0
        self._added = 0
        self._warps: dict[tuple[int, int], _Warp] = {}

    def read(self, launch: NativeLaunch, number: int) -> None:
        """Answer a reading; the number contains a site in its lower half, and which clock it reads in its upper half.

        A branch back counts the instructions of its loop. Together with the instructions before the reading, these
        increase with every instruction of a warp.
        """
        context, clock = launch.context, launch.state.clock
        if context[Context.SLEPT]:
            clock.nap(int(context[Context.SLEPT]))
            context[Context.SLEPT] = 0
        site = launch.kernel.sites.sites[number & _WORD]
        if not self._places:
            self._find_places(launch)
        place = self._places[id(site.instance), id(site.instruction)]
        count = self._rate * (launch.executed + place.before)
        self._added += max(0, self.elapsed + self._rate - count - self._added)
        self.elapsed = count + self._added
        if len(self._warps) > _MOST_WARPS:
            self._warps.clear()
        warp = self._warps.setdefault((int(context[Context.BLOCK]), int(context[Context.WARP_AT_HAND])), _Warp())
        context[Context.ANSWER] = clock.look(warp, CLOCKS[number >> LANES], self.elapsed, place.loop)

    def _find_places(self, launch: NativeLaunch) -> None:
        before = 0
        for place in launch.kernel.layout.places:
            loop = place.instance.code.clock_loops[place.block.index]
            for index, one in enumerate(place.block.instructions):
                self._places[id(place.instance), id(one)] = _Place(before + index, loop)
            before += len(place.block.instructions) + 1

    def end(self, state: LaunchState) -> None:
        """Let the device's clock be at least as late as the last reading when the launch ends."""
        state.clock.skip(max(0, self.elapsed - CYCLES * state.steps_done))
