import gc
from collections.abc import Iterator

import pytest

import cudart_py as cuda

from .reentry import SOURCE


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    return cuda.compile(SOURCE)


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """Disable the garbage collector, so that it does not free objects of earlier tests during this one.

    Only young objects are collected first, because a full collection takes long.
    """
    gc.collect(1)
    gc.disable()
    yield
    gc.enable()
