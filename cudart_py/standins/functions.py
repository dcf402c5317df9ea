"""The functions of each stand-in: their C types, in the order in which the table has them."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from .c_types import c_type
from .declarations import Declaration, Parameter, declarations, parameters_of

# Streams have number 0 by default; variants of functions with these suffixes mean the thread's own default stream.
PER_THREAD_SUFFIXES = ("_ptsz", "_ptds")
MAJOR = 13
# nvJitLink.h of 13.x calls the functions by names that end in _13_x.
_MINOR_VERSIONS = 10
_VERSION = re.compile(r"_v\d+$")
# channel_format.c has the former, which returns a structure, and start.c the latter, which must know its caller.
_IN_C = ("cudaCreateChannelDesc", "cuGetExportTable")


@dataclass(frozen=True)
class Function:
    """A function that a stand-in exports: its declaration, and the ctypes types of its result and parameters."""

    declaration: Declaration
    result: Any
    types: tuple[Any, ...]

    @property
    def symbol(self) -> str:
        """Return the name that the library exports."""
        return self.declaration.symbol

    @property
    def prototype(self) -> Any:
        """Return the ctypes class of functions of this type."""
        return ctypes.CFUNCTYPE(self.result, *self.types)


@functools.cache
def driver_functions() -> dict[str, Function]:
    """Return the functions of libcuda by name."""
    from cuda.bindings import driver  # imported late: it takes long, and the command does not always need it

    declared = [item for item in driver_declarations().values() if item.symbol not in _IN_C]
    return _by_name([*declared, *_without_version(declared)], driver)


@functools.cache
def driver_declarations() -> dict[str, Declaration]:
    """Return the declarations of libcuda's functions by name, whichever version of the bindings is installed."""
    return {item.symbol: item for item in _EARLIER} | declarations("driver")


def _without_version(declared: Sequence[Declaration]) -> list[Declaration]:
    """Return the functions that have a version in their names, under the names of their first version.

    Programs may look these up at run time. Their types have changed since CUDA 3, which is not supported.
    """
    first = {_VERSION.sub("", item.symbol): item for item in reversed(declared)}
    known = {item.symbol for item in declared}
    return [dataclasses.replace(item, symbol=name) for name, item in first.items() if name not in known]


@functools.cache
def runtime_functions() -> dict[str, Function]:
    """Return the functions of libcudart by name, with their variants for the thread's own default stream."""
    from cuda.bindings import runtime  # imported late, as above

    declared = [item for item in declarations("runtime").values() if item.symbol not in _IN_C]
    variants = [
        dataclasses.replace(item, symbol=item.symbol + suffix)
        for item in (*declared, *_RUNTIME_ONLY)
        for suffix in ("", *PER_THREAD_SUFFIXES)
    ]
    return _by_name(variants, runtime)


@functools.cache
def linker_functions() -> dict[str, Function]:
    """Return the functions of libnvJitLink by name, including the names that its header gives them for each version."""
    from cuda.bindings import nvjitlink  # imported late, as above

    variants = [
        dataclasses.replace(item, symbol=name)
        for item in declarations("nvjitlink").values()
        for name in (item.symbol, *(f"__{item.symbol}_{MAJOR}_{minor}" for minor in range(_MINOR_VERSIONS)))
    ]
    return _by_name(variants, nvjitlink)


@functools.cache
def compiler_functions() -> dict[str, Function]:
    """Return the functions of libnvrtc by name."""
    from cuda.bindings import nvrtc  # imported late, as above

    return _by_name(declarations("nvrtc").values(), nvrtc)


def _by_name(declared: Iterable[Declaration], bindings: ModuleType) -> dict[str, Function]:
    functions = {}
    for declaration in declared:
        types = tuple(c_type(parameter.type, bindings) for parameter in declaration.parameters)
        functions[declaration.symbol] = Function(declaration, c_type(declaration.result, bindings), types)
    return functions


def _declared(symbol: str, parameters: str, result: str = "int") -> Declaration:
    return Declaration(symbol, parameters_of(parameters), result)


# Earlier versions of functions, which libcuda still exports and programs look up by name. Not all versions of the
# bindings declare them.
_EARLIER = (
    _declared("cuCtxCreate_v2", "CUcontext* pctx, unsigned int flags, CUdevice dev", "CUresult"),
    _declared(
        "cuStreamGetCaptureInfo_v2",
        "CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out, CUgraph* graph_out, "
        "const CUgraphNode** dependencies_out, size_t* numDependencies_out",
        "CUresult",
    ),
)
_LAUNCH = "const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem, cudaStream_t stream"
_FROM_SYMBOL = "void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind"
_TO_SYMBOL = "const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind"
_NEW_NODE = (
    "cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies, size_t numDependencies"
)
_REGISTERED = "void** handle, char* hostVar, char* deviceAddress, const char* deviceName, int ext, size_t size"

