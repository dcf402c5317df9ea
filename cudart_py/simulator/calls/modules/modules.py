"""Modules: PTX with its kernels and variables, loaded into a context."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUdeviceptr, CUfunction, CUmodule, CUmoduleLoadingMode, CUresult

from ... import ptx
from ...state import memory
from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.fault_reports import put_report
from ...state.handles import Handles
from ...state.queue.scheduling import complete_context
from ..entry import entry
from .functions import LoadedFunction, functions
from .images import read_image, read_image_file
from .jit_options import JitOptions
from .linking import linked_image

if TYPE_CHECKING:
    from ...state.contexts import Context
    from ...state.memory import Allocation
    from .libraries import Library
    from .parsing import ParsedImage


class LoadedModule:
    """A module in a context: its kernels and the addresses of its variables.

    `library` is the library whose code it is, or None.
    """

    def __init__(self, context: Context, image: ParsedImage, library: Library | None = None) -> None:
        self.context = context
        self.image = image
        self.code = image.code
        self.library = library
        self.handle = 0
        self.fixed_limits = image.fixed_limits
        self.functions: dict[str, LoadedFunction] = {}
        for name, kernel in self.code.entries.items():
            settings = {} if library is None else library.kernels[name].attributes_on(context.device).settings
            self.functions[name] = LoadedFunction(self, kernel, settings)
        self.variables: dict[str, Allocation] = {}
        self.symbols: dict[str, int] = {}

    def place_variables(self) -> None:
        """Allocate the variables, except those that the library has already, and write their initial values."""
        # A library's managed variables are the same in all contexts.
        shared = {} if self.library is None else self.library.managed
        self.symbols |= {name: allocation.address for name, allocation in shared.items()}
        external = {name for name, variable in self.code.variables.items() if variable.external}
        for name in external.intersection(ptx.undefined_names(self.code) if external else ()):
            put_report(f"variable {name} is external, but the image does not define it")
            raise StatusError(CUresult.CUDA_ERROR_INVALID_PTX)
        placed = [name for name in self.code.variables if name not in shared and name not in external]
        for name in placed:
            variable = self.code.variables[name]
            # An array without a size has size 0 here; one byte gives it an address.
            kind = memory.MANAGED if variable.managed else memory.DEVICE
            allocation = memory.allocate(max(variable.size, 1), kind, self.context, counted=kind == memory.DEVICE)
            allocation.variable = name
            # Variables without an initial value are zero.
            allocation.shadow.initialised = True
            self.variables[name] = allocation
            self.symbols[name] = allocation.address
        for name in placed:
            variable, address = self.code.variables[name], self.symbols[name]
            if variable.initial:
                ctypes.memmove(address, variable.initial, len(variable.initial))
            for offset, symbol, addend in variable.relocations:
                target = self.symbols.get(symbol, self.code.code_addresses.get(symbol))
                if target is None:
                    put_report(f"variable {name} is initialised with the address of {symbol}, which is not defined")
                    raise StatusError(CUresult.CUDA_ERROR_INVALID_PTX)
                ctypes.memmove(address + offset, (target + addend).to_bytes(8, "little"), 8)

    def unload(self) -> None:
        """Free the variables and forget the kernels."""
        for allocation in self.variables.values():
            memory.free(allocation, counted=allocation.kind == memory.DEVICE)
        self.variables.clear()
        for function in self.functions.values():
            functions.remove(function.handle)


modules: Handles[LoadedModule] = Handles()


def load(context: Context, image: ParsedImage, library: Library | None = None) -> LoadedModule:
    """Load code into a context; if that fails, no part of it remains."""
    module = LoadedModule(context, image, library)
    try:
        module.place_variables()
    except StatusError:
        module.unload()
        raise
    module.handle = modules.add(module)
    for function in module.functions.values():
        function.handle = functions.add(function)
    return module


@entry(values=1)
def cuModuleLoad(fname: Any) -> Any:
    """Load a file of PTX, or a fatbin with PTX, into the current context (cuModuleLoad)."""
    context = current()
    return CUmodule(load(context, linked_image(read_image_file(fname))).handle)


@entry(values=1)
def cuModuleLoadData(image: Any) -> Any:
    """Load PTX, or a fatbin with PTX, into the current context (cuModuleLoadData)."""
    context = current()
    return CUmodule(load(context, linked_image(read_image(image))).handle)


@entry(values=1)
def cuModuleLoadDataEx(image: Any, numOptions: Any, options: Any, optionValues: Any) -> Any:
    """Load PTX; of the options, only those for an error log have an effect (cuModuleLoadDataEx)."""
    given = JitOptions(numOptions, options, optionValues)
    with given.logging():
        return CUmodule(load(current(), linked_image(read_image(image))).handle)


@entry(values=1)
def cuModuleLoadFatBinary(fatCubin: Any) -> Any:
    """Load a fatbin with PTX into the current context (cuModuleLoadFatBinary)."""
    context = current()
    return CUmodule(load(context, linked_image(read_image(fatCubin))).handle)


@entry(values=1)
def cuModuleGetLoadingMode() -> Any:
    """Return that loading is lazy: a library is loaded into a context at its first use (cuModuleGetLoadingMode)."""
    return CUmoduleLoadingMode.CU_MODULE_LAZY_LOADING


@entry(frees=True, unsafe=True)
def cuModuleUnload(hmod: Any) -> None:
    """Complete the context's work and unload a module (cuModuleUnload)."""
    module = modules.find(hmod)
    if module.library is not None:
        put_report("the module belongs to a library: unload the library instead")
        raise StatusError(CUresult.CUDA_ERROR_NOT_PERMITTED)
    unload(module)


