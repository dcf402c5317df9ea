"""Names from other packages raise an error that says what to write here instead."""

import importlib
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.hints import HINTS


def captured() -> cuda.graphs.Graph:
    with cuda.Stream().capture() as graph:
        pass
    return graph


@pytest.fixture
def things(device: cuda.Device) -> dict[str, Any]:
    module = cuda.compile('extern "C" __global__ void k() {}')
    return {
        "module": cuda,
        "DeviceArray": cuda.zeros(3),
        "Device": device,
        "DeviceProperties": device.properties,
        "Module": module,
        "Kernel": module["k"],
        "Stream": cuda.legacy_default,
        "Event": cuda.Event(),
        "Graph": captured(),
        "MemoryPool": cuda.MemoryPool.current(),
    }


@pytest.mark.parametrize("kind", HINTS)
def test_a_name_of_another_package_says_what_to_write(things: dict[str, Any], kind: str) -> None:
    thing = things[kind]
    for name, (_, write) in HINTS[kind].items():
        with pytest.raises(AttributeError) as raised:
            getattr(thing, name)
        assert write in str(raised.value), name
        assert name in str(raised.value)
        assert not hasattr(thing, name)
        assert name not in dir(thing)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'$"):
        thing.no_such_name  # noqa: B018  # accessed for its error


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("Graph", "cuda.graphs.Graph"),
        ("NotSupportedError", "cuda.errors.NotSupportedError"),
        ("cuMemAlloc", "cuda.raw.cuMemAlloc"),
        ("cudaMalloc", "docs/names.md"),
    ],
)
def test_a_name_of_a_submodule_or_of_cuda_is_answered(name: str, write: str) -> None:
    with pytest.raises(AttributeError, match=f"{name}.*{write}"):
        getattr(cuda, name)
    assert not hasattr(cuda, name)


@pytest.mark.parametrize("name", ["benchmark", "libraries"])
def test_a_submodule_that_is_not_imported_yet_says_how_to_import_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    importlib.import_module(f"cudart_py.{name}")
    monkeypatch.delattr(cuda, name)
    with pytest.raises(AttributeError, match=f"write from cudart_py import {name}$"):
        getattr(cuda, name)


def test_the_package_lists_its_public_names_alone() -> None:
    assert {*dir(cuda)} - {"benchmark", "checkpoints", "coredumps", "interop", "libraries"} == {*cuda.__all__}
    assert all(hasattr(cuda, name) for name in dir(cuda))


SUBMODULES = (
    "batches",
    "benchmark",
    "checkpoints",
    "coredumps",
    "errors",
    "graphs",
    "images",
    "ipc",
    "libraries",
    "profiling",
    "tensor_maps",
    "textures",
    "virtual",
)


@pytest.mark.parametrize("name", SUBMODULES)
def test_a_public_submodule_lists_its_public_names_alone(name: str) -> None:
    submodule = importlib.import_module(f"cudart_py.{name}")
    assert {*dir(submodule)} == {*submodule.__all__}
    assert all(hasattr(submodule, public) for public in submodule.__all__)


# Hints whose code would close the array, change the process or its devices, or need another library, a capture,
# asyncio or another process.
NOT_RUN = (
    *("as_cuda_array", "async_done", "checks", "free", "get_ipc_handle", "graph_empty", "ipc_empty", "ipc_handle"),
    *("memcpy_dtoh", "profile_start", "reset", "set_allocator", "start_profiler"),
)
NOT_PYTHON = ("in the kernel: ", "nothing: ", "the kernel, ")


def test_what_a_hint_says_runs(device: cuda.Device) -> None:
    host, out = np.arange(4, dtype=np.float32), np.empty(4, np.float32)
    x, y = cuda.to_device(host), cuda.zeros(4, np.float32)
    start, end = cuda.Event().record(), cuda.Event().record()
    source = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {}
__constant__ float weights[4];
"""
    module = cuda.compile(source)
    names = {
        "cuda": cuda, "libraries": libraries, "np": np, "host": host, "pinned": cuda.pinned_empty(4, np.float32),
        "x": x, "y": y, "n": 4, "nbytes": 16, "start": start, "end": end, "event": end, "device": device,
        "stream": cuda.Stream(), "other": cuda.Stream(), "source": source, "name": "saxpy", "module": module,
        "kernel": module["saxpy"], "a": cuda.to_device(np.eye(2)), "b": cuda.to_device(np.eye(2)),
        "z": cuda.zeros(8, np.float32), "graph": captured(), "pool": cuda.MemoryPool.current(),
    }  # fmt: skip  # names of a program
    device.synchronize()
    for hints in HINTS.values():
        for name, (_, write) in hints.items():
            missing = write.startswith("libraries.") and "libraries" not in cuda.capabilities()
            if name not in NOT_RUN and not write.startswith(NOT_PYTHON) and not missing:
                exec(write, dict(names))
    x.copy_from(host)
    exec(HINTS["module"]["memcpy_dtoh"][1].replace("=host", "=out"), {**names, "out": out})
    np.testing.assert_array_equal(out, host)
