"""Launches: kernels with their parameters, checked and copied at the call, and run by the PTX machine later."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cuda.bindings.driver import CUgraphNodeType, CUlimit, CUresult

from ....compilation import cache
from ....host.environment import one_of, whole_number
from ... import ptx
from ...state.attributes import DRIVER_VERSION, attribute
from ...state.errors import StatusError
from ...state.progress import progress
from ...state.queue.operations import FaultError, Operation
from ...state.queue.runner import runner
from ...state.streams import find_stream, submit
from ..entry import entry
from ..modules.functions import LoadedFunction, find_launchable
from . import debugger, observers
from .attributes import NO_ATTRIBUTES, LaunchAttributes
from .device_runtime import DeviceRuntime
from .occupancy import blocks_per_multiprocessor
from .parameters import packed_parameters
from .shapes import checked_launch

if TYPE_CHECKING:
    from ...state.contexts import Context
    from ...state.queue.stream import Stream

STEPS_VARIABLE = "CUDART_PY_SIMULATOR_STEPS"
# A kernel that waits for the host spins forever. This many steps, each of up to a few thousand lanes, take minutes.
_USUAL_STEPS = 1 << 26
SECONDS_VARIABLE = "CUDART_PY_SIMULATOR_SECONDS"
# The limit for wide kernels, which do not reach the limit on steps in that time.
_USUAL_SECONDS = 120
ENGINE_VARIABLE = "CUDART_PY_SIMULATOR_ENGINE"
THREADS_VARIABLE = "CUDART_PY_SIMULATOR_THREADS"
_MOST_THREADS = 1024
_PROCESSORS = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
_ENGINES = ("auto", "numpy", "native")
_WARP = 32
_DEVICE_PROPERTIES = {
    "sm_count": attribute("MULTIPROCESSOR_COUNT"),
    "warp_size": _WARP,
    "warps": attribute("MAX_THREADS_PER_MULTIPROCESSOR") // _WARP,
}
_STACK_LIMIT: int = CUlimit.CU_LIMIT_STACK_SIZE.value
_PRINTF_LIMIT: int = CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE.value
_HEAP_LIMIT: int = CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value


class KernelLaunch(Operation):
    """A launch of a kernel with the bytes of its parameters, and with the attributes that it was given.

    `depth` is the number of grids around this one: 0 if the host has launched it.
    """

    __slots__ = ("attributes", "depth", "function", "launch")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
    computes = True

    def __init__(
        self, function: LoadedFunction, launch: ptx.Launch, attributes: LaunchAttributes = NO_ATTRIBUTES, depth: int = 0
    ) -> None:
        self.function = function
        self.launch = launch
        self.attributes = attributes
        self.depth = depth

    def __str__(self) -> str:
        return f"the launch of {self.launch.description},"

    def describe(self) -> str:
        """Return the kernel's name, the grid, the block and the dynamic shared memory in bytes."""
        launch = self.launch
        return f"{launch.entry.name}\n<<<{launch.grid}, {launch.block}, {launch.shared_bytes}>>>"

    def parameters(self) -> list[str]:
        """Return the kernel's handle, its attributes, and the bytes of its parameters as numbers."""
        launch = self.launch
        lines = [f"function {self.function.handle:#x}", f"cluster {launch.cluster}"]
        lines += ["cooperative"] if launch.cooperative else []
        for place, parameter in enumerate(launch.entry.params):
            value = launch.parameters[parameter.offset : parameter.offset + parameter.size]
            lines.append(f"parameter {place}: {int.from_bytes(value, 'little'):#x} ({parameter.size} bytes)")
        return lines

    def run(self, context: Context) -> None:
        """Run the kernel and all launches of its threads; those in the tail stream run last."""
        waiting: list[Operation] = [self]
        while waiting:
            first, *rest = waiting
            if isinstance(first, KernelLaunch):
                waiting = [*first._run_with_children(context), *rest]
            else:
                first.run(context)
                waiting = rest

    def _run_with_children(self, context: Context) -> list[Operation]:
        """Run the kernel and the kernels that it launches, and return the work that it leaves for its end."""
        kernels = self.function.module.functions
        runtime = DeviceRuntime(context, kernels, self.depth + 1, _child, DRIVER_VERSION)
        try:
            self._run_grid(context, runtime)
        finally:
            runtime.close()
        for child in runtime.children:
            child.run(context)
        return runtime.tail

    def _run_grid(self, context: Context, runtime: DeviceRuntime) -> None:
        """Run the kernel on the PTX machine."""
        module = self.function.module
        settings = _settings.current()
        try:
            ptx.run(
                module.code,
                self.launch,
                context.memory,
                symbols=module.symbols,
                print_=progress.printed.append,
                poll=runner.poll,
                steps=settings.steps,
                seconds=settings.seconds,
                properties=_properties(context),
                observer=observers.observer(),
                clock=context.clock,
                native=settings.native,
                runtime=runtime,
            )
        except ptx.Fault as fault:
            raise FaultError(getattr(CUresult, fault.status_name), fault.report) from None
        except ptx.UnsupportedError as error:
            raise FaultError(CUresult.CUDA_ERROR_NOT_SUPPORTED, error.report, sticky=False) from None
        except ptx.PtxError as error:
            raise FaultError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), sticky=False) from None


