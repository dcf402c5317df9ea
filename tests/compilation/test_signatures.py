"""Signatures: what names and PTX tell of kernels and variables."""

from __future__ import annotations

import pytest

from cudart_py.compilation import demangling, exports
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.demangling import argument_list, declared_name, demangle, split_arguments
from cudart_py.compilation.images import normalised
from cudart_py.compilation.signatures import Parameter, Signature, make_parameter, make_parameters, needs_compiler


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
    ],
)
def test_mangled_entries_tell_name_and_arguments(mangled, name, arguments):
    declaration = demangle(mangled)
    assert declaration is not None
    assert declared_name(declaration) == name
    assert argument_list(declaration) == arguments


@pytest.mark.parametrize("name", ["saxpy", "_Znonsense", ""])
def test_what_is_not_mangled_has_no_declaration(name):
    assert demangle(name) is None


def test_function_types_tell_their_arguments():
    assert argument_list("void (float, float const*, S<int, 2>)") == ("float", "float const*", "S<int, 2>")


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


SCALARS = [
    ("char", "u8", 1, "int8"),
    ("signed char", "u8", 1, "int8"),
    ("unsigned char", "u8", 1, "uint8"),
    ("short", "u16", 2, "int16"),
    ("unsigned short", "u16", 2, "uint16"),
    ("int", "u32", 4, "int32"),
    ("unsigned int", "u32", 4, "uint32"),
    ("long", "u64", 8, "int64"),
    ("unsigned long", "u64", 8, "uint64"),
    ("long long", "u64", 8, "int64"),
    ("unsigned long long", "u64", 8, "uint64"),
    ("char16_t", "u16", 2, "uint16"),
    ("wchar_t", "u32", 4, "int32"),
]


@pytest.mark.parametrize(("type", "ptx", "size", "dtype"), SCALARS)
def test_integers_have_width_and_sign(type, ptx, size, dtype):
    parameter = make_parameter(type, ptx, size, size, 0)
    assert (parameter.kind, parameter.dtype, parameter.bits) == ("integer", dtype, 8 * size)
    assert parameter.signed == dtype.startswith("int")


@pytest.mark.parametrize(
    ("type", "ptx", "size", "dtype"),
    [
        ("float", "f32", 4, "float32"),
        ("double", "f64", 8, "float64"),
        ("__half", "b8", 2, "float16"),
        ("__nv_bfloat16", "b8", 2, "bfloat16"),
        ("", "f32", 4, "float32"),
    ],
)
def test_floats_have_their_dtype(type, ptx, size, dtype):
    parameter = make_parameter(type, ptx, size, size, 0)
    assert (parameter.kind, parameter.dtype) == ("float", dtype)


@pytest.mark.parametrize(
    ("type", "dtype", "constant"),
    [
        ("float*", "float32", False),
        ("float const*", "float32", True),
        ("double const volatile*", "float64", True),
        ("int volatile*", "int32", False),
        ("float* const", "float32", False),
        ("bool*", "bool", False),
        ("__half const*", "float16", True),
        ("__nv_bfloat16*", "bfloat16", False),
        ("unsigned char*", "uint8", False),
        ("signed char*", "int8", False),
        ("void*", None, False),
        ("void const*", None, True),
        ("char*", None, False),
        ("char const*", None, True),
        ("float4*", None, False),
        ("float**", "uint64", False),
        ("float* const*", "uint64", True),
        ("float (*) [4]", "float32", False),
        ("float const (*) [4][5]", "float32", True),
    ],
)
def test_pointers_tell_what_they_point_to(type, dtype, constant):
    parameter = make_parameter(type, "u64", 8, 8, 0)
    assert (parameter.kind, parameter.dtype, parameter.constant) == ("pointer", dtype, constant)


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


def test_dependent_types_are_for_the_compiler_to_say():
    assert needs_compiler(make_parameter("traits<float>::type*", "u64", 8, 8, 0))
    assert not needs_compiler(make_parameter("float*", "u64", 8, 8, 0))


def test_offsets_follow_alignment():
    parameters = make_parameters(
        ["char", "double", "Pair", "float"], [("u8", 1, 1), ("f64", 8, 8), ("b8", 12, 4), ("f32", 4, 4)]
    )
    assert [parameter.offset for parameter in parameters] == [0, 8, 16, 28]


def test_types_that_do_not_match_the_layout_are_not_trusted():
    (parameter,) = make_parameters(["int", "int"], [("u64", 8, 8)])
    assert (parameter.type, parameter.kind) == ("", "unknown")


def test_signature_prints_as_cpp():
    parameters = (Parameter("float", "float", 4, 4, 0, "float32"), Parameter("", "unknown", 8, 8, 8))
    signature = Signature("k", "k", parameters)
    assert str(signature) == "void k(float, 8 bytes)"
    assert signature.size == 16


def test_entry_headers_are_read_from_ptx():
    ptx = """
.visible .entry saxpy(
	.param .f32 saxpy_param_0,
	.param .u64 .ptr .global .align 4 saxpy_param_1,
	.param .align 8 .b8 saxpy_param_2[16]
)
.maxntid 128, 1, 1
{ ret; }
.weak .entry _Z4nonev()
{ ret; }
"""
    signatures = exports.read_signatures(ptx)
    layout = [(parameter.offset, parameter.size, parameter.alignment) for parameter in signatures["saxpy"].parameters]
    assert layout == [(0, 4, 4), (8, 8, 8), (16, 16, 8)]
    assert signatures["_Z4nonev"].parameters == ()


def test_variables_are_read_from_ptx():
    ptx = (
        ".const .align 4 .b8 table[64];\n.global .align 4 .u32 counter = 3;\n"
        ".visible .global .attribute(.managed) .align 8 .f64 shared_value;\n.extern .shared .align 16 .b8 buffer[];\n"
    )
    variables = exports.read_variables(ptx, {"table": "float [4][4]", "counter": "int"})
    assert {name: (item.space, item.size, item.dtype, item.shape) for name, item in variables.items()} == {
        "table": ("const", 64, "float32", (4, 4)),
        "counter": ("global", 4, "int32", ()),
        "shared_value": ("managed", 8, None, (8,)),
    }


def test_names_are_normalised():
    assert normalised(" & reduce < float , 256 > ") == "reduce<float,256>"


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


def test_extern_c_kernels_have_their_types(image):
    assert str(image.signatures["plain"]) == (
        "void plain(float, float const*, unsigned int, Pair, unsigned long long, Color, bool, Pair, void**, "
        "float (*) [4])"
    )


def test_extern_c_kernels_have_their_kinds_and_offsets(image):
    assert [(parameter.kind, parameter.offset) for parameter in image.signatures["plain"].parameters] == [
        ("float", 0),
        ("pointer", 8),
        ("integer", 16),
        ("structure", 24),
        ("integer", 56),
        ("enum", 64),
        ("bool", 66),
        ("structure", 72),
        ("pointer", 104),
        ("pointer", 112),
    ]


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
    __global__ void k(float* x) { x[0] = table[0][0] + z::flags[0] + records[0].a + value; }
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
