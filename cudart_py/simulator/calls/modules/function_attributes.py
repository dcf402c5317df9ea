"""The attributes of kernels: those that the image states, and those that the program sets."""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUfunc_cache, CUfunction_attribute, CUresult

from ...state.arguments import number
from ...state.attributes import attribute
from ...state.errors import StatusError

if TYPE_CHECKING:
    from ... import ptx
    from .parsing import ParsedImage

_USUAL_REGISTERS = 32
_ATTRIBUTE = CUfunction_attribute
_DYNAMIC_SHARED = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.value
_CARVEOUT = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT.value
_NON_PORTABLE_CLUSTER = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED.value
_CLUSTER_MUST_BE_SET = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET.value
_CLUSTER_EXTENTS = (
    _ATTRIBUTE.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH.value,
    _ATTRIBUTE.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT.value,
    _ATTRIBUTE.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH.value,
)
_SCHEDULING = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE.value
_MOST_SCHEDULING = 2


class FunctionAttributes:
    """The attributes of a kernel; `settings` are the values that the program has set, keyed by attribute."""

    def __init__(self, image: ParsedImage, kernel: ptx.Entry, settings: MutableMapping[int, int]) -> None:
        self.image = image
        self.entry = kernel
        self.settings = settings

    @property
    def registers(self) -> int:
        """The number of registers of a thread."""
        resources = self.image.resources.get(self.entry.name)
        return max(resources[0], 1) if resources else _USUAL_REGISTERS

    @property
    def local_bytes(self) -> int:
        """Return the size in bytes of a thread's local memory."""
        resources = self.image.resources.get(self.entry.name)
        return resources[1] if resources else self.entry.local_bytes

    @cached_property
    def shared_bytes(self) -> int:
        """Return the size in bytes of the shared memory that the kernel declares."""
        return self.entry.static_shared_bytes

    @property
    def dynamic_shared(self) -> int:
        """Return the maximum size of dynamic shared memory in bytes."""
        usual = max(0, attribute("MAX_SHARED_MEMORY_PER_BLOCK") - self.shared_bytes)
        return self.settings.get(_DYNAMIC_SHARED, usual)

    @property
    def non_portable_cluster(self) -> bool:
        """Return whether clusters of more than 8 blocks are allowed."""
        return bool(self.settings.get(_NON_PORTABLE_CLUSTER))

    @property
    def required_cluster(self) -> tuple[int, int, int] | None:
        """The cluster extents of every launch, set at compile time or by the program; None if neither set them.

        Some of the extents may be 0, because they are set one at a time. A launch then fails.
        """
        if self.entry.cluster is not None:
            return self.entry.cluster
        width, height, depth = (self.settings.get(key, 0) for key in _CLUSTER_EXTENTS)
        return (width, height, depth) if width or height or depth else None

    @cached_property
    def max_threads(self) -> int:
        """The largest number of threads that a block may have."""
        # A launch does not wait for the assembler, so kernels whose registers are not stated are not limited by them.
        stated = self.image.counts.get(self.entry.name)
        registers = max(stated[0], 1) if stated else _USUAL_REGISTERS
        # A warp takes this many registers of the register file, which allocates them in units of 256.
        warp_registers = -(-registers * 32 // 256) * 256
        most = min(attribute("MAX_THREADS_PER_BLOCK"), attribute("MAX_REGISTERS_PER_BLOCK") // warp_registers * 32)
        for block in (self.entry.max_threads, self.entry.required_block):
            if block is not None:
                most = min(most, prod(block))
        return most

    def get(self, attrib: Any) -> int:
        """Return an attribute, or raise CUDA_ERROR_INVALID_VALUE if there is no such attribute."""
        key = number(attrib)
        variables = self.image.code.variables.values()
        constants = sum(variable.size for variable in variables if variable.space == "const")
        cluster = self.required_cluster or (0, 0, 0)
        values: dict[int, int] = {
            _ATTRIBUTE.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK.value: self.max_threads,
            _ATTRIBUTE.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES.value: self.shared_bytes,
            _ATTRIBUTE.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES.value: constants,
            _ATTRIBUTE.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES.value: self.local_bytes,
            _ATTRIBUTE.CU_FUNC_ATTRIBUTE_NUM_REGS.value: self.registers,
            _ATTRIBUTE.CU_FUNC_ATTRIBUTE_PTX_VERSION.value: 90,
            _ATTRIBUTE.CU_FUNC_ATTRIBUTE_BINARY_VERSION.value: 90,
            _ATTRIBUTE.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA.value: 0,
            _DYNAMIC_SHARED: self.dynamic_shared,
            _CARVEOUT: self.settings.get(_CARVEOUT, -1),
            _CLUSTER_MUST_BE_SET: int(self.entry.cluster is not None),
            _NON_PORTABLE_CLUSTER: self.settings.get(_NON_PORTABLE_CLUSTER, 0),
            _SCHEDULING: self.settings.get(_SCHEDULING, 0),
            **dict(zip(_CLUSTER_EXTENTS, cluster, strict=True)),
        }
        if key not in values:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return values[key]

    def set(self, attrib: Any, value: Any) -> None:
        """Set an attribute, or raise CUDA_ERROR_INVALID_VALUE if it can't be set, or not to this value."""
        key, requested = number(attrib), number(value)
        if key == _DYNAMIC_SHARED:
            most = attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") - self.shared_bytes
            allowed = 0 <= requested <= most
        elif key == _CARVEOUT:
            allowed = -1 <= requested <= 100
        elif key in _CLUSTER_EXTENTS:
            stated = self.entry.cluster
            # A launch checks the three extents together.
            allowed = requested >= 0 if stated is None else requested == stated[_CLUSTER_EXTENTS.index(key)]
        elif key == _NON_PORTABLE_CLUSTER:
            allowed, requested = True, int(bool(requested))
        else:
            allowed = key == _SCHEDULING and 0 <= requested <= _MOST_SCHEDULING
        if not allowed:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        self.settings[key] = requested


def parameter_of(kernel: ptx.Entry, index: Any) -> tuple[int, int]:
    """Return the offset and size of a kernel's parameter, or raise CUDA_ERROR_INVALID_VALUE."""
    place = number(index)
    if not 0 <= place < len(kernel.params):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return kernel.params[place].offset, kernel.params[place].size


def check_cache_config(config: Any) -> None:
    """Raise CUDA_ERROR_INVALID_VALUE for a number that is not a cache configuration; the caches have no effect here."""
    if number(config) not in (item.value for item in CUfunc_cache):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
