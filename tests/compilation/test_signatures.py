"""Signatures: what names and PTX tell of kernels and variables."""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.compilation import demangling
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.demangling import argument_list, declared_name, demangle, split_arguments
from cudart_py.compilation.signatures import make_parameter, make_parameters


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", ()),
        ("void", ()),
        ("float, int", ("float", "int")),
        ("Pair<int, float>, Map<K, Pair<a, b> >", ("Pair<int, float>", "Map<K, Pair<a, b> >")),
        ("int (*)(int, float), void**", ("int (*)(int, float)", "void**")),
        ("float (&) [3], float (*) [4]", ("float (&) [3]", "float (*) [4]")),
        ("S<(E)1, {1, 2}>, int", ("S<(E)1, {1, 2}>", "int")),
        ("decltype ((f)->g(1, 2)), int", ("decltype ((f)->g(1, 2))", "int")),
    ],
)
def test_argument_lists_split_at_outermost_commas(text, arguments):
    assert split_arguments(text) == arguments


@pytest.mark.parametrize(
    ("mangled", "name", "arguments"),
    [
        ("_ZN1z1kEPdPKs", "z::k", ("double*", "short const*")),
        ("_Z6reduceIfLi256EEvPKT_PS0_", "reduce<float, 256>", ("float const*", "float*")),
        ("_Z4nonev", "none", ()),
        ("_Z1kIJifEEvDpT_", "k<int, float>", ("int", "float")),
        ("_Z1kPFifEi", "k", ("int (*)(float)", "int")),
        ("_ZN12_GLOBAL__N_11kEi", "(anonymous namespace)::k", ("int",)),
        ("_Z1kPKf1SILi2EE", "k", ("float const*", "S<2>")),
    ],
)
def test_mangled_entries_tell_name_and_arguments(mangled, name, arguments):
    declaration = demangle(mangled)
    assert declaration is not None
    assert declared_name(declaration) == name
    assert argument_list(declaration) == arguments


def test_what_is_not_mangled_has_no_declaration():
    assert [demangle(name) for name in ("saxpy", "_Znonsense", "")] == [None] * 3


def test_names_stay_mangled_without_the_cpp_library(monkeypatch):
    monkeypatch.setattr(demangling, "_LIBRARY", "libmissing.so.0")
    demangling._functions.cache_clear()
    try:
        assert demangle("_ZN1z1kEPdPKs") is None
        image = compile_image("namespace z { __global__ void k(double* a, float b) {} }", cache=False)
    finally:
        demangling._functions.cache_clear()
    (signature,) = image.signatures.values()
    assert [parameter.kind for parameter in signature.parameters] == ["unknown", "float"]
    assert not signature.typed


def test_arithmetic_types_have_kind_size_and_sign():
    integers = {
        "int8": ("char", "signed char"),
        "uint8": ("unsigned char",),
        "int16": ("short",),
        "uint16": ("unsigned short", "char16_t"),
        "int32": ("int", "wchar_t"),
        "uint32": ("unsigned int",),
        "int64": ("long", "long long"),
        "uint64": ("unsigned long", "unsigned long long"),
    }
    for dtype, types in integers.items():
        size = np.dtype(dtype).itemsize
        for type in types:
            found = make_parameter(type, f"u{8 * size}", size, size, 0)
            assert (found.kind, found.dtype, found.bits) == ("integer", dtype, 8 * size), type
            assert found.signed == dtype.startswith("int"), type
    for type, ptx, size, dtype in (
        ("float", "f32", 4, "float32"),
        ("double", "f64", 8, "float64"),
        ("__half", "b8", 2, "float16"),
        ("__nv_bfloat16", "b8", 2, "bfloat16"),
        ("", "f32", 4, "float32"),
    ):
        found = make_parameter(type, ptx, size, size, 0)
        assert (found.kind, found.dtype) == ("float", dtype), type


def test_pointers_tell_what_they_point_to():
    pointees = {
        ("float32", False): ("float*", "float* const", "float (*) [4]"),
        ("float32", True): ("float const*", "float const (*) [4][5]"),
        ("float64", True): ("double const volatile*",),
        ("int32", False): ("int volatile*",),
        ("bool", False): ("bool*",),
        ("float16", True): ("__half const*",),
        ("bfloat16", False): ("__nv_bfloat16*",),
        ("uint8", False): ("unsigned char*",),
        ("int8", False): ("signed char*",),
        ("uint64", False): ("float**",),
        ("uint64", True): ("float* const*",),
        (None, False): ("void*", "char*", "float4*"),
        (None, True): ("void const*", "char const*"),
    }
    for (dtype, constant), types in pointees.items():
        for type in types:
            found = make_parameter(type, "u64", 8, 8, 0)
            assert (found.kind, found.dtype, found.constant) == ("pointer", dtype, constant), type


@pytest.mark.parametrize(
    ("type", "ptx", "size", "kind"),
    [
        ("bool", "u8", 1, "bool"),
        ("Color", "u32", 4, "enum"),
        ("Pair<int, 2>", "b8", 12, "structure"),
        ("", "b8", 12, "structure"),
        ("", "u64", 8, "unknown"),
        ("traits<float>::type", "u64", 8, "unknown"),
        ("int (*)(int)", "u64", 8, "unknown"),
        ("float (&) [3]", "u64", 8, "unknown"),
    ],
)
def test_other_kinds(type, ptx, size, kind):
    assert make_parameter(type, ptx, size, 4, 0).kind == kind