def _child(function: LoadedFunction, launch: ptx.Launch, depth: int) -> KernelLaunch:
    return KernelLaunch(function, launch, depth=depth)


def launch_limits() -> tuple[int | None, int | None]:
    """Return the largest numbers of steps and seconds that a launch may take, from the environment; None for no limit.

    The defaults are 2**26 steps and 120 seconds, or no limit of seconds under a debugger. 0 in
    `CUDART_PY_SIMULATOR_STEPS` or `CUDART_PY_SIMULATOR_SECONDS` means no limit, and anything but a whole number raises
    ValueError.
    """
    steps = whole_number(STEPS_VARIABLE, _USUAL_STEPS, 0, 1 << 62)
    seconds = whole_number(SECONDS_VARIABLE, 0 if debugger.is_attached() else _USUAL_SECONDS, 0, 1 << 62)
    return steps or None, seconds or None


def engine() -> str:
    """Return the engine that runs kernels, from the environment: ``numpy``, ``native`` where possible, or ``auto``.

    Without llvmlite, ``auto``, which is the default, means ``numpy``, and ``native`` raises ValueError.
    """
    chosen = one_of(ENGINE_VARIABLE, _ENGINES)
    if ptx.has_llvmlite():
        return chosen
    if chosen == "native":
        raise ValueError(f"{ENGINE_VARIABLE}={chosen!r} needs llvmlite: pip install 'cudart-py[native]'")
    return "numpy"


def threads() -> int:
    """Return how many threads may run the blocks of a launch in machine code, from the environment.

    The default is the number of processors, but at most 8. A `CUDART_PY_SIMULATOR_THREADS` that is not from 1 to 1,024
    raises ValueError.
    """
    return whole_number(THREADS_VARIABLE, _PROCESSORS, 1, _MOST_THREADS)


class _Settings(NamedTuple):
    """The limits of a launch, and the native engine if it may run launches."""

    steps: int | None
    seconds: int | None
    native: ptx.MachineCode | None


class _CurrentSettings:
    """The settings of launches, which are read from the environment once per call of the driver that runs work."""

    def __init__(self) -> None:
        self._run = -1
        self._settings = _Settings(None, None, None)

    def current(self) -> _Settings:
        """Return the settings of the current call."""
        if self._run != runner.runs:
            native = ptx.native_engine(engine(), code_cache=cache, threads=threads(), in_thread=progress.working)
            self._settings = _Settings(*launch_limits(), native)
            self._run = runner.runs
        return self._settings


_settings = _CurrentSettings()


def _properties(context: Context) -> dict[str, int]:
    limits = context.limits
    return {
        **_DEVICE_PROPERTIES,
        "stack_limit": limits[_STACK_LIMIT],
        "printf_fifo": limits[_PRINTF_LIMIT],
        "malloc_heap": limits[_HEAP_LIMIT],
    }


