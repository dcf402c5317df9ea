"""The functions of libcuda that the rule of `marshalling` does not describe, each with the reason."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver as bindings
from cuda.bindings.driver import CUresult

from ...driver import backend
from ..foreign_memory import read, read_array, read_string, write, write_array
from .marshalling import STRUCTURE_BYTES, Implementation, copy_structure, structures
from .procedures import get_proc_address, get_proc_address_v2

_INVALID_VALUE = int(CUresult.CUDA_ERROR_INVALID_VALUE)
_INVALID_CONTEXT = int(CUresult.CUDA_ERROR_INVALID_CONTEXT)
_EDGE_BYTES = STRUCTURE_BYTES["CUgraphEdgeData"]
# A tensor map has at most this many dimensions, and the arrays that describe it have one element for each.
_MOST_AXES = 5

# Arrays and callbacks that a function has handed out stay valid for the life of the process.
_kept: list[Any] = []


def _simulator() -> Any:
    return backend.chosen().functions


# In a graph's queries, one pointer gives the capacity of the arrays and receives the number of elements.


def listing(name: str, arrays: int) -> Implementation:
    """Return a query of a graph: a handle, `arrays` arrays, and a pointer to the number of their elements."""

    def call(handle: int, *pointers: int) -> int:
        *places, counted = pointers
        if not counted:
            return _INVALID_VALUE
        room = read(counted) if places[0] else 0
        status, *values, count = getattr(_simulator(), name)(handle, room)
        if not status:
            written = min(room, count)
            for place, listed in zip(places, values, strict=False):
                _write_elements(place, listed[:written])
            write(counted, written if places[0] else count)
        return int(status)

    return call


def _write_elements(place: int, values: list[Any]) -> None:
    if place and values and isinstance(values[0], bindings.CUgraphEdgeData):
        for index, value in enumerate(values):
            copy_structure(bindings.CUgraphEdgeData(_ptr=place + index * _EDGE_BYTES), value)
    else:
        write_array(place, values)


def _instantiate(executable: int, graph: int, flags: int) -> int:
    # The bindings call it by the name that the header gives it, cuGraphInstantiate.
    status, created = _simulator().cuGraphInstantiate(graph, flags)
    if not status:
        write(executable, created)
    return int(status)


def _capture_info(stream: int, status_out: int, identity: int, graph: int, nodes: int, edges: int, counted: int) -> int:
    status, state, number, captured, before, data, count = _simulator().cuStreamGetCaptureInfo(stream)
    if status:
        return int(status)
    write(status_out, state, ctypes.c_int)
    write(identity, number, ctypes.c_uint64)
    write(graph, captured)
    write(nodes, _kept_array([int(node) for node in before]))
    if edges:
        room = (ctypes.c_char * (_EDGE_BYTES * len(data)))()
        _kept.append(room)
        _write_elements(ctypes.addressof(room), data)
        write(edges, ctypes.addressof(room))
    write(counted, count)
    return 0


def _capture_info_v2(stream: int, status_out: int, identity: int, graph: int, nodes: int, counted: int) -> int:
    return _capture_info(stream, status_out, identity, graph, nodes, 0, counted)


def _kept_array(values: list[int]) -> int:
    if not values:
        return 0
    array = (ctypes.c_size_t * len(values))(*values)
    _kept.append(array)
    return ctypes.addressof(array)


# A void pointer receives an attribute, whose size depends on the attribute.


def _pool_attribute(pool: int, attribute: int, value: int) -> int:
    status, found = _simulator().cuMemPoolGetAttribute(pool, attribute)
    if not status:
        write(value, found, ctypes.c_int if isinstance(found, int) else ctypes.c_uint64)
    return int(status)


def _set_pool_attribute(pool: int, attribute: int, value: int) -> int:
    if not value:
        return _INVALID_VALUE
    status, found = _simulator().cuMemPoolGetAttribute(pool, attribute)
    if status:
        return int(status)
    wanted = read(value, ctypes.c_int if isinstance(found, int) else ctypes.c_uint64)
    return int(_simulator().cuMemPoolSetAttribute(pool, attribute, wanted)[0])


_ATTRIBUTE = bindings.CUpointer_attribute
_POINTER_TYPES = {
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_MEMORY_TYPE.value: ctypes.c_uint,
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.value: ctypes.c_uint,
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_IS_MANAGED.value: ctypes.c_uint,
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL.value: ctypes.c_int,
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE.value: ctypes.c_uint,
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES.value: ctypes.c_uint64,
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_MAPPED.value: ctypes.c_uint,
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_ACCESS_FLAGS.value: ctypes.c_int,
    _ATTRIBUTE.CU_POINTER_ATTRIBUTE_BUFFER_ID.value: ctypes.c_uint64,
}


def _write_pointer_attribute(attribute: int, place: int, value: Any) -> None:
    write(place, value, _POINTER_TYPES.get(attribute, ctypes.c_size_t))


def _pointer_attribute(place: int, attribute: int, pointer: int) -> int:
    status, value = _simulator().cuPointerGetAttribute(attribute, pointer)
    if not status:
        _write_pointer_attribute(attribute, place, value)
    return int(status)


def _pointer_attributes(count: int, attributes: int, places: int, pointer: int) -> int:
    wanted = read_array(attributes, count, ctypes.c_int)
    status, values = _simulator().cuPointerGetAttributes(count, wanted, pointer)
    if not status:
        for attribute, place, value in zip(wanted, read_array(places, count), values, strict=True):
            _write_pointer_attribute(attribute, place, value)
    return int(status)


def _range_attribute(place: int, size: int, attribute: int, pointer: int, count: int) -> int:
    status, value = _simulator().cuMemRangeGetAttribute(size, attribute, pointer, count)
    if not status:
        write_array(place, value if isinstance(value, list) else [value], ctypes.c_int)
    return int(status)


def _export(name: str) -> Implementation:
    """Return an implementation that stores a file descriptor of memory, or of a pool."""

    def export(place: int, handle: int, kind: int, flags: int) -> int:
        status, descriptor = getattr(_simulator(), name)(handle, kind, flags)
        if not status:
            write(place, descriptor, ctypes.c_int)
        return int(status)

    return export


def _stream_attribute(stream: int, attribute: int, place: int) -> int:
    status, value = _simulator().cuStreamGetAttribute(stream, attribute)
    if not status:
        ctypes.memmove(place, value.getPtr(), ctypes.sizeof(ctypes.c_char * 64))
    return int(status)


# Arrays of structures and options that the bindings hold in Python lists.


def launch_config(address: int) -> Any:
    """Return the bindings' object for a CUlaunchConfig with its attributes; None for a null pointer."""
    if not address:
        return None
    given = bindings.CUlaunchConfig(_ptr=address)
    result = bindings.CUlaunchConfig()
    for name in ("gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ", "sharedMemBytes"):
        setattr(result, name, getattr(given, name))
    result.hStream = given.hStream
    # The list is empty for an object that Python has not filled; its address follows the six extents, size and stream.
    attributes = read(address + 40)
    result.attrs = structures("CUlaunchAttribute", attributes, given.numAttrs) or []
    result.numAttrs = given.numAttrs
    return result


