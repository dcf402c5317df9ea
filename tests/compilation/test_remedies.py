"""The advice of a failed compile of sources that were written for nvcc, host code included."""

import os
import re

import pytest

from cudart_py.compilation import headers
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.programs import library_path, library_version
from cudart_py.errors import CompileError

# Not extern "C", so that a compile that fails runs the compiler only once.
KERNEL = "__global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n"
PROGRAM = """
int main() {
    float *x;
    cudaMalloc(&x, 32 * sizeof(float));
    scale<<<1, 32>>>(x);
    cudaDeviceSynchronize();
}
"""


def core_is_missing():
    return not any("cccl" in folder for folder in headers.find(library_version(), library_path()).folders)


needs_core = pytest.mark.skipif("core_is_missing()", reason="CCCL's headers are not installed")


def error_of(source, **arguments):
    with pytest.raises(CompileError) as caught:
        compile_image(source, arch=90, cache=False, **arguments)
    return str(caught.value)


HEADERS = {
    "stdio.h": "leave #include <stdio.h> out; printf() is built in",
    "cstdio": "leave #include <cstdio> out; printf() is built in",
    "math.h": "the mathematical functions are built in",
    "stdlib.h": "malloc() and free() are built in",
    "stdint.h": "include <cuda/std/cstdint> in place of <stdint.h>",
    "climits": "include <cuda/std/climits> in place of <climits>",
    "type_traits": "include <cuda/std/type_traits> in place of <type_traits>",
    "iostream": "leave #include <iostream> out, with the code that needs it",
    "cublas_v2.h": "leave #include <cublas_v2.h> out, with the code that needs it",
    "cupy/complex.cuh": "include <cuda/std/complex> in its place, and write cuda::std::complex",
    "cupy/carray.cuh": "<cupy/carray.cuh> comes with CuPy: leave it out",
}
LINES = {
    "uint32_t a = 3; x[0] = a;": "include <cuda/std/cstdint>, which declares uint32_t",
    "x[0] = INT_MAX;": "include <cuda/std/climits>",
    "x[0] = FLT_EPSILON;": "cuda::std::numeric_limits<float> or <double> of <cuda/std/limits> in place of FLT_EPSILON",
    "x[0] = M_PI;": "CUDART_PI_F",
    "x[0] = std::max(x[1], x[2]);": "max(), min() and the mathematical functions are built in without std::",
}
FILL = "template <class T> __global__ void fill(T* x) { *x = 1; }\n"
SOURCES = [
    *((f"#include <{header}>\n{KERNEL}", advice) for header, advice in HEADERS.items()),
    *((f"__global__ void k(float* x) {{ {line} }}", advice) for line, advice in LINES.items()),
    (
        "__device__ float far_away(float);\n__global__ void k(float* x) { x[0] = far_away(x[1]); }",
        "define far_away(float), which is only declared; if another source defines it, compile each with",
    ),
    (
        "__global__ void k(float* x) { __shared__ float s[99999]; s[threadIdx.x] = *x; __syncthreads(); *x = s[1]; }",
        "in k(float*), declare the array as extern __shared__ without a size, and pass its size in bytes at the launch",
    ),
    (
        "__constant__ float c[20000]; __global__ void k(float* x, int i) { *x = c[i]; }",
        "pass large tables to the kernel as const pointers",
    ),
    (
        f"{KERNEL}__global__ void k(float* x) {{ scale<<<1, 1>>>(x); }}",
        "compile kernels that launch kernels with compile_image(",
    ),
    (
        "__global__ void j(float* x) { extern __shared__ float s[]; s[0] = *x; *x = s[0]; }\n"
        "__global__ void k(int* x) { extern __shared__ int s[]; s[0] = *x; *x = s[0]; }",
        "in each kernel, declare extern __shared__ char s[]",
    ),
    (KERNEL + PROGRAM, 'module["scale"][grid, block, shared_bytes, stream](...)'),
    (f"#include <stdio.h>\n{KERNEL}{PROGRAM}", "remove main()"),
    (
        f"{FILL}void launch(float* x) {{ fill<float><<<1, 1>>>(x); }}",
        'module["fill"][grid, block, shared_bytes',
    ),
    (
        f"float twice(float a) {{ return 2 * a; }}\n{KERNEL}",
        "mark kernels __global__ and the functions that they call __device__",
    ),
    *(
        (name, f"write pathlib.Path({name.strip()!r})")
        for name in ("saxpy.cu", "kernels/my saxpy.cuh", "saxpy.h", "saxpy.hpp", "saxpy.cpp\n")
    ),
]