# Functions that some versions of the bindings lack, most of them because only C++ has symbols and `<<<>>>`: those of
# cuda_runtime_api.h, and the ones that nvcc's code calls, which crt/host_runtime.h declares.
_RUNTIME_ONLY = (
    _declared("cudaLaunchKernel", _LAUNCH),
    _declared("cudaLaunchCooperativeKernel", _LAUNCH),
    _declared("cudaLaunchKernelExC", "const cudaLaunchConfig_t* config, const void* func, void** args"),
    _declared("cudaFuncGetName", "const char** name, const void* func"),
    _declared("cudaFuncGetParamInfo", "const void* func, size_t paramIndex, size_t* paramOffset, size_t* paramSize"),
    _declared("cudaGetFuncBySymbol", "cudaFunction_t* functionPtr, const void* symbolPtr"),
    _declared("cudaGetSymbolAddress", "void** devPtr, const void* symbol"),
    _declared("cudaGetSymbolSize", "size_t* size, const void* symbol"),
    _declared("cudaMemcpyFromSymbol", _FROM_SYMBOL),
    _declared("cudaMemcpyFromSymbolAsync", f"{_FROM_SYMBOL}, cudaStream_t stream"),
    _declared("cudaMemcpyToSymbol", _TO_SYMBOL),
    _declared("cudaMemcpyToSymbolAsync", f"{_TO_SYMBOL}, cudaStream_t stream"),
    _declared("cudaGraphAddMemcpyNodeFromSymbol", f"{_NEW_NODE}, {_FROM_SYMBOL}"),
    _declared("cudaGraphAddMemcpyNodeToSymbol", f"{_NEW_NODE}, {_TO_SYMBOL}"),
    _declared("cudaGraphMemcpyNodeSetParamsFromSymbol", f"cudaGraphNode_t node, {_FROM_SYMBOL}"),
    _declared("cudaGraphMemcpyNodeSetParamsToSymbol", f"cudaGraphNode_t node, {_TO_SYMBOL}"),
    _declared(
        "cudaGraphExecMemcpyNodeSetParamsFromSymbol",
        f"cudaGraphExec_t hGraphExec, cudaGraphNode_t node, {_FROM_SYMBOL}",
    ),
    _declared(
        "cudaGraphExecMemcpyNodeSetParamsToSymbol", f"cudaGraphExec_t hGraphExec, cudaGraphNode_t node, {_TO_SYMBOL}"
    ),
    _declared("cudaOccupancyMaxActiveClusters", "int* numClusters, const void* func, const cudaLaunchConfig_t* config"),
    _declared(
        "cudaOccupancyMaxPotentialClusterSize", "int* clusterSize, const void* func, const cudaLaunchConfig_t* config"
    ),
    _declared("cudaSetValidDevices", "int* device_arr, int len"),
    _declared("__cudaRegisterFatBinary", "void* fatCubin", "void*"),
    _declared("__cudaRegisterFatBinaryEnd", "void** handle", "void"),
    _declared("__cudaUnregisterFatBinary", "void** handle", "void"),
    _declared("__cudaInitModule", "void** handle", "char"),
    _declared("__cudaRegisterVar", f"{_REGISTERED}, int constant, int global", "void"),
    _declared("__cudaRegisterManagedVar", f"{_REGISTERED}, int constant, int global", "void"),
    _declared(
        "__cudaRegisterFunction",
        "void** handle, const char* hostFun, char* deviceFun, const char* deviceName, int thread_limit, void* tid, "
        "void* bid, void* bDim, void* gDim, int* wSize",
        "void",
    ),
    _declared("__cudaPushCallConfiguration", "dim3 gridDim, dim3 blockDim, size_t sharedMem, void* stream"),
    _declared("__cudaPopCallConfiguration", "void* gridDim, void* blockDim, size_t* sharedMem, void* stream"),
    _declared("__cudaGetKernel", "cudaKernel_t* kernel, const void* func"),
    _declared(
        "__cudaLaunchKernel",
        "cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem, cudaStream_t stream",
    ),
)
_STREAM_TYPES = ("CUstream", "cudaStream_t")


def stream_parameters(parameters: Sequence[Parameter]) -> list[int]:
    """Return the indices of the parameters that are streams."""
    return [index for index, parameter in enumerate(parameters) if parameter.type in _STREAM_TYPES]
