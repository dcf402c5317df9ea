"""Program: NVRTC as it is."""

from __future__ import annotations

import gc
import re
import weakref

import pytest
from cuda.bindings import nvrtc

from cudart_py.compilation.programs import Program, library_path, library_version
from cudart_py.driver.unwrap import check
from cudart_py.errors import CompileError

SOURCE = "template <class T, int N> __global__ void fill(T* x) { x[threadIdx.x] = N; }\n__constant__ int table[4];\n"


def test_a_program_has_the_images_and_names_of_one_compile_until_it_is_closed():
    names = ["fill<float,3>", "&table"]
    program = Program(SOURCE.encode(), name="a.cu", names=names, options=["--gpu-architecture=sm_90"])
    assert program.log == ""
    assert repr(program) == "<Program 'a.cu', not compiled>"
    with pytest.raises(ValueError, match="call compile"):
        _ = program.ptx
    program.compile()
    assert b".entry" in program.ptx
    assert program.cubin[:4] == b"\x7fELF"
    assert program.lowered_names == {"fill<float,3>": "_Z4fillIfLi3EEvPT_", "&table": "table"}
    assert check(nvrtc.nvrtcGetPTXSize(program.handle)) == len(program.ptx) + 1, "raw calls take the handle"
    program.close()
    program.close()
    assert program.closed
    with pytest.raises(ValueError, match="closed"):
        program.compile()


def target_of(**arguments):
    with Program('extern "C" __global__ void k() {}', **arguments) as program:
        program.compile()
        return re.search(rb"^\.target (\w+)", program.ptx, re.MULTILINE)[1].decode()


def test_the_architecture_is_the_current_devices_unless_given(device):
    major, minor = device.compute_capability
    assert target_of() == f"sm_{major}{minor}"
    assert target_of(arch=80) == target_of(arch=(8, 0)) == target_of(arch="sm_80") == "sm_80"
    assert target_of(options=["-arch=compute_80"]) == "sm_80"
    assert target_of(options=["--gpu-architecture", "sm_80"]) == "sm_80"


def test_a_program_with_an_architecture_needs_no_driver(python):
    program = """
import cudart_py as cuda
with cuda.Program("__global__ void k() {}", arch=90) as program:
    program.compile()
    print(program.cubin[:4])
"""
    assert python(program, CUDART_PY_DRIVER="none").stdout == "b'\\x7fELF'\n"


def test_a_failed_compile_shows_the_numbered_line_and_a_caret_and_carries_status_call_and_log():
    source = "\n\n__global__ void k() {\n\tint y = missing;\n}\n"
    program = Program(source, name="bad.cu")
    with pytest.raises(CompileError) as caught:
        program.compile()
    text = str(caught.value)
    assert text.startswith("bad.cu does not compile")
    assert 'bad.cu(4): error: identifier "missing" is undefined' in text
    assert "  4 | \tint y = missing;\n    | \t        ^" in text
    assert caught.value.status == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION
    assert caught.value.call == "nvrtcCompileProgram"
    assert caught.value.log == program.log != ""


def test_unknown_architecture_lists_the_known_ones():
    message = r"knows the architectures .*sm_90"
    with Program(SOURCE, options=["--gpu-architecture=sm_12"]) as program, pytest.raises(CompileError, match=message):
        program.compile()


def test_dropped_program_is_freed():
    program = Program(SOURCE)
    finalizer = program._finalizer
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
    assert not finalizer.alive


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"source": bytearray(b"x")}, TypeError, "source"),
        ({"source": "int x;\0"}, ValueError, "source"),
        ({"source": b"int x;\0"}, ValueError, "source"),
        ({"options": "-G"}, TypeError, "options"),
        ({"arch": "compute_90"}, ValueError, "arch"),
        ({"arch": 90, "options": ["-arch=sm_80"]}, ValueError, "options"),
        ({"arch": 90, "options": ["--gpu-architecture", "compute_80"]}, ValueError, "options"),
    ],
)
def test_bad_arguments_are_named(arguments, error, named):
    with pytest.raises(error, match=f"^Program: argument {re.escape(repr(named))} "):
        Program(**{"source": "x", **arguments})


def test_library_version_and_path_are_of_the_same_major():
    assert library_version()[0] == 13
    assert ".so.13" in (library_path() or "")
