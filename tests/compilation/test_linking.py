"""link_images: separately compiled code linked into one image."""

import functools
import re

import pytest

from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.linking.linking import link_images
from cudart_py.errors import LinkError

CALLER = "extern __device__ float twice(float);\n__global__ void k(float* x) { x[0] = twice(x[1]); }\n"
CALLED = "__device__ float twice(float a) { return a * 2; }\n"


@functools.cache
def made(source, kind, *options, arch=90):
    options = ["-rdc=true", *["-dlto"] * (kind == "ltoir"), *options]
    return getattr(compile_image(source, arch=arch, options=options), kind)


def pair(first, second):
    return [made(CALLER, first), made(CALLED, second)]


@pytest.mark.parametrize("as_files", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "has_ptx"),
    [("cubin", "cubin", False), ("ptx", "cubin", False), ("ltoir", "ltoir", True), ("ltoir", "cubin", False)],
)
def test_code_of_each_kind_links_to_a_cubin_and_link_time_code_to_ptx_too(tmp_path, first, second, has_ptx, as_files):
    images = pair(first, second)
    if as_files:
        for number, code in enumerate(images):
            (tmp_path / str(number)).write_bytes(code)
        images = [tmp_path / "0", tmp_path / "1"]
    image = link_images(images, arch="sm_90")
    assert image.cubin.startswith(b"\x7fELF")
    assert b"_Z1kPf" in image.cubin
    assert (b".entry _Z1kPf" in image.ptx) == bool(image.ptx) == has_ptx
    if has_ptx or "ptx" in (first, second):
        assert image.entries("k") == ("_Z1kPf",)
        assert str(image.signatures["_Z1kPf"]) == "void k(float*)"


@pytest.mark.parametrize("options", [["-rdc=true"], ["-rdc=true", "-dlto"]])
def test_compiled_images_without_machine_code_link_to_a_cubin_and_ptx(options):
    images = [compile_image(source, arch="compute_80", options=options) for source in (CALLER, CALLED)]
    image = link_images(images, arch=90)
    assert b"_Z1kPf" in image.cubin
    assert b".target sm_90" in image.ptx
    assert str(image.signatures["_Z1kPf"]) == "void k(float*)"


def test_fatbins_link_to_a_cubin(fatbin):
    linked = link_images([fatbin((cubin, "90"), compress="size") for cubin in pair("cubin", "cubin")], arch=90)
    assert linked.cubin.startswith(b"\x7fELF")
    assert b"_Z1kPf" in linked.cubin


@pytest.mark.parametrize("compress", ["none", "speed", "size"])
def test_fatbins_with_ptx_link_to_a_cubin_and_ptx(fatbin, compress):
    """The PTX for the highest architecture up to the target is linked."""
    images = []
    for source in (CALLER, CALLED):
        codes = [made(source, "ptx", arch=f"compute_{number}") for number in (80, 90)]
        codes.append(codes[0].replace(b"sm_80", b"sm_100"))
        images.append(fatbin(*zip(codes, ("80", "90", "100"), strict=True), compress=compress))
    image = link_images(images, arch=90)
    assert b"_Z1kPf" in image.cubin
    assert image.ptx.count(b".target") == 1
    assert len(re.findall(rb"\.entry _Z1kPf|\.func .*\n?.*_Z5twicef\($", image.ptx, re.MULTILINE)) == 2


APART = """
template <class T> __device__ __noinline__ T half(T x) {{ return x / 2; }}
static __device__ int count = {0};
__device__ int global_{1} = {0};
__global__ void {1}(int *x) {{ *x = half(count++); }}
"""


def test_texts_of_ptx_become_one():
    """Internal names stay distinct, a weak function appears once, and file numbers continue across the texts."""
    sources = APART.format(3, "a"), APART.format(4, "b")
    images = [compile_image(source, arch=90, options=["-rdc=true"]) for source in sources]
    image = link_images([images[0].ptx, images[1]])
    ptx = image.ptx
    assert image.arch == "sm_90"
    assert str(image.signatures["_Z1aPi"]) == "void a(int*)"
    assert image.attributes["_Z1bPi"].registers > 0
    assert ptx.startswith(b".version ")
    assert ptx.count(b".version ") == ptx.count(b".target sm_90") == 1
    assert sorted(re.findall(rb"\.u32 (count\w*) = (\d);", ptx)) == [(b"count__0", b"3"), (b"count__1", b"4")]
    assert b"[count__0]" in ptx[ptx.index(b".entry _Z1aPi") : ptx.index(b".u32 count__1")]
    assert ptx.count(b".visible .global .align 4 .u32 global_") == ptx.count(b".entry") == 2
    assert len(re.findall(rb"^\.weak \.func [^;{]*\{", ptx, re.MULTILINE)) == 1
    assert sorted(re.findall(rb"^\s*\.file\s+(\d+)", ptx, re.MULTILINE)) == [b"1", b"2"]
    assert set(re.findall(rb"\.loc\s+(\d+)", ptx)) == {b"1", b"2"}


def test_undefined_reference_names_the_symbol():
    with pytest.raises(LinkError, match=r"No image defines twice\(float\)") as caught:
        link_images([made(CALLER, "cubin")], arch=90)
    assert "_Z5twicef" in caught.value.log
    assert "_Z5twicef" not in str(caught.value)
    assert caught.value.status is not None


@pytest.mark.parametrize("options", [[], ["-rdc=true"]])
def test_an_undefined_reference_names_the_image_that_has_it_and_the_option(options):
    """Code that is not relocatable exports no functions, and the linker's log blames the last image instead."""
    caller = compile_image(CALLER, arch=90, options=["-rdc=true"], name="caller.cu")
    called = compile_image(CALLED.replace("twice", "thrice"), arch=90, options=options, name="called.cu")
    with pytest.raises(LinkError, match=r"twice\(float\), which caller\.cu uses\.\n.*-rdc=true") as caught:
        link_images([caller, called])
    assert "called.cu" not in str(caught.value)


