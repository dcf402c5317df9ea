"""Names of sources: odd ones work in logs, line information and reports; names that corrupt NVRTC are refused."""

import os
from pathlib import Path

import pytest

import cudart_py as cuda
from cudart_py.compilation.linking.linking import link_images

KERNEL = 'extern "C" __global__ void k(int* x) {\n    *x = 1;\n}\n'
NAMES = ['a"b.cu', "-x.cu", "Größe.cu", '-"Grö\\ße".cu', "a b.cu"]
LONG = "y" * 16_000
STRINGIZED = "#define S(x) #x\n#define T(x) S(x)\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_source_may_have_an_odd_name_in_kernels_logs_and_ptx(device, name):
    x = cuda.zeros(1, "i4")
    cuda.compile(KERNEL, name=name, cache=False)["k"][1, 1](x)
    assert x.to_host()[0] == 1
    with pytest.raises(cuda.CompileError, match="wrong") as caught:  # the error quotes the line
        cuda.images.compile_image(KERNEL + "wrong", name=name)
    assert f"{name}(4): error" in caught.value.log
    assert link_images([cuda.images.compile_image(KERNEL, name=name, arch=90).ptx], arch=90)


@pytest.mark.needs("profile")
@pytest.mark.parametrize("name", NAMES[3:])
def test_an_odd_name_stands_in_a_report(python, name):
    program = f"""
import cudart_py as cuda
cuda.compile({KERNEL!r}, name={name!r})["k"][1, 1](None)
try:
    cuda.Device(0).synchronize()
except cuda.errors.IllegalAddressError as error:
    print(ascii(str(error)))
"""
    assert f"k at {name}:2:" in eval(python(program).stdout)


def test_a_name_that_is_too_long_is_refused(device):
    with pytest.raises(ValueError, match="'name' must be at most 1023 bytes long"):
        cuda.compile(KERNEL, name="ö" * 512)
    assert cuda.compile(KERNEL, name="ö" * 511)


@pytest.mark.parametrize(
    "name", ["", "a\nb.cu", "a\rb.cu", "a\tb.cu", "\x1b[1m.cu", "a\x7f.cu", "a\x85b.cu", "a\u2028b.cu"]
)
def test_a_name_that_is_empty_or_breaks_lines_is_refused(device, name):
    with pytest.raises(ValueError, match="argument 'name' must be "):
        cuda.compile(KERNEL, name=name)


TOO_LONG = {
    "line": f'#line 5 "{LONG}"\n',
    "number": f'# 5 "{LONG}"\n',
    "digraph": f'%: line 5 "{LONG}"\n',
    "spliced": f'#li\\\nne 5 "{LONG[:8000]}\\\n{LONG[:8000]}"\n',
    "macro": f'#define N "{LONG}"\n#line 5 N\n',
    "macro of both": f'#define N 5 "{LONG}"\n#line N\n',
    "comment": f'#line 5 /*\n*/ "{LONG}"\n',
    "comment before": f'/*\n{"c" * 1000}*/ #line 5 "{LONG}"\n',
    "hash in a comment": f'/* #1 */ #line 5 "{LONG}"\n',
    "long comment": f'#/*{"c" * 1000}*/line 5 "{LONG}"\n',
    "stringized": f"{STRINGIZED}#line 5 S({LONG})\n",
    "stringized words": f"{STRINGIZED}#line 5 S({'yyyy ' * 4000})\n",
    "escapes": '#line 5 "' + '\\"' * 8000 + '"\n',
}


def compiled(source: str, folder, define=None):
    """Compile a source, with a folder as include path and without the cache."""
    return cuda.compile(source, include=folder, define=define, cache=False)


# Long names that come partly from a header or an option: (text of h.cuh, source, macros) by title.
SPLIT = {
    "directive in a header": (TOO_LONG["line"], '#include "h.cuh"\n', None),
    "name in an option": ("", "#line 5 N\n", {"N": f'"{LONG}"'}),
    "name in a header": (f'#define N "{LONG}"\n', '#include "h.cuh"\n#line 5 N\n', None),
    "directive of a name": ("#line 5 N\n", f'#define N "{LONG}"\n#include "h.cuh"\n', None),
    "word in a header": (f"#define N {LONG}\n", f'#include "h.cuh"\n{STRINGIZED}#line 5 T(N)\n', None),
    "trigraph": ("", f'??=line 5 "{LONG}"\n', None),
    "spliced by a trigraph": ("", f'#li??/\nne 5 "{LONG}"\n', None),
}


CASES = {**{name: ("", lines, None) for name, lines in TOO_LONG.items()}, **SPLIT}


@pytest.mark.parametrize("what", CASES)
def test_a_line_directive_whose_name_is_too_long_is_refused(device, tmp_path, what):
    header, source, define = CASES[what]
    (tmp_path / "h.cuh").write_text(header)
    where = "'source' includes" if what == "directive in a header" else "'source' has" if not header else "'source'"
    with pytest.raises(ValueError, match=f"{where} .* #line directive"):
        compiled(source + KERNEL, tmp_path, define)


def test_a_path_that_is_too_long_for_line_information_is_refused(device, tmp_path, monkeypatch):
    """PTX spells a byte that is not ASCII with four characters."""
    while len(os.fsencode(tmp_path)) < 3_800:
        tmp_path /= "é" * 120
    tmp_path.mkdir(parents=True)
    (tmp_path / "h.cuh").touch()
    with pytest.raises(ValueError, match="includes a file whose path is too long"):
        compiled('#include "h.cuh"\n' + KERNEL, tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="the working folder is too long"):
        compiled(KERNEL, tmp_path)


def test_long_strings_and_line_directives_may_stand_beside_each_other(device, tmp_path):
    source = (
        f'// #5 is fixed\n#define JOINED N##1 {"a " * 600}\n#line 5 "short.cu"\n#line __LINE__ "other.cu"\n'
        f'__device__ const char text[] = "{LONG}";\n'
    )
    assert compiled(source + KERNEL, tmp_path)
    assert compiled('#define NAME "short.cu"\n#line 5 NAME\n' + KERNEL, tmp_path)


def test_a_path_that_is_too_long_for_a_name_is_called_the_source(device, tmp_path):
    folder = tmp_path.joinpath(*["d" * 200] * 6)
    folder.mkdir(parents=True)
    (folder / "k.cu").write_text(KERNEL)
    with pytest.raises(ValueError, match=r"argument 'source' must be a path of at most 1023 bytes, .* name="):
        cuda.compile(folder / "k.cu")
    assert "k" in cuda.compile(folder / "k.cu", name="k.cu").kernels


def test_in_a_deleted_folder_relative_paths_are_named_and_others_compile(device, tmp_path, monkeypatch):
    (tmp_path / "k.cu").write_text(KERNEL)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for source in (KERNEL, tmp_path / "k.cu"):
        assert "k" in cuda.compile(source, cache=False).kernels
    for argument in ("source", "include"):
        with pytest.raises(ValueError, match=f"{argument!r} is the relative path 'k.cu'.* was deleted"):
            cuda.compile(**{"source": KERNEL, argument: Path("k.cu")})
