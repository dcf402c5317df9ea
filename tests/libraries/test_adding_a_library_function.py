"""The page that tells how to add a function of a library has one that works."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from nvmath.bindings import cublas as bindings

import cudart_py as cuda
from cudart_py.libraries.blas import vectors

pytestmark = pytest.mark.needs("libraries")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-a-library-function.md"
SOFTWARE, FUNCTION, TESTS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def defined(source: str, module: object) -> dict[str, object]:
    """Return what the page's code defines where it says that it goes."""
    namespace = dict(vars(module))
    exec(compile(source, str(PAGE), "exec"), namespace)
    return namespace


@pytest.fixture
def tests(monkeypatch) -> dict[str, object]:
    """The page's tests, with its two functions in their places."""
    from cudart_py.simulator.libraries import cublas

    monkeypatch.setitem(vars(cublas), "nrm2_ex", defined(SOFTWARE, cublas)["nrm2_ex"])
    namespace = {"cuda": cuda, "np": np, "pytest": pytest, "norm": defined(FUNCTION, vectors)["norm"]}
    exec(compile(TESTS, str(PAGE), "exec"), namespace)
    return namespace


def test_the_pages_function_passes_its_tests(device, rng, tests):
    for step in (1, 3):
        tests["test_norm_is_numpys"](device, rng, step)
    tests["test_a_norm_of_integers_is_refused"](device)


def test_the_software_version_has_nvmaths_parameters():
    from cudart_py.simulator.libraries import cublas

    ours = inspect.signature(defined(SOFTWARE, cublas)["nrm2_ex"])
    assert list(ours.parameters) == list(inspect.signature(bindings.nrm2_ex).parameters)
