"""Source of NumPy expressions: which values are assigned to variables."""

from cudart_py.simulator.ptx.arrays.expressions import Expression, Expressions
from cudart_py.simulator.ptx.arrays.source import Source
from cudart_py.simulator.ptx.instructions.values import Value


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
