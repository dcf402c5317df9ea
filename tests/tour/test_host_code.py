"""The part of a stop's device code that a host's compiler makes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import pytest

from library_tour import host_code

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no host compiler")


def test_a_function_of_a_kernel_file_can_be_called():
    compiled = host_code.load_host("aliasing")
    value = ctypes.c_int(7)
    assert compiled.host_reread_char(ctypes.byref(value), ctypes.byref(value)) == 0


def test_options_reach_the_compiler():
    with pytest.raises(subprocess.CalledProcessError):
        host_code.load_host("aliasing", "-no-such-option")


def test_without_a_compiler_there_is_no_library(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert host_code.load_host("aliasing") is None
