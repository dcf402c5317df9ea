"""NVTX ranges, with the package and without it."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import cudart_py as cuda
from cudart_py import nvtx


@pytest.fixture
def log(monkeypatch):
    """Stand in for the package `nvtx` and collect what it is told."""
    calls = []
    fake = ModuleType("nvtx")
    fake.push_range = lambda message, color=None, domain=None: calls.append(("push", message, color, domain))
    fake.pop_range = lambda domain=None: calls.append(("pop", domain))
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    nvtx._library.cache_clear()
    yield calls
    nvtx._library.cache_clear()


def test_a_block_is_a_range_that_ends_with_an_error_too(log):
    with pytest.raises(KeyError), cuda.nvtx_range("outer", color="green", domain="tour"), cuda.nvtx_range("inner"):
        raise KeyError
    assert log == [("push", "outer", "green", "tour"), ("push", "inner", None, None), ("pop", None), ("pop", "tour")]


def test_a_function_is_a_range_each_time_and_recursion_nests(log):
    @cuda.nvtx_range("count")
    def count(n):
        return n and count(n - 1)

    assert count(2) == 0
    assert [what for what, *_ in log] == ["push"] * 3 + ["pop"] * 3


def test_without_the_package_nothing_happens(log, monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with cuda.nvtx_range("outer"):
        result = cuda.nvtx_range("f")(lambda x: x + 1)(2)
    assert (result, log) == (3, [])


def test_a_name_is_a_text():
    with pytest.raises(TypeError, match="argument 'name' must be a str"):
        cuda.nvtx_range(5)


def test_the_real_package_takes_it():
    pytest.importorskip("nvtx", reason="the extra nvtx is not installed")
    with cuda.nvtx_range("outer", color="green", domain="tour"), cuda.nvtx_range("inner", color=0xFF0000):
        pass
