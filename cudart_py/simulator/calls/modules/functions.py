"""Functions: the kernels of a module, their attributes and parameters."""

from __future__ import annotations

import struct
from collections import ChainMap
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUfunctionLoadingState, CUmodule, CUresult, CUsharedconfig

from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.handles import Handles
from ..entry import entry
from .function_attributes import FunctionAttributes, check_cache_config, parameter_of

if TYPE_CHECKING:
    from ... import ptx
    from ...state.contexts import Context
    from .kernels import Kernel
    from .modules import LoadedModule


class LoadedFunction(FunctionAttributes):
    """A kernel of a module. For attributes that the function does not set, the library's `settings` apply."""

    def __init__(self, module: LoadedModule, kernel: ptx.Entry, settings: MutableMapping[int, int]) -> None:
        super().__init__(module.image, kernel, ChainMap({}, settings))
        self.module = module
        self.context = module.context
        self.handle = 0
        self.layout = tuple((parameter.offset, parameter.size) for parameter in kernel.params)
        self.offsets = [parameter.offset for parameter in kernel.params]
        # The layout of an array of pointers to the parameters.
        self.pointers = struct.Struct(f"{len(self.layout)}N")
        # The cluster extents of launches whose shapes have been checked, keyed by shape. Cleared when an attribute
        # changes.
        self.shapes: dict[tuple[Any, ...], tuple[int, int, int]] = {}


functions: Handles[LoadedFunction] = Handles()
# The kernels of libraries, which belong to no context.
kernels: Handles[Kernel] = Handles()


def given_function(handle: Any) -> LoadedFunction:
    """Return the same as `find_function`; a null handle raises CUDA_ERROR_INVALID_VALUE."""
    if not number(handle):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return find_function(handle)


def find_function(handle: Any) -> LoadedFunction:
    """Return the function of a handle, or raise CUDA_ERROR_INVALID_HANDLE or the sticky status of its context."""
    function = functions.find(handle)
    if function.context.sticky is not None:
        raise StatusError(function.context.sticky)
    return function


def find_launchable(handle: Any, context: Context | None = None) -> LoadedFunction:
    """Return the function that a CUfunction refers to, or that of a CUkernel in a context, by default the current one.

    Raises the same statuses as `find_function`.
    """
    kernel = kernels.get(handle)
    if kernel is None:
        return find_function(handle)
    return kernel.function_in(current() if context is None else context)


@entry(values=1)
def cuFuncGetName(hfunc: Any) -> bytes:
    """Return a kernel's name (cuFuncGetName)."""
    name: str = given_function(hfunc).entry.name
    return name.encode()


@entry(values=1)
def cuFuncGetModule(hfunc: Any) -> Any:
    """Return a kernel's module (cuFuncGetModule)."""
    return CUmodule(given_function(hfunc).module.handle)


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
    return parameter_of(given_function(func).entry, paramIndex)


@entry(values=1)
def cuFuncGetParamCount(func: Any) -> int:
    """Return the number of a kernel's parameters (cuFuncGetParamCount)."""
    return len(find_function(func).layout)


@entry(values=1)
def cuFuncGetAttribute(attrib: Any, hfunc: Any) -> int:
    """Return a kernel's attribute (cuFuncGetAttribute)."""
    return find_function(hfunc).get(attrib)


@entry()
def cuFuncSetAttribute(hfunc: Any, attrib: Any, value: Any) -> None:
    """Set an attribute of a kernel, if it can be set (cuFuncSetAttribute)."""
    function = find_function(hfunc)
    function.set(attrib, value)
    function.shapes.clear()


@entry()
def cuFuncSetCacheConfig(hfunc: Any, config: Any) -> None:
    """Do nothing, because the simulator has no caches to configure (cuFuncSetCacheConfig)."""
    find_function(hfunc)
    check_cache_config(config)


@entry()
def cuFuncSetSharedMemConfig(hfunc: Any, config: Any) -> None:
    """Do nothing, because banks have one size since compute capability 5.0 (cuFuncSetSharedMemConfig)."""
    find_function(hfunc)
    if number(config) not in (item.value for item in CUsharedconfig):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
