"""A fixture that gives a test a compile cache of its own."""

import pytest

from cudart_py.compilation import cache


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Give the test an empty cache of its own, and let warnings about the cache appear again; return its folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(folder))
    monkeypatch.setattr(cache, "_has_warned", False)
    return folder
