"""Limits of a device: which may be set when, and what is said where one may not."""

from __future__ import annotations

import pytest

PROGRAM = """
import cudart_py as cuda
device = cuda.Device(0)
device.limits.{limit} = 16 << 20
print(device.limits.{limit} >= 16 << 20)
kernel = cuda.compile('extern "C" __global__ void k(int *x) {{ {body} }}')["k"]
device.limits.{limit} = 17 << 20
kernel[1, 1](cuda.zeros(1, "i4"))
device.synchronize()
try:
    device.limits.{limit} = 32 << 20
    print("set again")
except cuda.InvalidValueError as error:
    print(error)
print(device.limits.{limit} < 32 << 20)
"""


@pytest.mark.parametrize(
    ("limit", "body", "function"),
    [
        ("printf_fifo_size", 'printf("%d\\\\n", *x);', "printf"),
        ("malloc_heap_size", "int *p = (int *)malloc(4); *p = *x; *x = *p; free(p);", "malloc or free"),
    ],
)
def test_a_limit_that_launched_code_uses_may_not_be_set_and_the_error_says_when_it_may(python, limit, body, function):
    lines = python(PROGRAM.format(limit=limit, body=body)).stdout.splitlines()
    before, *_, error, after = lines  # a printed line is between them
    assert (before, after) == ("True", "True")
    assert f"'{limit}'" in error
    assert f"only until a kernel that uses {function} was launched" in error


@pytest.mark.parametrize("limit", ["printf_fifo_size", "malloc_heap_size"])
def test_code_that_uses_no_such_function_leaves_the_limit_free(python, limit):
    lines = python(PROGRAM.format(limit=limit, body="*x = threadIdx.x;")).stdout.splitlines()
    assert "set again" in lines
