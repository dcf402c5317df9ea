"""compile_image: arguments, images and messages."""

import os
import pickle
import re
import subprocess
from pathlib import Path

import pytest
from cuda.bindings import nvrtc

from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.linking.definitions import runs_on
from cudart_py.compilation.programs import library_path, library_version
from cudart_py.errors import CompileError
from tests.fuzz.oracle import host_compiler

SOURCE = 'extern "C" __global__ void k(float* x, float a) { x[threadIdx.x] *= a; }\n'


def ptx_of(source, **arguments):
    return compile_image(source, cache=False, **arguments).ptx.decode()


@pytest.mark.parametrize(
    ("arch", "target"), [("sm_90", "sm_90"), (90, "sm_90"), ((9, 0), "sm_90"), ("sm_90a", "sm_90a")]
)
def test_architecture_may_be_text_number_or_pair(arch, target):
    image = compile_image(SOURCE, arch=arch)
    assert image.arch == target
    assert re.search(rf"^\.target {target}$", image.ptx.decode(), re.MULTILINE)


def test_architecture_defaults_to_the_oldest_of_cuda_13():
    assert compile_image(SOURCE).arch == "sm_75"


def test_line_information_is_on_and_names_the_real_file(tmp_path):
    assert re.search(r"^\s*\.loc\s+1 1 ", ptx_of(SOURCE), re.MULTILINE)
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    assert f'.file\t1 "{path}"' in ptx_of(path)


def test_device_debug_replaces_line_information():
    for option in ("-G", " -G", "--device-debug"):
        assert "Conflicting options" not in compile_image(SOURCE, options=[option]).log


def test_attributes_come_from_the_assembler_and_are_noted_in_the_ptx():
    source = """
    extern "C" __global__ void shares(float* x) {
        __shared__ float s[100];
        s[threadIdx.x] = x[0];
        __syncthreads();
        x[1] = s[99 - threadIdx.x];
    }
    extern "C" __global__ void stacks(float* x, int n) {
        float a[64] = {};
        for (int i = 0; i < n; i++) a[(int)x[i]] += x[i];
        x[0] = a[n] + a[n + 1];
    }
    """
    image = compile_image(source, arch=90)
    shares, stacks = image.attributes["shares"], image.attributes["stacks"]
    assert 0 < shares.registers <= 255
    assert (shares.shared_bytes, shares.spill_store_bytes, shares.spill_load_bytes) == (400, 0, 0)
    assert stacks.local_bytes == 256
    assert stacks.max_threads_per_block is None
    comments = re.findall(rb"^// cudart-py: registers (\w+)=(\d+) spills=\d+ stack=(\d+)$", image.ptx, re.MULTILINE)
    assert {name.decode(): (int(registers), int(stack)) for name, registers, stack in comments} == {
        name: (used.registers, used.local_bytes) for name, used in image.attributes.items()
    }


def test_log_has_warnings_but_no_statistics():
    log = compile_image("__global__ void k() { int unused; }").log
    assert "unused" in log
    assert "ptxas" not in log
    assert "Remark" not in log
    assert compile_image(SOURCE).log == ""


def test_headers_beside_a_file_and_in_given_folders_are_found_under_any_name(tmp_path):
    folder = tmp_path / "mein Ordner ä"
    folder.mkdir()
    (folder / "value.cuh").write_text("#define VALUE 4321\n")
    path = folder / "k k.cu"
    path.write_text('#include "value.cuh"\n#include <value.cuh>\n__global__ void k(int* x) { *x = VALUE; }\n')
    assert "4321" in ptx_of(path)
    for include in (folder, [str(folder)]):
        assert "4321" in ptx_of(path.read_text(), include=include)


@pytest.mark.parametrize(
    ("value", "text"), [(4321, "4321"), ("4321", "4321"), (True, "1"), (None, "1"), ("(1 + 2)", "3"), (-7, "-7")]
)
def test_define_gives_macros_values(value, text):
    source = 'extern "C" __global__ void k(int* x) { *x = VALUE; }'
    assert re.search(rf"(?:mov|st)\S* .*, {text};", ptx_of(source, define={"VALUE": value}))


