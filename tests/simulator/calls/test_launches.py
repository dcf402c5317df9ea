import ctypes
import inspect
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator import ptx as machine
from cudart_py.simulator.calls.launches import launches
from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.ptx.running.observer import Observer
from tests.simulator.kernels import INVALID, clusters, function, launch, loaded, ptx, value_of
from tests.simulator.support import Status, ok, upload


def test_parameters_are_read_at_the_call_from_addresses_values_with_their_types_or_a_buffer(module: Any) -> None:
    address, value, add = upload(np.zeros(4, np.int32)), ctypes.c_int(1), function(module, "add")

    def add_once(parameters: Any = 0, extra: Any = 0) -> Any:
        return driver.cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, 0, parameters, extra)

    launch(add, ctypes.c_void_p(address), value, ctypes.c_uint(1))
    value.value = 1000
    assert value_of(address) == 11
    pointer = bindings.CUdeviceptr(address)
    for first, kind in ((pointer, ctypes.c_void_p), (address, ctypes.c_void_p), (pointer, None)):
        ok(add_once(((first, 1, ctypes.c_uint(1)), (kind, ctypes.c_int, ctypes.c_uint))))
    assert value_of(address) == 44
    packed, size = np.array([address, 1 | 1 << 32], np.uint64), ctypes.c_size_t(16)
    extra = (ctypes.c_size_t * 5)(1, packed.ctypes.data, 2, ctypes.addressof(size), 0)
    ok(add_once(extra=ctypes.addressof(extra)))
    assert value_of(address) == 55
    size.value = 12
    assert add_once(extra=ctypes.addressof(extra)) == (INVALID,)


def test_launch_bounds_registers_and_the_context_limit_a_launch(two_devices: list[Any], module: Any) -> None:
    most = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    kernel = function(module, "bounded")
    assert ok(driver.cuFuncGetAttribute(most, kernel)) == 128
    assert launch(kernel, ctypes.c_void_p(upload(np.zeros(256, np.int32))), block=(129, 1, 1)) == INVALID
    note = b"\n// cudart-py: registers bump=200 spills=0 stack=24\n\0"
    kernel = function(ok(driver.cuModuleLoadData(ptx().rstrip(b"\0") + note)), "bump")
    assert ok(driver.cuFuncGetAttribute(most, kernel)) == 320
    assert launch(kernel, block=(321, 1, 1)) == Status.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    assert not launch(kernel, block=(320, 1, 1))
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    assert launch(kernel) == Status.CUDA_ERROR_INVALID_HANDLE


def test_each_launch_gets_the_engine_that_suits_it_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDART_PY_SIMULATOR_ENGINE", raising=False)
    for has_llvmlite in (True, False):
        monkeypatch.setattr(machine, "has_llvmlite", lambda has_llvmlite=has_llvmlite: has_llvmlite)
        assert launches.engine() == ("auto" if has_llvmlite else "numpy")
    for chosen in ("", "auto", "numpy"):
        monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", chosen)
        assert launches.engine() == "numpy"
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "native")
    with pytest.raises(ValueError, match="needs llvmlite: pip install"):
        launches.engine()


SPIN = 'extern "C" __global__ void spin(volatile int *flag) { while (!*flag) { } }'


@pytest.mark.parametrize(("steps", "seconds", "words"), [(1000, None, "spin"), (None, 0.1, "the limit of 0.1 seconds")])
def test_a_kernel_that_does_not_end_is_ended_by_a_limit(context, monkeypatch, engine, steps, seconds, words):
    monkeypatch.setenv("CUDART_PY_SANITIZER", "off")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_STEPS", "0")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_SECONDS", "7")
    assert launches.launch_limits() == (None, 7)
    monkeypatch.setattr(launches, "launch_limits", lambda: (steps, seconds))
    launch(function(loaded(SPIN), "spin"), ctypes.c_void_p(upload(np.zeros(1, np.int32))))
    assert driver.cuCtxSynchronize() == (Status.CUDA_ERROR_LAUNCH_TIMEOUT,)
    assert words in (driver.take_report() or "")


