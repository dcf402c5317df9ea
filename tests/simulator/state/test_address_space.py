"""A limit on the address space (``ulimit -v``), which the simulator's reservation counts against."""

from __future__ import annotations

import pytest

PROGRAM = r"""
import resource
import numpy as np
import cudart_py as cuda

with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limit = used + ({megabytes} << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    array = cuda.to_device(np.arange(1 << 20))
    print(int(array.to_host().sum()) == (1 << 19) * ((1 << 20) - 1))
except MemoryError as error:
    print(error)
"""


@pytest.mark.parametrize(("megabytes", "words"), [(1 << 10, "True"), (90, "can't reserve 67,108,864 bytes")])
def test_the_simulator_reserves_less_or_names_a_limit_that_is_too_small(python, megabytes, words):
    printed = python(PROGRAM.format(megabytes=megabytes), CUDART_PY_DRIVER="simulator").stdout
    assert words in printed
    assert ("(ulimit -v)" in printed) == (megabytes == 90)
