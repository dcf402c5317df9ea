from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import INVALID, function, loaded, ptx
from tests.simulator.support import Status, ok

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
        b"",
        b"this is no PTX",
        b".version 8.0\n.target sm_90\n nonsense",
        b".version 8.0\n.target sm_90\n.global .u32 x = {1, 2, 3};",
        *(empty("9.0", target) for target in ("sm_100", "sm_80a", "sm_86f")),
    ],
    Status.CUDA_ERROR_UNSUPPORTED_PTX_VERSION: [empty("10.0", "sm_90")],
    Status.CUDA_ERROR_NO_BINARY_FOR_GPU: [b"\x7fELF and more", b"\x50\xed\x55\xba and more"],
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
    assert driver.cuModuleLoadDataEx(b"this is no PTX", 2, options, [log, len(log)])[0] == BAD_PTX
    assert b".version" in log


def test_a_refused_module_leaves_the_context_usable(context: Any) -> None:
    """The report names the line of what is no PTX, and each instruction that isn't run."""
    head = b".version 8.0\n.target sm_90\n.entry k() { .reg .b32 r;\n"
    assert driver.cuModuleLoadData(head + b"add.u32 r, r;\n}") == (BAD_PTX, None)
    assert "PTX line 4: add.u32" in str(driver.take_report())
    assert driver.cuModuleLoadData(head + b"brkpt;\n}") == (Status.CUDA_ERROR_NOT_SUPPORTED, None)
    assert "'brkpt' at PTX line 4, in k" in str(driver.take_report())
    ok(driver.cuModuleLoadData(head + b"add.u32 r, r, r;\n}"))
    ok(driver.cuCtxSynchronize())


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