def test_source_is_refused_with_the_call_that_compiles_it(tmp_path):
    (tmp_path / "called.cu").write_text(CALLED)
    with pytest.raises(ValueError, match=r"'images\[0\]' .*called\.cu is CUDA C\+\+; pass compile_image\(.*-rdc=true"):
        link_images([tmp_path / "called.cu"], arch=90)


@pytest.mark.parametrize("kind", ["cubin", "ptx", "ltoir"])
def test_an_image_of_another_architecture_is_named_with_both_architectures(kind):
    with pytest.raises(LinkError, match=r"image 0 is for sm_90, image 1 is for sm_90, and the link is for sm_80\n"):
        link_images(pair(kind, kind), arch=80)


def test_an_undefined_reference_is_no_matter_of_architectures():
    older = made(CALLER.replace("k(", "j("), "ptx", arch=80)
    with pytest.raises(LinkError, match="do not link\n"):
        link_images([made(CALLER, "cubin"), older], arch=90)


ONE = "__device__ float scale = 2; __device__ float twice(float a) { return a * scale; }\n"
OTHER = "extern __device__ float scale; __device__ float twice(float a) { return a + a; }\n"


@pytest.mark.parametrize(
    ("first", "second"), [("cubin", "cubin"), ("ptx", "ptx"), ("ptx", "cubin"), ("cubin", "ltoir"), ("ltoir", "ptx")]
)
def test_a_symbol_that_two_images_define_is_named_with_both(capfd, first, second):
    variables = [made(f"__constant__ int size = {n};", kind) for n, kind in ((1, first), (2, second))]
    for symbol, images in ((r"twice\(float\)", [made(ONE, first), made(OTHER, second)]), ("size", variables)):
        with pytest.raises(LinkError, match=rf"{symbol}.* twice: in images\[1\].* and in images\[2\]"):
            link_images([made(CALLER, "cubin"), *images], arch=90)
    assert capfd.readouterr().err == ""


USES = {
    "variable": 'extern "C" { __device__ int both = 5; }',
    "used variable": 'extern "C" { __device__ int both = 5; } __global__ void NAME(int* a) { a[0] = both; }',
    "function": 'extern "C" __device__ int both() { return 7; }',
    "used function": 'extern "C" __device__ int both() { return 7; } __global__ void NAME(int* a) { a[0] = both(); }',
    "none": "__global__ void NAME(int* a) { a[0] = 1; }",
}


@pytest.mark.parametrize("kind", ["cubin", "ptx"])
def test_link_time_code_and_other_code_may_not_define_one_symbol_as_whatever(kind):
    """If one is a variable and the other a function, nvJitLink crashes."""
    link_time = {use: made(text.replace("NAME", "first"), "ltoir") for use, text in USES.items()}
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


def test_images_that_define_a_symbol_are_named_as_their_sources_are_and_fatbins_too(fatbin):
    images = [compile_image(CALLED, arch=90, options=["-rdc=true"], name=name) for name in ("one.cu", "other.cu")]
    with pytest.raises(LinkError, match=r"in images\[0\], one\.cu, and in images\[1\], other\.cu\. "):
        link_images(images)
    with pytest.raises(LinkError, match=r"twice\(float\)"):
        link_images([fatbin((image.cubin, "90"), compress="size") for image in images], arch=90)


def test_repeated_definitions_are_refused_after_a_link_of_link_time_code():
    """They never reach nvJitLink, which crashed the process on them."""
    for _ in range(4):
        link_images(pair("ltoir", "ltoir"), arch=90)
        with pytest.raises(LinkError, match="twice: in"):
            link_images([*pair("cubin", "cubin"), made(OTHER + "__device__ float scale;", "cubin")], arch=90)


SHARED = """
#include <cuda_fp16.h>
static __device__ int counter;
static __constant__ float table[2] = {{1, 2}};
namespace {{ __device__ int hidden; }}
inline __device__ int inlined = 5;
template <class T> __device__ T value = 4;
template <class T> __device__ __noinline__ T halved(T x) {{ return x / 2; }}
__device__ inline int counted(int x) {{ static int sum; return sum += x; }}
__device__ __managed__ int managed_{0} = 3;
__global__ void {0}(float* x) {{
    x[0] = halved(x[3]) + counter++ + table[threadIdx.x % 2] + hidden++
        + inlined + value<float> + counted(2) + managed_{0};
    printf("%f\\n", x[0]);
}}
"""


@pytest.mark.parametrize("kinds", [("cubin", "cubin"), ("ptx", "ptx"), ("ltoir", "ptx")])
def test_headers_and_names_that_every_image_may_define_are_not_refused(kinds):
    images = [made(SHARED.format(name), kind, "--std=c++17") for name, kind in zip("ab", kinds, strict=True)]
    assert link_images(images, arch=90).cubin


def test_unknown_option_is_a_link_error():
    with pytest.raises(LinkError, match="--nonsense"):
        link_images(pair("cubin", "cubin"), arch=90, options=["--nonsense"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"images": b"x"}, TypeError, "images"),
        ({"images": []}, ValueError, "images' must contain at least one image"),
        ({"images": ["text"]}, TypeError, r"images\[0\]"),
        ({"images": [b"nonsense"]}, ValueError, r"images\[0\]"),
        ({"arch": None}, ValueError, "arch' is needed"),
        ({"options": ["-arch=sm_80"]}, ValueError, "options"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=f"^link: argument '{message}"):
        link_images(**{"images": pair("cubin", "cubin"), "arch": 90, **arguments})
