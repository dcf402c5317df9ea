"""Program: NVRTC as it is."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path

import pytest
from cuda.bindings import nvrtc

from cudart_py.compilation.programs import Program, library_path, library_version
from cudart_py.driver.unwrap import check
from cudart_py.errors import CompileError

SOURCE = "template <class T, int N> __global__ void fill(T* x) { x[threadIdx.x] = N; }\n__constant__ int table[4];\n"


def test_ptx_and_cubin_come_from_one_compile():
    with Program(SOURCE, names=["fill<float, 3>"], options=["--gpu-architecture=sm_90"]) as program:
        program.compile()
        assert b".entry" in program.ptx
        assert program.cubin[:4] == b"\x7fELF"


def test_ptx_has_no_closing_nul():
    with Program('extern "C" __global__ void k() {}') as program:
        program.compile()
        assert not program.ptx.endswith(b"\0")


def test_lowered_names_are_found_by_the_expression_as_given():
    with Program(SOURCE, names=["fill<float,3>", "&table"]) as program:
        program.compile()
        assert program.lowered_names == {"fill<float,3>": "_Z4fillIfLi3EEvPT_", "&table": "table"}


def test_ltoir_is_there_with_dlto():
    with Program("__device__ int f() { return 1; }", options=["-dlto", "-rdc=true"]) as program:
        program.compile()
        assert len(program.ltoir) > 100


def test_log_keeps_warnings():
    with Program("__global__ void k() { int unused; }") as program:
        program.compile()
        assert 'variable "unused" was declared but never referenced' in program.log


def test_log_is_empty_before_compile():
    with Program(SOURCE) as program:
        assert program.log == ""


def test_bytes_are_source_too():
    with Program(SOURCE.encode()) as program:
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


def test_failed_compile_shows_numbered_line_and_caret():
    source = "\n\n__global__ void k() {\n\tint y = missing;\n}\n"
    with Program(source, name="bad.cu") as program, pytest.raises(CompileError) as caught:
        program.compile()
    text = str(caught.value)
    assert text.startswith("bad.cu does not compile")
    assert 'bad.cu(4): error: identifier "missing" is undefined' in text
    assert "  4 | \tint y = missing;\n    | \t        ^" in text


def test_compile_error_carries_status_call_and_log():
    with Program("nonsense") as program, pytest.raises(CompileError) as caught:
        program.compile()
    assert caught.value.status == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION
    assert caught.value.call == "nvrtcCompileProgram"
    assert "nonsense" in caught.value.log


def test_log_can_be_read_after_a_failed_compile():
    with Program("nonsense") as program:
        with pytest.raises(CompileError):
            program.compile()
        assert "error" in program.log


def test_unknown_architecture_lists_the_known_ones():
    message = r"knows the architectures .*sm_90"
    with Program(SOURCE, options=["--gpu-architecture=sm_12"]) as program, pytest.raises(CompileError, match=message):
        program.compile()


def test_images_before_compile_are_a_value_error():
    with Program(SOURCE) as program, pytest.raises(ValueError, match="call compile"):
        _ = program.ptx


def test_use_after_close_is_a_value_error():
    program = Program(SOURCE)
    program.close()
    with pytest.raises(ValueError, match="closed"):
        program.compile()


def test_close_twice_is_allowed():
    program = Program(SOURCE)
    program.close()
    program.close()
    assert program.closed


def test_dropped_program_is_freed():
    program = Program(SOURCE)
    finalizer = program._finalizer
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
    assert not finalizer.alive


def test_handle_works_with_raw_calls():
    with Program(SOURCE) as program:
        program.compile()
        assert check(nvrtc.nvrtcGetPTXSize(program.handle)) == len(program.ptx) + 1


def test_repr_tells_name_and_state():
    with Program(SOURCE, name="a.cu") as program:
        assert repr(program) == "<Program 'a.cu', not compiled>"


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"source": 3}, TypeError, "source"),
        ({"source": bytearray(b"x")}, TypeError, "source"),
        ({"source": "int x;\0"}, ValueError, "source"),
        ({"source": b"int x;\0"}, ValueError, "source"),
        ({"source": "\ud800"}, ValueError, "source"),
        ({"name": 3}, TypeError, "name"),
        ({"name": None}, TypeError, "name"),
        ({"name": Path("k.cu")}, TypeError, "name"),
        ({"name": "k\0.cu"}, ValueError, "name"),
        ({"options": "-G"}, TypeError, "options"),
        ({"options": 3}, TypeError, "options"),
        ({"options": [1]}, TypeError, "options[0]"),
        ({"options": ["-G", "-D\0"]}, ValueError, "options[1]"),
        ({"arch": "compute_90"}, ValueError, "arch"),
        ({"arch": 9.0}, TypeError, "arch"),
        ({"arch": 90, "options": ["-arch=sm_80"]}, ValueError, "options"),
        ({"arch": 90, "options": ["--gpu-architecture", "compute_80"]}, ValueError, "options"),
        ({"names": "k"}, TypeError, "names"),
        ({"names": [None]}, TypeError, "names[0]"),
        ({"names": ["k\0"]}, ValueError, "names[0]"),
    ],
)
def test_bad_arguments_are_named(arguments, error, named):
    with pytest.raises(error, match=f"^Program: argument {re.escape(repr(named))} "):
        Program(**{"source": "x", **arguments})


def test_library_version_and_path_are_of_the_same_major():
    assert library_version()[0] == 13
    assert ".so.13" in (library_path() or "")
