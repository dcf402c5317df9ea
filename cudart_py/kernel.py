"""Kernels: what they are and what they need."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import arguments
from ._driver import api
from .device import Device, activated
from .launch import DATA_OFFSET, Launch, LaunchShape, Prepared, launch_function
from .launch_attributes import make_config
from .occupancy import Occupancy, compute, multiprocessor_of
from .packing import MAX_PARAMETER_BYTES, make_packer
from .signature import Signature
from .stream import Stream, legacy_default, stream_handle

if TYPE_CHECKING:
    from .module import Module

__all__ = ["Kernel", "KernelAttributes"]

# More configurations of one kernel than this are rare; keeping them is a matter of speed only.
_KEPT_LAUNCHES = 64
# Of a C int, as which the driver takes a block and its bytes.
_MAX_INT = 2**31 - 1


@dataclass(frozen=True)
class KernelAttributes:
    """What the compiler made of a kernel (cuFuncGetAttribute). Sizes are in bytes."""

    registers: int
    shared_bytes: int
    local_bytes: int
    constant_bytes: int
    max_threads_per_block: int
    ptx_version: int
    binary_version: int
    max_dynamic_shared_bytes: int


def _is_plain(key: tuple[Any, ...]) -> bool:
    """Tell whether the grid, block and shared bytes are ints and tuples of ints, and of no other type."""
    for size in key[:3]:
        if type(size) is tuple:
            for number in size:  # a loop, because all() takes longer than the rest of a look-up
                if type(number) is not int:
                    return False
        elif type(size) is not int:
            return False
    return True


class Kernel:
    """A `__global__` function of a loaded module.

    `kernel[grid, block](...)`, `kernel[grid, block, shared_bytes, stream](...)` launch it, in the order
    of CUDA's chevrons; the arguments are checked against `signature` before the driver sees them.
    """

    def __init__(self, module: Module, name: str, handle: int, signature: Signature) -> None:
        self.module = module
        self.name = name
        self.signature = signature
        self._handle = handle
        self._attributes: KernelAttributes | None = None
        self._opted_in = 0
        self._required_cluster: tuple[int, int, int] | None = None
        self._launches: dict[Any, Launch] = {}
        self._prepared: dict[Any, Prepared] = {}
        if signature.size > MAX_PARAMETER_BYTES:
            raise ValueError(
                f"{name} takes {signature.size} bytes of parameters, and {MAX_PARAMETER_BYTES} is the limit"
            )
        self.pack = make_packer(self, DATA_OFFSET)
        self._launch = launch_function(self)

    @property
    def handle(self) -> int:
        """The driver's CUfunction as an int; ValueError when the module is closed."""
        self.module.handle  # noqa: B018  # raises when closed
        return self._handle

    @property
    def device(self) -> Device:
        """The device that the kernel's module is loaded on."""
        return self.module.device

    @property
    def attributes(self) -> KernelAttributes:
        """Registers, shared, local and constant bytes, and the most threads a block may have."""
        if self._attributes is None:
            self._attributes = self._read_attributes()
        return self._attributes

    def _read_attributes(self) -> KernelAttributes:
        from cuda.bindings import driver as enums

        handle = self.handle

        def ask(name: str) -> int:
            attribute = getattr(enums.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
            return int(api.cuFuncGetAttribute(attribute, handle))

        with activated(self.device):
            return KernelAttributes(
                registers=ask("NUM_REGS"),
                shared_bytes=ask("SHARED_SIZE_BYTES"),
                local_bytes=ask("LOCAL_SIZE_BYTES"),
                constant_bytes=ask("CONST_SIZE_BYTES"),
                max_threads_per_block=ask("MAX_THREADS_PER_BLOCK"),
                ptx_version=ask("PTX_VERSION"),
                binary_version=ask("BINARY_VERSION"),
                max_dynamic_shared_bytes=ask("MAX_DYNAMIC_SHARED_SIZE_BYTES"),
            )

    @property
    def required_cluster(self) -> tuple[int, int, int]:
        """The blocks of a cluster that the kernel was compiled for by `__cluster_dims__`; zeros without."""
        if self._required_cluster is None:
            from cuda.bindings import driver as enums

            attribute = enums.CUfunction_attribute
            with activated(self.device):
                self._required_cluster = (
                    int(api.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, self.handle)),
                    int(api.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, self.handle)),
                    int(api.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, self.handle)),
                )
        return self._required_cluster

    def __getitem__(self, key: tuple[Any, ...]) -> Launch:
        # Only launches on the default stream are kept, so that no stream outlives its user here; of others what
        # does not hold the stream. 1.0 and True find what was kept for 1.
        try:
            if len(key) == 4:
                grid, block, shared_bytes, stream = key
                prepared = self._prepared.get((grid, block, shared_bytes, stream._value))
                # A handle's number may have come back as another device's stream.
                if (
                    prepared is not None
                    and (stream._device is prepared.device or stream._device is None)
                    and (type(grid) is type(block) is type(shared_bytes) is int or _is_plain(key))
                    and isinstance(stream, Stream)
                ):
                    return Launch(self._launch, (prepared, stream))
            else:
                kept = self._launches.get(key)
                if kept is not None and (type(key[0]) is type(key[1]) is type(key[-1]) is int or _is_plain(key)):
                    return kept
        except (TypeError, AttributeError):
            pass  # what is wrong is said below
        if not isinstance(key, tuple) or not 2 <= len(key) <= 4:
            raise TypeError(
                f"launch {self.name} as {self.name}[grid, block], [grid, block, shared_bytes] or "
                "[grid, block, shared_bytes, stream]"
            )
        launch = self.launch(*key)
        if len(key) < 4:
            self._keep(self._launches, key, launch)
        else:
            self._keep(self._prepared, (*key[:3], launch.prepared.stream), launch.prepared)
        return launch

    @staticmethod
    def _keep(kept: dict[Any, Any], key: tuple[Any, ...], value: Any) -> None:
        if not _is_plain(key):
            return
        if len(kept) >= _KEPT_LAUNCHES:
            kept.clear()
        kept[key] = value

    def launch(
        self,
        grid: Any,
        block: Any,
        shared_bytes: int = 0,
        stream: Stream | None = None,
        *,
        cooperative: bool = False,
        cluster: Any = None,
    ) -> Launch:
        """Return the launch of this kernel in a shape, to be called with the arguments.

        `grid` and `block` are an int or one to three of them; `shared_bytes` is the dynamic shared
        memory of a block, above 48 KiB opted in to here. `cooperative`: all blocks are resident at once
        and may synchronise as a grid. `cluster`: as `grid`, the blocks of a cluster, which divide the grid.
        Raises TypeError and ValueError, naming the kernel and the limit, for a shape that the device cannot
        launch (cuLaunchKernel, cuLaunchKernelEx).
        """
        shape = LaunchShape.checked(self, grid, block, shared_bytes)
        handle = stream_handle(self.name, stream)
        cooperative = arguments.flag(self.name, "cooperative", cooperative)
        where = legacy_default if stream is None else stream
        # The default streams are those of the kernel's own device, whatever is current.
        if where._device is not None and where._device is not self.device:
            raise ValueError(
                f"{self.name} is loaded on device {self.device.ordinal}, and the stream belongs to "
                f"device {where.device.ordinal}"
            )
        self._opt_in(shape.shared_bytes)
        config = make_config(self, shape, handle, cooperative, cluster)
        return Launch(self._launch, (Prepared(self, shape, handle, config), where))

    def occupancy(self, block: Any, shared_bytes: int = 0) -> Occupancy:
        """Return how many blocks of this shape one multiprocessor of the kernel's device holds at once.

        `block` and the dynamic `shared_bytes` are those of a launch, with its errors. Equals
        cuOccupancyMaxActiveBlocksPerMultiprocessor and says what limits it.
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

    def suggested_block(self, shared_bytes: int | Callable[[int], int] = 0, *, limit: int = 0) -> int:
        """Return the threads of a block with which a multiprocessor is fullest (cuOccupancyMaxPotentialBlockSize).

        `shared_bytes` is the dynamic shared memory of a block, or a function of the block's threads that returns
        it. `limit` is the most threads wanted, 0 for the kernel's own limit.
        """
        call = "Kernel.suggested_block"
        limit = arguments.integer(call, "limit", limit, 0, _MAX_INT)
        if not callable(shared_bytes):
            shared_bytes = arguments.integer(call, "shared_bytes", shared_bytes, 0, _MAX_INT)
            with activated(self.device):
                return int(api.cuOccupancyMaxPotentialBlockSize(self.handle, 0, shared_bytes, limit)[1])
        raised: list[BaseException] = []

        def of_block(threads: int) -> int:
            try:
                return arguments.integer(call, "shared_bytes(threads)", shared_bytes(threads), 0, _MAX_INT)
            except BaseException as error:  # C cannot pass it on; it is raised below
                raised.append(error)
                return 0

        callback = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(of_block)
        address = ctypes.cast(callback, ctypes.c_void_p).value
        with activated(self.device):
            result = api.cuOccupancyMaxPotentialBlockSize(self.handle, address, 0, limit)
        if raised:
            raise raised[0]
        return int(result[1])

    def _opt_in(self, shared_bytes: int) -> None:
        """Raise the kernel's limit of dynamic shared memory where it is needed; it is never lowered."""
        plain = self.device.properties.shared_memory_per_block - self.attributes.shared_bytes
        if shared_bytes <= max(plain, self._opted_in):
            return
        from cuda.bindings import driver as enums

        attribute = enums.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        with activated(self.device):
            if api.cuFuncGetAttribute(attribute, self.handle) < shared_bytes:
                api.cuFuncSetAttribute(self.handle, attribute, shared_bytes)
        self._opted_in = shared_bytes
        self._attributes = None

    def __repr__(self) -> str:
        return f"<Kernel {self.signature}>"
