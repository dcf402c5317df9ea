"""Signatures: parameters of kernels and types of variables, from mangled names and PTX."""

import numpy as np
import pytest

from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.names import demangling
from cudart_py.compilation.names.demangling import argument_list, declared_name, demangle, function_name
from cudart_py.compilation.names.signatures import make_parameters

# C++ types by (kind, dtype, whether it is a pointer to const).
TYPES = {
    ("integer", "int8", False): ("char", "signed char"),
    ("integer", "uint8", False): ("unsigned char",),
    ("integer", "int16", False): ("short",),
    ("integer", "uint16", False): ("unsigned short", "char16_t"),
    ("integer", "int32", False): ("int", "wchar_t"),
    ("integer", "uint32", False): ("unsigned int",),
    ("integer", "int64", False): ("long", "long long"),
    ("integer", "uint64", False): ("unsigned long", "unsigned long long"),
    ("float", "float32", False): ("float",),
    ("float", "float64", False): ("double",),
    ("float", "float16", False): ("__half",),
    ("float", "bfloat16", False): ("__nv_bfloat16",),
    ("bool", "bool", False): ("bool",),
    ("enum", None, False): ("Color",),
    ("structure", None, False): ("Pair<int, 2>", "Map<Pair<char, 3>, (Color)1>"),
    ("pointer", "float32", False): ("float*", "float (*) [4]"),
    ("pointer", "float32", True): ("float const*", "float const (*) [4][5]"),
    ("pointer", "float64", True): ("double const volatile*",),
    ("pointer", "int32", False): ("int volatile*",),
    ("pointer", "bool", False): ("bool*",),
    ("pointer", "float16", True): ("__half const*",),
    ("pointer", "bfloat16", False): ("__nv_bfloat16*",),
    ("pointer", "uint8", False): ("unsigned char*",),
    ("pointer", "int8", False): ("signed char*",),
    ("pointer", "uint64", False): ("float**",),
    ("pointer", "uint64", True): ("float* const*",),
    ("pointer", None, False): ("void*", "char*", "float4*"),
    ("pointer", None, True): ("void const*", "char const*"),
    ("unknown", None, False): ("int (*)(int, float)", "float (&) [3]"),
}
TYPED = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
enum Color : short { red, green };
template <class T, int N> struct Pair { T a[N]; };
template <class T, Color C> struct Map { T a; };
namespace z { __global__ void mangled(PARAMETERS) {} }
extern "C" __global__ void plain(PARAMETERS) {}
"""


def test_each_type_has_its_kind_dtype_size_and_sign_by_a_mangled_name_and_by_the_compiler():
    expected = [(type, *facts) for facts, types in TYPES.items() for type in types]
    image = compile_image(TYPED.replace("PARAMETERS", ", ".join(type for type, *_ in expected)))
    for name in ("z::mangled", "plain"):
        (entry,) = image.entries(name)
        parameters = image.signatures[entry].parameters
        assert [(found.type, found.kind, found.dtype, found.constant) for found in parameters] == expected
        for found in parameters:
            if found.kind == "integer":
                assert (found.bits, found.signed) == (8 * np.dtype(found.dtype).itemsize, found.dtype[0] == "i")


@pytest.mark.parametrize(
    ("mangled", "name", "arguments"),
    [
        ("_Z6reduceIfLi256EEvPKT_PS0_", "reduce<float, 256>", ("float const*", "float*")),
        ("_Z4nonev", "none", ()),
        ("_Z1kIJifEEvDpT_", "k<int, float>", ("int", "float")),
        ("_ZN12_GLOBAL__N_11kEi", "(anonymous namespace)::k", ("int",)),
    ],
)
def test_mangled_entries_tell_name_and_arguments(mangled, name, arguments):
    declaration = demangle(mangled)
    assert declared_name(declaration) == name
    assert argument_list(declaration) == arguments
    assert function_name(mangled) == name


def test_functions_are_named_without_tags_and_if_they_are_not_mangled_by_their_symbol():
    assert function_name("_ZN8__main__1kB2v1B5cw51cEi") == "__main__::k"
    assert function_name("saxpy") == "saxpy"


def test_what_is_not_mangled_has_no_declaration():
    assert [demangle(name) for name in ("saxpy", "_Znonsense", "")] == [None] * 3


def test_types_that_do_not_match_the_layout_are_not_trusted():
    (parameter,) = make_parameters(["int", "int"], [("u64", 8, 8)])
    assert (parameter.type, parameter.kind) == ("", "unknown")
    (parameter,) = make_parameters(["traits<float>::type"], [("u64", 8, 8)])
    assert parameter.kind == "unknown"


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
    ("name", "cpp_names"),
    [
        ("plain", ["plain"]),
        ("z::k", ["z::k"]),
        ("reduce<float, 256>", ["reduce<float, 256>"]),
        ("reduce<double, 3>", ["reduce<double, 3>"]),
        ("reduce< double,3 >", ["reduce<double, 3>"]),
        ("z::convert", ["z::convert<float>"]),
        ("overloaded(float*)", ["overloaded"]),
        ("void reduce<float, 256>(float const*, float*)", ["reduce<float, 256>"]),
        ("hidden", ["hidden"]),
        ("_ZN1z1kEPdPKs", ["z::k"]),
        ("overloaded", ["overloaded", "overloaded"]),
        ("reduce", ["reduce<double, 3>", "reduce<float, 256>"]),
        ("missing", []),
    ],
)
def test_kernels_are_found_by_every_spelling_and_ambiguous_and_unknown_names_are_told_apart(image, name, cpp_names):
    assert sorted(image.signatures[entry].name for entry in image.entries(name)) == cpp_names


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


def test_the_name_of_a_const_member_function_has_no_qualifier():
    assert function_name("_ZNK7physics3Vec3dotERKS0_") == "physics::Vec::dot"
