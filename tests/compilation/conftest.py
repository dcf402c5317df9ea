"""A compile cache for one test alone."""

import pytest

from cudart_py.compilation import cache


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Give the test an empty cache of its own, and a process that has not warned yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(folder))
    monkeypatch.setattr(cache, "_has_warned", False)
    return folder
