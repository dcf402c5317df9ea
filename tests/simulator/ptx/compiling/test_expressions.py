"""Source of NumPy expressions: which values are assigned to variables."""

import numpy as np

from cudart_py.simulator.ptx.arrays.expressions import Expression, Expressions, array_function
from cudart_py.simulator.ptx.arrays.source import Source
from cudart_py.simulator.ptx.instructions.values import Value, rarely


def texts(results: int) -> tuple[list[str], list[str]]:
    """Return the source of several results that share a sum, and the names of the variables that it reads."""
    builder, names = Expressions(Source()), list[str]()
    total = Value(builder, "u32", Expression("x", "u4", uniform=False)) + 1
    return builder.texts([total * (total + number) for number in range(2, 2 + results)], names), names


def test_a_value_that_is_used_twice_is_computed_once() -> None:
    [text], [name] = texts(1)
    assert text.count(name) == 2


def test_several_results_are_computed_before_the_first_is_written() -> None:
    found, names = texts(2)
    assert found == names[1:]


def test_a_value_that_is_computed_in_a_branch_is_computed_again_after_it() -> None:
    def squared(x: Value) -> tuple[Value, Value]:
        total = x + 1
        return rarely(x.equals(0), total * total, x), total

    function = array_function(squared, "u32")
    for x, expected in (([5, 6], [[5, 6], [6, 7]]), ([0, 0], [[1, 1], [1, 1]])):
        assert np.array_equal(function(np.array(x, np.uint32)), expected)
