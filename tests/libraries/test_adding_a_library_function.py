"""The library function that docs/adding-a-library-function.md adds works."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from nvmath.bindings import cublas as bindings

import cudart_py as cuda
from cudart_py.libraries.blas import vectors

pytestmark = pytest.mark.needs("libraries")

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-library-function.md"
SOFTWARE, FUNCTION, TESTS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def defined(source, **names):
    """Run code of the page in the namespace `names`, and return the namespace."""
    exec(compile(source, str(PAGE), "exec"), names)
    return names


def test_the_pages_function_passes_its_tests(device, rng, monkeypatch):
    from cudart_py.simulator.libraries import cublas

    software = defined(SOFTWARE, **vars(cublas))["nrm2_ex"]
    assert list(inspect.signature(software).parameters) == list(inspect.signature(bindings.nrm2_ex).parameters)
    monkeypatch.setitem(vars(cublas), "nrm2_ex", software)
    norm = defined(FUNCTION, **vars(vectors))["norm"]
    tests = defined(TESTS, cuda=cuda, np=np, pytest=pytest, norm=norm)
    for step in (1, 3):
        tests["test_norm_is_numpys"](device, rng, step)
    tests["test_a_norm_of_integers_is_refused"](device)
