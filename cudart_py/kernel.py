"""Kernels: what they are and what they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._driver import api
from .device import Device, activated
from .launch import Launch, LaunchShape
from .packing import MAX_PARAMETER_BYTES, make_packer
from .signature import Signature
from .stream import Stream, legacy_default

if TYPE_CHECKING:
    from .module import Module

__all__ = ["Kernel", "KernelAttributes"]

# More configurations of one kernel than this are rare; keeping them is a matter of speed only.
_KEPT_LAUNCHES = 64


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
        self._launches: dict[Any, Launch] = {}
        if signature.size > MAX_PARAMETER_BYTES:
            raise ValueError(
                f"{name} takes {signature.size} bytes of parameters, and {MAX_PARAMETER_BYTES} is the limit"
            )
        self.layout, self.pack = make_packer(self, Launch.HEAD)

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

    def __getitem__(self, key: tuple[Any, ...]) -> Launch:
        # Only launches on the default stream are kept, so that no stream outlives its user here.
        try:
            return self._launches[key]
        except (KeyError, TypeError):
            pass
        if not isinstance(key, tuple) or not 2 <= len(key) <= 4:
            raise TypeError(
                f"launch {self.name} as {self.name}[grid, block], [grid, block, shared_bytes] or "
                "[grid, block, shared_bytes, stream]"
            )
        launch = self.launch(*key)
        if len(key) < 4 and len(self._launches) < _KEPT_LAUNCHES:
            self._launches[key] = launch
        return launch

    def launch(self, grid: Any, block: Any, shared_bytes: int = 0, stream: Stream | None = None) -> Launch:
        """Return the launch of this kernel in a shape, to be called with the arguments.

        `grid` and `block` are an int or one to three of them; `shared_bytes` is the dynamic shared
        memory of a block, above 48 KiB opted in to here. Raises TypeError and ValueError, naming the
        kernel and the limit, for a shape that the device cannot launch.
        """
        shape = LaunchShape.checked(self, grid, block, shared_bytes)
        self._opt_in(shape.shared_bytes)
        return Launch(self, shape, legacy_default if stream is None else stream)

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
