"""The part of a stop's device code that a host's compiler makes."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from library_tour import host_code


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no host compiler")
def test_options_reach_the_compiler():
    with pytest.raises(subprocess.CalledProcessError):
        host_code.load_host("aliasing", "-no-such-option")