@pytest.mark.parametrize("arguments", [{"std": "c++20"}, {"std": 20}, {"options": ["-std=c++20"]}])
def test_std_chooses_the_language(arguments):
    source = 'static_assert(__cplusplus >= 202002L);\nextern "C" __global__ void k() {}'
    compile_image(source, **arguments)
    with pytest.raises(CompileError):
        compile_image(source, std="c++17")


def test_fast_math_uses_approximate_functions():
    source = 'extern "C" __global__ void k(float* x) { x[0] = sinf(x[1]); }'
    assert "sin.approx" in ptx_of(source, fast_math=True)
    assert "sin.approx" not in ptx_of(source)


def test_syntax_error_in_a_header_shows_the_headers_line(tmp_path):
    header = tmp_path / "broken.cuh"
    header.write_text("\n__device__ int f() { return +; }\n")
    path = tmp_path / "k.cu"
    path.write_text('#include "broken.cuh"\n')
    with pytest.raises(CompileError) as caught:
        compile_image(path)
    assert str(caught.value).startswith(f"{path} does not compile")
    assert f"{header}(2): " in str(caught.value)
    assert "  2 | __device__ int f() { return +; }" in str(caught.value)


def test_text_that_is_a_files_name_asks_for_a_path(tmp_path, monkeypatch):
    (tmp_path / "k.cu").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"pass pathlib\.Path\('k\.cu'\)"):
        compile_image("k.cu")


def test_any_path_object_is_read_and_a_missing_file_is_the_systems_own_error(tmp_path):
    class Place:
        def __fspath__(self):
            return os.fspath(tmp_path / "k.cu")

    with pytest.raises(FileNotFoundError):
        compile_image(Place())
    (tmp_path / "k.cu").write_text(SOURCE)
    assert list(compile_image(Place()).signatures) == ["k"]


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"source": b"x"}, TypeError, "source"),
        ({"source": "a\0b"}, ValueError, "source"),
        ({"names": "k"}, TypeError, "names"),
        ({"names": [" "]}, ValueError, "names[0]"),
        ({"arch": "lto_90"}, ValueError, "arch"),
        ({"arch": 9.0}, TypeError, "arch"),
        ({"arch": True}, TypeError, "arch"),
        ({"std": "cpp17"}, ValueError, "std"),
        ({"include": ["/nowhere/at/all"]}, ValueError, "include"),
        ({"define": {"a b": 1}}, ValueError, "define"),
        ({"define": {"A": [1]}}, TypeError, "define['A']"),
        ({"define": {"A": "1\n2"}}, ValueError, "define['A']"),
        ({"options": "-G"}, TypeError, "options"),
        ({"options": ["-arch", "sm_80"]}, ValueError, "options"),
        ({"options": ["-std=c++20"], "std": 17}, ValueError, "options"),
        ({"source": "\ud800"}, ValueError, "source"),
        ({"source": Path("a\0b")}, ValueError, "source"),
        ({"arch": 10**5000}, ValueError, "arch"),
        ({"arch": (1, 20)}, ValueError, "arch"),
        ({"std": True}, TypeError, "std"),
        ({"define": {"A": float("nan")}}, ValueError, "define['A']"),
        ({"define": {"A": 10**5000}}, ValueError, "define['A']"),
        ({"options": ["-DA\0=1"]}, ValueError, "options[0]"),
    ],
)
def test_bad_arguments_are_named(arguments, error, named):
    with pytest.raises(error, match=f"^compile_image: argument {re.escape(repr(named))} "):
        compile_image(**{"source": SOURCE, **arguments})


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ("-arch=sm_80", "'arch' sets"),
        ("--optix-ir", "cuda.bindings.nvrtc"),
        ("-fdevice-syntax-only", "leave it out"),
    ],
)
def test_a_refused_option_names_what_to_do(option, remedy):
    with pytest.raises(ValueError, match=remedy):
        compile_image(SOURCE, options=[option])


