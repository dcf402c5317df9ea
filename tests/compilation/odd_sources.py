"""Sources whose types or messages a careless type query would change: (source, compile arguments) by title."""

from typing import Any

K = 'extern "C" __global__ void k(int* x) { *x = 1; }\n'
WERROR = {"options": ["-Werror=all-warnings"]}
MANY = "\n".join(f'extern "C" __global__ void unused_{number}(int* x) {{}}' for number in range(300))

# Sources compiled in one run of NVRTC: their own text declares every type that is asked for.
ONE_RUN: dict[str, str] = {
    "plain": K,
    "no last newline": K.rstrip(),
    "comment at the end": K + '// extern "C" __global__ void other(float* y) {}',
    "comment that goes on": K + '// comment \\\n extern "C" __global__ void other(float* y) {}\n',
    "block comment at the end": K + "/* { ; } #if */",
    "carriage returns": K.replace("{", "{\r\n").replace("\n", "\r\n"),
    "linkage block": 'extern "C" {\n__device__ int f() { return 2; }\n' + K.removeprefix('extern "C"') + "}\n",
    "linkage block in a namespace": "namespace n { __device__ int a; }\n" + K,
    "launch bounds before the name": 'extern "C" __global__ void __launch_bounds__(64, 2) k(int* x, float y) {}\n',
    "launch bounds before void": 'extern "C" __global__ __launch_bounds__(64) void k(int (*x)[4], bool y) {}\n',
    "attributes": 'extern "C" [[maybe_unused]] __global__ void k(const float* __restrict__ x, short y) {}\n',
    "default argument": 'extern "C" __global__ void k(int x = 3, const char* text = "{") {}\n',
    "grid constant": 'struct P { int a[3]; };\nextern "C" __global__ void k(__grid_constant__ const P p) {}\n',
    "typedefs": 'typedef double real;\nusing index = long;\nextern "C" __global__ void k(real* x, index n) {}\n',
    "enumeration": 'enum class Color : short { red };\nextern "C" __global__ void k(Color c, Color* d) {}\n',
    "alias of a template": (
        "template <class T> struct traits { typedef T* type; };\n"
        'extern "C" __global__ void k(traits<float>::type x, decltype(1.0f) y) {}\n'
    ),
    "type of an anonymous namespace": 'namespace { struct A {}; }\nextern "C" __global__ void k(A* x, A y) {}\n',
    "kernels of both linkages": K + "__global__ void l(float* x) {}\nnamespace z { __global__ void l(short) {} }\n",
    "template kernel": "template <class T> __global__ void t(T* x) {}\n" + K,
    "prototype": 'extern "C" __global__ void k(int*);\n' + K,
    "prototype alone": 'extern "C" __global__ void missing(int*);\n' + K,
    "variables": (
        "__constant__ float table[2][3] = {{1, 2, 3}, {4, 5, 6}};\n__device__ int one, two[3], *three = 0;\n"
        "__device__ __align__(16) double aligned;\n__managed__ short flag;\n"
        "namespace z { __device__ unsigned char inner[5]; namespace y { __device__ char deep; } }\n"
        "namespace z::y { __device__ double joined = 2; }\n"
    ),
    "variables of templates": (
        "template <class T, int N> struct P { T a[N]; };\n__device__ P<int, 2> pairs[3];\n"
        "template <class T> __device__ T shared;\n"
    ),
    "variable braced": "__device__ int v{3};\n__constant__ int w[2]{1, 2};\n",
    "unused variables": "__device__ int unused;\n__constant__ int table[3];\n" + K,
    "conditions that hold nothing": "#if 0\n__device__ int v;\n#else\n#endif\n" + K,
    "hundreds left out": f"#if 0\n{MANY}\n#endif\n" + K,
    "hundreds in a comment": f"/*\n{MANY}\n*/\n" + K,
    "left out in nested conditions": f"#if 0\n#ifdef X\n{K}#else\n}}}}\n#endif\n#endif\n" + K,
    "branches with a brace each": (
        '#if 0\nextern "C" __global__ void left(int* x) {\n#else\n__global__ void right(int* x) {\n#endif\n}\n' + K
    ),
    "string with declarations": '__device__ const char* text() { return "extern \\"C\\" __global__ void no(int) {"; }\n'
    + K,
    "raw string": '__device__ const char* text() { return R"x(} " )" /* extern "C" {)x"; }\n' + K,
    "characters": "__device__ char f(char x) { return x == '{' ? '\"' : '\\''; }\n" + K,
    "digit separators": "__device__ int f() { return 1'000'000 + 0x1'F; }\n" + K,
    "directive with a quotation mark": '#define APOSTROPHE don\'t\n#define QUOTE(x) #x "{"\n' + K,
    "directive with a comment": "#define A /* { \n } */ 3\n" + K,
    "constants": (
        "constexpr int A = 3;\nconst unsigned B = 2, C = A;\nstatic constexpr unsigned long long int D = 1;\n"
        "inline constexpr float E = 2;\nconst bool F = true;\n__device__ const double G = 1;\nconstexpr long H = 2;\n"
        + K
    ),
    "used constants": "constexpr int A = 3;\n"
    + K.replace("= 1", "= A")
    + "__device__ const int* f() { return &A; }\n\n",
    "for other compilers": "#ifdef __CUDACC__\n" + K + "__device__ int v;\n#else\nint k(int x) { return 3; }\n#endif\n",
    "string of the compiler": '__device__ void f() { printf("text %d", 3); }\n' + K.replace("*x = 1", "f()"),
    "static with a use": "static __device__ int f(int x) { return x; }\n" + K.replace("= 1", "= f(2)"),
    "static kernel elsewhere": "namespace n { static __global__ void k(int* x) {} }\n" + K,
    "class with a kernel's name": "struct S { __device__ int k(int x) { return x; } };\n" + K,
    "types of the function": 'extern "C" __global__ void k(void (*f)(int), void* p, float4 v, int3* w, size_t n) {}\n',
    "line directive": '#line 40 "other.cu"\n' + K,
    "pragmas": "#pragma nv_diag_suppress 177\nstatic __device__ int f() { return 1; }\n" + K,
    "pragma at the end": K + "#pragma nv_diag_error 1215\n",
    "lambda": "__device__ int f() { auto g = [](int x) { return x; }; return g(3); }\n" + K,
    "warning elsewhere": "__device__ void f() {\n  int unused;\n}\n" + K,
    "static without a use": "static __device__ int f(int x) { return x; }\n\n" + K,
}
# Other sources: their types are queried in a second run, or they are compiled again without queries for their messages.
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing": ("", {}),
    "body by a macro": (
        "#define BODY(x) { \\\n    *x = 3; \\\n  }\n"
        + 'extern "C" __global__ void k(int* x) BODY(x)\n'
        + K.replace(" k(", " l("),
        {},
    ),
    "storage by a macro": ("#define DEVICE static __device__\nDEVICE int v;\n" + K, WERROR),
    "changed keyword": (
        "#undef __device__\n#define __device__ static __attribute__((device))\n__device__ int v;\n" + K,
        WERROR,
    ),
    "static type by a macro": ("#define real static float\n__device__ real v;\n" + K, WERROR),
    "type by a macro": ("#define real float\n__device__ real v, *w;\n" + K, WERROR),
    "automatic type": ("__device__ auto v = 3.0;\n" + K, WERROR),
    "class in a header": ("#include <cuda_fp16.h>\n__device__ __half v[3];\n__device__ __half2 *w;\n" + K, {}),
    "constants as errors": ("constexpr int A = 3;\n" + K, WERROR),
    "constants of other types": (
        'struct P { int a; };\nconstexpr P A = {3};\nconstexpr char B[] = "b", C = 2;\nconstexpr auto E = 2;\n'
        "namespace n { constexpr int K = 3; }\nconst size_t F = 3;\n"
        "constexpr int G{4};\nconstexpr unsigned H = G + 1, I[2] = {};\n" + K,
        {},
    ),
    "two constants of a name": (
        "constexpr int N = 3;\nnamespace { constexpr int N = 4; }\n__device__ const int* f() { return &::N; }\n" + K,
        {},
    ),
    "constant in a namespace by a macro": ("#define BEGIN namespace n {\nBEGIN\nconstexpr int A = 3;\n}\n" + K, {}),
    "constant of a type by a macro": (
        "#define real double\nconst real A = 3;\n#define wide long\nconstexpr wide B = 2;\n" + K,
        {},
    ),
    "changed type": ("#define int long\nconstexpr int A = 3;\n" + K, {}),
    "undefined condition": ("#undef __CUDACC__\n#ifdef __CUDACC__\n" + K + "#endif\n" + K.replace(" k(", " l("), {}),
    "assertion at run time": ("#include <cassert>\n" + K.replace("*x = 1", "assert(*x)"), {}),
    "only comments": ("// nothing\n", {}),
    "deprecated kernel": ('extern "C" [[deprecated]] __global__ void k(int* x) {}\n', {}),
    "deprecated kernel as an error": ('extern "C" [[deprecated("old")]] __global__ void k(int* x) {}\n', WERROR),
    "deprecated type": (
        "struct [[deprecated]] P { int a; };\n#pragma nv_diag_suppress 1444,1215\n"
        'extern "C" __global__ void k(P* x) {}\n#pragma nv_diag_default 1444,1215\n',
        {},
    ),
    "deprecated variable": ("[[deprecated]] __device__ int v;\n" + K, WERROR),
    "static variable": ("static __device__ int v;\n" + K, {}),
    "static variable as an error": ("static __device__ int v;\n" + K, WERROR),
    "static variable by a macro": ("#define LOCAL static\nLOCAL __device__ int v;\n" + K, {}),
    "static variable by a macro as an error": ("#define LOCAL static\nLOCAL __device__ int v;\n" + K, WERROR),
    "static variable in use": ("static __device__ int v[3];\n" + K.replace("= 1", "= v[*x]"), {}),
    "constexpr variable": ("constexpr __device__ int v = 3;\n" + K, {}),
    "constexpr variable as an error": ("constexpr __device__ int v = 3;\n" + K, WERROR),
    "constexpr table": ("constexpr int v[] = {1, 2, 3};\n" + K.replace("= 1", "= v[*x]"), {}),
    "constant by a macro": ("#define FIXED const\n__device__ FIXED int v = 3;\n" + K, WERROR),
    "constant variable": ("__constant__ const float v[2] = {1, 2};\n" + K.replace("= 1", "= v[*x]"), {}),
    "constant by a typedef": ("typedef const int fixed;\n__device__ fixed v = 3;\n" + K, WERROR),
    "anonymous variable": ("namespace { __device__ int v; }\n" + K, {}),
    "anonymous variable as an error": ("namespace { __device__ int v; }\n" + K, WERROR),
    "anonymous namespace by a macro": ("#define NAME\nnamespace NAME { __device__ int v; }\n" + K, WERROR),
    "anonymous variable in use": ("namespace { __device__ int v[2]; }\n" + K.replace("= 1", "= v[*x]"), {}),
    "inline variable": ("inline __device__ int v = 3;\n" + K.replace("= 1", "= v"), {}),
    "inline namespace": ("namespace a { inline namespace b { __device__ int v; } }\n" + K, {}),
    "variable of C": ('extern "C" __device__ int v;\nextern "C" { __device__ int w; }\n' + K, {}),
    "declared variable": ("extern __device__ int v;\n" + K.replace("= 1", "= v"), {"options": ["-rdc=true"]}),
    "member": ("struct S { static constexpr int N = 3; static __device__ int v; };\n__device__ int S::v;\n" + K, {}),
    "variable of a struct without a name": ("__device__ struct { int a; } v;\n" + K, {}),
    "pointer to a function": ("__device__ int (*v)(int);\n" + K, {}),
    "several after braces": ("__device__ int a[] = {1, 2}, b[] = {3};\n" + K, {}),
    "template variable": ("template <class T> __device__ T v;\n" + K.replace("= 1", "= v<int>"), {}),
    "static kernel": ("static __global__ void s(int* x) {}\n" + K, {}),
    "static kernel in a linkage block": ('extern "C" { static __global__ void s(int* x) {} }\n' + K, WERROR),
    "static function as an error": ("static __device__ int f() { return 1; }\n" + K, WERROR),
    "static function of the same name": (
        'static __device__ void k(int) {}\nnamespace n { extern "C" __global__ void k(int*) {} }\n',
        WERROR,
    ),
    "unused in one line": ("static __device__ int f() { return 1; } " + K, {}),
    "kernel in a namespace": ('namespace n { extern "C" __global__ void inner(float* x, double y) {} }\n' + K, {}),
    "overload": ("__global__ void k(float* x) {}\n" + K, {}),
    "kernels by a macro": (
        '#define KERNEL(name) extern "C" __global__ void name\nKERNEL(made)(float* x, short y) {}\n' + K,
        {},
    ),
    "linkage by a macro": ('#define C extern "C"\nC __global__ void made(float* x) {}\n' + K, {}),
    "namespace by a macro": ("#define BEGIN namespace n {\nBEGIN " + K + "}\n", {}),
    "brace by a macro": ("#define BEGIN {\n__device__ void f() BEGIN }\n" + K, {}),
    "keyword by a macro": ("#define template\n" + K, {}),
    "no kernels by a macro": ("#undef __global__\n#define __global__ __device__\n" + K, {}),
    "void by a macro": ("#define void void\n" + K, {}),
    "parameter by a macro": ("#define int float\n" + K, {}),
    "in a condition that holds": ("#if 1\n" + K.replace(" k(", " c(") + "__device__ int v;\n#endif\n" + K, {}),
    "include guard": ("#ifndef GUARD\n#define GUARD\n" + K + "#endif\n", {}),
    "linkage in a condition": ('#ifdef __cplusplus\nextern "C" {\n#endif\n__global__ void k(short* x) {}\n}\n', {}),
    "linkage left out": ('#if 0\nextern "C"\n#endif\n__global__ void k(short* x) {}\n' + K, {}),
    "digraphs": ('extern "C" __global__ void k(int* x) <% *x = 1; %>\n', {}),
    "digraph of a directive": ("%:if 0\n" + K + "%:endif\n" + K, {}),
    "trigraphs": ('// ??/\nextern "C" __global__ void no(int) {}\n' + K, {"std": "c++14"}),
    "trigraph in a string": ('__device__ const char* f() { return "??/" " {"; }\n' + K, {"std": "c++14"}),
    "continued identifier": ('extern "C" __glo\\\nbal__ void c(int* x) {}\n' + K, {}),
    "continued comment mark": ("/\\\n* { */\n" + K, {}),
    "continued end of a comment": ("/* *\\\n/ __device__ int v; /* */\n" + K, {}),
    "continued raw string": ('__device__ const char* f() { return R"(\\\n)" "{"; }\n' + K, {}),
    "linkage of C++": ('extern "C++" {\n__device__ int v;\n}\n' + K, {}),
    "same name in C++": ("namespace k { __device__ int k; }\n__global__ void l(int* x) { *x = k::k; }\n", {}),
    "long line": (f"/*{'x' * 5000}*/ __device__ void f() {{ int unused; }} " + K, {}),
    "using directive": ("namespace n { __device__ int v; }\nusing namespace n;\n__device__ short* v2;\n" + K, {}),
    "hidden by a using": ("namespace n { __device__ int v; }\nusing n::v;\n" + K, {}),
    "function and variable": ("__device__ int v;\n__device__ int f() { return v; }\nstruct v {};\n" + K, {}),
    "names": (
        "template <class T> __global__ void t(T* x) {}\n__constant__ int c;\n" + K,
        {"names": ["t<float>", "k", "&c"]},
    ),
    "dependent names": (
        "template <class T> struct traits { typedef T type; };\n"
        "template <class T> __global__ void t(typename traits<T>::type x) {}\n" + K,
        {"names": ["t<short>"]},
    ),
    "wrong names": (K, {"names": ["missing<int>"]}),
    "deprecated names": ("template <class T> [[deprecated]] __global__ void t(T* x) {}\n" + K, {"names": ["t<int>"]}),
    "unused suppressed": ("static __device__ int v;\n" + K, {"options": ["-diag-suppress=177"]}),
    "relocatable": ("__device__ int v;\nstatic __device__ int w;\n" + K, {"options": ["-rdc=true"]}),
    "debug": ("__device__ int v;\n" + K, {"options": ["-G"]}),
    "default device": ("int f() { return 3; }\nint v;\n" + K, {"options": ["-default-device"]}),
    "minimal": ("__device__ int v;\n" + K, {"options": ["--minimal"]}),
    "many warnings": ("".join(f"__device__ void f{n}() {{\n  int unused;\n}}\n" for n in range(60)) + K, {}),
    "many errors": ("".join(f"__device__ void f{n}() {{\n  int a = missing{n};\n}}\n" for n in range(120)) + K, {}),
    "error": ('extern "C" __global__ void k(int* x) {\n  *x = missing;\n}\n', {}),
    "error in the parameters": ('extern "C" __global__ void k(missing* x) {\n}\n' + K.replace(" k(", " l("), {}),
    "error in the last line": ("__device__ int v;\n" + K.replace("1;", "1"), {}),
    "error of a kernel": ('extern "C" __global__ int k(int* x) { return 1; }\n', {}),
    "redefinition": (K + K, {}),
    "conflict of linkage": ("__global__ void k(int* x);\n" + K, {}),
    "missing header": ('#include "missing.h"\n' + K, {}),
    "error directive": (K + "#error wrong\n", {}),
    "warning directive": (K + "#warning strange\n", WERROR),
    "assertion": (K + 'static_assert(sizeof(int) == 8, "wrong");\n', {}),
    "carriage returns with a warning": ("__device__ void f() {\r\n  int unused;\r\n}\r\n" + K, {}),
}
ENDS = (
    'extern "C++"',
    'extern "C"',
    "template <class T>",
    "#if 1",
    "#if 0",
    "#else",
    "#endif",
    "/* open",
    "// \\",
    "\\",
    '"open',
    "'",
    'R"(open',
    "__device__",
    "static",
    "using T =",
    "struct S {}",
    "struct S {} s",
    "struct S",
    "namespace n {",
    "namespace n",
    "}",
    "{",
    ";",
    "[[deprecated]]",
    "__device__ int v",
    "__device__ int v = 3",
    "enum E {",
    "__device__ int f() {",
    "#pragma nv_exec_check_disable",
    "#pragma",
    "#define END }",
    "#define X \\",
    "#include",
    "??/",
    "%>",
    "@",
    "__attribute__((",
    'extern "C" __global__ void l(int*)',
    "friend",
    "inline",
    "constexpr",
    '_Pragma("unroll")',
    "typedef int",
    "(",
    ")",
    "asm",
)
for end in ENDS:
    OTHERS[f"end: {end}"] = (K + end, {})
