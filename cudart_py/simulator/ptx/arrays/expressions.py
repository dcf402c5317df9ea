"""Build NumPy expressions: the values of lowerings as Python source, for arrays over a group's lanes or scalars.

`array_function` turns lowerings into functions on arrays, for operations outside of the generated code of basic blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partialmethod
from typing import Any

import numpy as np

from ..instructions.values import Value, value_type
from ..syntax.types import dtype_of
from .double import fma_f64
from .floats import canonical_f32, canonical_f64, flush_f32, fma_f32, has_tiny_f32, saturate
from .integers import halves, high_product, high_product_signed, join_halves, leading_zeros, reversed_bits, truncated
from .source import Source

# The comparisons of floats. NumPy's comparisons are false if an operand is NaN, except ``!=``.
_FLOATS = {
    "oeq": "({0} == {1})", "one": "(({0} < {1}) | ({0} > {1}))", "olt": "({0} < {1})", "ole": "({0} <= {1})",
    "ogt": "({0} > {1})", "oge": "({0} >= {1})", "ueq": "~(({0} < {1}) | ({0} > {1}))", "une": "({0} != {1})",
    "ult": "~({0} >= {1})", "ule": "~({0} > {1})", "ugt": "~({0} <= {1})", "uge": "~({0} < {1})",
    "ord": "(({0} == {0}) & ({1} == {1}))", "uno": "(({0} != {0}) | ({1} != {1}))",
}  # fmt: skip  # rows of a table


class Expression:
    """A node of an expression: a template for its arguments, and the NumPy type of the result.

    `uniform` says that the result is a scalar: the same for all lanes. A leaf has the `number` of a constant or the
    `operand` that it reads. The template of a node made by `rarely` is empty, because its source takes several lines.
    """

    uniform: bool
    __slots__ = ("arguments", "dtype", "name", "number", "operand", "template", "uniform", "uses")

    def __init__(
        self,
        template: str,
        dtype: str,
        arguments: tuple[Expression, ...] = (),
        *,
        uniform: bool = True,
        operand: Any = None,
        number: Any = None,
    ) -> None:
        self.template = template
        self.dtype = dtype
        self.arguments = arguments
        self.uniform = uniform and all(argument.uniform for argument in arguments)
        self.operand = operand
        self.number = number
        self.uses = 0
        # The variable that holds the result, if it is used more than once.
        self.name = ""


class Expressions:
    """The builder of one instruction's expressions; it implements `instructions.values.Builder`.

    Integers stay signed or unsigned as they come, and are viewed as the other only when an operation needs it, because
    a view takes time and most operations are the same for both.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._known: dict[tuple[Any, ...], Expression] = {}

    # --- results

    def texts(self, results: list[Value], temporaries: list[str]) -> list[str]:
        """Return the source of results; first emit lines that assign values that are used repeatedly.

        The names of the variables that these lines assign are added to `temporaries`.
        """
        expressions = [self.finished(result) for result in results]
        for expression in expressions:
            self._count(expression)
        # All results are computed before the first is written, because that may overwrite an operand of the others.
        return [self._text(expression, temporaries, keep=len(results) > 1) for expression in expressions]

    def finished(self, result: Value) -> Expression:
        """Return a result as it is stored: in single precision, all NaNs have the hardware's one pattern."""
        return self._call(canonical_f32, "f4", result.raw) if result.loose else result.raw

    def _count(self, expression: Expression) -> None:
        expression.uses += 1
        if expression.uses == 1:
            for argument in expression.arguments:
                self._count(argument)

    def _text(self, expression: Expression, temporaries: list[str], *, keep: bool = False) -> str:
        """Return an expression's source; first emit lines that compute the values that are used more than once."""
        if expression.name:
            return expression.name
        if not expression.template:
            return self._rare_text(expression, temporaries)
        arguments = [self._text(argument, temporaries) for argument in expression.arguments]
        text = expression.template.format(*arguments) if arguments else expression.template
        if keep or (arguments and expression.uses > 1):
            expression.name = self._assigned(text, temporaries)
            return expression.name
        return text

    def _assigned(self, text: str, temporaries: list[str]) -> str:
        name = self.source.temporary()
        self.source.emit(f"{name} = {text}")
        temporaries.append(name)
        return name

    def _rare_text(self, expression: Expression, temporaries: list[str]) -> str:
        """Emit a branch that computes the rare value; variables that are assigned in it are not used after it."""
        suspect, mended, x = expression.arguments
        # The values that both paths use are computed before the branch.
        name = self._assigned(self._text(x, temporaries), temporaries)
        truth = self._text(suspect, temporaries)
        unnamed = [node for node in _nodes(mended) if not node.name]
        self.source.emit(f"if {truth}.any():")
        with self.source.indented():
            self.source.emit(f"{name} = {self._text(mended, temporaries)}")
        for node in unnamed:
            node.name = ""
        expression.name = name
        return name

    # --- nodes

    def _node(self, template: str, dtype: str, *arguments: Expression) -> Expression:
        key = (template, dtype, *map(id, arguments))
        if key not in self._known:
            self._known[key] = Expression(template, dtype, arguments)
        return self._known[key]

    def _as(self, x: Expression, dtype: str) -> Expression:
        """Return the same bits as another type of the same size."""
        if x.dtype == dtype:
            return x
        if x.number is not None:
            return self._constant(x.number.view(dtype), dtype)
        if x.operand is not None:
            return self.operand_as(x, dtype)
        return self._node(f"{{}}.view({dtype})", dtype, x)

    def operand_as(self, x: Expression, dtype: str) -> Expression:
        """Return an operand's bits as another type of the same size."""
        return self._node(f"{{}}.view({dtype})", dtype, x)

    def _signed(self, x: Expression, signed: bool) -> Expression:
        return self._as(x, ("i" if signed else "u") + x.dtype[1:]) if x.dtype != "?" else x

    def _alike(self, x: Expression, y: Expression) -> tuple[Expression, Expression]:
        """Return integers as the same type, for an operation that doesn't depend on whether they are signed."""
        if y.number is not None:
            return x, self._as(y, x.dtype)
        return (x, y) if x.dtype == y.dtype else (self._signed(x, False), self._signed(y, False))

    def _pair(self, template: str, x: Expression, y: Expression) -> Expression:
        """Fill a template for which it doesn't matter whether integers are signed."""
        x, y = self._alike(x, y)
        return self._node(template, x.dtype, x, y)

    def _alike_node(self, template: str, *arguments: Expression) -> Expression:
        """Fill a template whose result has the type of its arguments."""
        return self._node(template, arguments[0].dtype, *arguments)

    def _call(self, function: Any, dtype: str, *arguments: Expression) -> Expression:
        name = self.source.bind(function.__name__, function)
        return self._node(f"{name}({', '.join('{}' for _ in arguments)})", dtype, *arguments)

    # --- the primitives

    def constant(self, type: str, bits: int) -> Expression:
        """Return the same bits for all lanes."""
        dtype = dtype_of(type)
        return self._constant(np.array(bits, "?" if dtype == "?" else f"u{dtype[1:]}").view(dtype)[()], dtype)

    def _constant(self, number: Any, dtype: str) -> Expression:
        return Expression(self.source.constant(number), dtype, number=number)

    # NumPy's operators on integers do what those of the protocol do.
    add = partialmethod(_pair, "({} + {})")
    sub = partialmethod(_pair, "({} - {})")
    mul = partialmethod(_pair, "({} * {})")
    and_ = partialmethod(_pair, "({} & {})")
    or_ = partialmethod(_pair, "({} | {})")
    xor = partialmethod(_pair, "({} ^ {})")
    not_ = partialmethod(_alike_node, "(~{})")

    def wide_product(self, x: Expression, y: Expression, signed: bool) -> Expression:
        """Return whole products in twice the width."""
        x, y = self._signed(x, signed), self._signed(y, signed)
        wide = f"{x.dtype[0]}{2 * int(x.dtype[1:])}"
        return self._node(f"np.multiply({{}}, {{}}, dtype={wide})", wide, x, y)

    def high_product(self, x: Expression, y: Expression, signed: bool) -> Expression:
        """Return the upper halves of products of 64-bit integers."""
        function = high_product_signed if signed else high_product
        return self._call(function, "i8" if signed else "u8", self._signed(x, signed), self._signed(y, signed))

    def quotient(self, x: Expression, y: Expression, signed: bool) -> Expression:
        """Return quotients rounded toward zero."""
        x, y = self._signed(x, signed), self._signed(y, signed)
        return self._call(truncated, x.dtype, x, y) if signed else self._node("({} // {})", x.dtype, x, y)

    def shift_left(self, x: Expression, by: Expression) -> Expression:
        """Shift left; NumPy also defines shifts by the width or more."""
        return self._pair("({} << {})", self._signed(x, False), by)

    def shift_right(self, x: Expression, by: Expression, signed: bool) -> Expression:
        """Shift right; NumPy also defines shifts by the width or more, but not by negative amounts."""
        most, kind = 8 * int(x.dtype[1:]) - 1, f"u{8 * int(x.dtype[1:])}"
        if signed and by.number is not None:
            by = self.constant(kind, min(int(by.number), most))
        elif signed:
            by = self._signed(self.least(by, self.constant(kind, most), False), True)
        return self._pair("({} >> {})", self._signed(x, signed), by)

    def compare(self, relation: str, x: Expression, y: Expression, signed: bool) -> Expression:
        """Compare integers."""
        either = relation in ("==", "!=")
        x, y = self._alike(x, y) if either else (self._signed(x, signed), self._signed(y, signed))
        return self._node(f"({{}} {relation} {{}})", "?", x, y)

    def floats(self, relation: str, x: Expression, y: Expression) -> Expression:
        """Compare floats."""
        return self._node(_FLOATS[relation], "?", x, y)

    def _signed_pair(self, template: str, x: Expression, y: Expression, signed: bool) -> Expression:
        return self._pair(template, self._signed(x, signed), self._signed(y, signed))

    least = partialmethod(_signed_pair, "np.minimum({}, {})")
    greatest = partialmethod(_signed_pair, "np.maximum({}, {})")

    def choose(self, truth: Expression, x: Expression, y: Expression) -> Expression:
        """Choose by a predicate; for scalars without `np.where`, which would return an array."""
        x, y = self._alike(x, y)
        uniform = truth.uniform and x.uniform and y.uniform
        return self._node("({1} if {0} else {2})" if uniform else "np.where({}, {}, {})", x.dtype, truth, x, y)

    def resize(self, x: Expression, type: str, signed: bool) -> Expression:
        """Truncate or extend integers and predicates."""
        dtype = dtype_of(type)
        dtype = f"{'i' if signed else 'u'}{dtype[1:]}"
        return self._node(f"{{}}.astype({dtype})", dtype, self._signed(x, signed))

    def reinterpret(self, x: Expression, type: str) -> Expression:
        """Return the same bits as another type."""
        return self._as(x, dtype_of(type))

    def flushed(self, *values: Expression) -> list[Expression]:
        """Flush the operands of an instruction with ``.ftz``."""
        return [self.flush(value) for value in values]

    def count_ones(self, x: Expression) -> Expression:
        """Return the number of set bits."""
        return self._node("np.bitwise_count({}).astype(u4)", "u4", self._signed(x, False))

    def count_leading_zeros(self, x: Expression) -> Expression:
        """Return the number of leading zeros."""
        return self._call(leading_zeros, "u4", self._signed(x, False))

    def reverse_bits(self, x: Expression) -> Expression:
        """Return the bits in the opposite order."""
        x = self._signed(x, False)
        return self._call(reversed_bits, x.dtype, x)

    def joined(self, low: Expression, high: Expression) -> Expression:
        """Return 128 bits made of 64-bit halves."""
        return self._call(join_halves, "c16", self._signed(low, False), self._signed(high, False))

    def halves(self, x: Expression) -> tuple[Expression, Expression]:
        """Return the lower and the upper half of 128 bits."""
        both = self._call(halves, "u8", x)
        return self._node("{}[0]", "u8", both), self._node("{}[1]", "u8", both)

    # --- primitives of floats

    flushes = False

    # So do its functions of floats.
    fadd = partialmethod(_alike_node, "({} + {})")
    fsub = partialmethod(_alike_node, "({} - {})")
    fmul = partialmethod(_alike_node, "({} * {})")
    fdiv = partialmethod(_alike_node, "({} / {})")
    float_least = partialmethod(_alike_node, "np.minimum({}, {})")
    float_greatest = partialmethod(_alike_node, "np.maximum({}, {})")
    root = partialmethod(_alike_node, "np.sqrt({})")
    flush = partialmethod(_call, flush_f32, "f4")
    quiet = partialmethod(_call, canonical_f64, "f8")
    # Whether any lane's number is tiny is all that `rarely` needs.
    tiny = partialmethod(_call, has_tiny_f32, "?")

    def fused(self, x: Expression, y: Expression, z: Expression) -> Expression:
        """Return the fused multiply-adds ``x * y + z``, rounded once."""
        return self._call(fma_f32 if x.dtype == "f4" else fma_f64, x.dtype, x, y, z)

    def elementary(self, name: str, x: Expression) -> Expression:
        """Apply the NumPy function of this name."""
        return self._node(f"np.{name}({{}})", x.dtype, x)

    # NumPy's names of the roundings are those of its functions.
    integral = elementary

    def saturate(self, x: Expression) -> Expression:
        """Clamp floats to the range from +0 to 1."""
        return self._call(saturate, x.dtype, x)

    def convert(self, x: Expression, type: str, signed: bool) -> Expression:
        """Convert numbers to another type."""
        dtype = dtype_of(type)
        source = x if x.dtype[0] == "f" else self._signed(x, signed)
        return self._node(f"{{}}.astype({dtype})", dtype, source)

    def opaque(self, x: Expression) -> Expression:
        """Return the same bits."""
        return x

    def rarely(self, suspect: Expression, mended: Expression, x: Expression) -> Expression:
        """Return `mended`, which is computed only if any lane is suspect."""
        mended, x = self._alike(mended, x)
        return Expression("", x.dtype, (suspect, mended, x))


def _nodes(expression: Expression) -> Iterable[Expression]:
    """Return an expression and all nodes that it consists of."""
    found, waiting = {id(expression): expression}, [expression]
    while waiting:
        for node in waiting.pop().arguments:
            if id(node) not in found:
                found[id(node)] = node
                waiting.append(node)
    return found.values()


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