def test_repr_lists_the_kernels():
    assert repr(compile_image(SOURCE, arch=90)) == "<CompiledImage 'kernel.cu' for sm_90: void k(float*, float)>"


@pytest.mark.parametrize(
    ("kind", "own", "target", "expected"),
    [
        ("machine code", "sm_80", "sm_86a", True),
        ("machine code", "sm_86", "sm_80a", False),
        ("machine code", "sm_80", "sm_90a", False),
        ("machine code", "sm_90a", "sm_90a", True),
        ("machine code", "sm_100a", "sm_103a", False),
        ("machine code", "sm_100f", "sm_103a", True),
        ("machine code", "sm_100f", "sm_120a", False),
        ("ptx", "sm_80", "sm_90", True),
        ("ptx", "sm_90", "sm_80", False),
        ("ptx", "sm_90a", "sm_90", False),
        ("ptx", "sm_90a", "sm_90a", True),
        ("ptx", "sm_100f", "sm_100", False),
        ("ptx", "sm_100f", "sm_103f", True),
        ("ptx", "compute_90", "sm_80", False),
        ("ptx", "compute_80", "sm_90a", True),
    ],
)
def test_code_runs_on_devices_that_it_was_made_for(kind, own, target, expected):
    assert runs_on(own, target, is_machine_code=kind == "machine code") is expected


TEMPLATE = "template <class T, int N> __global__ void fill(T* x) { x[threadIdx.x] = N; }\n__constant__ int table[4];\n"


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        ({"arch": "sm_90"}, {"ptx", "cubin"}),
        ({"arch": "compute_90"}, {"ptx"}),
        ({"arch": 90, "options": ["-dlto"]}, {"ltoir"}),
        ({"arch": "compute_90", "options": ["--dlink-time-opt", "-rdc=true"]}, {"ltoir"}),
    ],
)
def test_an_image_has_the_kinds_of_code_that_were_asked_for_and_all_names(place, arguments, kinds):
    for _ in range(2):  # compiled, and from the cache
        image = compile_image(TEMPLATE, names=["fill<float,3>", "&table"], **arguments)
        assert {kind for kind in ("ptx", "cubin", "ltoir") if getattr(image, kind)} == kinds
        assert image.names["fill<float,3>"] == ("_Z4fillIfLi3EEvPT_",)
        assert image.names["table"] == ("table",)
        assert image.arch == ("compute_90" if arguments["arch"] == "compute_90" else "sm_90")
        assert list(image.signatures) == ["_Z4fillIfLi3EEvPT_"] * ("ptx" in kinds)


def test_a_virtual_architecture_is_the_target_of_the_ptx_and_has_typed_signatures():
    image = compile_image(SOURCE, arch="compute_90a")
    assert re.search(rb"^\.target sm_90a$", image.ptx, re.MULTILINE)
    assert str(image.signatures["k"]) == "void k(float*, float)"


def test_an_image_is_pickled_with_all_that_it_has():
    image = compile_image(TEMPLATE, names=["fill<float,3>"], arch=90)
    again = pickle.loads(pickle.dumps(image))
    for field in image.__slots__:
        assert getattr(again, field) == getattr(image, field), field


def test_with_an_architecture_no_driver_is_needed(python):
    program = """
import cudart_py as cuda
print(cuda.images.compile_image("__global__ void k() {}", arch=90).cubin[:4])
"""
    assert python(program, CUDART_PY_DRIVER="none").stdout == "b'\\x7fELF'\n"


