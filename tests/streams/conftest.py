"""A stream for one test."""

from __future__ import annotations

import pytest

import cudart_py as cuda


@pytest.fixture
def stream(device):
    with cuda.Stream(non_blocking=True) as made:
        yield made