def test_counters_and_checks_see_each_event_of_a_launch_one_after_the_other() -> None:
    for event, method in vars(Observer).items():
        # Some methods aren't events: `records` returns the records that machine code makes for the one observer that
        # checks, `stepped_from` and `never_ends` are for observers that step, and only a launch that nothing else
        # observes may end its checks early.
        if inspect.isfunction(method) and event not in (
            "records",
            "stepped_from",
            "never_ends",
            "has_mistake",
            "lack_records",
            "lacks_records",
            "end_early",
        ):
            seen: list[tuple[Any, ...]] = []
            watching = [Observer(), Observer()]
            for number, observer in enumerate(watching):
                setattr(observer, event, lambda *given, number=number, seen=seen: seen.append((number, *given)))
            arguments = tuple(inspect.signature(method).parameters)[1:]
            getattr(Observers(*watching), event)(*arguments)
            assert seen == [(0, *arguments), (1, *arguments)], event
    # A launch runs in machine code only if machine code supports every observer.
    for watch, together in ((frozenset({"checks"}), {"checks", "counters"}), (None, None)):
        counters, checks = Observer(), Observer()
        counters.watch, checks.watch = frozenset({"counters"}), watch
        both = Observers(counters, checks)
        both.start(None)
        assert both.watch == together


NAMES = [b"add", b"bounded", b"bump", b"pairs"]
BAD_PTX = Status.CUDA_ERROR_INVALID_PTX


def empty(version: str, target: str) -> bytes:
    return f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n".encode()


def test_an_image_is_a_buffer_or_an_address(context: Any) -> None:
    text = ptx()
    buffer = ctypes.create_string_buffer(text)
    for image in (text, bytearray(text), ctypes.addressof(buffer)):
        assert ok(driver.cuModuleGetFunctionCount(ok(driver.cuModuleLoadData(image)))) == len(NAMES)
    for version, target in (("8.0", "sm_80"), ("8.0", "sm_90a"), ("9.4", "sm_90f")):
        ok(driver.cuModuleLoadData(empty(version, target)))


REFUSED = {
    BAD_PTX: [
        b".version 8.0\n.target sm_90\n nonsense",
        b".version 8.0\n.target sm_90\n.global .u32 x = {1, 2, 3};",
        *(empty("9.0", target) for target in ("sm_100", "sm_80a", "sm_86f")),
    ],
    Status.CUDA_ERROR_UNSUPPORTED_PTX_VERSION: [empty("10.0", "sm_90")],
    Status.CUDA_ERROR_NO_BINARY_FOR_GPU: [b"\x7fELF and more"],
    Status.CUDA_ERROR_INVALID_IMAGE: [b"", b"this is no PTX", b"\x50\xed\x55\xba and more"],
    INVALID: [None, 0, 5, -1],
}


