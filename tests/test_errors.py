"""The tree of exceptions."""

from __future__ import annotations

import inspect

import cudart_py as cuda
from cudart_py import errors


def test_errors_are_builtins_where_natural():
    assert issubclass(cuda.OutOfMemoryError, MemoryError)
    assert issubclass(cuda.InvalidValueError, ValueError)
    assert issubclass(cuda.NotFoundError, LookupError)
    assert issubclass(cuda.NotSupportedError, NotImplementedError)


def test_the_tree_drawn_in_the_module_is_the_tree():
    drawn = {line.split("── ")[1].split()[0] for line in errors.__doc__.splitlines() if "── " in line}
    classes = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, cuda.CudaError)}
    assert drawn == classes - {"CudaError"}