def test_types_that_do_not_match_the_layout_are_not_trusted():
    (parameter,) = make_parameters(["int", "int"], [("u64", 8, 8)])
    assert (parameter.type, parameter.kind) == ("", "unknown")


SOURCE = """
struct Pair { int a; double b[3]; };
enum class Color : short { red };
using Count = unsigned long long;
namespace z {
template <class T> struct traits { typedef T type; };
__global__ void k(double* a, short const* b) {}
template <class T> __global__ void convert(typename traits<T>::type x, typename traits<T>::type* y) {}
}
template <class T, int N> __global__ void reduce(const T* in, T* out) {}
__global__ void overloaded(int* a) {}
__global__ void overloaded(float* a) {}
namespace { __global__ void hidden(char* a) { a[0] = 1; } }
extern "C" __global__ void plain(float a, const float* __restrict__ x, unsigned n, Pair p, Count c, Color color,
                                 bool flag, __grid_constant__ const Pair q, void** list, float rows[][4]) {}
"""
NAMES = ["reduce<float, 256>", "reduce<double,3>", "z::convert<float>", "hidden"]


@pytest.fixture(scope="module")
def image():
    return compile_image(SOURCE, names=NAMES, arch=90, cache=False)


def test_extern_c_kernels_have_their_types_kinds_and_offsets(image):
    signature = image.signatures["plain"]
    assert str(signature) == (
        "void plain(float, float const*, unsigned int, Pair, unsigned long long, Color, bool, Pair, void**, "
        "float (*) [4])"
    )
    kinds = ["float", "pointer", "integer", "structure", "integer", "enum", "bool", "structure", "pointer", "pointer"]
    assert [parameter.kind for parameter in signature.parameters] == kinds
    assert [parameter.offset for parameter in signature.parameters] == [0, 8, 16, 24, 56, 64, 66, 72, 104, 112]


def test_dependent_types_are_resolved_by_the_compiler(image):
    (entry,) = image.entries("z::convert<float>")
    assert str(image.signatures[entry]) == "void z::convert<float>(float, float*)"


def test_images_have_no_entry_but_the_users(image):
    assert len(image.signatures) == 8
    assert image.ptx.count(b".entry") == 8
    assert b"cudart_py_type_of" not in image.cubin + image.ptx


@pytest.mark.parametrize(
    ("name", "cpp_name"),
    [
        ("plain", "plain"),
        ("z::k", "z::k"),
        ("reduce<float, 256>", "reduce<float, 256>"),
        ("reduce<double, 3>", "reduce<double, 3>"),
        ("reduce< double,3 >", "reduce<double, 3>"),
        ("z::convert", "z::convert<float>"),
        ("overloaded(float*)", "overloaded"),
        ("void reduce<float, 256>(float const*, float*)", "reduce<float, 256>"),
        ("hidden", "hidden"),
        ("_ZN1z1kEPdPKs", "z::k"),
    ],
)
def test_kernels_are_found_by_every_spelling(image, name, cpp_name):
    (entry,) = image.entries(name)
    assert image.signatures[entry].name == cpp_name


@pytest.mark.parametrize(("name", "count"), [("overloaded", 2), ("reduce", 2), ("missing", 0)])
def test_ambiguous_and_unknown_names_are_told_apart(image, name, count):
    assert len(image.entries(name)) == count


def test_a_name_expression_of_ones_own_is_never_ambiguous():
    source = "template <class T> __global__ void f(T* x) {}\n__global__ void f(int* x, int n) {}\n"
    image = compile_image(source, names=["f<int>"], cache=False)
    assert image.entries("f<int>") == ("_Z1fIiEvPT_",)
    assert len(image.entries("f")) == 2


def test_an_extern_c_kernel_inside_a_namespace_keeps_its_sizes_alone():
    source = """
    namespace n { extern "C" __global__ void inner(float* x, double y) {} }
    extern "C" __global__ void outer(float* x) {}
    """
    image = compile_image(source, cache=False)
    assert [parameter.kind for parameter in image.signatures["inner"].parameters] == ["unknown", "float"]
    assert str(image.signatures["outer"]) == "void outer(float*)"


def test_variables_have_type_and_shape():
    source = """
    struct P { int a, b; };
    __constant__ float table[2][3];
    namespace z { __device__ unsigned char flags[5]; }
    __device__ P records[4];
    __managed__ double value;
    extern __shared__ int none[];
    __global__ void k(float* x) { x[0] = none[0] + table[0][0] + z::flags[0] + records[0].a + value; }
    """
    image = compile_image(source, cache=False)
    found = {item.name: (item.space, item.type, item.dtype, item.shape) for item in image.variables.values()}
    assert found == {
        "table": ("const", "float [2][3]", "float32", (2, 3)),
        "z::flags": ("global", "unsigned char [5]", "uint8", (5,)),
        "records": ("global", "P [4]", None, (32,)),
        "value": ("managed", "double", "float64", ()),
    }
    assert image.symbols("z::flags") == ("_ZN1z5flagsE",)
