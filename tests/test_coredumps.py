"""Coredumps of kernels that fail, each in a process of its own."""

import pytest

import cudart_py as cuda
from cudart_py import coredumps

PROGRAM = """
import cudart_py as cuda
from cudart_py import coredumps

with coredumps.enable("core", {options}):
    kernel = cuda.compile("__global__ void fail() {{ asm volatile(\\"trap;\\"); }}")["fail"]
    kernel[1, 1]()
    try:
        cuda.current_device().synchronize()
    except cuda.errors.KernelFaultError as error:
        print("raised", error.status.name, flush=True)
"""


@pytest.mark.needs("coredump")
@pytest.mark.unsanitized("the sanitizer is a debugger too, and a process has only one")
def test_a_kernel_that_fails_leaves_a_file_and_an_error(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = python(PROGRAM.format(options="abort=False, lightweight=True"), own_imports=True)
    assert "raised CUDA_ERROR_LAUNCH_FAILED" in done.stdout
    content = (tmp_path / "core").read_bytes()
    assert content.startswith(b"\x7fELF")
    assert b"fail" in content


@pytest.mark.needs("coredump")
@pytest.mark.unsanitized("the sanitizer is a debugger too, and a process has only one")
def test_by_default_the_process_ends_and_the_file_has_the_memory(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = python(PROGRAM.format(options=""), check=False, own_imports=True)
    assert done.returncode == -6
    assert "raised" not in done.stdout
    assert (tmp_path / "core").stat().st_size > 8 << 20  # the heap of malloc is in it


@pytest.mark.needs("coredump")
@pytest.mark.unsanitized("the sanitizer is a debugger too, and a process has only one")
def test_kernels_run_after_the_block(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = """
import cudart_py as cuda
from cudart_py import coredumps

with coredumps.enable("core"):
    x = cuda.zeros(32, "int32")
cuda.compile("__global__ void write(int* x) { x[threadIdx.x] = threadIdx.x; }")["write"][1, 32](x)
print(x.to_host().sum())
"""
    assert python(program, own_imports=True).stdout.split() == ["496"]
    assert [*tmp_path.iterdir()] == []


@pytest.mark.needs("coredump")
def test_a_device_in_use_is_refused(device):
    cuda.zeros(1)
    with pytest.raises(RuntimeError, match="coredumps.enable: device 0 is already in use"), coredumps.enable("core"):
        pass


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"file": 5}, TypeError, "'file' must be a path, not the int 5"),
        ({"file": ""}, ValueError, "'file' must be a path of 1 to 1023 bytes"),
        ({"file": "ä" * 600}, ValueError, "'file' must be a path of 1 to 1023 bytes"),
        ({"file": "a\0b"}, ValueError, "'file' must be without NUL"),
        ({"lightweight": 1}, TypeError, "'lightweight' must be"),
        ({"abort": None}, TypeError, "'abort' must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with (
        pytest.raises(error, match=f"coredumps.enable: .*{message}"),
        coredumps.enable(**{"file": "core", **arguments}),
    ):
        pass


def test_without_the_capability_an_error_names_it():
    if "coredump" in cuda.capabilities():
        pytest.skip("this driver writes coredumps")
    with (
        pytest.raises(cuda.errors.NotSupportedError, match="lacks the capability 'coredump'"),
        coredumps.enable("core"),
    ):
        pass
