"""Fixtures of the tests of compiling: a compile cache of the test's own, and the compiler's output by its input."""

import functools
import textwrap

import pytest

from cudart_py.compilation import cache, compiler
from cudart_py.compilation.programs import run_nvrtc
from cudart_py.errors import CompileError


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Give the test an empty cache of its own, and let warnings about the cache appear again; return its folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(folder))
    monkeypatch.setattr(cache, "_has_warned", False)
    return folder


@functools.cache
def _output_or_error(source, options, names, name, headers):
    try:
        return run_nvrtc(source, name=name, names=names, options=options, headers=dict(headers))
    except CompileError as error:
        return error


@pytest.fixture
def runs(monkeypatch):
    """Run NVRTC once per source and options, in all tests together; return a list that gets the options of each run.

    Not for sources with headers that change, nor for options that change later runs.
    """
    noted = []

    def run(source, *, options, names=(), name, headers):
        noted.append(options)
        output = _output_or_error(source, tuple(options), tuple(names), name, tuple(headers.items()))
        if isinstance(output, CompileError):
            raise output
        return output

    monkeypatch.setattr(compiler, "run_nvrtc", run)
    return noted


@pytest.fixture
def at_once(python):
    """Return a function that runs a program in several processes at the same time, which all must succeed."""

    def run(program, count, **environment):
        children = f"""
import os
def work():
{textwrap.indent(program, "    ")}
children = []
for _ in range({count}):
    children.append(os.fork())
    if not children[-1]:
        work()
        os._exit(0)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * {count}
"""
        python(children, **environment)

    return run
