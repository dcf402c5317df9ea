"""Make functions on arrays of lowerings, for what isn't written in the code of a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from ..instructions.values import Value, value_type
from ..syntax.types import dtype_of
from .expressions import Expression, Expressions
from .source import Source

Array = NDArray[Any]


def array_function(lowering: Callable[..., Value], *types: str) -> Callable[..., Array]:
    """Return the function of arrays that a lowering of operands of these PTX types is; scalars may stand for arrays."""
    source = Source()
    builder = Expressions(source)
    names = [f"operand{number}" for number in range(len(types))]
    operands = [
        Value(builder, value_type(type), Expression(name, dtype_of(type), uniform=False))
        for name, type in zip(names, types, strict=True)
    ]
    result = lowering(*operands)
    [text] = builder.texts([result], [])
    source.emit(f"return {text}.view({dtype_of(result.type)})")
    function: Callable[..., Array] = source.compile("function", ", ".join(names), "<lowering>")
    return function
