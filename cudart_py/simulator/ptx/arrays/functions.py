"""Turn lowerings into functions on arrays, for operations outside of the generated code of basic blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..instructions.values import Value, value_type
from ..syntax.types import dtype_of
from .expressions import Expression, Expressions
from .source import Source


@lru_cache(maxsize=4096)
def array_function(lowering: Callable[..., Any], *types: str, told: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """Return a lowering as a function on arrays, for operands of these PTX types; scalars may stand for arrays.

    `told` are the lowering's arguments before the operands. The function returns an array, or a tuple of arrays if the
    lowering has several results. The same lowering, types and arguments always give the same function.
    """
    source = Source()
    builder = Expressions(source)
    names = [f"operand{number}" for number in range(len(types))]
    operands = [
        Value(builder, value_type(type), Expression(name, dtype_of(type), uniform=False))
        for name, type in zip(names, types, strict=True)
    ]
    found = lowering(*told, *operands)
    results = found if isinstance(found, tuple) else (found,)
    texts = builder.texts(list(results), [])
    source.emit(f"return {', '.join(map(_typed, texts, results))}")
    function: Callable[..., Any] = source.compile("function", ", ".join(names), "<lowering>")
    return function


def _typed(text: str, result: Value) -> str:
    """Return the source that views a result as its type; a predicate needs no view."""
    return text if result.type == "pred" else f"{text}.view({dtype_of(result.type)})"
