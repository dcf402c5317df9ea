"""Registration: the device code of the program, which nvcc's host code announces before `main` begins.

Each translation unit announces an image with its kernels and variables by the addresses of their host counterparts. An
image is loaded when a context first needs something of it, as with the driver's lazy loading.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..foreign_memory import read_string, string_address, write
from .calls import INVALID_DEVICE_FUNCTION, INVALID_SYMBOL, SUCCESS, Out, driver, ensure_context

_NOT_FOUND = 500


@dataclass(eq=False)
class Image:
    """Device code: the address of its fat binary, and the modules by the contexts that have loaded it."""

    address: int
    modules: dict[int, int] = field(default_factory=dict)
    managed: list[Symbol] = field(default_factory=list)

    def module(self, found: Out) -> int:
        """Write the module in the current context, loading it at the first call."""
        context = Out()
        status = ensure_context() or driver("cuCtxGetCurrent")(context.address)
        if not status and context.value not in self.modules:
            status = driver("cuModuleLoadData")(found.address, self.address)
            if not status:
                self.modules[context.value] = found.value
        if not status:
            write(found.address, self.modules[context.value])
        return status


@dataclass(eq=False)
class Symbol:
    """A kernel or a variable of an image, by its name in the device code."""

    image: Image
    name: bytes
    # The address of the pointer through which host code reaches a managed variable.
    host_pointer: int = 0
    functions: dict[int, int] = field(default_factory=dict)


_images: dict[int, Image] = {}
_kernels: dict[int, Symbol] = {}
_variables: dict[int, Symbol] = {}


def register_fat_binary(address: int) -> int:
    """Announce an image, and return its handle (__cudaRegisterFatBinary)."""
    handle = 2 * len(_images) + 1  # an odd number, which no pointer is
    _images[handle] = Image(address)
    return handle


def register_fat_binary_end(_handle: int) -> None:
    """Do nothing: the image is loaded when it is needed (__cudaRegisterFatBinaryEnd)."""


def unregister_fat_binary(_handle: int) -> None:
    """Do nothing, because the program ends (__cudaUnregisterFatBinary)."""


def register_function(
    handle: int,
    host: int,
    _device: int,
    name: int,
    _limit: int,
    _tid: int,
    _bid: int,
    _bdim: int,
    _gdim: int,
    _warp: int,
) -> None:
    """Announce a kernel (__cudaRegisterFunction)."""
    _kernels[host] = Symbol(_images[handle], read_string(name) or b"")


def register_variable(
    handle: int, host: int, _address: int, name: int, _ext: int, _size: int, _constant: int, _global: int
) -> None:
    """Announce a variable (__cudaRegisterVar)."""
    _variables[host] = Symbol(_images[handle], read_string(name) or b"")


def register_managed_variable(
    handle: int, pointer: int, _address: int, name: int, _ext: int, _size: int, _constant: int, _global: int
) -> None:
    """Announce a managed variable, which host code reaches through a pointer (__cudaRegisterManagedVar)."""
    image = _images[handle]
    symbol = Symbol(image, read_string(name) or b"", pointer)
    image.managed.append(symbol)
    _variables[pointer] = symbol


def init_module(handle: int) -> bytes:
    """Set the pointers to the managed variables of an image before host code uses them (__cudaInitModule)."""
    for symbol in _images[handle].managed:
        address = Out()
        if variable(symbol, address, Out()) == SUCCESS:
            write(symbol.host_pointer, address.value)
            _variables[address.value] = symbol
    return b"\1"


def variable(symbol: Symbol, address: Out, size: Out) -> int:
    """Write the address and the size in bytes of a variable in the current context."""
    module = Out()
    status = symbol.image.module(module)
    if status:
        return status
    return driver("cuModuleGetGlobal_v2")(address.address, size.address, module.value, string_address(symbol.name))


def find_variable(host: int, address: Out, size: Out) -> int:
    """Write the address and size of the variable with a host counterpart, or return cudaErrorInvalidSymbol."""
    symbol = _variables.get(host)
    return INVALID_SYMBOL if symbol is None else variable(symbol, address, size)


def function(host: int, found: Out) -> int:
    """Write the kernel's function in the current context.

    `host` is the address of the kernel's host counterpart, or a handle that the driver or cudaGetKernel has returned.
    """
    symbol = _kernels.get(host)
    if symbol is None:
        name = Out()
        # The driver's handles are accepted too, as the runtime does for cudaKernel_t and cudaFunction_t.
        if driver("cuFuncGetName")(name.address, host):
            return INVALID_DEVICE_FUNCTION
        write(found.address, host)
        return SUCCESS
    context = Out()
    status = ensure_context() or driver("cuCtxGetCurrent")(context.address)
    if not status and context.value not in symbol.functions:
        module = Out()
        status = symbol.image.module(module) or driver("cuModuleGetFunction")(
            found.address, module.value, string_address(symbol.name)
        )
        if status == _NOT_FOUND:  # the image lacks the kernel
            status = INVALID_DEVICE_FUNCTION
        if not status:
            symbol.functions[context.value] = found.value
    if not status:
        write(found.address, symbol.functions[context.value])
    return status


def forget_context(context: int) -> None:
    """Load images again at the next use, because a context has been reset."""
    for image in _images.values():
        image.modules.pop(context, None)
    for symbol in _kernels.values():
        symbol.functions.pop(context, None)


def get_kernel(kernel: int, host: int) -> int:
    """Write a handle of a kernel, which is the address of its host counterpart (cudaGetKernel)."""
    if host not in _kernels:
        return INVALID_DEVICE_FUNCTION
    write(kernel, host)
    return SUCCESS


def get_func_by_symbol(found: int, host: int) -> int:
    """Write the driver's handle of a kernel in the current context (cudaGetFuncBySymbol)."""
    result = Out()
    status = function(host, result)
    if not status:
        write(found, result.value)
    return status


def get_symbol_address(address: int, host: int) -> int:
    """Write the address of a variable (cudaGetSymbolAddress)."""
    found = Out()
    status = find_variable(host, found, Out())
    if not status:
        write(address, found.value)
    return status


def get_symbol_size(size: int, host: int) -> int:
    """Write the size of a variable in bytes (cudaGetSymbolSize)."""
    found = Out()
    status = find_variable(host, Out(), found)
    if not status:
        write(size, found.value)
    return status


FUNCTIONS = {
    "__cudaRegisterFatBinary": register_fat_binary,
    "__cudaRegisterFatBinaryEnd": register_fat_binary_end,
    "__cudaUnregisterFatBinary": unregister_fat_binary,
    "__cudaRegisterFunction": register_function,
    "__cudaRegisterVar": register_variable,
    "__cudaRegisterManagedVar": register_managed_variable,
    "__cudaInitModule": init_module,
    "__cudaGetKernel": get_kernel,
    "cudaGetKernel": get_kernel,
    "cudaGetFuncBySymbol": get_func_by_symbol,
    "cudaGetSymbolAddress": get_symbol_address,
    "cudaGetSymbolSize": get_symbol_size,
}
