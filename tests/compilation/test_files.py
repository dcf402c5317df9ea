"""Files that a caller names: one that is not a regular file neither hangs a call nor fills memory."""

import os

import pytest

from cudart_py.host.files import read_file

KERNEL = "\n__global__ void k() {}\n"
INCLUDES = [
    '#include "{}"',
    "#include <{}>",
    '%:/**/inc\\\nlude/**/"{}"',
    '#define H "{}"\n#include H',
    "#define H(x) #x\n#include H({})",
    '??/\n#include "{}"',
    '#if __has_include("{}")\n#include "{}"\n#endif',
]
ODD = ["pipe.cuh", "zero.cuh", "/dev/zero"]
IN_COMPILE, IN_LOAD, IN_LINK = (
    f"{start} cannot be read: "
    for start in ("compile_image: argument 'source'", "load: argument 'image'", "link: argument 'images[0]'")
)
INCLUDED = "compile_image: argument 'source' includes a file that cannot be read: "
# Calls, the file that is refused, and the beginning of the error.
CALLS = [
    *((f"compile_image(Path({name!r}))", name, IN_COMPILE) for name in ODD[:2]),
    *((f"cuda.load(Path({name!r}))", name, IN_LOAD) for name in ODD[:2]),
    ("link_images([Path('pipe.cuh')], arch=90)", "pipe.cuh", IN_LINK),
    *(
        (f"compile_image({include.replace('{}', name) + KERNEL!r}, include='.')", name, INCLUDED)
        for include in INCLUDES
        for name in ODD
    ),
    (f"compile_image('#include \"outer.cuh\"' + {KERNEL!r})", "zero.cuh", INCLUDED),
    ("compile_image('', options=['-include=pipe.cuh'])", "pipe.cuh", INCLUDED),
    ("compile_image('#include H', options=['-DH=\"pipe.cuh\"'])", "pipe.cuh", INCLUDED),
    ("compile_image('#include H', define={'H': '<pipe.cuh>'})", "pipe.cuh", INCLUDED),
]
# Runs in its own process with a time limit, since each of these calls once hung or used up all memory.
PROGRAM = f"""
from pathlib import Path
import cudart_py as cuda
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation.linking.linking import link_images
for call in {[call for call, *_ in CALLS]!r}:
    try:
        print(eval(call))
    except ValueError as error:
        print(ascii(str(error)))
"""


def test_what_is_no_file_is_refused(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.cuh")
    os.symlink("/dev/zero", "zero.cuh")
    (tmp_path / "outer.cuh").write_text('#include "zero.cuh"\n')
    errors = python(PROGRAM, CUDART_PY_CACHE=str(tmp_path / "cache")).stdout.splitlines()
    for (call, name, start), error in zip(CALLS, map(eval, errors), strict=True):
        assert error.startswith(start), call
        assert f"{name}' is a pipe, a device or a socket" in error, call


def test_a_file_longer_than_allowed_is_not_read(tmp_path):
    path = tmp_path / "long"
    with open(path, "wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ValueError, match="has 1099511627776 bytes, more than 100"):
        read_file(path, 100)


def test_a_file_whose_size_the_system_does_not_tell_is_refused():
    with pytest.raises(ValueError, match="the system says that it has 0 bytes"):
        read_file("/proc/self/status")


def test_a_pipe_that_takes_a_files_place_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("content")
    status = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda path, **how: status)
        with pytest.raises(ValueError, match="not a regular file"):
            read_file(path)


def test_an_empty_file_is_empty_and_a_missing_one_and_a_folder_are_the_systems_own_errors(tmp_path):
    (tmp_path / "empty").touch()
    assert read_file(tmp_path / "empty") == b""
    with pytest.raises(FileNotFoundError, match="missing"):
        read_file(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)
