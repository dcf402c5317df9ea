"""The C types of the parameters of the stand-ins."""

import ctypes

import pytest

from cudart_py.standins.functions import driver_functions, runtime_functions


@pytest.mark.parametrize(
    ("functions", "name", "place"),
    [(driver_functions, "cuTensorMapEncodeTiled", 8), (runtime_functions, "cudaMemcpy", 3)],
)
def test_enumerations_have_32_bits(functions, name, place):
    """A caller may leave the upper half of a register or of a place on the stack undefined."""
    function = functions()[name]
    assert ctypes.sizeof(function.types[place]) == ctypes.sizeof(function.result) == 4