@pytest.mark.parametrize(("source", "advice"), SOURCES)
def test_a_source_for_nvcc_and_the_host_is_told_what_to_change(source, advice):
    text = error_of(source)
    assert advice in text
    assert "include=[" not in text


def test_code_of_the_host_comes_before_the_headers_that_go_with_it():
    text = error_of(f"#include <stdio.h>\n{KERNEL}{PROGRAM}")
    assert text.index("remove main()") < text.index("leave #include <stdio.h> out")


def test_a_template_without_its_arguments_is_told_how_they_are_written():
    assert 'names=["fill<float>"]' in error_of(FILL, names=["fill"]).partition("Remedy")[2]


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        (f"float twice(float a) {{ return 2 * a; }}\n{KERNEL}", "main()"),
        (f"// main() launches scale<<<1, 32>>>(x)\n#include <stdio.h>\n{KERNEL}", "remove main()"),
        (f"{KERNEL}x.cu", "pathlib"),
    ],
)
def test_what_a_source_has_not_is_not_advised(source, wrong):
    assert wrong not in error_of(source).partition("Remedy")[2]


def test_a_header_for_nvcc_alone_stays_within_the_condition_that_the_advice_names():
    with pytest.raises(CompileError, match="#ifndef __CUDACC_RTC__") as caught:
        compile_image(f"#include <stdio.h>\n{KERNEL}", cache=False)
    assert "Remedy" not in caught.value.log, "the log stays the compiler's own"
    compile_image(f"#ifndef __CUDACC_RTC__\n#include <stdio.h>\n#endif\n{KERNEL}")


def test_the_drivers_header_is_left_out():
    text = error_of(f"#include <cuda.h>\n{KERNEL}")
    if "cuda.h" not in text:
        pytest.skip("no cuda.h that fits this NVRTC")
    assert "<cuda.h> is for host code" in text


BUILT_IN = """
__global__ void k(float* x) {
    printf("%d", 1);
    x[0] = sinf(x[1]);
    assert(x[0] > 0);
    free(malloc(4));
    memcpy(x, x + 1, 4);
    x[0] = clock();
    x[0] = sizeof(size_t) + sizeof(ptrdiff_t);
}
"""
DECLARED = """
#include <cuda/std/cstdint>
#include <cuda/std/climits>
#include <cuda/std/limits>
#include <cuda/std/utility>
#include <math_constants.h>
__global__ void k(float* x) {
    uint32_t a = INT_MAX;
    x[0] = max(x[1], x[2]) + a + cuda::std::numeric_limits<float>::max() + CUDART_PI_F + CUDART_NAN_F + CUDART_INF_F;
    cuda::std::swap(x[1], x[2]);
}
"""


def test_what_the_advice_calls_built_in_compiles_without_a_header():
    compile_image(BUILT_IN)


@needs_core
def test_the_headers_that_the_advice_names_declare_what_it_says():
    compile_image(DECLARED)


