"""Headers that are texts instead of files."""

from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.images import compile_image

KERNEL = '#include "value.h"\nextern "C" __global__ void write(int* out) { *out = VALUE; }\n'


def value_of(*arguments, **options):
    """Return the number that a compiled kernel writes."""
    out = cuda.full(1, -1, np.int32)
    cuda.compile(*arguments, **options)["write"][1, 1](out)
    return int(out.to_host()[0])


def test_a_text_serves_an_include_in_both_forms_and_is_preferred_to_a_file(device, place, tmp_path):
    (tmp_path / "value.h").write_text("#define VALUE 1\n")
    (tmp_path / "kernel.cu").write_text(KERNEL)
    for source in (KERNEL, KERNEL.replace('"value.h"', "<value.h>"), tmp_path / "kernel.cu"):
        headers = {"value.h": "#define VALUE 42\n"}
        assert value_of(source, headers=headers, include=[tmp_path]) == 42


def test_a_text_includes_other_texts_and_files(device, place, tmp_path):
    (tmp_path / "deep.h").write_text("#define DEEP 5\n")
    headers = {
        "value.h": '#include "sub/more.h"\n#include "deep.h"\n#define VALUE (DEEP + MORE)\n',
        "sub/more.h": "#define MORE 30\n",
    }
    assert value_of(KERNEL, headers=headers, include=[tmp_path]) == 35


def test_the_cache_knows_the_texts_and_the_files_that_they_include(device, place, tmp_path, builds):
    def run(more, deep):
        (tmp_path / "deep.h").write_text(f"#define DEEP {deep}\n")
        return value_of(
            KERNEL, headers={"value.h": f'#include "deep.h"\n#define VALUE (DEEP + {more})\n'}, include=[tmp_path]
        )

    assert [run(1, 10), run(1, 10), run(2, 10), run(2, 20)] == [11, 11, 12, 22]
    assert len(builds) == 3


def test_the_types_in_a_text_are_checked_at_a_launch(device, place):
    header = "struct Pair { float a; double b; };\n__device__ int counter = 7;\n"
    source = '#include "pair.h"\nextern "C" __global__ void add(double* out, Pair p) { *out = p.a + p.b + counter; }\n'
    module = cuda.compile(source, headers={"pair.h": header})
    out = cuda.zeros(1, np.float64)
    pair = np.zeros((), np.dtype([("a", np.float32), ("b", np.float64)], align=True))
    pair["a"], pair["b"] = 0.5, 2
    module["add"][1, 1](out, pair)
    assert out.to_host()[0] == 9.5
    assert module.symbol("counter").dtype == np.int32
    with pytest.raises(ValueError, match=r"\(Pair\) has 16 bytes"):
        module["add"][1, 1](out, np.float32(1))


def test_an_error_in_a_text_is_shown_with_its_line():
    with pytest.raises(cuda.CompileError, match=r"value\.h\(2\): error: (?s:.*)  2 \| int VALUE = nothing;"):
        compile_image(KERNEL, headers={"value.h": "// first\nint VALUE = nothing;\n"})


def test_a_missing_header_of_a_program_has_both_remedies():
    with pytest.raises(cuda.CompileError, match=r"include=\[\.\.\.\], or pass its text with headers=\{\.\.\.\}"):
        compile_image(KERNEL)


def test_a_lazy_module_copies_the_texts(device, place):
    headers = {"value.h": "#define VALUE 3\n"}
    module = cuda.LazyModule(KERNEL, headers=headers)
    headers.clear()
    out = cuda.zeros(1, np.int32)
    module["write"][1, 1](out)
    assert out.to_host()[0] == 3


@pytest.mark.parametrize(
    ("headers", "error", "message"),
    [
        (5, TypeError, "argument 'headers' must be a mapping of names to texts, not the int 5"),
        ({"value.h": b""}, TypeError, r"argument \"headers\['value.h'\]\" must be the text of a header"),
        ({"value.h": Path("x")}, TypeError, "must be the text of a header"),
        ({"value.h": "a\0b"}, ValueError, "must be without NUL characters"),
        ({"": ""}, ValueError, "'headers' must be at least one character long"),
        ({"a\nb": ""}, ValueError, "'headers' must be without control characters"),
        ({5: ""}, TypeError, "'headers' must be a str, not the int 5"),
        ({"a" * 2000: ""}, ValueError, "'headers' must be at most 1023 bytes long"),
    ],
)
def test_bad_headers_are_refused(headers, error, message):
    with pytest.raises(error, match=f"compile_image: .*{message}"):
        compile_image(KERNEL, headers=headers)


def test_the_compilers_times_are_in_the_log_or_in_a_file(tmp_path, place, builds):
    source = 'extern "C" __global__ void k(int* x) { *x = 1; }\n'
    for _ in range(2):
        assert "CUDA C++ Frontend" in compile_image(source, options=["--time=-"]).log
    compile_image(source, options=[f"--time={tmp_path / 'times'}"])
    assert "kernel.cu, PTX Translation," in (tmp_path / "times").read_text()
    assert len(builds) == 3  # an image of the cache has no times


def test_a_split_compile_gives_code_that_runs(device, place, builds):
    for _ in range(2):
        module = cuda.compile(KERNEL, define={"VALUE": 8}, headers={"value.h": ""}, options=["--split-compile=2"])
    out = cuda.zeros(1, np.int32)
    module["write"][1, 1](out)
    assert out.to_host()[0] == 8
    assert len(builds) == 1
