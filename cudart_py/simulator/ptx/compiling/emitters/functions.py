"""Write calls of the NumPy functions that compute what an opcode does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...operations.conversions import converter
from ...operations.floats import half
from ...syntax.instructions import Instruction
from ...syntax.types import dtype_of
from ..forms import Form, Row
from ..writer import Value, Writer

# The keyword of a function that a modifier stands for. Rounding to nearest is what functions do by themselves. A
# modifier that all spellings of a row have chooses the row's function and needs no keyword.
KEYWORDS: dict[str, tuple[str, Any]] = {
    "rz": ("rounding", "rz"), "rm": ("rounding", "rm"), "rp": ("rounding", "rp"),
    "ftz": ("ftz", True), "sat": ("sat", True), "relu": ("relu", True), "NaN": ("nan", True),
    "xorsign": ("xorsign_abs", True), "abs": ("xorsign_abs", True), "shiftamt": ("shiftamt", True),
    "add": ("add", True), "to": ("to", True),
    **{word: ("join", word) for word in ("and", "or", "xor")},
    **{mode: ("mode", mode) for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")},
}  # fmt: skip  # rows of a table


def one(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of arrays with scalars, and return scalars."""
    arrays = [np.array([a]) if isinstance(a, np.generic) else a for a in arguments]
    result = function(*arrays)
    if isinstance(result, tuple):
        return tuple(item[0] for item in result)
    return result[0]


def call(w: Writer, name: str, function: Callable[..., Any], values: Sequence[Value]) -> Value:
    """Return a call of a function, bound to a name, as an expression."""
    w.bind(name, function)
    arguments = ", ".join(expression for expression, _ in values)
    if all(uniform for _, uniform in values):
        w.bind("one", one)
        return f"one({name}, {arguments})", True
    return f"{name}({arguments})", False


def operands(w: Writer, i: Instruction, form: Form) -> list[Value]:
    """Return the operands behind the destination, in the types that the row gives them."""
    return [
        w.value(operand, form.type_of(pattern))
        for operand, pattern in zip(i.operands[1:], form.operands[1:], strict=False)
    ]


class Calls:
    """Emit a call of a function, whose keywords are the modifiers of the opcode."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def check(self, row: Row) -> None:
        """Raise a ValueError if a modifier that only some spellings of a row have stands for no keyword."""
        slots = [slot for pattern in row.patterns for slot in pattern.slots if not slot.is_type]
        chosen = {word for slot in slots if slot.optional or len(slot.words) > 1 for word in slot.words}
        dropped = sorted(chosen - KEYWORDS.keys() - {"rn"})
        if dropped:
            raise ValueError(
                f"row {row.name!r}: the function would not be told of the modifier {dropped[0]!r}: "
                "make it a keyword in KEYWORDS of emitters/functions.py, or give it a row of its own"
            )

    def function_for(self, form: Form) -> Callable[..., Any]:
        """Return the function with the keywords of a form."""
        keywords = dict(KEYWORDS[modifier] for modifier in form.modifiers if modifier in KEYWORDS)
        return partial(self.function, **keywords) if keywords else self.function

    def __call__(self, w: Writer, i: Instruction, form: Form) -> None:
        """Write the call."""
        self.write(w, i, form, operands(w, i, form))

    def write(self, w: Writer, i: Instruction, form: Form, values: Sequence[Value]) -> None:
        """Write the call with these operands."""
        name = "f_" + form.opcode.replace(".", "_").replace(":", "_")
        expression, uniform = call(w, name, self.function_for(form), values)
        w.write(i.operands[0], expression, dtype_of(form.type_of(form.operands[0])), uniform)


class CallsForHalves(Calls):
    """Emit a call of a function that takes the kind of half first; packed halves are computed one after the other."""

    def function_for(self, form: Form) -> Callable[..., Any]:
        """Return the function for the type of a form."""
        kind = form.types[0]
        function = partial(super().function_for(form), kind.removesuffix("x2"))
        return half.paired(function) if kind.endswith("x2") else function


class Converts(Calls):
    """Emit a call of the function that converts between the types of a form."""

    def __init__(self) -> None:
        super().__init__(converter)

    def check(self, row: Row) -> None:
        """Accept every row: the converter is given all modifiers, and raises for one that it doesn't know."""

    def function_for(self, form: Form) -> Callable[..., Any]:
        """Return the conversion of a form."""
        options = {word: True for word in form.modifiers if word in ("ftz", "sat", "relu", "satfinite")}
        rounding = "".join(word for word in form.modifiers if word not in options)
        return converter(form.types[0], form.types[1], rounding=rounding, **options)
