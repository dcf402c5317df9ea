"""Functions: the driver's information about kernels, including their launch limits."""

from __future__ import annotations

from typing import Any

from ..base import arguments
from ..base.set_once import SetOnce
from ..compilation.images import KernelAttributes
from ..compilation.names.signatures import Signature
from ..context.current import activated
from ..context.device import Device
from ..context.lifetimes import Handle
from ..driver import enums
from ..driver.calls import api
from .packing import make_packer

# The limit on parameters since CUDA 12.1, for compute capability 7.0 and later.
_MAX_PARAMETER_BYTES = 32764


class Function(SetOnce):
    """A `__global__` function of a loaded module (CUfunction), without the methods that launch it.

    `signature` has the C++ types of the parameters. `pack` checks the arguments of a launch against them and packs
    them. `compiled` is the assembler's report, or None if there is none.
    """

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_compiled",
        "_device",
        "_handle",
        "_opted_in",
        "_required_cluster",
        "module",
        "name",
        "pack",
        "signature",
    )

    module: Handle

    def __init__(
        self,
        module: Handle,
        device: Device,
        name: str,
        handle: int,
        signature: Signature,
        compiled: KernelAttributes | None,
    ) -> None:
        if signature.size > _MAX_PARAMETER_BYTES:
            raise ValueError(
                f"{name} takes {signature.size} bytes of parameters, but the limit is {_MAX_PARAMETER_BYTES}"
            )
        self.module = module
        self.name = name
        self.signature = signature
        self.pack = make_packer(name, device, signature)
        self._device = device
        self._handle = handle
        self._compiled = compiled
        self._attributes: KernelAttributes | None = None
        self._required_cluster: tuple[int, int, int] | None = None
        self._opted_in = 0

    @property
    def handle(self) -> int:
        """The driver's CUfunction as an int; raises ValueError when the module is closed."""
        self.module.handle  # noqa: B018  # raises when closed
        return self._handle

    @property
    def device(self) -> Device:
        """The device on which the kernel's module is loaded."""
        return self._device

    @property
    def attributes(self) -> KernelAttributes:
        """The kernel's resources and limits, such as its registers, memory and spills (cuFuncGetAttribute)."""
        if self._attributes is None:
            with activated(self._device):
                self._attributes = KernelAttributes(
                    registers=self._ask("NUM_REGS"),
                    shared_bytes=self._ask("SHARED_SIZE_BYTES"),
                    local_bytes=self._ask("LOCAL_SIZE_BYTES"),
                    spill_store_bytes=self._compiled.spill_store_bytes if self._compiled else None,
                    spill_load_bytes=self._compiled.spill_load_bytes if self._compiled else None,
                    constant_bytes=self._ask("CONST_SIZE_BYTES"),
                    max_threads_per_block=self._ask("MAX_THREADS_PER_BLOCK"),
                    ptx_version=self._ask("PTX_VERSION"),
                    binary_version=self._ask("BINARY_VERSION"),
                    max_dynamic_shared_bytes=self._ask("MAX_DYNAMIC_SHARED_SIZE_BYTES"),
                )
        return self._attributes

    @property
    def required_cluster(self) -> tuple[int, int, int]:
        """The cluster shape that `__cluster_dims__` sets, in blocks; (0, 0, 0) for a kernel without it."""
        if self._required_cluster is None:
            with activated(self._device):
                self._required_cluster = (
                    self._ask("REQUIRED_CLUSTER_WIDTH"),
                    self._ask("REQUIRED_CLUSTER_HEIGHT"),
                    self._ask("REQUIRED_CLUSTER_DEPTH"),
                )
        return self._required_cluster

    @property
    def carveout(self) -> int | None:
        """The preferred percentage of a multiprocessor's combined shared memory and L1 cache to use as shared memory.

        It is from 0 to 100, or None to let the driver choose (cuFuncSetAttribute). This is a hint: a launch always gets
        the shared memory that its blocks need. `occupancy` does not take it into account.
        """
        with activated(self._device):
            share = self._ask("PREFERRED_SHARED_MEMORY_CARVEOUT")
        return None if share < 0 else share

    @carveout.setter
    def carveout(self, carveout: int | None) -> None:
        share = -1 if carveout is None else arguments.integer(self.name, "carveout", carveout, 0, 100)
        with activated(self._device):
            api.cuFuncSetAttribute(self.handle, _attribute("PREFERRED_SHARED_MEMORY_CARVEOUT"), share)

    def _ask(self, name: str) -> int:
        return int(api.cuFuncGetAttribute(_attribute(name), self.handle))

    def _allow_dynamic_shared(self, nbytes: int) -> None:
        """Raise the kernel's limit on dynamic shared memory if `nbytes` exceeds it; the limit is never lowered."""
        plain = self._device.properties.shared_memory_per_block - self.attributes.shared_bytes
        if nbytes <= max(plain, self._opted_in):
            return
        with activated(self._device):
            if self._ask("MAX_DYNAMIC_SHARED_SIZE_BYTES") < nbytes:
                api.cuFuncSetAttribute(self.handle, _attribute("MAX_DYNAMIC_SHARED_SIZE_BYTES"), nbytes)
        self._opted_in = nbytes
        self._attributes = None

    def _allow_large_clusters(self) -> None:
        """Allow clusters larger than the portable size, which only some devices can run."""
        with activated(self._device):
            if not self._ask("NON_PORTABLE_CLUSTER_SIZE_ALLOWED"):
                api.cuFuncSetAttribute(self.handle, _attribute("NON_PORTABLE_CLUSTER_SIZE_ALLOWED"), 1)


def _attribute(name: str) -> Any:
    return getattr(enums.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