def _encode_tiled(place: int, kind: int, axes: int, address: int, *more: int) -> int:
    sizes, strides, box, steps, *modes = more
    count = axes if axes <= _MOST_AXES else 0  # the driver refuses more, and reads no array then
    status, tensor_map = _simulator().cuTensorMapEncodeTiled(
        kind,
        axes,
        address,
        read_array(sizes, count, ctypes.c_uint64),
        # The driver ignores the stride of a single axis, but not a null pointer.
        read_array(strides, count - 1, ctypes.c_uint64) if count > 1 else [0] * bool(strides),
        read_array(box, count, ctypes.c_uint32),
        read_array(steps, count, ctypes.c_uint32),
        *modes,
    )
    if status:
        return int(status)
    if not place:
        return _INVALID_VALUE
    copy_structure(bindings.CUtensorMap(_ptr=place), tensor_map)
    return 0


def _launch_ex(config: int, function: int, parameters: int, extra: int) -> int:
    return int(_simulator().cuLaunchKernelEx(launch_config(config), function, parameters, extra)[0])


def _cluster_query(name: str) -> Implementation:
    def call(result: int, function: int, config: int) -> int:
        status, value = getattr(_simulator(), name)(function, launch_config(config))
        if not status:
            write(result, value, ctypes.c_int)
        return int(status)

    return call


def _module_functions(functions: int, count: int, module: int) -> int:
    status, found = _simulator().cuModuleEnumerateFunctions(count, module)
    if not status:
        write_array(functions, found)
    return int(status)


def _create_context(place: int, flags: int, device: int) -> int:
    """Create a context without parameters, as programs of CUDA 12 do."""
    status, context = _simulator().cuCtxCreate(None, flags, device)
    if not status:
        write(place, context)
    return int(status)


# Calls with a context that may be null, which means the current one.


def _of_context(name: str, results: int) -> Implementation:
    def call(*arguments: int) -> int:
        *places, context = arguments
        simulator = _simulator()
        if context:
            (status,) = simulator.cuCtxPushCurrent(context)
            if status:
                return int(status)
        status, *values = getattr(simulator, name)()
        if context:
            simulator.cuCtxPopCurrent()
        if not status:
            for place, value in zip(places[:results], values, strict=True):
                write(place, value, ctypes.c_int)
        return int(status)

    return call


