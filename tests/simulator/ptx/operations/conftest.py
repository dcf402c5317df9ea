from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield
