"""Images that are loaded once for all devices, and pickles of modules and kernels, which contain the image."""

import copy
import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver import backend
from cudart_py.driver.calls import api

SOURCE = """
template <class T> __global__ void scale(T *x, T factor) { x[threadIdx.x] *= factor; }
extern "C" __global__ void add(int *x, int by) { x[threadIdx.x] += by; }
extern "C" __global__ void count(int *found);
__device__ int total = 5;
extern "C" __global__ void take(int *found) { found[0] = atomicAdd(&total, 1); }
"""
NAMES = ["scale<float>", "scale<double>"]


@pytest.fixture(scope="module")
def image():
    return cuda.images.compile_image(SOURCE, names=NAMES)


def code_of(image):
    return image.cubin if backend.chosen().image_kind == "cubin" else image.ptx


@pytest.fixture
def calls(monkeypatch):
    """Count the driver's calls that load and unload code."""
    counts = {"cuLibraryLoadData": 0, "cuModuleLoadData": 0, "cuLibraryUnload": 0}

    def counted(name, function):
        def call(*arguments):
            counts[name] += 1
            return function(*arguments)

        return call

    for name in counts:
        monkeypatch.setattr(api, name, counted(name, getattr(api, name)), raising=False)
    return counts


def loaded(calls):
    """Return how often code was loaded; it is unloaded whenever Python collects garbage."""
    return calls["cuLibraryLoadData"], calls["cuModuleLoadData"]


def result_of(kernels):
    x = cuda.to_device(np.arange(4, dtype=np.int32))
    kernels["add"][1, 4](x, 3)
    return x.to_host().tolist()


def test_an_image_is_loaded_once_for_all_devices(image, calls):
    kernels = cuda.LazyModule.from_image(image)
    assert not any(calls.values())
    assert repr(kernels) == "<LazyModule 'kernel.cu', not loaded>"
    for device in cuda.devices():
        with device:
            assert result_of(kernels) == [3, 4, 5, 6]
            assert kernels["add"].device is device
            found = cuda.zeros(1, np.int32)
            kernels["take"][1, 1](found)
            assert found.to_host().tolist() == [5], "each device has its own variables"
            assert kernels.module.symbol("total").to_host().item() == 6
    assert kernels.devices == tuple(cuda.devices())
    assert calls == {"cuLibraryLoadData": 1, "cuModuleLoadData": 0, "cuLibraryUnload": 0}
    kernel = kernels["scale<float>"]
    kernels.close()
    assert calls["cuLibraryUnload"] == 1
    with pytest.raises(ValueError, match="this Module is closed"):
        kernel.handle  # noqa: B018  # it raises
    with pytest.raises(ValueError, match="this LazyModule of 'kernel.cu' is closed"):
        kernels["add"]


@pytest.mark.unsanitized("under memcheck of CUDA 13.0, what a launch has used outlives its last reference")
def test_a_kernel_keeps_its_library_loaded(image, calls):
    kernel = cuda.LazyModule.from_image(image)["scale<double>"]
    x = cuda.full(4, 1.5)
    kernel[1, 4](x, 2.0)
    assert x.to_host().tolist() == [3.0] * 4
    assert calls["cuLibraryUnload"] == 0
    del kernel
    gc.collect()
    assert calls["cuLibraryUnload"] == 1


@pytest.mark.parametrize("form", ["bytes", "path"])
def test_images_of_others_are_loaded_too(image, tmp_path, form):
    (tmp_path / "kernels").write_bytes(code_of(image))
    given = code_of(image) if form == "bytes" else tmp_path / "kernels"
    kernels = cuda.LazyModule.from_image(given)
    x = cuda.to_device(np.arange(4, dtype=np.int32))
    kernels["add"][1, 4](x, np.int32(3))
    assert x.to_host().tolist() == [3, 4, 5, 6]


def test_bad_images_are_named_when_given_or_when_loaded():
    for bad, error, text in (
        ("text", TypeError, "argument 'image' must be bytes, a Path or a CompiledImage, not the str"),
        (5, TypeError, "argument 'image' must be bytes, a Path or a CompiledImage, not the int"),
        (b"", ValueError, "argument 'image' must be an image of at least one byte"),
    ):
        with pytest.raises(error, match=f"^LazyModule.from_image: {text}"):
            cuda.LazyModule.from_image(bad)
    wrong = cuda.LazyModule.from_image(b"not an image")
    with pytest.raises(cuda.CudaError):
        wrong["add"]