# Host functions.


def _launch_host_function(stream: int, function: int, data: int, _mode: int = 0) -> int:
    return int(_simulator().cuLaunchHostFunc(stream, function, data)[0])


_STREAM_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t)
_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_size_t)


def _add_callback(stream: int, callback: int, data: int, _flags: int) -> int:
    """Call a function with the stream and a status, as host functions do not."""
    if not callback:
        return _INVALID_VALUE
    target = _STREAM_CALLBACK(callback)
    thunk = _HOST_FUNCTION(lambda passed: target(stream, 0, passed))
    _kept.append(thunk)
    address = ctypes.cast(thunk, ctypes.c_void_p).value
    return int(_simulator().cuLaunchHostFunc(stream, address, data)[0])


# An iterator of the error log has 32 bits, and calls move it.


def _logs_current(place: int, flags: int) -> int:
    status, iterator = _simulator().cuLogsCurrent(flags)
    if status:
        return int(status)
    if not place:
        return _INVALID_VALUE
    write(place, iterator, ctypes.c_uint)
    return 0


def _dump_log(iterator: int, buffer: int, size: int, flags: int) -> int:
    if not size:
        return _INVALID_VALUE
    status, _, written = _simulator().cuLogsDumpToMemory(_log_iterator(iterator), buffer, read(size), flags)
    write(size, written or 0)
    return int(status)


def _dump_log_to_file(iterator: int, path: int, flags: int) -> int:
    return int(_simulator().cuLogsDumpToFile(_log_iterator(iterator), read_string(path), flags)[0])


def _log_iterator(address: int) -> Any:
    return bindings.CUlogIterator(_ptr=address) if address else None


def _exchange_capture_mode(mode: int) -> int:
    if not mode:
        return _INVALID_VALUE
    status, before = _simulator().cuThreadExchangeStreamCaptureMode(read(mode, ctypes.c_int))
    if not status:
        write(mode, before, ctypes.c_int)
    return int(status)


SPECIAL: dict[str, Callable[..., int]] = {
    "cuCtxCreate_v2": _create_context,
    "cuCtxGetDevice_v2": _of_context("cuCtxGetDevice", 1),
    "cuCtxSynchronize_v2": _of_context("cuCtxSynchronize", 0),
    "cuGetProcAddress": get_proc_address,
    "cuGetProcAddress_v2": get_proc_address_v2,
    "cuGraphGetEdges_v2": listing("cuGraphGetEdges", 3),
    "cuGraphGetNodes": listing("cuGraphGetNodes", 1),
    "cuGraphGetRootNodes": listing("cuGraphGetRootNodes", 1),
    "cuGraphInstantiateWithFlags": _instantiate,
    "cuGraphNodeGetDependencies_v2": listing("cuGraphNodeGetDependencies", 2),
    "cuGraphNodeGetDependentNodes_v2": listing("cuGraphNodeGetDependentNodes", 2),
    "cuLaunchHostFunc": _launch_host_function,
    "cuLaunchHostFunc_v2": _launch_host_function,
    "cuLaunchKernelEx": _launch_ex,
    "cuLogsCurrent": _logs_current,
    "cuLogsDumpToFile": _dump_log_to_file,
    "cuLogsDumpToMemory": _dump_log,
    "cuMemExportToShareableHandle": _export("cuMemExportToShareableHandle"),
    "cuMemPoolExportToShareableHandle": _export("cuMemPoolExportToShareableHandle"),
    "cuMemPoolGetAttribute": _pool_attribute,
    "cuMemPoolSetAttribute": _set_pool_attribute,
    "cuMemRangeGetAttribute": _range_attribute,
    "cuModuleEnumerateFunctions": _module_functions,
    "cuOccupancyMaxActiveClusters": _cluster_query("cuOccupancyMaxActiveClusters"),
    "cuOccupancyMaxPotentialClusterSize": _cluster_query("cuOccupancyMaxPotentialClusterSize"),
    "cuPointerGetAttribute": _pointer_attribute,
    "cuPointerGetAttributes": _pointer_attributes,
    "cuStreamAddCallback": _add_callback,
    "cuStreamGetAttribute": _stream_attribute,
    "cuStreamGetCaptureInfo_v2": _capture_info_v2,
    "cuStreamGetCaptureInfo_v3": _capture_info,
    "cuTensorMapEncodeTiled": _encode_tiled,
    "cuThreadExchangeStreamCaptureMode": _exchange_capture_mode,
}
