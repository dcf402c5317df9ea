"""Functions: the kernels of a module, their attributes and parameters."""

from __future__ import annotations

import struct
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUfunction_attribute, CUfunctionLoadingState, CUmodule, CUresult

from ...state.arguments import number
from ...state.attributes import attribute
from ...state.errors import StatusError
from ...state.handles import Handles
from ..entry import entry

if TYPE_CHECKING:
    from ... import ptx
    from .modules import LoadedModule

USUAL_REGISTERS = 32


class LoadedFunction:
    """A kernel of a module, with the attributes that can be set.

    `counts` are the registers per thread and the size of a thread's stack in bytes, or None if the image doesn't say.
    """

    def __init__(self, module: LoadedModule, kernel: ptx.Entry, counts: tuple[int, int] | None) -> None:
        self.module = module
        self.context = module.context
        self.entry = kernel
        self.handle = 0
        self.registers = max(counts[0], 1) if counts else USUAL_REGISTERS
        self._stack = counts[1] if counts else None
        self.layout = tuple((parameter.offset, parameter.size) for parameter in kernel.params)
        self.offsets = [parameter.offset for parameter in kernel.params]
        # The layout of an array of pointers to the parameters.
        self.pointers = struct.Struct(f"{len(self.layout)}N")
        # The cluster extents of launches whose shapes have been checked, keyed by shape. Cleared when an attribute
        # changes.
        self.shapes: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        self.settings: dict[int, int] = {}

    @property
    def local_bytes(self) -> int:
        """Return the size in bytes of a thread's local memory."""
        return self.entry.local_bytes if self._stack is None else self._stack

    @cached_property
    def shared_bytes(self) -> int:
        """Return the size in bytes of the shared memory that the kernel declares."""
        return self.entry.static_shared_bytes

    @cached_property
    def dynamic_shared(self) -> int:
        """The maximum size of dynamic shared memory in bytes, which cuFuncSetAttribute may change."""
        return max(0, attribute("MAX_SHARED_MEMORY_PER_BLOCK") - self.shared_bytes)

    @property
    def non_portable_cluster(self) -> bool:
        """Return whether clusters of more than 8 blocks are allowed."""
        return bool(self.settings.get(_NON_PORTABLE_CLUSTER))

    @property
    def required_cluster(self) -> tuple[int, int, int] | None:
        """The cluster extents of every launch, set at compile time or by cuFuncSetAttribute; None if neither set them.

        Some of the extents may be 0, because they are set one at a time. A launch then fails.
        """
        if self.entry.cluster is not None:
            return self.entry.cluster
        width, height, depth = (self.settings.get(key, 0) for key in _CLUSTER_EXTENTS)
        return (width, height, depth) if width or height or depth else None

    @cached_property
    def max_threads(self) -> int:
        """The largest number of threads that a block may have."""
        # A warp takes this many registers of the register file, which allocates them in units of 256.
        warp_registers = -(-self.registers * 32 // 256) * 256
        most = min(attribute("MAX_THREADS_PER_BLOCK"), attribute("MAX_REGISTERS_PER_BLOCK") // warp_registers * 32)
        for stated in (self.entry.max_threads, self.entry.required_block):
            if stated is not None:
                most = min(most, prod(stated))
        return most


functions: Handles[LoadedFunction] = Handles()


def find_function(handle: Any) -> LoadedFunction:
    """Return the kernel that a handle refers to, or raise CUDA_ERROR_INVALID_HANDLE or its context's sticky status."""
    function = functions.find(handle)
    if function.context.sticky is not None:
        raise StatusError(function.context.sticky)
    return function


@entry(values=1)
def cuFuncGetName(hfunc: Any) -> bytes:
    """Return a kernel's name (cuFuncGetName)."""
    name: str = find_function(hfunc).entry.name
    return name.encode()


@entry(values=1)
def cuFuncGetModule(hfunc: Any) -> Any:
    """Return a kernel's module (cuFuncGetModule)."""
    return CUmodule(find_function(hfunc).module.handle)


@entry(values=1)
def cuFuncIsLoaded(function: Any) -> Any:
    """Report a kernel as loaded, because all kernels always are (cuFuncIsLoaded)."""
    find_function(function)
    return CUfunctionLoadingState.CU_FUNCTION_LOADING_STATE_LOADED


@entry()
def cuFuncLoad(function: Any) -> None:
    """Do nothing, because all kernels are loaded (cuFuncLoad)."""
    find_function(function)


@entry(values=2)
def cuFuncGetParamInfo(func: Any, paramIndex: Any) -> tuple[int, int]:
    """Return the offset and size of a kernel's parameter (cuFuncGetParamInfo)."""
    layout, index = find_function(func).layout, number(paramIndex)
    if not 0 <= index < len(layout):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return layout[index]


@entry(values=1)
def cuFuncGetParamCount(func: Any) -> int:
    """Return the number of a kernel's parameters (cuFuncGetParamCount)."""
    return len(find_function(func).layout)


_ATTRIBUTE = CUfunction_attribute
_DYNAMIC_SHARED = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.value
# Older bindings lack these names.
_RECENT = [
    _ATTRIBUTE.__members__[f"CU_FUNC_ATTRIBUTE_{name}"].value
    for name in ("DEVICE_NODE_UPDATE_SUPPORTED", "SHARED_MEMORY_MODE")
    if f"CU_FUNC_ATTRIBUTE_{name}" in _ATTRIBUTE.__members__
]
_CARVEOUT = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT.value
_NON_PORTABLE_CLUSTER = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED.value
_CLUSTER_MUST_BE_SET = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET.value
_CLUSTER_EXTENTS = (
    _ATTRIBUTE.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH.value,
    _ATTRIBUTE.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT.value,
    _ATTRIBUTE.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH.value,
)
_SCHEDULING = _ATTRIBUTE.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE.value
_SETTINGS = {_NON_PORTABLE_CLUSTER: (0, 1), _SCHEDULING: (0, 2)}


@entry(values=1)
def cuFuncGetAttribute(attrib: Any, hfunc: Any) -> int:
    """Return a kernel's attribute (cuFuncGetAttribute)."""
    function, key = find_function(hfunc), number(attrib)
    constants = sum(variable.size for variable in function.module.code.variables.values() if variable.space == "const")
    cluster = function.required_cluster or (0, 0, 0)
    values: dict[int, int] = {
        _ATTRIBUTE.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK.value: function.max_threads,
        _ATTRIBUTE.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES.value: function.shared_bytes,
        _ATTRIBUTE.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES.value: constants,
        _ATTRIBUTE.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES.value: function.local_bytes,
        _ATTRIBUTE.CU_FUNC_ATTRIBUTE_NUM_REGS.value: function.registers,
        _ATTRIBUTE.CU_FUNC_ATTRIBUTE_PTX_VERSION.value: 90,
        _ATTRIBUTE.CU_FUNC_ATTRIBUTE_BINARY_VERSION.value: 90,
        _ATTRIBUTE.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA.value: 0,
        _DYNAMIC_SHARED: function.dynamic_shared,
        _CARVEOUT: function.settings.get(_CARVEOUT, -1),
        _CLUSTER_MUST_BE_SET: 0,
        _NON_PORTABLE_CLUSTER: function.settings.get(_NON_PORTABLE_CLUSTER, 0),
        _SCHEDULING: function.settings.get(_SCHEDULING, 0),
        **dict.fromkeys(_RECENT, 0),
        **dict(zip(_CLUSTER_EXTENTS, cluster, strict=True)),
    }
    if key not in values:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return values[key]


@entry()
def cuFuncSetAttribute(hfunc: Any, attrib: Any, value: Any) -> None:
    """Set an attribute of a kernel, if it can be set (cuFuncSetAttribute)."""
    function, key, wanted = find_function(hfunc), number(attrib), number(value)
    function.shapes.clear()
    if key == _DYNAMIC_SHARED:
        most = attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") - function.shared_bytes
        if not 0 <= wanted <= most:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        function.dynamic_shared = wanted
        return
    if key == _CARVEOUT:
        allowed = -1 <= wanted <= 100
    elif key in _CLUSTER_EXTENTS:
        if function.entry.cluster is not None:
            raise StatusError(CUresult.CUDA_ERROR_NOT_PERMITTED)
        allowed = wanted >= 0  # a launch checks the three extents together
    else:
        allowed = key in _SETTINGS and _SETTINGS[key][0] <= wanted <= _SETTINGS[key][1]
    if not allowed:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    function.settings[key] = wanted
