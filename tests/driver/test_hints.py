"""Names that people bring from other packages are answered with what to write here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.hints import HINTS


@pytest.fixture
def things(device: cuda.Device) -> dict[str, Any]:
    kernel = cuda.compile('extern "C" __global__ void k() {}')["k"]
    made = {"DeviceArray": cuda.zeros(3), "Kernel": kernel, "Stream": cuda.legacy_default, "Event": cuda.Event()}
    return {"module": cuda, **made}


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
        thing.no_such_name  # noqa: B018  # asked for its error


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


def test_the_package_lists_its_public_names_alone() -> None:
    assert {*dir(cuda)} - {"benchmark", "libraries"} == {*cuda.__all__}
    assert all(hasattr(cuda, name) for name in dir(cuda))


# What closes the array, sets the mode of the process, or needs another library, a capture or another process.
NOT_RUN = ("as_cuda_array", "checks", "free", "graph_empty", "ipc_empty", "ipc_handle", "memcpy_dtoh")


def test_what_a_hint_says_runs(device: cuda.Device) -> None:
    host, out = np.arange(4, dtype=np.float32), np.empty(4, np.float32)
    x, y = cuda.to_device(host), cuda.zeros(4, np.float32)
    start, end = cuda.Event().record(), cuda.Event().record()
    source = 'extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {}'
    stream = cuda.Stream()
    names = {
        "cuda": cuda, "np": np, "host": host, "x": x, "y": y, "n": 4, "nbytes": 16, "start": start,
        "end": end, "event": end,
        "stream": stream, "other": cuda.Stream(), "source": source, "saxpy": cuda.compile(source)["saxpy"],
    }  # fmt: skip  # names of a program
    device.synchronize()
    for hints in HINTS.values():
        for name, (_, write) in hints.items():
            if name not in NOT_RUN and not write.startswith("write"):
                exec(write, dict(names))
    exec(HINTS["module"]["memcpy_dtoh"][1].replace("=host", "=out"), {**names, "out": out})
    np.testing.assert_array_equal(out, host)