@entry()
def cuLaunchKernel(
    f: Any,
    gridDimX: Any,
    gridDimY: Any,
    gridDimZ: Any,
    blockDimX: Any,
    blockDimY: Any,
    blockDimZ: Any,
    sharedMemBytes: Any,
    hStream: Any,
    kernelParams: Any,
    extra: Any,
) -> None:
    """Launch a kernel in a stream (cuLaunchKernel)."""
    function, stream = _find(f, hStream)
    parameters = packed_parameters(function, kernelParams, extra)
    extents = gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ
    _launch(stream, function, extents, sharedMemBytes, parameters, NO_ATTRIBUTES)


@entry()
def cuLaunchCooperativeKernel(
    f: Any,
    gridDimX: Any,
    gridDimY: Any,
    gridDimZ: Any,
    blockDimX: Any,
    blockDimY: Any,
    blockDimZ: Any,
    sharedMemBytes: Any,
    hStream: Any,
    kernelParams: Any,
) -> None:
    """Launch a kernel whose blocks are all resident at once (cuLaunchCooperativeKernel)."""
    function, stream = _find(f, hStream)
    parameters = packed_parameters(function, kernelParams, 0)
    extents = gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ
    _launch(stream, function, extents, sharedMemBytes, parameters, LaunchAttributes(cooperative=True))


@entry()
def cuLaunchKernelEx(config: Any, f: Any, kernelParams: Any, extra: Any) -> None:
    """Launch a kernel with attributes (cuLaunchKernelEx)."""
    if config is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    function, stream = _find(f, config.hStream)
    attributes = LaunchAttributes.read(config.attrs[: config.numAttrs])
    parameters = packed_parameters(function, kernelParams, extra)
    _launch(stream, function, extents_of(config), config.sharedMemBytes, parameters, attributes)


def _launch(
    stream: Stream,
    function: LoadedFunction,
    extents: Sequence[int],
    shared: int,
    parameters: bytes,
    attributes: LaunchAttributes,
) -> None:
    try:
        kernel = checked_kernel(function, extents, shared, parameters, attributes)
    except StatusError:
        if stream.capture is not None:  # a launch with an invalid shape invalidates the capture
            stream.capture.invalidate()
        raise
    if stream.capture is not None:
        kernel.attributes = kernel.attributes.captured_in(stream)
    if stream.green is not None:
        kernel.launch = _confined(kernel, stream.green.partition.multiprocessors)
    submit(stream, kernel)


def _confined(kernel: KernelLaunch, multiprocessors: tuple[int, ...]) -> ptx.Launch:
    """Return the launch on a green context's multiprocessors; all blocks of a cooperative launch must fit on these."""
    launch = kernel.launch
    if launch.cooperative:
        resident = blocks_per_multiprocessor(kernel.function, prod(launch.block), launch.shared_bytes)
        if prod(launch.grid) > resident * len(multiprocessors):
            raise StatusError(CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
    return replace(launch, multiprocessors=multiprocessors)


def extents_of(structure: Any) -> tuple[int, ...]:
    """Return the extents of the grid and of the block from a structure of the bindings."""
    return tuple(getattr(structure, f"{kind}Dim{axis}") for kind in ("grid", "block") for axis in "XYZ")


def checked_kernel(
    function: LoadedFunction, extents: Sequence[int], shared: int, parameters: bytes, attributes: LaunchAttributes
) -> KernelLaunch:
    """Return a launch with attributes; raise the status that the driver returns for an invalid one."""
    cooperative, cluster = attributes.cooperative, attributes.cluster
    launch = checked_launch(function, extents, shared, parameters, cooperative=cooperative, cluster=cluster)
    return KernelLaunch(function, launch, attributes)


def _find(f: Any, stream_handle: Any) -> tuple[LoadedFunction, Stream]:
    """Return the function and the stream of a launch; a library's kernel is launched in the stream's context.

    Raises CUDA_ERROR_INVALID_HANDLE if the function belongs to another context.
    """
    stream = find_stream(stream_handle)
    function = find_launchable(f, stream.context)
    if function.context is not stream.context:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    return function, stream
