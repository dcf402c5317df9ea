"""Kernels: functions in a module that can be launched."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never, NoReturn

from ..base import arguments
from ..base.arguments import refuse_copy
from ..compilation.images import KernelAttributes
from ..compilation.names.signatures import Signature
from ..context.current import activated
from ..context.occupancy import Occupancy, compute, multiprocessor_of
from ..driver.calls import api
from ..hints import KEYWORDS, hinted, unexpected
from ..streams.stream import Stream, legacy_default
from .attributes import NAMES, LaunchOptions, active_clusters, largest_cluster, make_config
from .function import Function
from .launch import Launch, Prepared
from .shape import LaunchShape

if TYPE_CHECKING:
    from .module import Module

# The number of launch configurations that a kernel caches. More are rare, and the cache only saves time.
_KEPT_LAUNCHES = 64
# The largest C int, the driver's type for the threads and bytes of a block.
_MAX_INT = 2**31 - 1
_NO_OPTIONS = LaunchOptions()


def _is_plain(size: Any) -> bool:
    """Return whether a size is an int or a tuple of ints, and so a safe cache key: 1.0 and True would equal 1."""
    return type(size) is int or (type(size) is tuple and set(map(type, size)) == {int})


@hinted
class Kernel(Function):
    """A `__global__` function of a loaded module.

    `kernel[grid, block](...)` and `kernel[grid, block, shared_bytes, stream](...)` launch it, with the values in the
    same order as in CUDA's `<<<...>>>`. `configure` is the long form of the brackets, with more options, and `launch`
    takes the shape and the arguments in one call. The arguments are checked against `signature` before they are passed
    to the driver.
    """

    # With slots, an assignment to an unknown attribute, such as one of cupy.RawKernel, raises instead of doing nothing.
    __slots__ = ("_prepared",)

    module: Module

    def __init__(
        self, module: Module, name: str, handle: int, signature: Signature, compiled: KernelAttributes | None
    ) -> None:
        super().__init__(module, module.device, name, handle, signature, compiled)
        self._prepared: dict[tuple[Any, ...], Prepared] = {}

    def __getitem__(self, key: tuple[Any, ...]) -> Launch:
        if not isinstance(key, tuple) or not 2 <= len(key) <= 4:
            raise self._without_shape()
        return self.configure(*key)

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise TypeError, since a launch needs its shape in brackets: `kernel[grid, block](...)`."""
        raise self._without_shape()

    def _without_shape(self) -> TypeError:
        shapes = ("grid, block", "grid, block, shared_bytes", "grid, block, shared_bytes, stream")
        return TypeError(f"launch {self.name} as {' or '.join(f'{self.name}[{shape}](...)' for shape in shapes)}")

    def _without_option(self, names: list[str]) -> TypeError:
        if names[0] in KEYWORDS["Kernel"]:
            return TypeError(f"{self.name}: launch has no option {names[0]!r}: {KEYWORDS['Kernel'][names[0]]}")
        near = arguments.nearest(names[0], NAMES)
        return TypeError(
            f"{self.name}: launch has no option {', '.join(map(repr, names))}"
            f"{f'; did you mean {near!r}?' if near else '.'} Its options are {', '.join(sorted(NAMES))}; pass the "
            "kernel's arguments in the order of its parameters"
        )

    def launch(
        self,
        grid: Any,
        block: Any,
        *arguments: Any,
        shared_bytes: int = 0,
        stream: Stream | None = None,
        **options: Any,
    ) -> None:
        """Launch this kernel with its arguments: `configure(grid, block, shared_bytes, stream, **options)(*arguments)`.

        Returns at once. Raises the errors of `configure` and of the launch (cuLaunchKernel, cuLaunchKernelEx).
        """
        if not NAMES.issuperset(options):
            raise self._without_option([name for name in options if name not in NAMES])
        self.configure(grid, block, shared_bytes, stream, **options)(*arguments)

    def configure(
        self,
        grid: Any,
        block: Any,
        shared_bytes: int = 0,
        stream: Stream | None = None,
        *,
        cooperative: bool = False,
        cluster: Any = None,
        programmatic: bool = False,
        priority: int | None = None,
        carveout: int | None = None,
        cluster_scheduling: str | None = None,
        memory_domain: str | None = None,
        **foreign: Never,
    ) -> Launch:
        """Return a launch of this kernel with this shape; calling the result with arguments launches the kernel.

        - `grid`, `block`: an int, or one to three ints.
        - `shared_bytes`: the size of the dynamic shared memory per block in bytes. For more than 48 KiB, this call
          performs the opt-in that CUDA requires.
        - `cooperative`: all blocks are resident at once, so that they can synchronise across the grid.
        - `cluster`: the shape of a cluster in blocks, like `grid`; it must divide the grid.
        - `programmatic`: a programmatic dependent launch, which may begin before the previous kernel in the stream has
          finished. The kernel must call `cudaGridDependencySynchronize()` before it uses the results of the previous
          kernel, which may call `cudaTriggerProgrammaticLaunchCompletion()` to let this kernel begin early. The header
          `cuda_device_runtime_api.h` declares both functions. The simulator always runs the kernels one after another.

        The other options affect only performance:

        - `priority`: overrides the stream's priority.
        - `carveout`: overrides `Kernel.carveout`.
        - `cluster_scheduling`: how clusters are distributed over the multiprocessors: "default", "spread" or
          "load_balancing".
        - `memory_domain`: "default" or "remote". Fences do not wait for the writes of kernels in the other domain.

        Programmatic launches, clusters and memory domains require compute capability 9.0; on older devices, they raise
        NotSupportedError. If the device cannot launch this shape, raises TypeError or ValueError, naming the kernel and
        the limit (cuLaunchKernel, cuLaunchKernelEx).
        """
        if foreign:
            raise unexpected("Kernel.configure", (), foreign)
        if stream is None:
            stream = legacy_default
        if isinstance(shared_bytes, Stream):  # perhaps in Numba's order: grid, block, stream, shared memory
            size = stream if isinstance(stream, int) else 0
            remedy = f"pass the stream as the fourth item: {self.name}[grid, block, {size}, stream]"
            raise arguments.wrong_type(self.name, "shared_bytes", "an int", shared_bytes, remedy)
        arguments.opened(self.name, "stream", stream, Stream, "a cudart_py Stream or None")
        # A default stream has no device here. It means the stream of the kernel's own device, not of the current one.
        if stream._device is not None and stream._device is not self._device:
            rule = f"be on device {self.device.ordinal}, where the kernel is loaded"
            raise arguments.unusable(self.name, "stream", rule, f"on device {stream.device.ordinal}")
        handle = stream._value
        plain = _is_plain(grid) and _is_plain(block) and _is_plain(shared_bytes)
        options = None
        if (
            cooperative is not False
            or cluster is not None
            or programmatic is not False
            or priority is not None
            or carveout is not None
            or cluster_scheduling is not None
            or memory_domain is not None
        ):
            options = LaunchOptions(
                cooperative, cluster, programmatic, priority, carveout, cluster_scheduling, memory_domain
            )
        if not plain or options is not None:
            return Launch(self._prepare(grid, block, shared_bytes, handle, options or _NO_OPTIONS), stream)
        key = (grid, block, shared_bytes, handle)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(*key, _NO_OPTIONS)
            if len(self._prepared) >= _KEPT_LAUNCHES:
                self._prepared.clear()
            self._prepared[key] = prepared
        return Launch(prepared, stream)

    def _prepare(
        self,
        grid: Any,
        block: Any,
        shared_bytes: Any,
        stream: int,
        options: LaunchOptions,
    ) -> Prepared:
        shape = LaunchShape.checked(self, grid, block, shared_bytes)
        self._allow_dynamic_shared(shape.shared_bytes)
        config = make_config(self, shape, stream, options)
        return Prepared(self, shape, stream, config)

    def occupancy(self, block: Any, shared_bytes: int = 0) -> Occupancy:
        """Return how many blocks of this shape fit on one multiprocessor of the kernel's device at once.

        `block` and the dynamic `shared_bytes` are as for a launch, with the same errors. The number agrees with
        cuOccupancyMaxActiveBlocksPerMultiprocessor. The result also names the limiting resource.
        """
        shape = LaunchShape.checked(self, 1, block, shared_bytes)
        x, y, z = shape.block
        attributes = self.attributes
        return compute(
            multiprocessor_of(self.device.properties),
            x * y * z,
            attributes.registers,
            attributes.shared_bytes + shape.shared_bytes,
        )

    def max_active_clusters(self, block: Any, cluster: Any = None, shared_bytes: int = 0) -> int:
        """Return how many clusters of this shape fit on the kernel's device at once (cuOccupancyMaxActiveClusters).

        `block`, `cluster` and the dynamic `shared_bytes` are as for a launch, with the same errors. `cluster` defaults
        to the shape that the kernel was compiled for, or to one block. Raises NotSupportedError below compute
        capability 9.0.
        """
        shape = LaunchShape.checked(self, 1, block, shared_bytes)
        self._allow_dynamic_shared(shape.shared_bytes)
        return active_clusters(self, shape, cluster)

    def max_cluster_size(self, block: Any, shared_bytes: int = 0) -> int:
        """Return the maximum number of blocks per cluster for this kernel (cuOccupancyMaxPotentialClusterSize).

        `block` and the dynamic `shared_bytes` are as for a launch, with the same errors. Raises NotSupportedError below
        compute capability 9.0.
        """
        shape = LaunchShape.checked(self, 1, block, shared_bytes)
        self._allow_dynamic_shared(shape.shared_bytes)
        return largest_cluster(self, shape)

    def suggested_block(self, *, shared_bytes: int | Callable[[int], int] = 0, limit: int = 0) -> int:
        """Return the number of threads per block with the highest occupancy (cuOccupancyMaxPotentialBlockSize).

        `shared_bytes` is the size of the dynamic shared memory per block in bytes, or a function that returns this size
        for a given number of threads per block. For more than 48 KiB, this call raises the kernel's limit, as a launch
        does; for a function, to the most that the device allows. `limit` is the maximum number of threads per block; 0
        means the kernel's own limit. Raises ValueError for more shared memory than the device allows.
        """
        call = "Kernel.suggested_block"
        limit = arguments.integer(call, "limit", limit, 0, _MAX_INT)
        if not callable(shared_bytes):
            shared_bytes = LaunchShape.checked(self, 1, 1, shared_bytes).shared_bytes
            self._allow_dynamic_shared(shared_bytes)
            with activated(self.device):
                return int(api.cuOccupancyMaxPotentialBlockSize(self.handle, 0, shared_bytes, limit)[1])
        self._allow_dynamic_shared(self.device.properties.shared_memory_per_block_optin - self.attributes.shared_bytes)
        raised: list[BaseException] = []

        def of_block(threads: int) -> int:
            try:
                return arguments.integer(call, "shared_bytes(threads)", shared_bytes(threads), 0, _MAX_INT)
            except BaseException as error:  # it cannot propagate through C; it is raised below
                raised.append(error)
                return 0

        callback = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(of_block)
        address = ctypes.cast(callback, ctypes.c_void_p).value
        with activated(self.device):
            result = api.cuOccupancyMaxPotentialBlockSize(self.handle, address, 0, limit)
        if raised:
            raise raised[0]
        return int(result[1])

    def __copy__(self) -> NoReturn:
        refuse_copy(self, "a kernel is not changed by its use, so share it")

    def __deepcopy__(self, memo: object) -> NoReturn:
        refuse_copy(self, "a kernel is not changed by its use, so share it")

    def __repr__(self) -> str:
        return f"<Kernel {self.signature}>"
