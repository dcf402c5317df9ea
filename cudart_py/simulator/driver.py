"""The complete list of the driver's functions, each imported from the module that defines it.

Names, parameters and results are those of `cuda.bindings.driver`. In addition, the module has:

- `CAPABILITIES`: the abilities that this driver has and a GPU's driver lacks;
- `take_report()`: the text of the last fault; and `lost_by()`: at any later time, the report of what ended the context;
- `begin_profile()`, `complete_profile()` and `end_profile()`: counters of what launches do;
- `host_time()`: the time at an event in the host's clock;
- `set_sanitizer()`: what happens to mistakes that hardware does not report;
- `in_finalizer()`: calls a function whose driver calls leave their errors for a later call;
- `in_a_call()`: whether the thread is in the middle of a call, in which other calls are refused;
- `has_unwaited()`: returns whether there is work that has not run;
- `note_exit()`: reports the work that the program never waited for;
- `run_queued()`: runs the work that is queued, for hosts that wait without a call;
- `reset()`: resets all devices; and `drop_bytes()`: frees memory that was in use at the reset.
"""

from __future__ import annotations

from .calls.contexts.contexts import (
    cuCtxDisablePeerAccess,
    cuCtxEnablePeerAccess,
    cuCtxGetCurrent,
    cuCtxGetDevice,
    cuCtxGetFlags,
    cuCtxGetStreamPriorityRange,
    cuCtxPopCurrent,
    cuCtxPushCurrent,
    cuCtxResetPersistingL2Cache,
    cuCtxSetCurrent,
    cuCtxSynchronize,
    cuDevicePrimaryCtxGetState,
    cuDevicePrimaryCtxRelease,
    cuDevicePrimaryCtxReset,
    cuDevicePrimaryCtxRetain,
    cuDevicePrimaryCtxSetFlags,
)
from .calls.contexts.created_contexts import (
    cuCtxAttach,
    cuCtxCreate,
    cuCtxDestroy,
    cuCtxDetach,
    cuCtxGetApiVersion,
    cuCtxGetCacheConfig,
    cuCtxGetId,
    cuCtxGetSharedMemConfig,
    cuCtxSetCacheConfig,
    cuCtxSetFlags,
    cuCtxSetSharedMemConfig,
)
from .calls.contexts.devices import (
    cuDeviceCanAccessPeer,
    cuDeviceComputeCapability,
    cuDeviceGet,
    cuDeviceGetAttribute,
    cuDeviceGetByPCIBusId,
    cuDeviceGetCount,
    cuDeviceGetName,
    cuDeviceGetP2PAttribute,
    cuDeviceGetPCIBusId,
    cuDeviceGetTexture1DLinearMaxWidth,
    cuDeviceGetUuid,
    cuDeviceTotalMem,
    cuDriverGetVersion,
    cuInit,
)
from .calls.contexts.green_contexts import (
    cuCtxGetDevResource,
    cuDeviceGetDevResource,
    cuDevResourceGenerateDesc,
    cuDevSmResourceSplitByCount,
    cuGreenCtxCreate,
    cuGreenCtxDestroy,
    cuGreenCtxGetDevResource,
    cuGreenCtxRecordEvent,
    cuGreenCtxStreamCreate,
    cuGreenCtxWaitEvent,
    cuStreamGetGreenCtx,
)
from .calls.contexts.ipc import (
    cuIpcCloseMemHandle,
    cuIpcGetEventHandle,
    cuIpcGetMemHandle,
    cuIpcOpenEventHandle,
    cuIpcOpenMemHandle,
    cuMemPoolExportPointer,
    cuMemPoolExportToShareableHandle,
    cuMemPoolImportFromShareableHandle,
    cuMemPoolImportPointer,
)
from .calls.contexts.limits import cuCtxGetLimit, cuCtxSetLimit
from .calls.contexts.profiler import cuProfilerStart, cuProfilerStop
from .calls.contexts.resets import drop_bytes, reset
from .calls.contexts.unsupported import (
    cuCheckpointProcessCheckpoint,
    cuCheckpointProcessGetRestoreThreadId,
    cuCheckpointProcessGetState,
    cuCheckpointProcessLock,
    cuCheckpointProcessRestore,
    cuCheckpointProcessUnlock,
    cuCoredumpGetAttribute,
    cuCoredumpGetAttributeGlobal,
    cuCoredumpSetAttribute,
    cuCoredumpSetAttributeGlobal,
    cuMulticastAddDevice,
    cuMulticastBindMem,
    cuMulticastCreate,
    cuMulticastGetGranularity,
    cuMulticastUnbind,
)
from .calls.copies.array_copies import (
    cuMemcpyAtoA,
    cuMemcpyAtoD,
    cuMemcpyAtoH,
    cuMemcpyAtoHAsync,
    cuMemcpyDtoA,
    cuMemcpyHtoA,
    cuMemcpyHtoAAsync,
)
from .calls.copies.batches import cuMemcpy3DBatchAsync, cuMemcpyBatchAsync
from .calls.copies.managed_batches import (
    cuMemDiscardAndPrefetchBatchAsync,
    cuMemDiscardBatchAsync,
    cuMemPrefetchBatchAsync,
)
from .calls.errors import cuGetErrorName, cuGetErrorString
from .calls.graphs.additions import (
    cuGraphAddBatchMemOpNode,
    cuGraphAddChildGraphNode,
    cuGraphAddEmptyNode,
    cuGraphAddEventRecordNode,
    cuGraphAddEventWaitNode,
    cuGraphAddHostNode,
    cuGraphAddKernelNode,
    cuGraphAddMemAllocNode,
    cuGraphAddMemcpyNode,
    cuGraphAddMemFreeNode,
    cuGraphAddMemsetNode,
    cuGraphAddNode,
)
from .calls.graphs.capture import (
    cuStreamBeginCapture,
    cuStreamBeginCaptureToGraph,
    cuStreamEndCapture,
    cuStreamGetCaptureInfo,
    cuStreamIsCapturing,
    cuStreamUpdateCaptureDependencies,
    cuThreadExchangeStreamCaptureMode,
)
from .calls.graphs.conditionals import (
    cuGraphConditionalHandleCreate,
)
from .calls.graphs.execution.executables import (
    cuGraphExecDestroy,
    cuGraphExecGetFlags,
    cuGraphExecUpdate,
    cuGraphInstantiate,
    cuGraphInstantiateWithParams,
    cuGraphLaunch,
    cuGraphUpload,
)
from .calls.graphs.graphs import (
    cuGraphAddDependencies,
    cuGraphChildGraphNodeGetGraph,
    cuGraphClone,
    cuGraphCreate,
    cuGraphDebugDotPrint,
    cuGraphDestroy,
    cuGraphDestroyNode,
    cuGraphGetEdges,
    cuGraphGetNodes,
    cuGraphGetRootNodes,
    cuGraphNodeFindInClone,
    cuGraphNodeGetDependencies,
    cuGraphNodeGetDependentNodes,
    cuGraphNodeGetType,
    cuGraphRemoveDependencies,
)
from .calls.graphs.kernel_attributes import (
    cuGraphKernelNodeCopyAttributes,
    cuGraphKernelNodeGetAttribute,
    cuGraphKernelNodeSetAttribute,
)
from .calls.graphs.node_changes import (
    cuGraphExecBatchMemOpNodeSetParams,
    cuGraphExecChildGraphNodeSetParams,
    cuGraphExecEventRecordNodeSetEvent,
    cuGraphExecEventWaitNodeSetEvent,
    cuGraphExecHostNodeSetParams,
    cuGraphExecKernelNodeSetParams,
    cuGraphExecMemcpyNodeSetParams,
    cuGraphExecMemsetNodeSetParams,
    cuGraphExecNodeSetParams,
    cuGraphNodeGetEnabled,
    cuGraphNodeSetEnabled,
)
from .calls.graphs.node_settings import (
    cuGraphBatchMemOpNodeSetParams,
    cuGraphEventRecordNodeGetEvent,
    cuGraphEventRecordNodeSetEvent,
    cuGraphEventWaitNodeGetEvent,
    cuGraphEventWaitNodeSetEvent,
    cuGraphHostNodeGetParams,
    cuGraphHostNodeSetParams,
    cuGraphKernelNodeGetParams,
    cuGraphKernelNodeSetParams,
    cuGraphMemAllocNodeGetParams,
    cuGraphMemcpyNodeGetParams,
    cuGraphMemcpyNodeSetParams,
    cuGraphMemFreeNodeGetParams,
    cuGraphMemsetNodeGetParams,
    cuGraphMemsetNodeSetParams,
    cuGraphNodeSetParams,
)
from .calls.graphs.user_objects import (
    cuGraphReleaseUserObject,
    cuGraphRetainUserObject,
    cuUserObjectCreate,
    cuUserObjectRelease,
    cuUserObjectRetain,
)
from .calls.idle import run_queued
from .calls.launches.debugger import attach_debugger, detach_debugger
from .calls.launches.host_functions import cuLaunchHostFunc
from .calls.launches.launches import cuLaunchCooperativeKernel, cuLaunchKernel, cuLaunchKernelEx
from .calls.launches.occupancy import (
    cuOccupancyAvailableDynamicSMemPerBlock,
    cuOccupancyMaxActiveBlocksPerMultiprocessor,
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    cuOccupancyMaxActiveClusters,
    cuOccupancyMaxPotentialBlockSize,
    cuOccupancyMaxPotentialClusterSize,
)
from .calls.launches.profiles import begin_profile, complete_profile, end_profile
from .calls.logs import (
    cuLogsCurrent,
    cuLogsDumpToFile,
    cuLogsDumpToMemory,
    cuLogsRegisterCallback,
    cuLogsUnregisterCallback,
)
from .calls.memory.cuda_arrays import (
    cuArray3DCreate,
    cuArray3DGetDescriptor,
    cuArrayCreate,
    cuArrayDestroy,
    cuArrayGetDescriptor,
)
from .calls.memory.device_memory import cuMemAlloc, cuMemAllocPitch, cuMemFree, cuMemGetInfo
from .calls.memory.fills import (
    cuMemsetD2D8,
    cuMemsetD2D8Async,
    cuMemsetD2D16,
    cuMemsetD2D16Async,
    cuMemsetD2D32,
    cuMemsetD2D32Async,
    cuMemsetD8,
    cuMemsetD8Async,
    cuMemsetD16,
    cuMemsetD16Async,
    cuMemsetD32,
    cuMemsetD32Async,
)
from .calls.memory.graph_memory import (
    cuDeviceGetGraphMemAttribute,
    cuDeviceGraphMemTrim,
    cuDeviceSetGraphMemAttribute,
)
from .calls.memory.host_memory import (
    cuMemAllocHost,
    cuMemFreeHost,
    cuMemHostAlloc,
    cuMemHostGetDevicePointer,
    cuMemHostGetFlags,
    cuMemHostRegister,
    cuMemHostUnregister,
)
from .calls.memory.managed import (
    cuMemAdvise,
    cuMemAllocManaged,
    cuMemPrefetchAsync,
    cuMemRangeGetAttribute,
    cuMemRangeGetAttributes,
    cuStreamAttachMemAsync,
)
from .calls.memory.pointers import (
    cuMemGetAddressRange,
    cuMemGetHandleForAddressRange,
    cuPointerGetAttribute,
    cuPointerGetAttributes,
    cuPointerSetAttribute,
)
from .calls.memory.pools import (
    cuDeviceGetDefaultMemPool,
    cuDeviceGetMemPool,
    cuDeviceSetMemPool,
    cuMemGetDefaultMemPool,
    cuMemGetMemPool,
    cuMemPoolCreate,
    cuMemPoolDestroy,
    cuMemPoolGetAccess,
    cuMemPoolGetAttribute,
    cuMemPoolSetAccess,
    cuMemPoolSetAttribute,
    cuMemPoolTrimTo,
    cuMemSetMemPool,
)
from .calls.memory.stream_ordered import cuMemAllocAsync, cuMemAllocFromPoolAsync, cuMemFreeAsync
from .calls.memory.tensor_maps import cuTensorMapEncodeIm2col, cuTensorMapEncodeTiled, cuTensorMapReplaceAddress
from .calls.memory.transfers.box_copies import (
    cuMemcpy2D,
    cuMemcpy2DAsync,
    cuMemcpy2DUnaligned,
    cuMemcpy3D,
    cuMemcpy3DAsync,
    cuMemcpy3DPeer,
    cuMemcpy3DPeerAsync,
)
from .calls.memory.transfers.copies import (
    cuMemcpy,
    cuMemcpyAsync,
    cuMemcpyDtoD,
    cuMemcpyDtoDAsync,
    cuMemcpyDtoH,
    cuMemcpyDtoHAsync,
    cuMemcpyHtoD,
    cuMemcpyHtoDAsync,
    cuMemcpyPeer,
    cuMemcpyPeerAsync,
)
from .calls.memory.virtual_memory import (
    cuMemAddressFree,
    cuMemAddressReserve,
    cuMemCreate,
    cuMemExportToShareableHandle,
    cuMemGetAccess,
    cuMemGetAllocationGranularity,
    cuMemGetAllocationPropertiesFromHandle,
    cuMemImportFromShareableHandle,
    cuMemMap,
    cuMemRelease,
    cuMemRetainAllocationHandle,
    cuMemSetAccess,
    cuMemUnmap,
)
from .calls.modules.functions import (
    cuFuncGetAttribute,
    cuFuncGetModule,
    cuFuncGetName,
    cuFuncGetParamCount,
    cuFuncGetParamInfo,
    cuFuncIsLoaded,
    cuFuncLoad,
    cuFuncSetAttribute,
    cuFuncSetCacheConfig,
    cuFuncSetSharedMemConfig,
)
from .calls.modules.kernels import (
    cuKernelGetAttribute,
    cuKernelGetFunction,
    cuKernelGetLibrary,
    cuKernelGetName,
    cuKernelGetParamCount,
    cuKernelGetParamInfo,
    cuKernelSetAttribute,
    cuKernelSetCacheConfig,
)
from .calls.modules.libraries import (
    cuLibraryEnumerateKernels,
    cuLibraryGetGlobal,
    cuLibraryGetKernel,
    cuLibraryGetKernelCount,
    cuLibraryGetManaged,
    cuLibraryGetModule,
    cuLibraryGetUnifiedFunction,
    cuLibraryLoadData,
    cuLibraryLoadFromFile,
    cuLibraryUnload,
)
from .calls.modules.linking import cuLinkAddData, cuLinkAddFile, cuLinkComplete, cuLinkCreate, cuLinkDestroy
from .calls.modules.modules import (
    cuModuleEnumerateFunctions,
    cuModuleGetFunction,
    cuModuleGetFunctionCount,
    cuModuleGetGlobal,
    cuModuleGetLoadingMode,
    cuModuleLoad,
    cuModuleLoadData,
    cuModuleLoadDataEx,
    cuModuleLoadFatBinary,
    cuModuleUnload,
)
from .calls.streams.events import (
    cuCtxRecordEvent,
    cuCtxWaitEvent,
    cuEventCreate,
    cuEventDestroy,
    cuEventElapsedTime,
    cuEventQuery,
    cuEventRecord,
    cuEventRecordWithFlags,
    cuEventSynchronize,
    cuStreamWaitEvent,
    host_time,
)
from .calls.streams.memory_operations import (
    cuStreamBatchMemOp,
    cuStreamWaitValue32,
    cuStreamWaitValue64,
    cuStreamWriteValue32,
    cuStreamWriteValue64,
)
from .calls.streams.stream_attributes import cuStreamCopyAttributes, cuStreamGetAttribute, cuStreamSetAttribute
from .calls.streams.streams import (
    cuStreamCreate,
    cuStreamCreateWithPriority,
    cuStreamDestroy,
    cuStreamGetCtx,
    cuStreamGetDevice,
    cuStreamGetFlags,
    cuStreamGetId,
    cuStreamGetPriority,
    cuStreamQuery,
    cuStreamSynchronize,
)
from .calls.textures.mipmaps import cuMipmappedArrayCreate, cuMipmappedArrayDestroy, cuMipmappedArrayGetLevel
from .calls.textures.surfaces import cuSurfObjectCreate, cuSurfObjectDestroy
from .calls.textures.textures import cuTexObjectCreate, cuTexObjectDestroy
from .calls.unwaited import has_unwaited, note_exit
from .checks.findings import set_sanitizer
from .state.contexts import in_a_call, in_finalizer, lost_by, take_report

CAPABILITIES: frozenset[str] = frozenset({"debugger", "in_process", "profile", "reset"})
