"""Libraries: code that belongs to no context, and is loaded into each context in which it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUdeviceptr, CUkernel, CUlibrary, CUlibraryOption, CUmodule, CUresult

from ...state import memory
from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.fault_reports import put_report, take_report
from ...state.handles import Handles
from ..entry import entry
from .functions import kernels
from .images import Image, read_image, read_image_file
from .jit_options import JitOptions
from .kernels import Kernel
from .linking import linked_image
from .modules import LoadedModule, load, name_of, unload, variable_of

if TYPE_CHECKING:
    from ...state.contexts import Context
    from ...state.devices import Device
    from ...state.memory import Allocation
    from .parsing import ParsedImage


class Library:
    """A library: its kernels, the modules that it has in contexts, and the managed variables that these share.

    A library with unusable code has no kernels. `report` says why, and is otherwise empty.
    """

    def __init__(self, image: Image) -> None:
        self.handle = 0
        self.report = ""
        self.kernels: dict[str, Kernel] = {}
        self.managed: dict[str, Allocation] = {}
        self._modules: dict[Context, LoadedModule] = {}
        self._status = CUresult.CUDA_SUCCESS
        self._image: ParsedImage | None = None
        try:
            self._image = linked_image(image)
        except StatusError as error:
            self._status, self.report = error.status, take_report() or error.status.name
        else:
            self.kernels = {name: Kernel(self, kernel) for name, kernel in self._image.code.entries.items()}

    @property
    def image(self) -> ParsedImage:
        """Return the library's code, or raise the status of unusable code, with its report."""
        if self._image is None:
            put_report(self.report)
            raise StatusError(self._status)
        return self._image

    def module_in(self, context: Context) -> LoadedModule:
        """Return the library's module in a context; the first call loads it."""
        if context not in self._modules:
            module = self._modules[context] = load(context, self.image, self)
            names = [name for name in module.variables if module.code.variables[name].managed]
            self.managed |= {name: module.variables.pop(name) for name in names}
        return self._modules[context]

    def modules_on(self, device: Device) -> list[LoadedModule]:
        """Return the library's modules in contexts of a device."""
        return [module for context, module in self._modules.items() if context.device is device]

    def forget(self, context: Context) -> None:
        """Forget the module of a context that has ended, and the variables in memory that ended with it."""
        self._modules.pop(context, None)
        self.managed = {name: one for name, one in self.managed.items() if one.context is not context}

    def unload(self) -> None:
        """Unload the library from all contexts, after their work."""
        for module in self._modules.values():
            unload(module)
        for allocation in self.managed.values():
            memory.free(allocation)
        for kernel in self.kernels.values():
            kernels.remove(kernel.handle)


libraries: Handles[Library] = Handles()


def _load(image: Image, options: JitOptions) -> Any:
    """Return the handle of a new library. As on an H200, unusable code is an error only when it is used."""
    library = Library(image)
    options.log(library.report)
    library.handle = libraries.add(library)
    for kernel in library.kernels.values():
        kernel.handle = kernels.add(kernel)
    return CUlibrary(library.handle)


def _check_options(count: Any, options: Any, values: Any, forbidden: tuple[CUlibraryOption, ...] = ()) -> None:
    """Raise CUDA_ERROR_INVALID_VALUE if there aren't as many options as stated, or one that the call forbids."""
    given = dict(zip(options or (), values or (), strict=False))
    if number(count) != len(given) or any(option in given for option in forbidden):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


@entry(values=1)
def cuLibraryLoadData(
    code: Any,
    jitOptions: Any,
    jitOptionsValues: Any,
    numJitOptions: Any,
    libraryOptions: Any,
    libraryOptionValues: Any,
    numLibraryOptions: Any,
) -> Any:
    """Read PTX, or a fatbin with PTX, that any context may use (cuLibraryLoadData)."""
    options = JitOptions(numJitOptions, jitOptions, jitOptionsValues)
    _check_options(numLibraryOptions, libraryOptions, libraryOptionValues)
    return _load(read_image(code), options)


@entry(values=1)
def cuLibraryLoadFromFile(
    fileName: Any,
    jitOptions: Any,
    jitOptionsValues: Any,
    numJitOptions: Any,
    libraryOptions: Any,
    libraryOptionValues: Any,
    numLibraryOptions: Any,
) -> Any:
    """Read a file of PTX, or a fatbin with PTX, that any context may use (cuLibraryLoadFromFile)."""
    options = JitOptions(numJitOptions, jitOptions, jitOptionsValues)
    forbidden = (CUlibraryOption.CU_LIBRARY_BINARY_IS_PRESERVED,)
    _check_options(numLibraryOptions, libraryOptions, libraryOptionValues, forbidden)
    return _load(read_image_file(fileName), options)


@entry(frees=True, unsafe=True)
def cuLibraryUnload(library: Any) -> None:
    """Complete the work of the contexts that use a library, and unload it (cuLibraryUnload)."""
    found = libraries.find(library)
    libraries.remove(found.handle)
    found.unload()


@entry(values=1)
def cuLibraryGetKernel(library: Any, name: Any) -> Any:
    """Return a library's kernel by name (cuLibraryGetKernel)."""
    found, key = libraries.find(library), name_of(name)
    if key not in found.image.code.entries:
        raise StatusError(CUresult.CUDA_ERROR_NOT_FOUND)
    return CUkernel(found.kernels[key].handle)


@entry(values=1)
def cuLibraryGetKernelCount(lib: Any) -> int:
    """Return the number of a library's kernels (cuLibraryGetKernelCount)."""
    return len(libraries.find(lib).kernels)


@entry(values=1)
def cuLibraryEnumerateKernels(numKernels: Any, lib: Any) -> list[Any]:
    """Return up to `numKernels` of a library's kernels (cuLibraryEnumerateKernels)."""
    requested = number(numKernels)
    if not requested:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    found = [CUkernel(kernel.handle) for kernel in libraries.find(lib).kernels.values()][:requested]
    return found + [CUkernel() for _ in range(requested - len(found))]


@entry(values=1)
def cuLibraryGetModule(library: Any) -> Any:
    """Return the module of a library in the current context (cuLibraryGetModule)."""
    return CUmodule(libraries.find(library).module_in(current()).handle)


@entry(values=2)
def cuLibraryGetGlobal(library: Any, name: Any) -> tuple[Any, int]:
    """Return the address and size of a library's variable in the current context (cuLibraryGetGlobal)."""
    return variable_of(libraries.find(library).module_in(current()), name)


@entry(values=2)
def cuLibraryGetManaged(library: Any, name: Any) -> tuple[Any, int]:
    """Return the address and size of a managed variable, which all contexts share (cuLibraryGetManaged)."""
    found, key = libraries.find(library), name_of(name)
    variable = found.image.code.variables.get(key)
    if variable is None or not variable.managed:
        raise StatusError(CUresult.CUDA_ERROR_NOT_FOUND)
    if key not in found.managed:
        found.module_in(current())
    return CUdeviceptr(found.managed[key].address), variable.size


@entry(values=1)
def cuLibraryGetUnifiedFunction(library: Any, symbol: Any) -> Any:
    """Raise CUDA_ERROR_INVALID_VALUE, as an H200 does for every symbol (cuLibraryGetUnifiedFunction)."""
    libraries.find(library)
    raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
