"""Modules: PTX text with its kernels and variables, loaded into a context."""

from __future__ import annotations

import ctypes
import json
import re
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUdeviceptr, CUfunction, CUjit_option, CUlimit, CUmodule, CUresult

from ... import ptx
from ...state import memory
from ...state.arguments import host_address, number
from ...state.attributes import attribute
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.fault_reports import put_report, take_report
from ...state.handles import Handles
from ...state.queue.scheduling import complete_context
from ..entry import entry
from .functions import LoadedFunction, functions

if TYPE_CHECKING:
    from ...state.contexts import Context
    from ...state.memory import Allocation

_LARGEST_TEXT = 1 << 30
# The first page is never mapped, so that null pointers with an offset are detected.
_LEAST_ADDRESS = 4096
# PTX has no register counts. The compiler of the image may add them, in one such comment per kernel.
_COUNTS = re.compile(r"^// cudart-py: registers (\S+)=(\d+) spills=(\d+) stack=(\d+)\s*$", re.MULTILINE)
# Functions of the device's runtime, which PTX declares if a kernel calls them, and the limits that can't be changed any
# more after a launch of such code.
_FIXING = re.compile(r"^\s*\.extern\s+\.func\b[^;]*?\b(vprintf|malloc|free)\b\s*[(;]", re.MULTILINE)
_FIXED_LIMITS = {
    "vprintf": CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE.value,
    "malloc": CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value,
    "free": CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value,
}
# Comments in JSON: the folder in which the source was compiled; and a list of the source's name, its text, and the line
# that compiled it, if it is not a file.
_FOLDER = re.compile(r"^// cudart-py: folder (\".*\")\s*$", re.MULTILINE)
_SOURCE = re.compile(r"^// cudart-py: source (\[.*\])\s*$", re.MULTILINE)
_MACHINE_CODE = {b"\x7fELF": "a cubin", b"\x50\xed\x55\xba": "a fat binary"}


class LoadedModule:
    """A loaded module: its kernels and the addresses of its variables."""

    def __init__(self, context: Context, code: ptx.Module, text: str) -> None:
        self.context = context
        self.code = code
        self.handle = 0
        self.fixed_limits = {_FIXED_LIMITS[name] for name in _FIXING.findall(text)}
        counts = {match[1]: (int(match[2]), int(match[4])) for match in _COUNTS.finditer(text)}
        self.functions: dict[str, LoadedFunction] = {}
        for name, kernel in code.entries.items():
            self.functions[name] = LoadedFunction(self, kernel, counts.get(name))
        self.variables: dict[str, Allocation] = {}
        self.symbols: dict[str, int] = {}

    def place_variables(self) -> None:
        """Allocate the variables and write their initial values."""
        for name, variable in self.code.variables.items():
            if variable.external:
                put_report(f"variable {name} is external, but the image does not define it")
                raise StatusError(CUresult.CUDA_ERROR_INVALID_PTX)
            # An array without a size has size 0 here; one byte gives it an address.
            kind = memory.MANAGED if variable.managed else memory.DEVICE
            allocation = memory.allocate(max(variable.size, 1), kind, self.context, counted=kind == memory.DEVICE)
            allocation.variable = name
            # Variables without an initial value are zero.
            allocation.shadow.initialised = True
            self.variables[name] = allocation
            self.symbols[name] = allocation.address
        for name, variable in self.code.variables.items():
            address = self.symbols[name]
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


def _text(image: Any) -> str:
    """Return the PTX of an image: a buffer, or the address of text that ends with a zero.

    Text is read from any address, as the driver does, except for addresses that no process can have.
    """
    if image is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if isinstance(image, int):
        if not _LEAST_ADDRESS <= image < 1 << 64:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        start = ctypes.string_at(image, 4)
        data = start if start in _MACHINE_CODE else ctypes.string_at(image)
    else:
        data = bytes(memoryview(image)[:_LARGEST_TEXT])
    kind = _MACHINE_CODE.get(data[:4])
    if kind is not None:
        put_report(f"the image is {kind}, machine code for a GPU; the simulator runs PTX only")
        raise StatusError(CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU)
    return data.split(b"\0")[0].decode("utf-8", "replace")


def _source(text: str) -> ptx.SourceText | None:
    """Return the information about the source that the compiler has added to an image, or None."""
    match = _SOURCE.search(text)
    if match is None:
        return None
    compiled_in = _FOLDER.search(text)
    try:
        name, source, origin = json.loads(match[1])
        folder = json.loads(compiled_in[1]) if compiled_in else ""
    except ValueError:  # the comment is from another program
        return None
    return ptx.SourceText(str(name), str(source), str(origin), str(folder))


