"""What the text of a source tells of the types to ask for, so that most sources need one run of the compiler."""

from __future__ import annotations

import pytest

from cudart_py.compilation import declared
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.programs import Program

SOURCES = {
    "kernels": """
    // extern "C" __global__ void commented_out(int* x) {}
    extern "C" __global__ void __launch_bounds__(64, 2) first(const float* __restrict__ x, double y) {}
    extern "C" __global__ __launch_bounds__(64) void second(int (*rows)[4], const char* text = "{") {}
    extern "C" { __device__ int helper(int x) { return x; } __global__ void third(bool flag) {} }
    """,
    "variables": """
    #define TEXT "__device__ int directive;"
    __constant__ float table[2][3] = {{1, 2, 3}, {4, 5, 6}};
    __device__ int one, two[3], *three = 0;
    __device__ __align__(16) double aligned;
    __managed__ short flag;
    constexpr int ROWS = 4, COLUMNS = 8;
    namespace z { namespace { __device__ unsigned hidden; } inline namespace y { __device__ char inner[5]; } }
    __device__ float square(float x) { __shared__ int within; const int constant = 3; return x * constant; }
    struct Pair { int a, b; };
    __device__ Pair pairs[2];
    __global__ void use(float* x) {
        *x = table[0][threadIdx.x] + one + two[0] + *three + aligned + flag + ROWS + COLUMNS + z::hidden +
            z::inner[0] + square(*x) + pairs[0].a;
    }
    """,
}


@pytest.fixture
def runs(monkeypatch):
    """Note the options of every run of the compiler."""
    noted = []
    compile_program = Program.compile

    def compile(self):
        noted.append(self.options)
        compile_program(self)

    monkeypatch.setattr(Program, "compile", compile)
    return noted


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_types_are_those_that_are_asked_for_afterwards(source, runs, monkeypatch):
    found = compile_image(source, cache=False)
    count = len(runs)
    monkeypatch.setattr(declared, "_BOUNDARY", declared.re.compile("(?!)"))
    asked_afterwards = compile_image(source, cache=False)
    assert len(runs) == count + 2
    assert count == 1
    for of in ("signatures", "variables", "names", "ptx", "cubin"):
        assert getattr(found, of) == getattr(asked_afterwards, of), of


@pytest.mark.parametrize(
    "source",
    [
        '#if 0\nextern "C" __global__ void left_out(int* x) {}\n#endif',
        '#define KERNEL(name) extern "C" __global__ void name\nKERNEL(made)(int* x) {}',
        "struct Pair { static constexpr int SIZE = 2; };\n__global__ void k(int* x) { *x = Pair::SIZE; }",
        "template <class T> __device__ T shared;\n__global__ void k(int* x) { *x = shared<int>; }",
    ],
    ids=["left out", "by a macro", "member", "template"],
)
def test_what_only_the_compiler_knows_takes_another_run(source, runs):
    last = '\n__device__ int value = 4;\nextern "C" __global__ void last(int* x) { *x = value; }'
    image = compile_image(source + last, cache=False)
    assert len(runs) == 2
    assert all(signature.typed for signature in image.signatures.values())
    assert all(variable.type for variable in image.variables.values())
    assert {"last", "value"} <= image.names.keys()
