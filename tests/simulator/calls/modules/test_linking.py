"""Links of several PTX modules: names resolve as CUDA's linker resolves them, and errors are logged."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.conftest import MakeFatbin
from tests.simulator.kernels import INVALID, function, launch, value_of
from tests.simulator.support import Status, compile_ptx, ok, upload

INPUT, OPTION = bindings.CUjitInputType, bindings.CUjit_option
PTX, FATBIN, OBJECT, LIBRARY = (
    getattr(INPUT, f"CU_JIT_INPUT_{name}") for name in ("PTX", "FATBINARY", "OBJECT", "LIBRARY")
)
BAD_SOURCE = Status.CUDA_ERROR_INVALID_SOURCE
CALLER = """
extern __device__ int factor(int);
extern __device__ int table[3];
static __device__ __noinline__ int own() { return 1000; }
static __device__ int kept = 5;
extern "C" __global__ void k(int *x) { *x = factor(table[1]) + own() + kept; kept += 1; }
"""
CALLED = """
__device__ int table[3] = {1, 20, 300};
static __device__ __noinline__ int own() { return 7; }
static __device__ int kept = 100;
__device__ int factor(int x) { return own() * x + kept; }
extern "C" __global__ void other(int *x) { *x = own() + kept; }
"""
TEMPLATE = """
template <class T> __device__ __noinline__ T twice(T x) { return x * 2; }
extern "C" __global__ void NAME(int *x) { *x = twice(21); }
"""


def relocatable(source: str) -> bytes:
    return compile_ptx(source, b"-rdc=true")


class Link:
    """A link with a log."""

    def __init__(self) -> None:
        self._log = bytearray(b"?" * 400)
        options = [OPTION.CU_JIT_ERROR_LOG_BUFFER, OPTION.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        self.state = ok(driver.cuLinkCreate(2, options, [self._log, len(self._log)]))

    def add(self, code: bytes, kind: Any = PTX, name: bytes = b"in") -> Any:
        return driver.cuLinkAddData(self.state, kind, code, len(code), name, 0, None, None)[0]

    @property
    def log(self) -> str:
        return self._log.split(b"\0")[0].decode()

    def load(self) -> Any:
        """Complete and destroy the link, after loading the module."""
        address, size = ok(driver.cuLinkComplete(self.state))
        assert ctypes.string_at(address, size)[-1:] == b"\0"
        module = ok(driver.cuModuleLoadData(address))
        ok(driver.cuLinkDestroy(self.state))
        return module


def results(module: Any, *names: str) -> list[int]:
    """Return what kernels write, launched one after another."""
    out = upload(np.full(1, -1, np.int32))
    found = []
    for name in names:
        assert launch(function(module, name), ctypes.c_void_p(out)) == Status.CUDA_SUCCESS
        found.append(value_of(out))
    return found


def linked(*codes: bytes) -> Any:
    link = Link()
    for code in codes:
        assert link.add(code) == Status.CUDA_SUCCESS, link.log
    return link.load()


def test_external_names_resolve_and_static_ones_stay_apart(context: Any) -> None:
    expected = [7 * 20 + 100 + 1000 + 5, 107, 7 * 20 + 100 + 1000 + 6]
    for codes in ((CALLER, CALLED), (CALLED, CALLER)):
        assert results(linked(*map(relocatable, codes)), "k", "other", "k") == expected


def test_instances_of_a_template_are_one_function(context: Any) -> None:
    codes = [relocatable(TEMPLATE.replace("NAME", name)) for name in ("first", "second")]
    assert results(linked(*codes), "first", "second") == [42, 42]


HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
FUNCTION = (
    ".{} .func (.param .b32 result) f()\n{{\n.reg .b32 %r1;\nmov.b32 %r1, {};\nst.param.b32 [result], %r1;\nret;\n}}\n"
)
DECLARED = ".extern .func (.param .b32 result) f();\n"
KERNEL = """.visible .entry k(.param .u64 out) {
    .reg .b32 %r1; .reg .b64 %d;
    { .param .b32 result; call.uni (result), f, (); ld.param.b32 %r1, [result]; }
    ld.param.u64 %d, [out];
    st.global.u32 [%d], %r1;
    ret;
}
"""


@pytest.mark.parametrize("weak", [0, 1])
def test_a_weak_definition_yields_to_a_strong_one(context: Any, weak: int) -> None:
    texts = [FUNCTION.format("visible", 8)]
    texts.insert(weak, FUNCTION.format("weak", 9))
    assert results(linked(*((HEAD + text).encode() for text in (*texts, DECLARED + KERNEL))), "k") == [8]


def test_the_image_is_for_the_highest_architecture_of_the_inputs(context: Any) -> None:
    link = Link()
    for target in ("sm_80", "sm_90a", "sm_90"):
        assert link.add(HEAD.replace("sm_90", target).encode()) == Status.CUDA_SUCCESS
    address, _ = ok(driver.cuLinkComplete(link.state))
    assert b".target sm_90a\n" in ctypes.string_at(address)


# Two inputs whose names contradict each other, and what the log says. An H200 refuses each pair at the second input.
CONTRADICTIONS = {
    "function": (FUNCTION.format("visible", 1), FUNCTION.format("visible", 2), "first and second both define f"),
    "variable": (*2 * (".visible .global .u32 g = 1;\n",), "first and second both define g"),
    "kernel": (*2 * (".visible .entry k() { ret; }\n",), "first and second both define k"),
    "size": (
        ".extern .global .u64 g;\n.visible .entry k() { .reg .b64 %d; ld.global.u64 %d, [g]; ret; }\n",
        ".visible .global .u32 g;\n",
        "first and second declare the variable g with different sizes",
    ),
    "prototype": (
        ".extern .func f(.param .b32 a);\n.visible .entry k() { .param .b32 a; call f, (a); ret; }\n",
        FUNCTION.format("visible", 1),
        "first and second declare the function f with different parameters or results",
    ),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_contradiction_refuses_the_second_input_and_the_link(context: Any, what: str) -> None:
    first, second, said = CONTRADICTIONS[what]
    link = Link()
    assert link.add((HEAD + first).encode(), name=b"first") == Status.CUDA_SUCCESS
    assert link.add((HEAD + second).encode(), name=b"second") == BAD_SOURCE
    assert said in link.log
    assert driver.cuLinkComplete(link.state) == (BAD_SOURCE, None, None)
    ok(driver.cuLinkDestroy(link.state))


def test_names_without_a_definition_are_listed_with_their_users(context: Any) -> None:
    link = Link()
    assert link.add(relocatable(CALLER), name=b"caller") == Status.CUDA_SUCCESS
    assert driver.cuLinkComplete(link.state) == (BAD_SOURCE, None, None)
    assert "no input of the link defines factor, which caller uses" in link.log
    assert "no input of the link defines table, which caller uses" in link.log
    assert str(driver.take_report()).startswith("no input of the link defines")


def test_a_declaration_without_a_use_needs_no_definition(context: Any) -> None:
    declared = HEAD + ".extern .global .u32 g;\n.extern .func h();\n.visible .entry k() { ret; }\n"
    module = linked(declared.encode())
    assert launch(function(module, "k")) == Status.CUDA_SUCCESS
    assert driver.cuModuleGetGlobal(module, b"g") == (Status.CUDA_ERROR_NOT_FOUND, None, None)


def test_an_input_that_is_no_ptx_is_refused_and_left_out(context: Any) -> None:
    """The link can still be completed, as on an H200. An empty one makes an empty image."""
    link = Link()
    assert link.add((HEAD + ".visible .entry k() { bogus; }").encode()) == Status.CUDA_ERROR_INVALID_PTX
    assert "bogus" in link.log
    assert ok(driver.cuModuleGetFunctionCount(link.load())) == 0


def test_fatbins_objects_and_files_are_inputs_too(context: Any, fatbin: MakeFatbin, tmp_path: Path) -> None:
    """Device code is found in host code; a library may have members without PTX for the device."""
    caller, called = (fatbin((relocatable(source), "90"), compress="size") for source in (CALLER, CALLED))
    other = fatbin((HEAD.replace("sm_90", "sm_120").encode(), "120"))
    path = tmp_path / "an archive.a"
    path.write_bytes(b"!<arch>\n" + bytes(56) + other + called)
    link = Link()
    assert link.add(b"\x7fELF" + bytes(60) + other, OBJECT) == Status.CUDA_ERROR_NO_BINARY_FOR_GPU
    assert link.add(b"\x7fELF" + bytes(60), OBJECT) == Status.CUDA_ERROR_UNKNOWN
    assert link.add(caller, FATBIN) == Status.CUDA_SUCCESS
    ok(driver.cuLinkAddFile(link.state, LIBRARY, bytes(path), 0, None, None))
    assert results(link.load(), "k") == [7 * 20 + 100 + 1000 + 5]


def test_bad_calls_of_the_linker_have_the_drivers_statuses(context: Any, tmp_path: Path) -> None:
    link = Link()
    missing = driver.cuLinkAddFile(link.state, PTX, bytes(tmp_path / "nothing.ptx"), 0, None, None)
    assert missing == (Status.CUDA_ERROR_FILE_NOT_FOUND,)
    assert str(tmp_path / "nothing.ptx") in link.log
    assert driver.cuLinkAddData(link.state, PTX, None, 1, b"", 0, None, None) == (INVALID,)
    ok(driver.cuLinkDestroy(link.state))
    assert driver.cuLinkDestroy(link.state) == (Status.CUDA_ERROR_INVALID_HANDLE,)
    assert driver.cuLinkComplete(link.state) == (Status.CUDA_ERROR_INVALID_HANDLE, None, None)
    ok(driver.cuCtxSetCurrent(None))
    assert driver.cuLinkCreate(0, None, None) == (Status.CUDA_ERROR_INVALID_CONTEXT, None)
