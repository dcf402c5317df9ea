"""A limit on the address space (``ulimit -v``), which the simulator's reservation counts against."""

from __future__ import annotations

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


def test_the_simulator_reserves_less(python):
    done = python(PROGRAM.format(megabytes=1 << 10), CUDART_PY_DRIVER="simulator")
    assert done.stdout == "True\n"


def test_too_small_a_limit_is_named(python):
    done = python(PROGRAM.format(megabytes=90), CUDART_PY_DRIVER="simulator")
    assert "can't reserve 67,108,864 bytes of addresses: the address space is limited to" in done.stdout
    assert "(ulimit -v)" in done.stdout
