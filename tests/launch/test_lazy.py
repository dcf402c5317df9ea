"""Lazy modules: compiled and loaded on each device at the first use there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda

SOURCE = '__device__ int calls; extern "C" __global__ void seven(int *out) { *out = 7; calls += 1; }'


def test_making_one_chooses_no_driver(python):
    program = f"import cudart_py as cuda; print(cuda.LazyModule({SOURCE!r}, cache=False))"
    assert python(program, CUDART_PY_DRIVER="none").stdout == "<LazyModule 'kernel.cu', not loaded>\n"


def test_the_first_use_on_each_device_loads_it_there(python):
    program = f"""
import cudart_py as cuda
kernels = cuda.LazyModule({SOURCE!r})
print(kernels.devices)
for device in cuda.devices() * 2:
    with device:
        out = cuda.zeros(1, "i4")
        kernels["seven"][1, 1](out)
        print(out.to_host(), kernels["seven"].device is device, kernels.module.symbol("calls").to_host())
print(kernels)
"""
    lines = python(program, CUDART_PY_DRIVER="simulator", CUDART_PY_SIMULATOR_DEVICES="2").stdout.splitlines()
    assert lines == [
        "()",
        *["[7] True 1"] * 2,
        *["[7] True 2"] * 2,
        "<LazyModule 'kernel.cu', loaded on device 0, 1>",
    ]


def test_it_is_compiled_once_for_a_device(device, builds):
    kernels = cuda.LazyModule(SOURCE, cache=False)
    assert builds == []
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(kernels.__getitem__, ["seven"] * 4))
    assert kernels["seven"] is kernels["seven"]
    assert builds == ["kernel.cu"]


def test_a_path_is_that_of_the_folder_where_it_was_made(device, tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "value.cuh").write_text("#define VALUE 5\n")
    (tmp_path / "k.cu").write_text('#include <value.cuh>\nextern "C" __global__ void k(int *out) { *out = VALUE; }')
    monkeypatch.chdir(tmp_path)
    kernels = cuda.LazyModule(Path("k.cu"), include=[Path("parts")])
    monkeypatch.chdir("/")
    out = cuda.zeros(1, np.int32)
    kernels["k"][1, 1](out)
    assert out.to_host()[0] == 5


def test_a_kernel_that_is_taken_for_an_attribute_is_said_to_be_an_item(device, builds):
    kernels = cuda.LazyModule(SOURCE, cache=False)
    with pytest.raises(AttributeError, match=r"no attribute 'sevne'; if it is a kernel, write module\['sevne'\]"):
        kernels.sevne  # noqa: B018  # what raises
    assert builds == []
    with pytest.raises(cuda.NotFoundError, match="did you mean 'seven'"):
        kernels["sevne"]
    with pytest.raises(AttributeError, match=r"kernels are no attributes: write module\['seven'\]"):
        kernels.seven  # noqa: B018  # as above
    with pytest.raises(AttributeError, match=r"did you mean the kernel module\['seven'\]\?"):
        kernels.sevne  # noqa: B018  # as above
    with pytest.raises(AttributeError, match="'LazyModule' object has no attribute 'nothing'"):
        kernels.nothing  # noqa: B018  # as above


def test_closing_unloads_it_everywhere_and_a_module_that_was_closed_alone_is_loaded_again(device):
    with cuda.LazyModule(SOURCE) as kernels:
        kernels.module.close()
        out = cuda.zeros(1, np.int32)
        kernels["seven"][1, 1](out)
        assert out.to_host()[0] == 7
        module = kernels.module
        assert kernels.devices == (device,)
    assert module.closed
    assert kernels.closed
    with pytest.raises(ValueError, match=r"this LazyModule of 'kernel\.cu' is closed"):
        kernels["seven"]


@pytest.mark.parametrize("bad", [{"std": "c++"}, {"cache": 1}, {"options": ["-arch=sm_90"]}])
def test_bad_arguments_are_named_at_once(bad):
    with pytest.raises((TypeError, ValueError), match=f"argument '{next(iter(bad))}'"):
        cuda.LazyModule(SOURCE, **bad)