@needs_core
@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("#include <cub/cub.cuh>\n", "<cub/block/block_reduce.cuh> for cub::BlockReduce or <cub/warp/warp_scan.cuh>"),
        (
            "#include <cub/device/device_radix_sort.cuh>\ntypedef cub::WarpScan<int> Scan;\n",
            "<cub/warp/warp_scan.cuh> for cub::WarpScan and <cub/block/block_radix_sort.cuh> for cub::BlockRadixSort",
        ),
        ("#include <thrust/device_vector.h>\n", "Thrust's containers and algorithms are called by the host"),
    ],
)
def test_headers_of_cub_and_thrust_for_the_host_name_those_that_work(source, advice):
    text = error_of(source)
    assert advice in text
    folders = headers.find(library_version(), library_path()).folders
    for header in re.findall(r"<(cub/(?:block|warp)/\w+\.cuh)>", text.split("Remedy: ")[1]):
        assert any(os.path.exists(os.path.join(folder, header)) for folder in folders)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        *(
            ([option], f"write fast_math=True in place of {option}")
            for option in ("--use_fastmath", "--use-fast-math", "-use-fast-math", "-ffast-math")
        ),
        (["-O3"], "leave -O3 out: NVRTC optimises fully"),
        (["-o", "x.cubin"], "leave -o out, with the file that it names: NVRTC writes no files"),
        (["-c"], "leave -c out"),
        (["-ptx"], "module.cubin and module.ptx contain the result"),
        (["-g"], "leave -g out: it is for host code. The option -G compiles kernels for a debugger"),
        (["--lineinfo"], "leave --lineinfo out: line information is always generated"),
        (["-gencode", "arch=compute_90,code=sm_90"], 'for the one in arch="sm_90"'),
        (["-gencode=arch=compute_90,code=sm_90"], "leave -gencode=arch=compute_90,code=sm_90 out"),
        (["--resource-usage"], "leave --resource-usage out: kernel.attributes has the registers"),
        (["--expt-relaxed-constexpr"], "or write -default-device"),
        (["--default-stream=per-thread"], "kernel[grid, block, 0, cuda.per_thread_default]"),
        *(
            ([option], f"leave {option} out, with its value if it has one: it is for the host compiler")
            for option in ("-Wall", "-Xcompiler", "-Xcompiler=-fPIC", "-ccbin=g++", "-lcublas", "-L/usr/lib", "-fPIC")
        ),
        (["-O3 -g"], "each option is an item of options=[...] of its own: write '-O3', '-g'"),
        (["-Xptxas -v"], "write '-Xptxas', '-v'"),
    ],
)
def test_an_option_of_nvcc_that_nvrtc_has_not_has_a_remedy(options, remedy):
    text = error_of(KERNEL, options=options)
    assert remedy in text
    assert text.count("Remedy") == 1


def test_an_option_in_place_of_one_of_nvcc_does_what_it_did():
    source = "constexpr int twice(int x) { return 2 * x; }\n__global__ void k(int *out) { *out = twice(*out); }"
    assert compile_image(source, options=["-default-device"], cache=False).cubin


def test_an_unknown_option_without_a_remedy_has_none():
    assert "Remedy" not in error_of(KERNEL, options=["--nonsense"])


TEMPLATES = """
template <class T> __global__ void __launch_bounds__(128) fill(T* x) { *x = 0; }
namespace z { template <class T> __global__ void scale(T* x) { *x *= 2; } }
"""


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (["g<float>"], "names=[...] contains g, which the source does not declare. Kernels of the source: fill, scale"),
        (["fil<float>"], "did you mean fill?"),
        (["scale<float>"], "as in space::scale"),
    ],
)
def test_a_name_expression_has_the_kernels_that_there_are(names, advice):
    assert advice in error_of(TEMPLATES, names=names)


def test_each_name_expression_that_is_refused_is_named_once():
    text = error_of(f"{TEMPLATES}int f( {{", names=["fill<1>", "g<int>", "fill<float>"])
    assert 'names=["fill<1>"]: error: cannot determine which instance' in text
    assert 'names=["g<int>"]: error: identifier "g" is undefined' in text
    assert "fill<float>" not in text
    assert "__nv_name_map" not in text
    assert text.count('"g" is undefined') == 1
    assert "kernel.cu(4): error" in text, "errors of the source stay beside those of the names"
