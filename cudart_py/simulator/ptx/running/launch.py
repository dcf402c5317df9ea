"""A launch: its kernel, shape and parameters, its state while it runs, and the places of its faults."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..compiling.program import program_of
from ..faults import Fault
from ..syntax.instructions import Instruction
from ..syntax.parser import Entry
from ..syntax.special_names import LANE_MASKS, NAMES
from ..windows import RESERVED_SHARED, SHARED_UNIT
from .clock import Clock
from .device_runtime.printf import Buffer
from .device_runtime.runtime import DeviceRuntime
from .memory.barrier_waits import BarrierWaits
from .memory.transfers import Memory
from .specials import block_coordinate, coordinates

if TYPE_CHECKING:
    from ..compiling.program import Program
    from ..compiling.writer import Environment
    from .groups import Group
    from .observer import Observer

_PRINTF_BYTES = 7 << 20
# The number of launch shapes for which a kernel keeps plans: before one more is added, all others are dropped.
_MOST_PLANS = 64
# The number of steps between two checks of the limits. Most kernels execute that many in a few milliseconds.
_STEPS_BETWEEN_LOOKS = 1000
# If all threads have only waited for this many steps, they are checked for a deadlock. So many steps take seconds, so a
# loop that polls a barrier a limited number of times can end before the check.
_STEPS_OF_WAITING = 1 << 19
# After an eighth of those steps, the clocks that threads read in such waits run faster. A wait with a timeout therefore
# times out long before it is reported as a deadlock.
_PATIENT_PART = 8
# The size of a line of the processor's cache. Lines whose distance is a multiple of `_FEW_SETS` are in so few sets of
# the cache that those of all 32 lanes may not fit.
_LINE, _FEW_SETS = 64, 512


class MemoryLike(Protocol):
    """The global memory of the device that runs a launch.

    `bytes` is a view of the whole reserved region, which starts at address `base`. Only the ranges that `extents`
    returns may be accessed. `allocate` serves a kernel's malloc, and returns 0 if the device's heap is exhausted.
    `release` serves a kernel's free, and returns whether the address came from `allocate`.
    """

    base: int
    bytes: NDArray[np.uint8]

    @property
    def generation(self) -> int:
        """Return a number that changes at every allocation and free."""

    def extents(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sorted starts and ends of the ranges that kernels may access."""

    def describe(self, address: int) -> str:
        """Describe the location of an address, for a message."""

    def is_freed(self, address: int) -> bool:
        """Return whether an address is in memory that was freed."""

    def shadow(self, start: int) -> Any:
        """Return the shadow memory that an observer keeps for the allocation that starts at an address."""

    def texture(self, handle: int) -> Any:
        """Return the Texture that a handle refers to, or raise KeyError."""

    def surface(self, handle: int) -> Any:
        """Return the Surface that a handle refers to, or raise KeyError."""

    def set_condition(self, handle: int, value: int) -> None:
        """Set the value of a graph's condition, or raise KeyError for an unknown handle."""

    def allocate(self, size: int) -> int:
        """Serve a kernel's malloc."""

    def release(self, address: int) -> bool:
        """Serve a kernel's free."""


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel, the shapes of its grid, blocks and clusters, and the packed parameters.

    Blocks are numbered cluster by cluster, so the blocks of a cluster have consecutive numbers. `multiprocessors` are
    the numbers of the multiprocessors on which blocks may run, empty for all of the device.
    """

    entry: Entry
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    parameters: bytes = b""
    cooperative: bool = False
    cluster: tuple[int, int, int] = (1, 1, 1)
    multiprocessors: tuple[int, ...] = ()

    @property
    def description(self) -> str:
        """The kernel, the grid and the block, for reports."""
        return f"kernel {self.entry.name}, grid {self.grid}, block {self.block}"

    def thread(self, number: int) -> str:
        """Return the coordinates of a thread and its block as text; `number` is the thread's index in the launch."""
        block, thread = divmod(number, prod(self.block))
        return f"block {_text(self.block_index(block))}, thread {_text(coordinates(thread, self.block))}"

    def block_index(self, number: int) -> tuple[int, int, int]:
        """Return the coordinates of the block with a number."""
        x, y, z = (int(block_coordinate(np.int64(number), self.grid, self.cluster, axis)) for axis in range(3))
        return x, y, z

    def located(self, what: str, site: Instruction, group: Group, position: int) -> str:
        """Return a sentence that says what happened, where in the source, and in which block and thread."""
        lane = int(group.lane_numbers[position]) + group.chunk.first * prod(self.block)
        places = self.entry.module.places
        where, quoted = places.reached(site, group.calls, self.entry.home)
        inside = "" if site.function == self.entry.name else f" (in {site.function})"
        return (
            f"kernel {self.entry.name}{inside} at {where}: {what}; {self.thread(lane)}, instruction '{site.text}'"
            f"{quoted}{places.origin}"
        )

    def trapped(self, site: Instruction, group: Group) -> Fault:
        """Return the fault for an executed trap, with the remedy if cooperative groups caused it."""
        report = self.located("trap executed", site, group, 0)
        if not self.cooperative and "cooperative_groups.h:" in report.partition(": trap executed")[0]:
            report += "\n    grid.sync() needs a cooperative launch: kernel.launch(grid, block, ..., cooperative=True)"
        return Fault("CUDA_ERROR_LAUNCH_FAILED", report)

    def shared_place(self, address: int) -> str:
        """Return an address in shared memory as text, with its offset into the variable there."""
        place = address - RESERVED_SHARED
        before = [(offset, name) for name, offset in self.entry.shared_offsets.items() if offset <= place]
        if not before:
            return f"{address:#x}"
        offset, name = max(before)
        # A suffix after @ distinguishes the variables of different functions.
        return f"{address:#x} ({place - offset} bytes into {name.partition('@')[0]})"


