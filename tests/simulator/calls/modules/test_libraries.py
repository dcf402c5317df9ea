"""Libraries: their kernels and variables in each context, their attributes, and the statuses for bad arguments."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import INVALID, clusters, launch, value_of
from tests.simulator.support import Status, compile_ptx, ok, upload

SOURCE = r"""
__device__ int counter = 5;
__constant__ int step = 3;
__managed__ int shared = 7;
extern "C" __global__ void count(int *x, char times) { counter += step * times; shared += 1; *x = counter; }
extern "C" __global__ void none() {}
"""
ATTRIBUTE = bindings.CUfunction_attribute
SHARED = ATTRIBUTE.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CACHE = bindings.CUfunc_cache.CU_FUNC_CACHE_PREFER_L1
MISSING = (Status.CUDA_ERROR_NOT_FOUND, None)
BAD_HANDLE = Status.CUDA_ERROR_INVALID_HANDLE


def load() -> Any:
    return ok(driver.cuLibraryLoadData(compile_ptx(SOURCE), None, None, 0, None, None, 0))


@pytest.fixture
def library(context: Any) -> Any:
    return load()


@pytest.fixture
def kernel(library: Any) -> Any:
    return ok(driver.cuLibraryGetKernel(library, b"count"))


def test_a_library_is_read_without_a_context_and_used_in_each(two_devices: list[Any]) -> None:
    """The contexts have variables of their own, except for managed ones. A launch is in the context of its stream."""
    ok(driver.cuCtxSetCurrent(None))
    library = load()
    kernel = ok(driver.cuLibraryGetKernel(library, b"count"))
    assert driver.cuKernelGetFunction(kernel) == (Status.CUDA_ERROR_INVALID_CONTEXT, None)
    assert driver.cuLibraryGetModule(library) == (Status.CUDA_ERROR_INVALID_CONTEXT, None)
    outs, addresses, managed = [], set(), set()
    for times, context in enumerate(two_devices, 1):
        ok(driver.cuCtxSetCurrent(context))
        outs.append(upload(np.full(1, -1, np.int32)))
        launch(kernel, ctypes.c_void_p(outs[-1]), ctypes.c_char(times))
        address, size = ok(driver.cuLibraryGetGlobal(library, b"counter"))
        assert value_of(address) == value_of(outs[-1]) == 5 + 3 * times
        assert size == 4
        addresses.add(int(address))
        managed |= {int(ok(driver.cuLibraryGetManaged(library, b"shared"))[0])}
    assert (len(addresses), len(managed)) == (2, 1)
    assert ctypes.c_int.from_address(managed.pop()).value == 9
    stream = ok(driver.cuStreamCreate(1))
    ok(driver.cuCtxSetCurrent(two_devices[0]))
    values = (ctypes.c_void_p(outs[1]), ctypes.c_char(1))
    pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
    ok(driver.cuLaunchKernel(kernel, *(1,) * 6, 0, stream, ctypes.addressof(pointers), 0))
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    assert value_of(outs[1]) == 14


def test_the_functions_of_a_kernel_are_those_of_the_librarys_module(library: Any, kernel: Any) -> None:
    module = ok(driver.cuLibraryGetModule(library))
    function = ok(driver.cuKernelGetFunction(kernel))
    assert int(function) == int(ok(driver.cuModuleGetFunction(module, b"count"))) != int(kernel)
    assert int(ok(driver.cuFuncGetModule(function))) == int(module)
    assert driver.cuModuleUnload(module) == (Status.CUDA_ERROR_NOT_PERMITTED,)
    assert ok(driver.cuModuleGetLoadingMode()) == bindings.CUmoduleLoadingMode.CU_MODULE_LAZY_LOADING


def test_kernels_are_found_by_name_and_listed_with_their_parameters(library: Any, kernel: Any) -> None:
    assert ok(driver.cuLibraryGetKernelCount(library)) == 2
    *listed, rest = ok(driver.cuLibraryEnumerateKernels(3, library))
    assert sorted(ok(driver.cuKernelGetName(one)) for one in listed) == [b"count", b"none"]
    assert int(rest) == 0
    assert len(ok(driver.cuLibraryEnumerateKernels(1, library))) == 1
    assert int(ok(driver.cuKernelGetLibrary(kernel))) == int(library)
    assert ok(driver.cuKernelGetParamCount(kernel)) == 2
    assert [ok(driver.cuKernelGetParamInfo(kernel, index)) for index in (0, 1)] == [(0, 8), (8, 1)]
    assert driver.cuKernelGetParamInfo(kernel, 2) == (INVALID, None, None)


def test_a_kernel_is_a_function_for_launches_and_occupancy_alone(library: Any) -> None:
    """As on an H200, where the functions for functions refuse a kernel."""
    kernel = ok(driver.cuLibraryGetKernel(library, b"none"))
    assert launch(kernel) == Status.CUDA_SUCCESS
    ok(driver.cuLaunchKernelEx(clusters(2, 2), kernel, 0, 0))
    ok(driver.cuLaunchCooperativeKernel(kernel, *(1,) * 6, 0, 0, None))
    assert ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel, 1024, 0)) == 2
    assert driver.cuFuncGetName(kernel) == (BAD_HANDLE, None)
    assert driver.cuFuncGetAttribute(SHARED, kernel) == (BAD_HANDLE, None)
    assert driver.cuFuncSetAttribute(kernel, SHARED, 0) == (BAD_HANDLE,)


def test_a_kernels_attributes_are_per_device_and_a_function_overrides_them(two_devices: Any, kernel: Any) -> None:
    """The values are those that an H200 returns for the same calls."""
    function = ok(driver.cuKernelGetFunction(kernel))

    def sizes() -> list[int]:
        of_kernel = [ok(driver.cuKernelGetAttribute(SHARED, kernel, device)) for device in (0, 1)]
        return [*of_kernel, ok(driver.cuFuncGetAttribute(SHARED, function))]

    assert sizes() == [49152, 49152, 49152]
    ok(driver.cuKernelSetAttribute(SHARED, 90000, kernel, 0))
    assert sizes() == [90000, 49152, 90000]
    ok(driver.cuFuncSetAttribute(function, SHARED, 50000))
    assert sizes() == [90000, 49152, 50000]
    ok(driver.cuKernelSetAttribute(SHARED, 70000, kernel, 0))
    assert sizes() == [70000, 49152, 50000]


def test_a_changed_attribute_applies_to_the_next_launch(library: Any) -> None:
    kernel = ok(driver.cuLibraryGetKernel(library, b"none"))

    def launched() -> Any:
        return driver.cuLaunchKernel(kernel, *(1,) * 6, 60000, 0, 0, 0)[0]

    assert launched() == INVALID
    ok(driver.cuKernelSetAttribute(SHARED, 60000, kernel, 0))
    assert launched() == Status.CUDA_SUCCESS
    ok(driver.cuKernelSetAttribute(SHARED, 59999, kernel, 0))
    assert launched() == INVALID


def test_bad_arguments_have_an_h200s_statuses(library: Any, kernel: Any) -> None:
    maximum = ATTRIBUTE.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    assert driver.cuLibraryGetKernel(library, b"other") == MISSING
    assert driver.cuLibraryGetKernel(0, b"count") == (BAD_HANDLE, None)
    for name in (b"other", b"count"):
        assert driver.cuLibraryGetGlobal(library, name) == (*MISSING, None)
    for name in (b"counter", b"step"):
        assert driver.cuLibraryGetManaged(library, name) == (*MISSING, None)
    found = [get(library, b"shared") for get in (driver.cuLibraryGetGlobal, driver.cuLibraryGetManaged)]
    assert len({int(address) for _, address, _ in found}) == 1
    assert driver.cuLibraryGetUnifiedFunction(library, b"count") == (INVALID, None)
    assert driver.cuKernelSetAttribute(SHARED, 900000, kernel, 0) == (INVALID,)
    assert driver.cuKernelSetAttribute(maximum, 1, kernel, 0) == (INVALID,)
    assert driver.cuKernelSetAttribute(SHARED, 1, kernel, 9) == (Status.CUDA_ERROR_INVALID_DEVICE,)
    assert driver.cuKernelGetAttribute(99, kernel, 0) == (INVALID, None)
    ok(driver.cuKernelSetCacheConfig(kernel, CACHE, 0))
    assert driver.cuKernelSetCacheConfig(kernel, 9, 0) == (INVALID,)
    function = ok(driver.cuKernelGetFunction(kernel))
    ok(driver.cuFuncSetCacheConfig(function, CACHE))
    assert driver.cuFuncSetCacheConfig(function, 9) == (INVALID,)
    ok(driver.cuFuncSetSharedMemConfig(function, bindings.CUsharedconfig.CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE))
    assert driver.cuKernelGetName(0) == (INVALID, None)
    assert driver.cuKernelGetFunction(0) == (BAD_HANDLE, None)
    assert driver.cuLibraryGetModule(0) == (BAD_HANDLE, None)
    assert driver.cuLibraryUnload(0) == (BAD_HANDLE,)


def test_an_unloaded_library_leaves_nothing(two_devices: list[Any]) -> None:
    before = []
    for context in two_devices:
        ok(driver.cuCtxSetCurrent(context))
        before.append(ok(driver.cuMemGetInfo()))
    library = load()
    kernel = ok(driver.cuLibraryGetKernel(library, b"none"))
    for context in two_devices:
        ok(driver.cuCtxSetCurrent(context))
        launch(kernel)
    managed, _ = ok(driver.cuLibraryGetManaged(library, b"shared"))
    ok(driver.cuLibraryUnload(library))
    after = []
    for context in two_devices:
        ok(driver.cuCtxSetCurrent(context))
        after.append(ok(driver.cuMemGetInfo()))
    assert after == before
    assert launch(kernel) == BAD_HANDLE
    assert driver.cuLibraryUnload(library) == (BAD_HANDLE,)
    assert driver.cuMemGetAddressRange(managed)[0] == Status.CUDA_ERROR_NOT_FOUND


def test_a_library_outlives_a_context_and_is_loaded_again(library: Any, kernel: Any) -> None:
    ok(driver.cuLibraryGetModule(library))
    ok(driver.cuDevicePrimaryCtxReset(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
    out = upload(np.full(1, -1, np.int32))
    assert launch(kernel, ctypes.c_void_p(out), ctypes.c_char(1)) == Status.CUDA_SUCCESS
    assert value_of(out) == 8
    ok(driver.cuLibraryUnload(library))


def test_a_library_is_read_from_a_file(context: Any, tmp_path: Path) -> None:
    path = tmp_path / "library.ptx"
    path.write_bytes(compile_ptx(SOURCE))
    library = ok(driver.cuLibraryLoadFromFile(bytes(path), None, None, 0, None, None, 0))
    assert ok(driver.cuLibraryGetKernelCount(library)) == 2
    missing = driver.cuLibraryLoadFromFile(bytes(tmp_path / "none"), None, None, 0, None, None, 0)
    assert missing == (Status.CUDA_ERROR_FILE_NOT_FOUND, None)
    preserved = bindings.CUlibraryOption.CU_LIBRARY_BINARY_IS_PRESERVED
    assert driver.cuLibraryLoadFromFile(bytes(path), None, None, 0, [preserved], [1], 1) == (INVALID, None)


def test_mistakes_in_the_code_are_logged_and_errors_of_its_uses(context: Any) -> None:
    """As on an H200: a program may have libraries for other devices, which it never uses."""
    names, log = bindings.CUjit_option, bytearray(200)
    options = [names.CU_JIT_ERROR_LOG_BUFFER, names.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    text = b".version 8.0\n.target sm_90\n.entry k() { bogus; }\0"
    library = ok(driver.cuLibraryLoadData(text, options, [log, len(log)], 2, None, None, 0))
    assert b"bogus" in log
    assert ok(driver.cuLibraryGetKernelCount(library)) == 0
    for use, *name in ((driver.cuLibraryGetKernel, b"k"), (driver.cuLibraryGetModule,)):
        assert use(library, *name) == (Status.CUDA_ERROR_INVALID_PTX, None)
        assert "bogus" in str(driver.take_report())
    ok(driver.cuLibraryUnload(library))
