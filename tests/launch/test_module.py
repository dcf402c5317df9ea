"""Modules: loading, finding kernels, variables; and lazy modules, which each device loads at its first use."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.compilation.compiler import compile_image
from cudart_py.driver import backend, calls, enums


def test_kernels_are_found_by_c_name_namespace_and_template_expression(module):
    assert module["saxpy"].name == "saxpy"
    assert module["deep::pair"].signature.parameters[1].type == "Pair"
    assert module["fill<float, 32>"] is module["fill<float, 32>"]
    assert "saxpy" in module
    assert "nothing" not in module
    assert "saxpy" in list(module)
    assert {"saxpy", "deep::pair"} <= {*module._ipython_key_completions_()}
    with pytest.raises(cuda.errors.NotFoundError, match="no kernel is named 'pair'; did you mean 'deep::pair'"):
        module["pair"]
    with pytest.raises(
        cuda.errors.NotFoundError, match=r"no kernel is named 'saxpi'; did you mean 'saxpy'\?.*deep::pair"
    ):
        module["saxpi"]
    with pytest.raises(cuda.errors.NotFoundError, match=r"ambiguous.*float\*.*_Z10overloadedPf"):
        module["overloaded"]
    assert module["_Z10overloadedPf"].signature.parameters[0].dtype == "float32"


SEVEN = '__device__ int calls; extern "C" __global__ void seven(int *out) { *out = 7; calls += 1; }'


def image_of(source, device, **arguments):
    """Return an image that the driver in use can load."""
    compiled = compile_image(source, arch=device.compute_capability, **arguments)
    return compiled.cubin if backend.chosen().image_kind == "cubin" else compiled.ptx


def test_an_image_loads_with_typed_scalars_only(device):
    source = 'extern "C" __global__ void add(int *out, int a, double b) { *out = a + (int)b; }'
    with cuda.load(image_of(source, device)) as module:
        out = cuda.zeros(1, np.int32)
        module["add"][1, 1](out, np.int32(3), np.float64(4.0))
        assert out.to_host()[0] == 7
        with pytest.raises(TypeError, match=r"argument 1 of add \(4 bytes\) is passed by value"):
            module["add"][1, 1](out, 3, np.float64(4.0))
        with pytest.raises(ValueError, match="has 4 bytes, but .* has 8"):
            module["add"][1, 1](out, np.int64(3), np.float64(4.0))


def test_a_driver_that_fails_to_tell_an_images_parameters_is_not_believed(device, monkeypatch):
    lost = enums.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with cuda.load(image_of('extern "C" __global__ void add(int *out, int a) {}', device)) as module:
        monkeypatch.setattr(calls.raw, "cuFuncGetParamInfo", lambda *_: (lost, None, None))
        with pytest.raises(cuda.errors.IllegalAddressError, match="cuFuncGetParamInfo"):
            module["add"]
        monkeypatch.undo()
        assert len(module["add"].signature.parameters) == 2


def test_a_fatbin_loads_where_a_cubin_does_and_is_named_elsewhere(device, fatbin):
    major, minor = device.compute_capability
    cubin = compile_image('extern "C" __global__ void k(int *out) { *out = 7; }', arch=(major, minor)).cubin
    image = fatbin((cubin, f"{major}{minor}"))
    if backend.chosen().image_kind != "cubin":
        with pytest.raises(cuda.errors.ImageError, match="a fatbin with machine code for sm_90; .* compile with PTX"):
            cuda.load(image)
        return
    with cuda.load(image) as module:
        out = cuda.zeros(1, np.int32)
        module["k"][1, 1](out)
        assert out.to_host()[0] == 7


@pytest.mark.parametrize("compress", ["none", "speed", "balance", "size"])
def test_a_compressed_fatbin_with_ptx_loads_everywhere(device, fatbin, compress):
    major, minor = device.compute_capability
    source = 'extern "C" __global__ void k(int *out) { *out = 7; }'
    arch = f"{major}{minor}"
    codes = [(compile_image(source, arch=(major, minor)).cubin, arch)]
    codes += [(compile_image(source, arch=f"compute_{number}").ptx, number) for number in ("80", arch)]
    with cuda.load(fatbin(*codes, compress=compress)) as module:
        out = cuda.full(1, -1, np.int32)
        module["k"][1, 1](out)
        assert out.to_host()[0] == 7


@pytest.mark.parametrize("image", [5, "saxpy.ptx", None, 1.5, [b"ptx"]])
def test_an_image_is_bytes_or_a_path(device, image):
    """An integer is not treated as an address, nor a str as a path."""
    for load in (cuda.load, cuda.Module):
        with pytest.raises(TypeError, match=f"^{load.__name__}: argument 'image' must be bytes"):
            load(image)
    with pytest.raises(TypeError, match="^Module: argument 'compiled' must be a CompiledImage or None, not the int 5"):
        cuda.Module(b"rubbish", 5)
    with pytest.raises(cuda.CudaError):
        cuda.load(b"rubbish")
    with pytest.raises(ValueError, match="^load: argument .image. .* at least one byte"):
        cuda.load(b"")


def test_symbols_are_arrays_over_the_variables(device, module):
    coefficients = module.symbol("coefficients")
    assert (coefficients.shape, coefficients.dtype) == ((4,), np.float32)
    coefficients.copy_from(np.arange(4, dtype=np.float32))
    counter = module.symbol("counter")
    assert counter.to_host() == 7
    cuda.memset(counter, 10)
    out = cuda.empty(4, np.float32)
    module["apply"][1, 4](out)
    np.testing.assert_array_equal(out.to_host(), [0, 10, 20, 30])
    with pytest.raises(cuda.errors.NotFoundError, match="no variable is named 'nothing'"):
        module.symbol("nothing")
    with pytest.raises(cuda.errors.NotFoundError, match=r"'apply' is a kernel, .*write module\['apply'\]"):
        module.symbol("apply")
    with pytest.raises(cuda.errors.NotFoundError, match="'coeficients'; did you mean 'coefficients'"):
        module.symbol("coeficients")
    with pytest.raises(ValueError, match="argument .shape. must have 16 bytes"):
        module.symbol("coefficients", np.float32, 5)


def test_each_module_of_an_image_has_variables_of_its_own(device):
    source = """
    __device__ int count = 5;
    extern "C" __global__ void add(int* seen) { count += 1; *seen = count; }
    """
    seen = cuda.zeros(1, np.int32)
    image = cuda.compile(source).ptx
    first, second = cuda.load(image), cuda.load(image)
    for expected, module in [(6, first), (7, first), (6, second)]:
        module["add"][1, 1](seen)
        assert seen.to_host()[0] == expected
    first.close()
    second["add"][1, 1](seen)
    assert seen.to_host()[0] == 7
    cuda.load(image)["add"][1, 1](seen)
    assert seen.to_host()[0] == 6


def test_a_closed_module_is_refused(device):
    module = cuda.compile('extern "C" __global__ void nothing() {}')
    kernel = module["nothing"]
    launch = kernel[1, 1]
    bound = launch.bind()
    launch()
    bound()
    with pytest.raises(TypeError, match=r"void nothing\(\) takes 0 arguments, but 1 was given"):
        launch(1)
    module.close()
    module.close()
    for use in (lambda: module["nothing"], lambda: kernel.handle, lambda: module.symbol("x")):
        with pytest.raises(ValueError, match="closed"):
            use()
    for again in (launch, bound):
        with pytest.raises(ValueError, match="nothing: its module is closed"):
            again()


# More sums than registers, if two blocks of 1024 threads leave 32 registers per thread.
CROWDED = """__global__ void BOUNDS crowded(float* x) {
    float sum[64];
    for (int k = 0; k < 64; k++) sum[k] = x[k * 1024 + threadIdx.x];
    for (int step = 0; step < 9; step++)
        for (int k = 0; k < 64; k++) sum[k] = sum[k] * sum[(k + 1) % 64] + step;
    for (int k = 0; k < 64; k++) x[k * 1024 + threadIdx.x] = sum[k];
}"""


def test_the_attributes_of_ptx_are_those_on_a_gpu(device):
    """Releases of the assembler differ a little."""
    image = cuda.images.compile_image(CROWDED, define={"BOUNDS": ""}, arch="compute_90")
    lines = [line for line in image.ptx.splitlines() if not line.startswith(b"//")]
    kernel = cuda.load(b"\n".join(lines))[image.entries("crowded")[0]]
    assert 64 <= kernel.attributes.registers <= 110
    expected = cuda.occupancy((9, 0), 256, kernel.attributes.registers, 0)
    assert kernel.occupancy(256).blocks == expected.blocks < 8


def test_attributes_have_what_the_assembler_reported(device):
    kernel = cuda.compile(CROWDED, define={"BOUNDS": "__launch_bounds__(1024, 2)"})["crowded"]
    assert kernel.attributes.max_threads_per_block == 1024
    assert kernel.attributes.shared_bytes == 0
    reported = next(iter(kernel.module.image.attributes.values()))
    assert reported.registers == kernel.attributes.registers == 32
    assert reported.local_bytes >= 4
    assert min(reported.spill_store_bytes, reported.spill_load_bytes) >= reported.local_bytes
    for name in ("spill_store_bytes", "spill_load_bytes"):
        assert getattr(kernel.attributes, name) == getattr(reported, name)


def test_a_module_has_the_images_that_it_was_made_of_and_a_loaded_one_has_none(device):
    module = cuda.compile('extern "C" __global__ void k(int *out) { *out = 7; }')
    assert b".entry k" in module.ptx
    assert module.cubin.startswith(b"\x7fELF")
    assert isinstance(module.image, cuda.images.CompiledImage)
    assert module.image.ptx == module.ptx
    loaded = cuda.Module(module.cubin if backend.chosen().image_kind == "cubin" else module.ptx)
    for name in ("ptx", "cubin", "image"):
        with pytest.raises(ValueError, match=f"Module.{name}: this module was loaded from an image"):
            getattr(loaded, name)
    assert loaded["k"].attributes.spill_load_bytes is None


# A GPU's driver may be older than the compiler, and would then refuse its PTX.
@pytest.mark.parametrize("arguments", [{}, pytest.param({"arch": "compute_75"}, marks=pytest.mark.needs("in_process"))])
def test_a_compiled_image_is_loaded_with_its_types(device, tmp_path, arguments):
    image = cuda.images.compile_image(SEVEN, **arguments)
    (tmp_path / "image").write_bytes(pickle.dumps(image))
    for loaded in (image, pickle.loads((tmp_path / "image").read_bytes())):
        module = cuda.load(loaded)
        assert str(module["seven"].signature) == "void seven(int*)"
        out = cuda.zeros(1, np.int32)
        module["seven"][1, 1](out)
        assert out.to_host()[0] == 7
        assert module.symbol("calls").to_host() == 1
        with pytest.raises(TypeError, match="int32"):
            module["seven"][1, 1](cuda.zeros(1, np.float32))


def test_link_time_code_is_refused_with_what_loads_it_and_links(device):
    image = cuda.images.compile_image(SEVEN, options=["-rdc=true", "-dlto"])
    for call, load in (("load", lambda: cuda.load(image)), ("compile", lambda: cuda.compile(SEVEN, options=["-dlto"]))):
        with pytest.raises(ValueError, match=rf"^{call}: .* cuda\.link\(\[image\]\)"):
            load()
    out = cuda.zeros(1, np.int32)
    cuda.link([image])["seven"][1, 1](out)
    assert out.to_host()[0] == 7


def test_code_for_another_architecture_is_refused_by_name(device):
    major, minor = device.compute_capability
    with pytest.raises(
        cuda.errors.ImageError, match=rf"The code is for sm_75, and device 0 is sm_{major}{minor}"
    ) as raised:
        cuda.compile('extern "C" __global__ void k() {}', arch="sm_75")
    assert raised.value.status.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"


def test_a_kernel_of_an_image_without_source_is_found_by_its_cpp_name(device):
    source = """
    template <class T> __global__ void fill(T *out, T value) { *out = value; }
    namespace deep { __global__ void seven(int *out) { *out = 7; } }
    __global__ void twice(int *out) { *out *= 2; }
    __global__ void twice(float *out) { *out *= 2; }
    """
    module = cuda.load(image_of(source, device, names=["fill<int>"]))
    assert module.kernels == ("deep::seven", "fill<int>", "twice", "twice")
    assert module["deep::seven"].name == "deep::seven"
    assert module["fill<int>"] is module["fill"] is module["_Z4fillIiEvPT_S0_"]
    out = cuda.zeros(1, np.int32)
    module["deep::seven"][1, 1](out)
    module["twice(int*)"][1, 1](out)
    assert out.to_host()[0] == 14
    with pytest.raises(cuda.errors.NotFoundError, match=r"ambiguous: twice\(float\*\) is '_Z5twicePf', twice\(int\*\)"):
        module["twice"]


def test_code_compiled_apart_is_linked_and_runs(device):
    """Both sources have a static variable of the same name, and the same instance of a template."""
    common = "template <class T> __device__ __noinline__ T half(T x) { return x / 2; }\nstatic __device__ int offset = "
    caller = f"""{common}100;
    extern __device__ int counter;
    extern __device__ int twice(int);
    __constant__ int factor = 3;
    __global__ void apply(int *out) {{ *out = factor * twice(half(8)) + offset + counter; }}
    """
    called = f"""{common}1000;
    __device__ int counter = 20000;
    __device__ int twice(int x) {{ return half(4 * x) + offset; }}
    """
    images = [cuda.images.compile_image(source, options=["-rdc=true"]) for source in (caller, called)]
    for inputs in (images, [images[0], images[1].ptx]):
        module = cuda.link(inputs)
        out = cuda.zeros(1, np.int32)
        module["apply"][1, 1](out)
        assert out.to_host()[0] == 3 * (8 + 1000) + 100 + 20000
        assert module.symbol("counter", np.int32).to_host() == 20000


def test_making_a_lazy_module_chooses_no_driver(python):
    program = f"import cudart_py as cuda; print(cuda.LazyModule({SEVEN!r}, cache=False))"
    assert python(program, CUDART_PY_DRIVER="none").stdout == "<LazyModule 'kernel.cu', not loaded>\n"


def test_the_first_use_of_a_lazy_module_on_each_device_loads_it_there(python):
    program = f"""
