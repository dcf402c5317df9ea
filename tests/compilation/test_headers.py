"""Headers: which folders a compile may search."""

import os

import pytest

from cudart_py.compilation import headers
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.headers import installed_wheels, is_from_wheel
from cudart_py.errors import CompileError


@pytest.fixture(autouse=True)
def _forget_found_headers():
    headers.find.cache_clear()
    yield
    headers.find.cache_clear()


def make_root(folder, **versions):
    """Make an include folder with the files that declare the versions of CUDA and CCCL."""
    (folder / "cccl" / "cuda" / "std" / "__cccl").mkdir(parents=True)
    (folder / "curand_kernel.h").touch()
    for macro, number in versions.items():
        path = "cuda_runtime_api.h" if macro == "CUDART_VERSION" else "cccl/cuda/std/__cccl/version.h"
        (folder / path).write_text(f"#define {macro}  {number}\n")
    return folder


@pytest.fixture
def bare(monkeypatch):
    """Hide every CUDA header of this machine; return the monkeypatch fixture."""
    monkeypatch.setattr(headers, "_pathfinder", lambda name: None)
    monkeypatch.setattr(headers, "_TOOLKIT", "/nowhere")
    monkeypatch.setattr("cudart_py.compilation.compiler.library_path", lambda: None)
    for name in ("CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_fitting_toolkit_behind_a_rejected_root_is_taken(bare, tmp_path):
    wrong = make_root(tmp_path / "wheel" / "include", CUDART_VERSION=13050)
    right = make_root(tmp_path / "toolkit" / "include", CUDART_VERSION=13000, CCCL_VERSION=3004003)
    bare.setattr(headers, "_pathfinder", lambda name: None if name == "cccl" else str(wrong))
    bare.setenv("CUDA_PATH", str(tmp_path / "toolkit"))
    assert headers.find((13, 0), None).folders == (str(right / "cccl"), str(right))


def test_nvrtcs_own_toolkit_is_searched(bare, tmp_path):
    root = make_root(tmp_path / "targets" / "include", CUDART_VERSION=13000)
    library = tmp_path / "targets" / "lib" / "libnvrtc.so.13"
    assert headers.find((13, 0), str(library)).folders == (str(root),)


@pytest.mark.parametrize(("number", "is_taken"), [(3009000, True), (2008000, False)])
def test_cccl_3_is_allowed_of_any_release(bare, tmp_path, number, is_taken):
    core = str(make_root(tmp_path / "include", CCCL_VERSION=number) / "cccl")
    bare.setattr(headers, "_pathfinder", lambda name: core if name == "cccl" else None)
    found = headers.find((13, 0), None)
    assert found.folders == (core,) * is_taken
    assert is_taken or "CUDA 13 needs CCCL 3" in found.rejected[0]


@pytest.mark.parametrize("header", ["cub/block/block_reduce.cuh", "curand_kernel.h", "cuda_fp16.h", "thrust/version.h"])
def test_missing_library_header_names_the_extra(bare, header):
    with pytest.raises(CompileError, match=r"cudart-py\[headers\]"):
        compile_image(f"#include <{header}>\n", cache=False)


def test_missing_library_header_says_why_a_root_was_rejected(bare, tmp_path):
    make_root(tmp_path / "include", CUDART_VERSION=12080)
    bare.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(CompileError, match=r"belong to CUDA 12\.8 and were ignored, because NVRTC belongs to"):
        compile_image("#include <curand_kernel.h>\n", cache=False)


def test_missing_header_of_ones_own_names_the_argument():
    with pytest.raises(CompileError, match=r"include=\[\.\.\.\]"):
        compile_image('#include "my_helper.cuh"\n', cache=False)


def test_source_without_includes_searches_for_no_headers(monkeypatch):
    def fail(*arguments):
        raise AssertionError("searched for headers")

    monkeypatch.setattr(headers, "find", fail)
    compile_image("__global__ void k() {}", cache=False)


def test_distributions_agree_with_importlib_metadata():
    from importlib import metadata

    for text in installed_wheels():
        name, version = text.split("-")
        assert metadata.version(name) == version


def test_is_from_wheel_tells_installed_packages_from_others(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    assert is_from_wheel(os.path.join(tmp_path, "nvidia", "cu13", "lib", "libnvrtc.so.13"))
    assert not is_from_wheel(os.path.join(tmp_path, "lib", "libnvrtc.so.13"))
