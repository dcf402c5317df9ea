"""Files that a caller names: what is no regular file hangs nothing and fills no memory."""

from __future__ import annotations

import os

import pytest

# In a process of its own, whose memory is limited: what is tested here once hung or took all there was.
PROGRAM = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from pathlib import Path
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.linking import link_images
os.chdir({folder!r})
try:
    {call}
except ValueError as error:
    print(error)
"""
KERNEL = "__global__ void k() {}\n"


@pytest.fixture
def refused(python, tmp_path):
    """Run a call beside a pipe and links to a device, and return its ValueError's text."""
    os.mkfifo(tmp_path / "pipe.cuh")
    os.symlink("/dev/zero", tmp_path / "zero.cuh")

    def run(call):
        return python(PROGRAM.format(folder=str(tmp_path), call=call), CUDART_PY_CACHE=str(tmp_path / "cache")).stdout

    return run


@pytest.mark.parametrize("name", ["pipe.cuh", "zero.cuh"])
def test_a_source_that_is_no_file_is_refused(refused, name):
    text = refused(f"compile_image(Path({name!r}))")
    assert text.startswith("compile: argument 'source' cannot be read: ")
    assert f"{name}' is a pipe, a device or a socket" in text


INCLUDES = {
    "quoted": '#include "{}"',
    "angled": "#include <{}>",
    "odd": '%:/**/inc\\\nlude/**/"{}"',
    "by a macro": '#define H "{}"\n#include H',
    "by a macro with arguments": "#define H(x) #x\n#include H({})",
    "in trigraphs": '??/\n#include "{}"',
    "asked for": '#if __has_include("{}")\n#include "{}"\n#endif',
}


@pytest.mark.parametrize("name", ["pipe.cuh", "zero.cuh", "/dev/zero"])
@pytest.mark.parametrize("spelling", INCLUDES.values(), ids=INCLUDES)
def test_an_include_that_is_no_file_is_refused(refused, spelling, name):
    source = spelling.replace("{}", name) + "\n" + KERNEL
    text = refused(f"compile_image({source!r}, include='.')")
    assert text.startswith("compile: argument 'source' includes what cannot be read: ")
    assert f"{name}' is a pipe, a device or a socket" in text


def test_an_include_of_a_header_that_is_no_file_is_refused(refused, tmp_path):
    (tmp_path / "outer.cuh").write_text('#include "zero.cuh"\n')
    text = refused(f"compile_image('#include \"outer.cuh\"\\n' + {KERNEL!r})")
    assert "zero.cuh' is a pipe, a device or a socket" in text


@pytest.mark.parametrize(
    "arguments",
    [
        "'', options=['-include=pipe.cuh']",
        "'#include H', options=['-DH=\"pipe.cuh\"']",
        "'#include H', define={'H': '<pipe.cuh>'}",
    ],
)
def test_an_option_that_names_no_file_is_refused(refused, arguments):
    assert "pipe.cuh' is a pipe, a device or a socket" in refused(f"compile_image({arguments})")


def test_an_image_that_is_no_file_is_refused(refused):
    text = refused("link_images([Path('pipe.cuh')], arch=90)")
    assert text.startswith("link: argument 'images[0]' cannot be read: ")


@pytest.mark.parametrize("name", ["pipe.cuh", "zero.cuh"])
def test_load_refuses_what_is_no_file(refused, name):
    text = refused(f"import cudart_py as cuda; cuda.load(Path({name!r}))")
    assert text.startswith("load: argument 'image' cannot be read: ")