import cudart_py as cuda
kernels = cuda.LazyModule({SEVEN!r})
print(kernels.devices)
for device in cuda.devices() * 2:
    with device:
        out = cuda.zeros(1, "i4")
        kernels["seven"][1, 1](out)
        print(out.to_host(), kernels["seven"].device is device, kernels.module.symbol("calls").to_host())
print(kernels)
"""
    lines = python(program, CUDART_PY_DRIVER="simulator", CUDART_PY_SIMULATOR_DEVICES="2").stdout.splitlines()
    loaded = "<LazyModule 'kernel.cu', loaded on device 0, 1>"
    assert lines == ["()", *["[7] True 1"] * 2, *["[7] True 2"] * 2, loaded]


def test_a_lazy_module_is_compiled_once_for_a_device(device, builds):
    kernels = cuda.LazyModule(SEVEN, cache=False)
    assert not kernels._ipython_key_completions_()
    assert builds == []
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(kernels.__getitem__, ["seven"] * 4))
    assert kernels["seven"] is kernels["seven"]
    assert "seven" in kernels._ipython_key_completions_()
    assert builds == ["kernel.cu"]


def test_a_lazy_modules_path_is_that_of_the_folder_where_it_was_made(device, tmp_path, monkeypatch):
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
    lazy = cuda.LazyModule(SEVEN, cache=False)
    with pytest.raises(AttributeError, match=r"no attribute 'sevne'; if it is a kernel, write module\['sevne'\]"):
        lazy.sevne  # noqa: B018  # the access raises
    assert builds == []
    with pytest.raises(cuda.errors.NotFoundError, match="did you mean 'seven'"):
        lazy["sevne"]
    for owner in (lazy, lazy.module):
        for name, words in (
            ("seven", r"kernels are not attributes: write module\['seven'\]"),
            ("sevne", r"did you mean the kernel module\['seven'\]\?"),
            ("weather", f"'{type(owner).__name__}' object has no attribute 'weather'"),
        ):
            with pytest.raises(AttributeError, match=words):
                getattr(owner, name)


def test_closing_unloads_it_everywhere_and_a_module_that_was_closed_alone_is_loaded_again(device):
    with cuda.LazyModule(SEVEN) as kernels:
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
def test_bad_arguments_of_a_lazy_module_are_named_at_once(bad):
    with pytest.raises((TypeError, ValueError), match=f"argument '{next(iter(bad))}'"):
        cuda.LazyModule(SEVEN, **bad)


def test_several_instances_and_a_variable_are_found_as_the_error_says(device):
    source = "template <class T> __global__ void fill(T* x) { *x = 1; } __constant__ float c; "
    source += "__global__ void get(float* x) { *x = c; }"
    module = cuda.compile(source, names=["fill<float>", "fill<int>"])
    with pytest.raises(cuda.errors.NotFoundError, match=r"write module\['fill<float>'\] or module\['fill<int>'\]"):
        module["fill"]
    assert module["fill<int>"] is not module["fill<float>"]
    with pytest.raises(cuda.errors.NotFoundError, match=r"write module\.symbol\('c'\)"):
        module["c"]
