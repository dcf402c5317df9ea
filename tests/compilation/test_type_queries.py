"""Type queries are part of the run that compiles the images, and change neither the images nor the messages."""

from pathlib import Path

import pytest

from cudart_py.compilation import compiler
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.queries import type_queries
from cudart_py.compilation.queries.declarations import read_declarations
from cudart_py.errors import CompileError
from tests.compilation.odd_sources import ONE_RUN, OTHERS, K

KERNELS = sorted((Path(__file__).parents[2] / "kernels").glob("*.cu"))

FACTS = ("signatures", "variables", "names", "log", "ptx")


def facts(source, **arguments):
    """Return everything that a compile to PTX reports, or its error. Machine code is generated from PTX alone."""
    try:
        image = compile_image(source, arch="compute_90", cache=False, **arguments)
    except CompileError as error:
        return {"message": str(error), "log": error.log, "status": error.status, "call": error.call}
    return {fact: getattr(image, fact) for fact in FACTS}


def facts_without_queries(source, monkeypatch, **arguments):
    with monkeypatch.context() as changed:
        changed.setattr(compiler, "read_declarations", lambda *_: None)
        return facts(source, **arguments)


@pytest.mark.parametrize("source", ONE_RUN.values(), ids=ONE_RUN)
def test_one_run_tells_all_types_of_plain_declarations(source, runs, monkeypatch):
    found = facts(source)
    assert len(runs) == 1
    assert found == facts_without_queries(source, monkeypatch)
    assert "message" not in found


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(("source", "arguments"), OTHERS.values(), ids=OTHERS)
def test_queries_change_neither_images_nor_messages(source, arguments, monkeypatch):
    if read_declarations(source.encode()) is None:
        return  # it gets no queries, so both compiles would be the same
    assert facts(source, **arguments) == facts_without_queries(source, monkeypatch, **arguments)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_queries_change_nothing_in_the_kernels_of_the_tour(path, monkeypatch):
    if not read_declarations(path.read_bytes()).kernels:
        return  # both compiles would be the same
    monkeypatch.setattr(compiler, "_ask", lambda *_: {})  # it runs the compiler again for types alone
    for _ in range(8):  # NVRTC 13.5 is not deterministic for matmul.cu, even without queries
        found, expected = facts(path), facts_without_queries(path, monkeypatch)
        differing = [fact for fact in ("ptx", "log", "names") if found[fact] != expected[fact]]
        if not differing:
            break
    assert differing == []


def test_a_type_of_an_anonymous_namespace_hides_no_other_types():
    """NVRTC rejects a template that is declared for such a type and not defined."""
    image = compile_image(
        "namespace { struct Gain { float value; }; __constant__ Gain gain; __device__ float table[4]; }\n"
        'extern "C" __global__ void scale(float *x, int n) { if (n) *x *= gain.value + table[0]; }',
        arch=90,
        cache=False,
    )
    assert str(image.signatures["scale"]) == "void scale(float*, int)"
    assert {variable.dtype for variable in image.variables.values() if "table" in variable.name} == {"float32"}


@pytest.mark.parametrize(
    ("text", "name", "asked"),
    [
        ("__device__ float gain;", "gain", True),
        ("namespace deep { __device__ float gain; }", "deep::gain", True),
        ("template <class T> __device__ T gain = 1;", "gain<deep::Pair<int> >", True),
        ("#define TABLE(name) __device__ float name##_table[4];\nTABLE(sine)", "sine_table", True),
        (None, "gain", True),  # a macro names the included file, so its text is not known
        ("__device__ float gains;", "gain", False),
        ("#include <curand_kernel.h>\n__device__ float gain;", "precalc_xorwow_matrix", False),
    ],
)
def test_types_are_asked_for_of_the_programs_own_variables(text, name, asked):
    assert type_queries.may_declare(text, name) == asked


def test_variables_of_a_header_beside_the_source_have_types(tmp_path):
    (tmp_path / "gain.cuh").write_text("namespace deep { __device__ float gain[3]; }\n")
    source = '#include "gain.cuh"\nextern "C" __global__ void k(float* x) { *x = deep::gain[threadIdx.x]; }'
    (variable,) = compile_image(source, arch=90, cache=False, include=tmp_path).variables.values()
    assert (variable.name, variable.dtype, variable.shape) == ("deep::gain", "float32", (3,))


@pytest.mark.parametrize("header", ["cuda_fp16.h", "no_such_header.h"])
def test_kernels_below_a_condition_that_asks_for_a_header_take_one_run(runs, header):
    source = f"{K}#if __has_include(<{header}>)\n{K.replace(' k(', ' below(')}#endif\n"
    signatures = compile_image(source, arch=90, cache=False).signatures.values()
    names = ["k", "below"] if header == "cuda_fp16.h" else ["k"]
    assert sorted(map(str, signatures)) == sorted(f"void {name}(int*)" for name in names)
    assert len(runs) == 1


def test_link_time_code_takes_one_run(runs):
    assert compile_image(K, arch=90, cache=False, options=["-dlto"]).ltoir
    assert len(runs) == 1


def test_a_second_run_leaves_the_files_of_the_compiler_alone(runs, tmp_path):
    (tmp_path / "value.cuh").write_text("__device__ inline int value() { return 4321; }\n")
    source = '#include "value.cuh"\n#define C extern "C"\nC __global__ void k(int* x) { *x = value(); }\n'
    header, times = tmp_path / "value.pch", tmp_path / "times.csv"
    options = [f"--create-pch={header}", f"--time={times}"]
    image = compile_image(source, arch=90, cache=False, include=tmp_path, options=options)
    assert str(image.signatures["k"]) == "void k(int*)"
    first, second = runs
    assert set(options) <= set(first)
    assert not set(options) & set(second)
    image = compile_image(source, arch=90, cache=False, include=tmp_path, options=[f"--use-pch={header}"])
    assert b"4321" in image.ptx
    assert f'using precompiled header file "{header}"' in image.log


@pytest.mark.parametrize(
    "piece",
    ['R"(', 'R"a(', "/*", '"', "'", "#if 0\n", "{", "//\\\n", '#"', "#/*", "a::", "const int ", "namespace a{", "1'"],
)
def test_long_sources_of_beginnings_alone_are_scanned_quickly(piece):
    declared = read_declarations((K + 50_000 * piece).encode())
    assert declared is None or declared.kernels == ["k"]
