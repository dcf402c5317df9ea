"""The server that runs pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.documentation.pages import Pages


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    server = Pages(tmp_path_factory.mktemp("pages") / "written.txt")
    yield server
    server.close()