@pytest.mark.parametrize("how", ["compiled", "image", "lazy image", "lazy source", "restored"])
def test_a_module_is_pickled_as_its_image_and_loaded_when_it_is_used(image, how, calls):
    modules = {
        "compiled": lambda: cuda.load(image),
        "image": lambda: cuda.load(code_of(image)),
        "lazy image": lambda: cuda.LazyModule.from_image(image),
        "lazy source": lambda: cuda.LazyModule(SOURCE, names=NAMES),
        "restored": lambda: pickle.loads(pickle.dumps(cuda.load(image))),
    }
    module = modules[how]()
    before = loaded(calls)
    again = pickle.loads(pickle.dumps(module))
    assert loaded(calls) == before
    assert type(again) is cuda.LazyModule
    x = cuda.full(4, 1.5, np.float32)
    again["_Z5scaleIfEvPT_S0_" if how == "image" else "scale<float>"][1, 4](x, np.float32(2))
    assert x.to_host().tolist() == [3.0] * 4


def test_kernels_are_pickled_with_their_module_once(image, calls):
    module = cuda.load(image)
    add, scale = module["add"], module["scale<double>"]
    add, scale, again = pickle.loads(pickle.dumps([add, scale, module]))
    before = loaded(calls)
    assert repr(add) == "<LazyKernel add of <LazyModule 'kernel.cu', not loaded>>"
    add, scale = pickle.loads(pickle.dumps([add, scale]))
    assert loaded(calls) == before
    x, y = cuda.to_device(np.arange(4, dtype=np.int32)), cuda.full(4, 1.5)
    add[1, 4](x, 3)
    add.launch(1, 4, x, 2)
    scale[1, 4].bind(y, 2.0)()
    assert (x.to_host().tolist(), y.to_host().tolist()) == ([5, 6, 7, 8], [3.0] * 4)
    assert loaded(calls) == (before[0] + 1, before[1])
    assert (add.name, scale.name, add.attributes.registers > 0) == ("add", "scale<double>", True)
    add.carveout = 50
    assert add.carveout == 50
    with pytest.raises(TypeError, match=r"launch add as add\[grid, block\]"):
        add(x, 3)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        add.nothing  # noqa: B018  # it raises
    assert again["add"].name == "add"


def test_closed_modules_are_not_pickled_and_copies_are_refused(image):
    module = cuda.load(image)
    kernel = module["add"]
    for thing in (module, kernel):
        for how in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"this {type(thing).__name__} cannot be copied or pickled: .*share it"):
                how(thing)
    module.close()
    lazy = cuda.LazyModule(SOURCE)
    lazy.close()
    for thing in (module, kernel, lazy):
        with pytest.raises(ValueError, match="closed"):
            pickle.dumps(thing)


RECEIVER = """
import pickle, sys
kernel = pickle.load(sys.stdin.buffer)
import numpy as np
import cudart_py as cuda
with cuda.devices()[-1]:
    x = cuda.to_device(np.arange(4, dtype=np.int32))
    kernel[1, 4](x, 7)
    print(x.to_host().tolist(), kernel.device is cuda.devices()[-1])
"""


@pytest.mark.exhaustive  # the page about processes sends a kernel to another process too
def test_another_process_loads_a_kernel_on_the_device_that_it_chooses(image):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    sent = pickle.dumps(cuda.load(image)["add"])
    done = subprocess.run(
        [sys.executable, "-c", RECEIVER], input=sent, capture_output=True, timeout=60, env=environment, check=False
    )
    assert done.stdout.splitlines()[-1:] == [b"[7, 8, 9, 10] True"], done.stderr


RESET = f"""
import numpy as np
import cudart_py as cuda
kernels = cuda.LazyModule.from_image(cuda.images.compile_image({SOURCE!r}, names={NAMES!r}))
for _ in range(2):
    x = cuda.to_device(np.arange(4, dtype=np.int32))
    kernels["add"][1, 4](x, 3)
    print(x.to_host().tolist())
    cuda.reset()
"""


@pytest.mark.needs("reset")
def test_a_library_is_loaded_again_after_a_reset(python):
    assert python(RESET).stdout.splitlines() == ["[3, 4, 5, 6]"] * 2
