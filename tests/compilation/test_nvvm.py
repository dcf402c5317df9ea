"""NVVM IR, compiled with libNVVM, and link-time code."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.compilation import nvvm as compiler
from cudart_py.images import compile_nvvm

# The IR of LLVM 7, which libNVVM reads for compute capabilities below 10.0.
IR = """
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64\
-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @scale(float* %x, float %factor) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %place = getelementptr float, float* %x, i32 %i
  %old = load float, float* %place
  %new = fmul float %old, %factor
  store float %new, float* %place
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
!nvvm.annotations = !{!0}
!0 = !{void (float*, float)* @scale, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0}
"""
USED = """
@llvm.used = appending global [1 x i8*] [i8* bitcast (void (float*, float)* @scale to i8*)], section "llvm.metadata"
"""
TWICE = """
define float @twice(float %x) {
  %y = fmul float %x, 2.0
  ret float %y
}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0}
"""


@pytest.fixture(scope="module")
def library():
    """Skip the test if libNVVM is not installed."""
    try:
        compiler._library()
    except cuda.errors.NotSupportedError as error:
        pytest.skip(str(error))


def scales(module, rng):
    """Return whether a module's kernel multiplies numbers."""
    host = rng.random(37, dtype=np.float32)
    x = cuda.to_device(host)
    module["scale"][1, x.size](x, np.float32(3))
    return np.array_equal(x.to_host(), host * np.float32(3))


@pytest.mark.parametrize("form", ["text", "bytes", "file"])
def test_ir_runs_from_text_bytes_and_a_file(library, device, rng, tmp_path, form):
    path = tmp_path / "scale.ll"
    path.write_text(IR)
    image = compile_nvvm({"text": IR, "bytes": IR.encode(), "file": path}[form])
    assert (image.name, image.arch) == (str(path) if form == "file" else "module.ll", device.arch)
    assert scales(cuda.load(image), rng)


def test_a_virtual_architecture_gives_only_ptx(library):
    image = compile_nvvm(IR, arch="compute_80")
    assert (image.cubin, image.arch) == (b"", "compute_80")
    assert b".target sm_80" in image.ptx


def test_functions_come_from_libraries(library, device, rng):
    source = IR.replace("fmul float %old, %factor", "call float @twice(float %old)") + "declare float @twice(float)\n"
    header = IR[: IR.index("define")]
    image = compile_nvvm(source, libraries=[header + TWICE])
    host = rng.random(5, dtype=np.float32)
    x = cuda.to_device(host)
    cuda.load(image)["scale"][1, 5](x, np.float32(0))
    assert np.array_equal(x.to_host(), 2 * host)


def test_link_time_code_is_linked_as_an_image_and_as_bytes_but_not_loaded(library, device, rng):
    image = compile_nvvm(IR + USED, options=["-gen-lto"])
    assert (image.ptx, image.cubin) == (b"", b"")
    assert scales(cuda.link([image]), rng)
    assert scales(cuda.link([image.ltoir]), rng)
    for code in (image, image.ltoir):
        with pytest.raises(ValueError, match=r"link-time code.*cuda.link\(\[image\]\) loads it"):
            cuda.load(code)


@pytest.mark.needs("in_process")
def test_a_driver_that_runs_ptx_says_what_it_cannot_link(library, device):
    function = cuda.images.compile_image("__device__ int one() { return 1; }", options=["-rdc=true"])
    with pytest.raises(cuda.errors.NotSupportedError, match="link only PTX, images from .*, or link-time code"):
        cuda.link([compile_nvvm(IR + USED, options=["-gen-lto"]), function])


def test_an_error_has_the_log_and_the_line(library):
    with pytest.raises(cuda.CompileError, match=r"wrong\.ll does not compile\n\nwrong\.ll \(9, 9\): ") as caught:
        compile_nvvm(IR.replace("fmul", "multiply"), name="wrong.ll")
    assert caught.value.log.startswith("wrong.ll (")
    with pytest.raises(cuda.CompileError, match="-bogus is an unsupported option"):
        compile_nvvm(IR, options=["-bogus"])


def test_without_the_library_an_error_says_how_to_install_it(monkeypatch):
    nvvm = pytest.importorskip("cuda.bindings.nvvm", reason="these bindings have no libNVVM")

    def missing():
        raise RuntimeError("no libnvvm")

    monkeypatch.setattr(nvvm, "version", missing)
    with pytest.raises(cuda.errors.NotSupportedError, match=r"libNVVM .* not found: pip install 'cuda-toolkit\[nvvm\]"):
        compile_nvvm(IR)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"source": 5}, TypeError, "'source' must be NVVM IR as text or bitcode, or a path, not the int 5"),
        ({"source": "a\0"}, ValueError, "'source' must be without NUL"),
        ({"arch": "sm_9"}, ValueError, "'arch' must be an architecture"),
        ({"options": ["-arch=compute_90"]}, ValueError, "'options' has '-arch=compute_90', which the argument 'arch'"),
        ({"options": "-g"}, TypeError, "'options' must be a sequence of strings"),
        ({"libraries": "x"}, TypeError, "'libraries' must be a sequence of modules"),
        ({"libraries": [5]}, TypeError, r"'libraries\[0\]' must be NVVM IR"),
        ({"name": ""}, ValueError, "'name' must be at least one character"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=f"compile_nvvm: .*{message}"):
        compile_nvvm(**{"source": IR, "arch": 90, **arguments})
