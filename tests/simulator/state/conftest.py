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
    """Let nothing that earlier tests have left be freed in this one, without a full collection, which takes long."""
    gc.collect(1)
    gc.disable()
    yield
    gc.enable()