def test_a_failed_compile_shows_the_numbered_line_and_a_caret_and_carries_status_call_and_log():
    source = "\n\n__global__ void k() {\n\tint y = missing;\n}\n"
    with pytest.raises(CompileError) as caught:
        compile_image(source, name="bad.cu")
    text = str(caught.value)
    assert text.startswith("bad.cu does not compile")
    assert 'bad.cu(4): error: identifier "missing" is undefined' in text
    assert "  4 | \tint y = missing;\n    | \t        ^" in text
    assert caught.value.status == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION
    assert caught.value.call == "nvrtcCompileProgram"
    assert "missing" in caught.value.log


UNKNOWN_INSTRUCTION = """#define UNKNOWN(x) asm("foo.u32 %0, 1;" : "=r"(x))
__device__ __forceinline__ int one() {
    int x;
    UNKNOWN(x);
    return x;
}
__global__ void k(int* x) {
    x[0] = 5 * one();
}
"""
TOO_MUCH_SHARED = """__global__ void small(int* x) { *x = 1; }
__global__ void large(float* x) {
    __shared__ float s[100000];
    s[threadIdx.x] = x[0];
    __syncthreads();
    x[1] = s[threadIdx.x + 1];
}
"""
UNDEFINED = """__device__ float far_away(float);
__global__ void k(float* x) {
    x[0] = 1;
    x[1] = far_away(x[2]);
}
"""


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        (UNKNOWN_INSTRUCTION, 4, "'foo', in the PTX 'foo.u32"),
        (TOO_MUCH_SHARED, 2, "'large(float*)' uses too much shared data"),
        (UNDEFINED, 4, "'far_away(float)'"),
    ],
)
@pytest.mark.parametrize("options", [[], ["-G"]])
def test_an_error_of_the_assembler_shows_the_line_of_the_source(source, line, message, options):
    for name in ("kernel.cu", "Größe.cu", "-x.cu"):
        with pytest.raises(CompileError) as caught:
            compile_image(source, arch=90, name=name, options=options)
        place = re.escape(f"{name}({line}): error: ") + f".*{re.escape(message)}"
        assert re.search(
            rf"^{place}.*\n  {line} \| {re.escape(source.splitlines()[line - 1])}$", str(caught.value), re.M
        )
        assert "ptxas" in caught.value.log


def test_an_error_of_the_assembler_shows_the_line_of_a_header(tmp_path):
    header, path = tmp_path / "foo.cuh", tmp_path / "k.cu"
    header.write_text(UNKNOWN_INSTRUCTION.partition("__global__")[0])
    path.write_text('#include "foo.cuh"\n__global__ void k(int* x) { x[0] = one(); }\n')
    with pytest.raises(CompileError, match=re.escape(f"{header}(4): error: ")) as caught:
        compile_image(path, arch=90)
    assert "  4 |     UNKNOWN(x);" in str(caught.value)


def test_unknown_architecture_lists_the_known_ones():
    with pytest.raises(CompileError, match=r"knows the architectures .*sm_90"):
        compile_image(TEMPLATE, arch=12)


def test_library_version_and_path_are_of_the_same_major():
    assert library_version()[0] == 13
    assert ".so.13" in (library_path() or "")


OLDER = """
import ctypes, cudart_py as cuda
older = ctypes.CDLL({path!r})
print(cuda.compile("__global__ void beside_an_older_nvrtc() {{}}", cache=False).kernels)
"""


@pytest.mark.skipif(host_compiler() is None, reason="there is no C++ compiler")
def test_an_nvrtc_of_cuda_12_that_another_package_has_loaded_is_not_used(python, tmp_path):
    """PyTorch for CUDA 12 loads one, which cuda.bindings would use."""
    path = str(tmp_path / "libnvrtc.so.12")
    source = 'extern "C" int nvrtcVersion(int* major, int* minor) { *major = 12; *minor = 8; return 0; }'
    options = ["-x", "c++", "-", "-shared", "-fPIC", "-Wl,-soname,libnvrtc.so.12", "-o", path]
    subprocess.run([host_compiler(), *options], input=source, text=True, check=True)
    assert python(OLDER.format(path=path), own_imports=True).stdout == "('beside_an_older_nvrtc',)\n"
