"""link_images: code compiled apart made one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cudart_py.compilation import headers
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.linking import link_images
from cudart_py.compilation.programs import Program, library_path, library_version
from cudart_py.errors import LinkError

CALLER = "extern __device__ float twice(float);\n__global__ void k(float* x) { x[0] = twice(x[1]); }\n"
CALLED = "__device__ float twice(float a) { return a * 2; }\n"


def made(source, kind, *options):
    with Program(source, options=["--gpu-architecture=sm_90", "-rdc=true", *options]) as program:
        program.compile()
        return getattr(program, kind)


@pytest.fixture(scope="module")
def cubins():
    return [made(CALLER, "cubin"), made(CALLED, "cubin")]


@pytest.fixture(scope="module")
def link_time_code():
    return [made(CALLER, "ltoir", "-dlto"), made(CALLED, "ltoir", "-dlto")]


def test_cubins_link_to_a_cubin(cubins):
    assert link_images(cubins, arch=90).cubin.startswith(b"\x7fELF")


def test_fatbins_link_to_a_cubin(cubins, fatbin):
    linked = link_images([fatbin(cubin, "90") for cubin in cubins], arch=90)
    assert linked.cubin.startswith(b"\x7fELF")
    assert b"_Z1kPf" in linked.cubin


def test_ptx_links_with_a_cubin(cubins):
    image = link_images([made(CALLER, "ptx"), cubins[1]], arch=90)
    assert image.cubin.startswith(b"\x7fELF")
    assert str(image.signatures["_Z1kPf"]) == "void k(float*)"


def test_link_time_code_links_to_both(link_time_code):
    image = link_images(link_time_code, arch="sm_90")
    assert image.cubin.startswith(b"\x7fELF")
    assert b".entry _Z1kPf" in image.ptx
    assert image.entries("k") == ("_Z1kPf",)


def test_ptx_needs_link_time_code_alone(link_time_code, cubins):
    assert link_images([link_time_code[0], cubins[1]], arch=90).ptx == b""


def test_ptx_of_several_texts_is_one_text():
    image = link_images([made(CALLER, "ptx"), compile_image(CALLED, arch=90, options=["-rdc=true"])], arch=90)
    assert image.ptx.startswith(b".version ")
    assert image.ptx.count(b".version ") == image.ptx.count(b".target sm_90") == 1
    assert b".entry _Z1kPf" in image.ptx
    assert b".visible .func  (.param .b32 func_retval0) _Z5twicef" in image.ptx


def test_names_without_linkage_stay_apart_in_linked_ptx():
    source = "static __device__ int count = {0}; __global__ void {1}(int *x) {{ *x = count++; }}"
    image = link_images([made(source.format(value, name), "ptx") for value, name in ((3, "a"), (4, "b"))], arch=90)
    assert sorted(re.findall(rb"\.u32 (count\w*) = (\d);", image.ptx)) == [(b"count__0", b"3"), (b"count__1", b"4")]
    first = image.ptx[image.ptx.index(b".entry _Z1aPi") : image.ptx.index(b".u32 count__1")]
    assert b"[count__0]" in first


def test_weak_functions_are_in_linked_ptx_once():
    source = "template <class T> __device__ __noinline__ T half(T x) {{ return x / 2; }}\n"
    source += "__global__ void {0}(float *x) {{ *x = half(*x); }}"
    image = link_images([made(source.format(name), "ptx") for name in "ab"], arch=90)
    assert len(re.findall(rb"^\.weak \.func [^;{]*\{", image.ptx, re.MULTILINE)) == 1
    assert image.ptx.count(b".entry") == 2


def test_files_of_linked_ptx_are_numbered_on():
    image = link_images([made(CALLER, "ptx", "-lineinfo"), made(CALLED, "ptx", "-lineinfo")], arch=90)
    assert sorted(re.findall(rb"^\s*\.file\s+(\d+)", image.ptx, re.MULTILINE)) == [b"1", b"2"]
    assert set(re.findall(rb"\.loc\s+(\d+)", image.ptx)) == {b"1", b"2"}


def test_compiled_images_bring_architecture_and_signatures():
    options = ["-rdc=true"]
    image = link_images([compile_image(source, arch=90, options=options) for source in (CALLER, CALLED)])
    assert image.arch == "sm_90"
    assert str(image.signatures["_Z1kPf"]) == "void k(float*)"
    assert image.resources["_Z1kPf"].registers > 0


def test_files_are_read(tmp_path, cubins):
    paths = []
    for position, cubin in enumerate(cubins):
        path = tmp_path / f"{position}.cubin"
        path.write_bytes(cubin)
        paths.append(path)
    assert link_images(paths, arch=90).cubin


def test_undefined_reference_names_the_symbol(cubins):
    with pytest.raises(LinkError, match="Undefined reference to '_Z5twicef'") as caught:
        link_images(cubins[:1], arch=90)
    assert "Undefined" in caught.value.log
    assert caught.value.status is not None


@pytest.mark.parametrize(("kind", "options"), [("cubin", ()), ("ptx", ()), ("ltoir", ("-dlto",))])
def test_an_image_of_another_architecture_is_named_with_both_architectures(kind, options):
    parts = [made(CALLER, kind, *options), made(CALLED, kind, *options)]
    with pytest.raises(LinkError, match=r"image 0 is for sm_90, image 1 is for sm_90, and the link is for sm_80\n"):
        link_images(parts, arch=80)


def test_an_undefined_reference_is_no_matter_of_architectures(cubins):
    older = made(CALLER.replace("k(", "j("), "ptx", "--gpu-architecture=sm_80")
    with pytest.raises(LinkError, match="do not link\n"):
        link_images([cubins[0], older], arch=90)


ONE = "__device__ float scale = 2; __device__ float twice(float a) { return a * scale; }\n"
OTHER = "extern __device__ float scale; __device__ float twice(float a) { return a + a; }\n"
KINDS = {"cubin": (), "ptx": (), "ltoir": ("-dlto",)}


@pytest.mark.parametrize(
    ("first", "second"), [("cubin", "cubin"), ("ptx", "ptx"), ("ptx", "cubin"), ("cubin", "ltoir"), ("ltoir", "ptx")]
)
def test_a_symbol_that_two_images_define_is_named_with_both(cubins, capfd, first, second):
    images = [cubins[0], made(ONE, first, *KINDS[first]), made(OTHER, second, *KINDS[second])]
    with pytest.raises(LinkError, match=r"twice\(float\).* twice: in images\[1\].* and in images\[2\]"):
        link_images(images, arch=90)
    assert capfd.readouterr().err == ""


def test_a_variable_that_link_time_code_and_a_cubin_define_is_named(link_time_code):
    images = [made(f"__constant__ int size = {n};", kind, *KINDS[kind]) for n, kind in ((1, "ltoir"), (2, "cubin"))]
    with pytest.raises(LinkError, match=r"size twice: in images\[1\].* and in images\[2\]"):
        link_images([link_time_code[1], *images], arch=90)


USES = {
    "variable": 'extern "C" { __device__ int both = 5; }',
    "used variable": 'extern "C" { __device__ int both = 5; } __global__ void NAME(int* a) { a[0] = both; }',
    "function": 'extern "C" __device__ int both() { return 7; }',
    "used function": 'extern "C" __device__ int both() { return 7; } __global__ void NAME(int* a) { a[0] = both(); }',
    "none": "__global__ void NAME(int* a) { a[0] = 1; }",
}


@pytest.mark.parametrize("kind", ["cubin", "ptx"])
def test_link_time_code_and_other_code_may_not_define_one_symbol_as_whatever(kind):
    """Where one is a variable and the other one a function, nvJitLink crashes."""
    link_time = {use: made(text.replace("NAME", "first"), "ltoir", "-dlto") for use, text in USES.items()}
    other = {use: made(text.replace("NAME", "second"), kind) for use, text in USES.items()}
    refused = {}
    for one, code in link_time.items():
        for two, more in other.items():
            try:
                link_images([code, more], arch=90)
            except LinkError as error:
                refused[one, two] = str(error)
    assert refused.keys() == {(one, two) for one in USES for two in USES if "none" not in (one, two)}
    assert all("both twice" in message for message in refused.values())


def test_images_that_define_a_symbol_are_named_as_their_sources_are():
    images = [compile_image(CALLED, arch=90, options=["-rdc=true"], name=name) for name in ("one.cu", "other.cu")]
    with pytest.raises(LinkError, match=r"in images\[0\], one\.cu, and in images\[1\], other\.cu\. "):
        link_images(images)


def test_a_symbol_in_two_fatbins_is_named(fatbin):
    images = [fatbin(made(source, "cubin"), "90") for source in (ONE, OTHER)]
    with pytest.raises(LinkError, match=r"twice\(float\)"):
        link_images(images, arch=90)


def test_repeated_definitions_are_refused_after_a_link_of_link_time_code(link_time_code, cubins):
    """When nvJitLink was given them, the process crashed."""
    for _ in range(4):
        link_images(link_time_code, arch=90)
        with pytest.raises(LinkError, match="twice: in"):
            link_images([*cubins, made(OTHER + "__device__ float scale;", "cubin")], arch=90)


SHARED = """
#include <cub/block/block_reduce.cuh>
#include <cuda/barrier>
static __device__ int counter;
static __constant__ float table[2] = {{1, 2}};
namespace {{ __device__ int hidden; }}
inline __device__ int inlined = 5;
template <class T> __device__ T value = 4;
template <class T> __device__ __noinline__ T halved(T x) {{ return x / 2; }}
__device__ inline int counted(int x) {{ static int sum; return sum += x; }}
__device__ __managed__ int managed_{0} = 3;
__global__ void {0}(float* x) {{
    using Reduce = cub::BlockReduce<float, 32>;
    __shared__ typename Reduce::TempStorage room;
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) init(&bar, 32);
    __syncthreads();
    bar.arrive_and_wait();
    x[0] = Reduce(room).Sum(x[threadIdx.x]) + halved(x[3]) + counter++ + table[threadIdx.x % 2] + hidden++
        + inlined + value<float> + counted(2) + managed_{0};
    printf("%f\\n", x[0]);
}}
"""


@pytest.mark.parametrize("kinds", [("cubin", "cubin"), ("ptx", "ptx"), ("ltoir", "ptx")])
def test_headers_and_names_that_every_image_may_define_are_not_refused(kinds):
    folders = [f"-I{folder}" for folder in headers.find(library_version(), library_path()).folders]
    images = [
        made(SHARED.format(name), kind, "--std=c++17", *folders, *KINDS[kind])
        for name, kind in zip("ab", kinds, strict=True)
    ]
    assert link_images(images, arch=90).cubin


def test_unknown_option_is_a_link_error(cubins):
    with pytest.raises(LinkError, match="--nonsense"):
        link_images(cubins, arch=90, options=["--nonsense"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"images": b"x"}, TypeError, "images"),
        ({"images": []}, ValueError, "images' is empty"),
        ({"images": ["text"]}, TypeError, r"images\[0\]"),
        ({"images": [b"nonsense"]}, ValueError, r"images\[0\]"),
        ({"arch": None}, ValueError, "arch' is needed"),
        ({"options": ["-arch=sm_80"]}, ValueError, "options"),
        ({"options": "-lto"}, TypeError, "options"),
        ({"options": ["-lto\0"]}, ValueError, r"options\[0\]"),
        ({"options": None}, TypeError, "options"),
        ({"images": 5}, TypeError, "images"),
        ({"images": None}, TypeError, "images"),
        ({"images": {b"x": 1}}, TypeError, "images"),
        ({"images": [None]}, TypeError, r"images\[0\]"),
        ({"images": [Path("a\0b")]}, ValueError, r"images\[0\]"),
        ({"images": [Path("/dev/zero")]}, ValueError, r"images\[0\]"),
        ({"arch": 9.0}, TypeError, "arch"),
        ({"arch": 10**5000}, ValueError, "arch"),
    ],
)
def test_bad_arguments_are_named(cubins, arguments, error, message):
    with pytest.raises(error, match=f"^link: argument '{message}"):
        link_images(**{"images": cubins, "arch": 90, **arguments})
