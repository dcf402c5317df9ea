"""Limits of a device: when each may be set, and the error if it may not."""

PROGRAM = r"""
import cudart_py as cuda
device = cuda.Device(0)
cases = {
    "printf_fifo_size": ("printf", r'printf("%d\n", *x);'),
    "malloc_heap_size": ("malloc or free", "int *p = (int *)malloc(4); *p = *x; *x = *p; free(p);"),
}

def kernel(body):
    return cuda.compile('extern "C" __global__ void k(int *x) { %s }' % body)["k"]

plain = kernel("*x = threadIdx.x;")
for limit, (functions, body) in cases.items():
    plain[1, 1](cuda.zeros(1, "i4"))
    uses_it = kernel(body)
    device.synchronize()
    setattr(device.limits, limit, 16 << 20)
    assert 16 << 20 <= getattr(device.limits, limit) < 32 << 20
    uses_it[1, 1](cuda.zeros(1, "i4"))
    device.synchronize()
    try:
        setattr(device.limits, limit, 32 << 20)
    except cuda.errors.InvalidValueError as error:
        assert f"Limits.{limit}" in str(error)
        assert f"once a kernel that uses {functions} has been launched" in str(error)
    else:
        raise AssertionError(limit)
    assert getattr(device.limits, limit) < 32 << 20
"""


def test_a_limit_may_be_set_until_code_that_uses_it_is_launched_and_the_error_says_so(python):
    python(PROGRAM)