def unload(module: LoadedModule) -> None:
    """Complete the work of a module's context, unless a fault has ended it, and unload the module."""
    if module.context.sticky is None:
        complete_context(module.context, freeing=True)
    modules.remove(module.handle)
    module.unload()


def name_of(name: Any) -> str:
    """Return a name that ends at its first zero, or raise CUDA_ERROR_INVALID_VALUE for None or an empty name."""
    text = b"" if name is None else bytes(name) if not isinstance(name, str) else name.encode()
    text = text.split(b"\0")[0]
    if not text:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return text.decode("utf-8", "replace")


def variable_of(module: LoadedModule, name: Any) -> tuple[Any, int]:
    """Return the address and size of a module's variable, or raise CUDA_ERROR_NOT_FOUND."""
    key = name_of(name)
    if key not in module.symbols:
        raise StatusError(CUresult.CUDA_ERROR_NOT_FOUND)
    return CUdeviceptr(module.symbols[key]), module.code.variables[key].size


def _find_usable(hmod: Any) -> LoadedModule:
    """Return a module, or raise the status of the fault that has ended its context."""
    module = modules.find(hmod)
    if module.context.sticky is not None:
        raise StatusError(module.context.sticky)
    return module


@entry(values=1)
def cuModuleGetFunction(hmod: Any, name: Any) -> Any:
    """Return a module's kernel by name (cuModuleGetFunction)."""
    function = _find_usable(hmod).functions.get(name_of(name))
    if function is None:
        raise StatusError(CUresult.CUDA_ERROR_NOT_FOUND)
    return CUfunction(function.handle)


@entry(values=2)
def cuModuleGetGlobal(hmod: Any, name: Any) -> tuple[Any, int]:
    """Return the address and size of a module's variable (cuModuleGetGlobal)."""
    return variable_of(_find_usable(hmod), name)


@entry(values=1)
def cuModuleGetFunctionCount(mod: Any) -> int:
    """Return the number of a module's kernels (cuModuleGetFunctionCount)."""
    return len(modules.find(mod).functions)


@entry(values=1)
def cuModuleEnumerateFunctions(numFunctions: Any, mod: Any) -> list[Any]:
    """Return up to `numFunctions` of a module's kernels (cuModuleEnumerateFunctions)."""
    wanted = number(numFunctions)
    if not wanted:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    found = [CUfunction(function.handle) for function in modules.find(mod).functions.values()][:wanted]
    return found + [CUfunction() for _ in range(wanted - len(found))]


def end_context(context: Context) -> None:
    """Forget the modules of a context, whose memory has already been freed."""
    for module in modules.remove_all(lambda module: module.context is context):
        module.variables.clear()
        module.unload()
        if module.library is not None:
            module.library.forget(context)
