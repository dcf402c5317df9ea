"""Kernels of libraries: they belong to no context, and have a function in each context in which they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUfunction, CUlibrary, CUresult

from ...state.arguments import number
from ...state.contexts import current
from ...state.devices import Device, find_device
from ...state.errors import StatusError
from ..entry import entry
from .function_attributes import FunctionAttributes, check_cache_config, parameter_of
from .functions import LoadedFunction, kernels

if TYPE_CHECKING:
    from ... import ptx
    from ...state.contexts import Context
    from .libraries import Library


class Kernel:
    """A kernel of a library, with attributes for each device."""

    def __init__(self, library: Library, kernel: ptx.Entry) -> None:
        self.library = library
        self.entry = kernel
        self.handle = 0
        self._attributes: dict[Device, FunctionAttributes] = {}

    def function_in(self, context: Context) -> LoadedFunction:
        """Return the function of the kernel in a context, into which the library is loaded if necessary."""
        return self.library.module_in(context).functions[self.entry.name]

    def attributes_on(self, device: Device) -> FunctionAttributes:
        """Return the attributes of the kernel on a device, which functions inherit unless they set their own."""
        if device not in self._attributes:
            self._attributes[device] = FunctionAttributes(self.library.image, self.entry, {})
        return self._attributes[device]


@entry(values=1)
def cuKernelGetFunction(kernel: Any) -> Any:
    """Return the function of a kernel in the current context (cuKernelGetFunction)."""
    return CUfunction(kernels.find(kernel).function_in(current()).handle)


@entry(values=1)
def cuKernelGetLibrary(kernel: Any) -> Any:
    """Return the library of a kernel (cuKernelGetLibrary)."""
    return CUlibrary(kernels.find(kernel).library.handle)


@entry(values=1)
def cuKernelGetName(hfunc: Any) -> bytes:
    """Return the name of a kernel (cuKernelGetName)."""
    if not number(hfunc):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    name: str = kernels.find(hfunc).entry.name
    return name.encode()


@entry(values=2)
def cuKernelGetParamInfo(kernel: Any, paramIndex: Any) -> tuple[int, int]:
    """Return the offset and size of a kernel's parameter (cuKernelGetParamInfo)."""
    return parameter_of(kernels.find(kernel).entry, paramIndex)


@entry(values=1)
def cuKernelGetParamCount(kernel: Any) -> int:
    """Return the number of a kernel's parameters (cuKernelGetParamCount)."""
    return len(kernels.find(kernel).entry.params)


@entry(values=1)
def cuKernelGetAttribute(attrib: Any, kernel: Any, dev: Any) -> int:
    """Return an attribute of a kernel on a device (cuKernelGetAttribute)."""
    found, device = kernels.find(kernel), find_device(dev)
    return found.attributes_on(device).get(attrib)


@entry()
def cuKernelSetAttribute(attrib: Any, val: Any, kernel: Any, dev: Any) -> None:
    """Set an attribute of a kernel on a device, for all functions that do not set it (cuKernelSetAttribute)."""
    found, device = kernels.find(kernel), find_device(dev)
    found.attributes_on(device).set(attrib, val)
    for module in found.library.modules_on(device):
        module.functions[found.entry.name].shapes.clear()


@entry()
def cuKernelSetCacheConfig(kernel: Any, config: Any, dev: Any) -> None:
    """Do nothing, because the simulator has no caches to configure (cuKernelSetCacheConfig)."""
    kernels.find(kernel)
    find_device(dev)
    check_cache_config(config)