class _Parameters(dict[tuple[int, str], Any]):
    """The launch's parameters, keyed by offset and NumPy type; each is decoded on first use."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        super().__init__()
        self._data = data

    def __missing__(self, key: tuple[int, str]) -> Any:
        offset, dtype = key
        size = np.dtype(dtype).itemsize
        value = self[key] = self._data[offset : offset + size].copy().view(dtype)[0]
        return value


class LaunchPlan:
    """The sizes that all launches of a kernel with the same shape share, on devices with the same properties.

    `plan_of` keeps it with the program. Nothing that it depends on changes: a launch with any other shape, number of
    bytes of parameters or property of the device has another plan.
    """

    def __init__(self, program: Program, launch: Launch, properties: Mapping[str, int]) -> None:
        entry = launch.entry
        self.threads = prod(launch.block)
        self.blocks = prod(launch.grid)
        self.parameter_size = max(entry.parameter_bytes, len(launch.parameters))
        # Zeros after the parameters, for loads that are wider than the last one.
        self.padding = bytes(-len(launch.parameters) % 16 + 16)
        self.shared_size = entry.static_shared_bytes + launch.shared_bytes
        dynamic = [v.name for v in entry.module.shared.values() if v.external]
        if dynamic and launch.shared_bytes:
            self.shared_size = max(entry.shared_offsets[name] for name in dynamic) + launch.shared_bytes
        # The end of a block's variables in shared memory, and the end of what the hardware lets the block access.
        self.shared_end = RESERVED_SHARED + self.shared_size
        self.shared_limit = -(-self.shared_end // SHARED_UNIT) * SHARED_UNIT
        self.local_size = program.main.local_bytes
        if entry.called:
            variables = (variable for body in entry.called for variable in body.local.values())
            bodies = sum(-(-variable.size // 16) * 16 for variable in variables)
            self.local_size += max(properties.get("stack_limit", 1024), bodies)
        self.local_stride = _local_stride(self.local_size)
        # The numbers of the multiprocessors that run the blocks, one block after another.
        self.multiprocessors = np.array(launch.multiprocessors or range(properties.get("sm_count", 1)), np.uint32)
        self.uniform_specials = _uniform_specials(*(extent == 1 for extent in (*launch.block, *launch.grid)))


def _local_stride(size: int) -> int:
    """Return the distance in bytes between the local memories of neighbouring lanes, a multiple of 16."""
    stride = -(-size // 16) * 16
    return stride + _LINE if stride and stride % _FEW_SETS == 0 else stride


def plan_of(program: Program, launch: Launch, properties: Mapping[str, int]) -> LaunchPlan:
    """Return the plan of a launch, made at the first launch with this shape."""
    key = (
        launch.grid, launch.block, launch.cluster, launch.cooperative, launch.shared_bytes, launch.multiprocessors,
        len(launch.parameters), properties.get("sm_count"), properties.get("warps"), properties.get("stack_limit"),
    )  # fmt: skip  # grouped by meaning
    plan: LaunchPlan | None = program.plans.get(key)
    if plan is None:
        if len(program.plans) >= _MOST_PLANS:
            program.plans.clear()
        plan = program.plans[key] = LaunchPlan(program, launch, properties)
    return plan


class LaunchState:
    """The state of a launch that all its chunks share."""

    def __init__(
        self,
        launch: Launch,
        memory: MemoryLike,
        symbols: Mapping[str, int],
        steps: int | None,
        seconds: float | None,
        properties: Mapping[str, int],
        observer: Observer | None,
        clock: Clock,
        poll: Callable[[], None],
    ) -> None:
        self.launch = launch
        self.memory = memory
        self.properties = properties
        self.observer = observer
        self.steps_left = self.steps_at_start = steps if steps is not None else 1 << 62
        # `look` must be called when fewer steps than this are left.
        self.next_look = self.steps_left
        # The number of steps that were left when a thread last did something other than wait at an mbarrier.
        self.progress = self.steps_left
        self.seconds = seconds if seconds is not None else math.inf
        self.began = time.monotonic()
        self.deadline = self.began + self.seconds
        # The first block that machine code has to run.
        self.first_block = 0
        self.clock = clock
        self.poll = poll
        # The addresses of the module's variables.
        self.symbols = symbols
        self.stepped = observer is not None and observer.stepped
        self.program = program_of(launch.entry, self.stepped)
        self.plan = plan = plan_of(self.program, launch, properties)
        self.threads, self.blocks = plan.threads, plan.blocks
        self.shared_size, self.shared_end, self.shared_limit = plan.shared_size, plan.shared_end, plan.shared_limit
        self.local_size, self.local_stride = plan.local_size, plan.local_stride
        self.parameter_size = plan.parameter_size
        self.parameter_bytes = np.frombuffer(launch.parameters + plan.padding, np.uint8)
        self.runtime = DeviceRuntime()
        self.waits = BarrierWaits()
        self.printed = Buffer(properties.get("printf_fifo", _PRINTF_BYTES))

    @cached_property
    def parameters(self) -> _Parameters:
        """The values of the launch's parameters, keyed by offset and NumPy type."""
        return _Parameters(self.parameter_bytes)

    @cached_property
    def environment(self) -> Environment:
        """The environment that blocks are compiled for; only the NumPy engine needs it."""
        return self.program.environment(self.plan.uniform_specials, self.observer is not None)

    @cached_property
    def memory_access(self) -> Memory:
        """The object through which Python code accesses the launch's memory."""
        return Memory(self)

    @property
    def steps_done(self) -> int:
        """Return the number of instructions that groups have executed; the current basic block counts in full."""
        return self.steps_at_start - self.steps_left

    @property
    def only_waits(self) -> bool:
        """Return whether all threads have done nothing but wait at mbarriers for many steps."""
        return self.progress - self.steps_left > _STEPS_OF_WAITING // _PATIENT_PART

    def has_waited_long(self, steps: int) -> bool:
        """Return whether threads that have only waited for so many steps must be checked for a deadlock."""
        return steps > _STEPS_OF_WAITING

    def limit_reached(self, steps: float | None = None) -> str:
        """Return a message about the limit that the launch has reached after so many steps, by default all, or ""."""
        if (self.steps_done if steps is None else steps) > self.steps_at_start:
            what, variable = f"executed more instructions than the limit of {self.steps_at_start:,}", "STEPS"
        elif time.monotonic() > self.deadline:
            what, variable = f"took longer than the limit of {self.seconds:g} seconds", "SECONDS"
        else:
            return ""
        advice = "" if self.stepped else " (if threads wait for each other, `cudart-py debug` shows who waits for what)"
        return f"the launch {what}, which CUDART_PY_SIMULATOR_{variable} sets{advice}"

    def look(self) -> str | None:
        """Return a message about the limit that the launch has reached, or None; set `next_look`.

        Raises Fault at a deadlock.
        """
        self.poll()
        if limit := self.limit_reached():
            return limit
        waited = self.progress - self.steps_left
        if waited < _STEPS_BETWEEN_LOOKS:
            self.waits.clear()
        elif self.has_waited_long(waited):
            deadlock = self.waits.deadlock()
            if deadlock is not None:
                raise deadlock
        self.next_look = max(0, self.steps_left - _STEPS_BETWEEN_LOOKS)
        return None


@cache
def _uniform_specials(*single: bool) -> frozenset[str]:
    """Return the special registers that all lanes share; `single` says which extents of block and grid are 1."""
    varying = {"%laneid", "%warpid", "%smid", "%cluster_ctarank", *(f"%lanemask_{kind}" for kind in LANE_MASKS)}
    for axis, one_thread, one_block in zip("xyz", single[:3], single[3:], strict=True):
        varying |= set() if one_thread else {f"%tid.{axis}"}
        varying |= set() if one_block else {f"%ctaid.{axis}", f"%clusterid.{axis}", f"%cluster_ctaid.{axis}"}
    return NAMES - varying


def _text(place: tuple[int, int, int]) -> str:
    return f"({place[0]}, {place[1]}, {place[2]})"