def _load(image: Any) -> LoadedModule:
    context = current()
    text = _text(image)
    try:
        if ".version" not in text:
            raise ptx.PtxError("the image is not PTX: it has no .version")
        code = ptx.load_module(text, _source(text))
    except ptx.PtxVersionError as error:
        put_report(str(error))
        raise StatusError(CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION) from None
    except ptx.PtxError as error:
        put_report(str(error))
        raise StatusError(CUresult.CUDA_ERROR_INVALID_PTX) from None
    except ptx.UnsupportedError as error:
        put_report(str(error))
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED) from None
    _check_target(code.target)
    module = LoadedModule(context, code, text)
    try:
        module.place_variables()
    except StatusError:
        module.unload()
        raise
    module.handle = modules.add(module)
    for function in module.functions.values():
        function.handle = functions.add(function)
    return module


def _check_target(target: str) -> None:
    """Refuse PTX for an architecture that is newer than the device or whose code does not run on the device."""
    device = 10 * attribute("COMPUTE_CAPABILITY_MAJOR") + attribute("COMPUTE_CAPABILITY_MINOR")
    number, suffix = int(target.removeprefix("sm_").rstrip("af")), target[-1]
    # Code with the suffix "a" runs only on that architecture, and code with the suffix "f" on its family.
    fits = number == device if suffix == "a" else number // 10 == device // 10 if suffix == "f" else True
    if number > device or not fits:
        put_report(f"the PTX is for {target}, and the device is sm_{device}")
        raise StatusError(CUresult.CUDA_ERROR_INVALID_PTX)


@entry(values=1)
def cuModuleLoadData(image: Any) -> Any:
    """Load PTX into the current context (cuModuleLoadData)."""
    return CUmodule(_load(image).handle)


@entry(values=1)
def cuModuleLoadDataEx(image: Any, numOptions: Any, options: Any, optionValues: Any) -> Any:
    """Load PTX; of the options, only those for an error log have an effect (cuModuleLoadDataEx)."""
    given = dict(zip(options or (), optionValues or (), strict=False))
    if number(numOptions) != len(given):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    try:
        return CUmodule(_load(image).handle)
    except StatusError:
        _fill_log(given)
        raise


def _fill_log(options: dict[Any, Any]) -> None:
    buffer = options.get(CUjit_option.CU_JIT_ERROR_LOG_BUFFER)
    room = number(options.get(CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES))
    report = take_report()
    if report is None:
        return
    put_report(report)
    if isinstance(buffer, (bytes, bytearray)) and 0 < room <= len(buffer):
        text = report.encode()[: room - 1] + b"\0"
        # The bindings also write into bytes objects.
        address = host_address(buffer)
        ctypes.memmove(address, text, len(text))


@entry(frees=True, unsafe=True)
def cuModuleUnload(hmod: Any) -> None:
    """Complete the context's work and unload a module (cuModuleUnload)."""
    module = modules.find(hmod)
    context = module.context
    if context.sticky is None:
        complete_context(context, freeing=True)
    modules.remove(module.handle)
    module.unload()


def _name(name: Any) -> str:
    text = bytes(name) if not isinstance(name, str) else name.encode()
    return text.split(b"\0")[0].decode("utf-8", "replace")


@entry(values=1)
def cuModuleGetFunction(hmod: Any, name: Any) -> Any:
    """Return a module's kernel by name (cuModuleGetFunction)."""
    module = modules.find(hmod)
    current()
    if name is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    function = module.functions.get(_name(name))
    if function is None:
        raise StatusError(CUresult.CUDA_ERROR_NOT_FOUND)
    return CUfunction(function.handle)


@entry(values=2)
def cuModuleGetGlobal(hmod: Any, name: Any) -> tuple[Any, int]:
    """Return the address and size of a module's variable (cuModuleGetGlobal)."""
    module = modules.find(hmod)
    current()
    if name is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    key = _name(name)
    if key not in module.variables:
        raise StatusError(CUresult.CUDA_ERROR_NOT_FOUND)
    return CUdeviceptr(module.symbols[key]), module.code.variables[key].size


@entry(values=1)
def cuModuleGetFunctionCount(mod: Any) -> int:
    """Return the number of a module's kernels (cuModuleGetFunctionCount)."""
    return len(modules.find(mod).functions)


@entry(values=1)
def cuModuleEnumerateFunctions(numFunctions: Any, mod: Any) -> list[Any]:
    """Return up to `numFunctions` of a module's kernels (cuModuleEnumerateFunctions)."""
    wanted = number(numFunctions)
    found = [CUfunction(function.handle) for function in modules.find(mod).functions.values()][:wanted]
    return found + [CUfunction() for _ in range(wanted - len(found))]


def end_context(context: Context) -> None:
    """Forget the modules of a context, whose memory has already been freed."""
    for module in modules.remove_all(lambda module: module.context is context):
        module.variables.clear()
        module.unload()
