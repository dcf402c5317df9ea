"""Make functions on arrays of lowerings, for what isn't written in the code of a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..instructions.values import Value, value_type
from ..syntax.types import dtype_of
from .expressions import Expression, Expressions
from .source import Source


def array_function(lowering: Callable[..., Any], *types: str) -> Callable[..., Any]:
    """Return the function of arrays that a lowering of operands of these PTX types is; scalars may stand for arrays.

    It returns an array, or one for each result of several.
    """
    source = Source()
    builder = Expressions(source)
    names = [f"operand{number}" for number in range(len(types))]
    operands = [
        Value(builder, value_type(type), Expression(name, dtype_of(type), uniform=False))
        for name, type in zip(names, types, strict=True)
    ]
    found = lowering(*operands)
    results = found if isinstance(found, tuple) else (found,)
    texts = builder.texts(list(results), [])
    source.emit(f"return {', '.join(map(_typed, texts, results))}")
    function: Callable[..., Any] = source.compile("function", ", ".join(names), "<lowering>")
    return function


def _typed(text: str, result: Value) -> str:
    """Return the source of a result as its type: a predicate has no other."""
    return text if result.type == "pred" else f"{text}.view({dtype_of(result.type)})"