def test_other_images_are_refused_with_a_report(context: Any) -> None:
    driver.take_report()
    for status, images in REFUSED.items():
        for image in images:
            assert driver.cuModuleLoadData(image) == (status, None), image
            assert (driver.take_report() is None) == (status == INVALID)
    names, log = bindings.CUjit_option, bytearray(200)
    options = [names.CU_JIT_ERROR_LOG_BUFFER, names.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    assert driver.cuModuleLoadDataEx(b".target sm_90", 2, options, [log, len(log)])[0] == BAD_PTX
    assert b".version" in log


def test_a_refused_module_leaves_the_context_usable(context: Any) -> None:
    """The report names the line of invalid PTX."""
    head = b".version 8.0\n.target sm_90\n.entry k() { .reg .b32 r;\n"
    assert driver.cuModuleLoadData(head + b"add.u32 r, r;\n}") == (BAD_PTX, None)
    assert "PTX line 4: add.u32" in str(driver.take_report())
    ok(driver.cuModuleLoadData(head + b"add.u32 r, r, r;\n}"))
    ok(driver.cuCtxSynchronize())


def test_only_launches_of_a_kernel_with_an_unsupported_instruction_are_refused(context: Any) -> None:
    """The report lists the instructions of the kernel, and the stream and the module's other kernels stay usable."""
    source = r"""
    __device__ int done;
    __device__ __noinline__ void stop() { asm volatile("brkpt;"); }
    extern "C" __global__ void halts() { if (done) stop(); }
    extern "C" __global__ void counts() { done += 1; }
    """
    module = loaded(source)
    halts = function(module, "halts")
    assert ok(driver.cuFuncGetParamCount(halts)) == 0
    driver.take_report()
    assert launch(halts) == Status.CUDA_ERROR_NOT_SUPPORTED
    report = str(driver.take_report())
    assert "an instruction of kernel halts" in report
    assert "leave it out" in report
    assert driver.cuLaunchKernelEx(clusters(1, None), halts, 0, 0)[0] == Status.CUDA_ERROR_NOT_SUPPORTED
    assert driver.cuLaunchCooperativeKernel(halts, *(1,) * 6, 0, 0, None)[0] == Status.CUDA_ERROR_NOT_SUPPORTED
    assert launch(function(module, "counts")) == Status.CUDA_SUCCESS
    assert value_of(ok(driver.cuModuleGetGlobal(module, b"done"))[0]) == 1


def test_kernels_are_listed_and_loaded_with_their_module_and_have_parameters(module: Any) -> None:
    listed = ok(driver.cuModuleEnumerateFunctions(len(NAMES), module))
    assert sorted(ok(driver.cuFuncGetName(kernel)) for kernel in listed) == NAMES
    for kernel in listed:
        assert int(ok(driver.cuFuncGetModule(kernel))) == int(module)
        assert ok(driver.cuFuncIsLoaded(kernel)) is bindings.CUfunctionLoadingState.CU_FUNCTION_LOADING_STATE_LOADED
        ok(driver.cuFuncLoad(kernel))
    kernel = function(module, "pairs")
    assert ok(driver.cuFuncGetParamCount(kernel)) == 3
    assert [ok(driver.cuFuncGetParamInfo(kernel, index)) for index in range(3)] == [(0, 8), (8, 16), (24, 1)]
    assert driver.cuFuncGetParamInfo(kernel, 3) == (INVALID, None, None)


def test_a_managed_variable_is_managed_memory(context: Any) -> None:
    source = '__managed__ int shared = 7; extern "C" __global__ void k() { shared += 1; }'
    start = ok(driver.cuMemGetInfo())
    module = loaded(source)
    address, _ = ok(driver.cuModuleGetGlobal(module, b"shared"))
    managed = bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED
    assert ok(driver.cuPointerGetAttribute(managed, address))
    assert ctypes.c_int.from_address(int(address)).value == 7
    ok(driver.cuModuleUnload(module))
    assert ok(driver.cuMemGetInfo()) == start


CLUSTERS = r"""
extern "C" __global__ void size(int *x) { asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(*x)); }
extern "C" __global__ void __cluster_dims__(2) fixed(int *x) { *x = 0; }
"""
EXTENTS = [
    getattr(bindings.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_{extent}")
    for extent in ("WIDTH", "HEIGHT", "DEPTH")
]


def test_a_required_cluster_is_every_launchs_cluster(context: Any) -> None:
    size = function(loaded(CLUSTERS), "size")
    address = upload(np.zeros(1, np.int32))

    def run(grid: int, cluster: int | None = None) -> Any:
        return driver.cuLaunchKernelEx(clusters(grid, cluster), size, ((address,), (ctypes.c_void_p,)), 0)[0]

    ok(driver.cuFuncSetAttribute(size, EXTENTS[0], 4))
    assert run(4) == Status.CUDA_ERROR_INVALID_CLUSTER_SIZE  # height and depth are still 0
    for extent in EXTENTS[1:]:
        ok(driver.cuFuncSetAttribute(size, extent, 1))
    assert [ok(driver.cuFuncGetAttribute(extent, size)) for extent in EXTENTS] == [4, 1, 1]
    assert (run(4), value_of(address)) == (Status.CUDA_SUCCESS, 4)
    assert not launch(size, ctypes.c_void_p(address), grid=(8, 1, 1))
    assert launch(size, ctypes.c_void_p(address), grid=(6, 1, 1)) == Status.CUDA_ERROR_INVALID_CLUSTER_SIZE
    assert run(4, 4) == Status.CUDA_SUCCESS
    assert {run(4, cluster) for cluster in (1, 2)} == {Status.CUDA_ERROR_INVALID_CLUSTER_SIZE}
    active = [ok(driver.cuOccupancyMaxActiveClusters(size, clusters(4, cluster, 1024))) for cluster in (4, None)]
    assert active[0] == active[1]
    for extent in EXTENTS:
        ok(driver.cuFuncSetAttribute(size, extent, 0))
    assert (run(6), value_of(address)) == (Status.CUDA_SUCCESS, 1)


def test_a_cluster_that_was_set_at_compile_time_cannot_be_changed(context: Any) -> None:
    fixed = function(loaded(CLUSTERS), "fixed")
    assert ok(driver.cuFuncGetAttribute(EXTENTS[0], fixed)) == 2
    ok(driver.cuFuncSetAttribute(fixed, EXTENTS[0], 2))
    assert driver.cuFuncSetAttribute(fixed, EXTENTS[0], 4) == (INVALID,)
    address = upload(np.zeros(1, np.int32))
    parameters = (address,), (ctypes.c_void_p,)
    assert driver.cuLaunchKernelEx(clusters(2, 1), fixed, parameters, 0) == (Status.CUDA_ERROR_INVALID_CLUSTER_SIZE,)
