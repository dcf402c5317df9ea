"""Emit instructions through the lowerings that both engines share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from ...arrays.expressions import Expression, Expressions
from ...instructions.comparisons import RELATIONS
from ...instructions.floats import CLASSES
from ...instructions.values import Builder, Raw, Value, value_type
from ...syntax.instructions import Immediate, Instruction, Operand, Register, Symbol, Vector, items_of
from ...syntax.types import dtype_of
from ..forms import SPACES, Form, Row
from ..writer import Writer

# The carry flag is a predicate that no program declares.
_CARRY = Register("%CC")
# The keyword argument of a lowering for each modifier. Rounding to nearest is the default and has none. A modifier that
# all spellings of a row have determines the row's lowering and needs no keyword.
KEYWORDS: dict[str, tuple[str, Any]] = {
    "rz": ("rounding", "rz"), "rm": ("rounding", "rm"), "rp": ("rounding", "rp"),
    "ftz": ("ftz", True), "sat": ("sat", True), "relu": ("relu", True), "NaN": ("nan", True),
    "xorsign": ("xorsign_abs", True), "abs": ("xorsign_abs", True), "shiftamt": ("shiftamt", True),
    "to": ("to", True), "po": ("plus_one", True), "shr7": ("scale", 7), "shr15": ("scale", 15),
    **{word: ("secondary", word) for word in ("add", "min", "max")},
    **{word: ("mode", word) for word in ("clamp", "wrap")},
    "rna": ("rounding", "rna"), "satfinite": ("satfinite", True),
    "rni": ("integral", "rint"), "rzi": ("integral", "trunc"),
    "rmi": ("integral", "floor"), "rpi": ("integral", "ceil"),
    **{word: ("join", word) for word in ("and", "or", "xor")},
    **{mode: ("mode", mode) for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")},
}  # fmt: skip  # rows of a table
# The facts of the spelling that a lowering can receive as arguments before the operands.
_TOLD: dict[str, Callable[[Form], str]] = {
    "word": lambda form: form.words[0],
    "kind": lambda form: form.type,
    "to": lambda form: form.types[0],
    "space": lambda form: form.space,
    "name": lambda form: form.row.name,
}
_TOLD_WORDS = {"word": {*RELATIONS, *CLASSES, "lo", "hi", "l", "r"}, "space": SPACES, "count": {"v2", "v4", "v8"}}


class Lowers:
    """The emitter of an opcode that has a lowering, for either engine.

    The lowering takes the facts of the spelling that `told` names ("count" is the number of registers written,
    "selectors" are the operands' selectors), the operands in the types that the row specifies (a literal is an int),
    the 32-bit special registers that `told` names, and the modifiers as keywords. It returns the result, or a tuple of
    results. `loose` says that the lowering accepts single-precision values whose NaNs have any bit pattern.
    """

    def __init__(self, lowering: Callable[..., Any], *told: str, loose: bool = False) -> None:
        self.lowering = lowering
        self.loose = loose
        self.told = told

    def check(self, row: Row) -> None:
        """Raise ValueError if there is no keyword for a modifier that only some spellings of a row have."""
        slots = [slot for pattern in row.patterns for slot in pattern.slots if not slot.is_type]
        chosen = {word for slot in slots for word in slot.words} - fixed_words(row)
        chosen -= {word for name in self.told for word in _TOLD_WORDS.get(name, ())}
        # `cc` decides only whether the program sees the carry.
        dropped = sorted(chosen - KEYWORDS.keys() - {"rn", "cc"})
        if dropped:
            raise ValueError(
                f"row {row.name!r}: the lowering would not be told of the modifier {dropped[0]!r}: "
                "make it a keyword in KEYWORDS of emitters/lowered.py, or give it a row of its own"
            )

    def lower(
        self, builder: Builder, i: Instruction, form: Form, read: Callable[[Operand, str], Raw]
    ) -> list[tuple[Operand, Value]]:
        """Return the registers that an instruction writes, with their values; `read` returns an operand as a type."""
        told, types, keywords = plan_of(self, form)
        first = i.operands[0]
        written = items_of(first)
        first_told: tuple[object, ...] = (len(written),) if "count" in self.told else ()
        if "selectors" in self.told:
            first_told = (tuple(getattr(operand, "selector", "") for operand in i.operands),)
        operands: list[Value | int] = []
        for operand, type in _each(i.operands[1:], types, form):
            if type is None:
                assert isinstance(operand, Immediate)
                operands.append(operand.value)
            elif isinstance(operand, Immediate):
                operands.append(Value(builder, value_type(type), known=operand.bits_as(type)))
            else:
                operands.append(Value(builder, value_type(type), read(operand, type)))
        operands += [Value(builder, "u32", read(Symbol(name), "u32")) for name in self.told if name[0] == "%"]
        if form.row.reads_carry:
            operands.append(Value(builder, "pred", read(_CARRY, "pred")))
        found = self.lowering(*first_told, *told, *operands, **keywords)
        results = found if isinstance(found, tuple) else (found,)
        if form.writes_carry:
            written = (*written, _CARRY)
        # A comparison also returns its negation, and a sum its carry, which not every instruction writes.
        return list(zip(written, results, strict=False))

    def __call__(self, w: Writer, i: Instruction, form: Form) -> None:
        """Emit NumPy expressions."""
        builder = _OfInstruction(w)
        builder.assign(self.lower(builder, i, form, builder.operand))


class _OfInstruction(Expressions):
    """The expressions of one instruction in a block."""

    def __init__(self, w: Writer) -> None:
        super().__init__(w)
        self._w = w

    def operand(self, operand: Operand, ptx_type: str) -> Expression:
        """Return an operand of the instruction."""
        w, dtype = self._w, dtype_of(ptx_type)
        if isinstance(operand, Register):
            storage = dtype_of(w.code.types[w.code.slot(operand.name)])
            if storage[0] in "iu" and dtype[0] in "iu" and storage[1:] == dtype[1:]:
                dtype = storage
            name, uniform = w.typed(operand, dtype)
            return Expression(name, dtype, uniform=uniform, operand=None if operand.negated else operand)
        text, uniform = w.value(operand, ptx_type)
        return Expression(text, dtype, uniform=uniform)

    def operand_as(self, x: Expression, dtype: str) -> Expression:
        """Return a register as another type, as a view that the writer keeps."""
        text, uniform = self._w.typed(x.operand, dtype)
        return Expression(text, dtype, uniform=uniform, operand=x.operand)

    def assign(self, results: list[tuple[Operand, Value]]) -> None:
        """Emit the assignments of values to registers."""
        w = self._w
        temporaries: list[str] = []
        texts = self.texts([value for _, value in results], temporaries)
        for (register, value), text in zip(results, texts, strict=True):
            expression: Expression = value.raw
            dtype = expression.dtype
            if isinstance(register, Register) and dtype[0] in "iu":
                kept, natural = dtype_of(w.code.types[w.code.slot(register.name)]), dtype_of(value.type)
                if kept[1:] != dtype[1:] and dtype != natural:
                    text, dtype = f"{text}.view({natural})", natural
            w.write(register, text, dtype, expression.uniform)
        if temporaries:
            w.emit(f"{' = '.join(temporaries)} = None")


def _each(operands: Sequence[Operand], types: Sequence[str | None], form: Form) -> Iterator[tuple[Operand, str | None]]:
    """Yield operands with their types, and the elements of vectors one by one.

    Each element has the vector's type if the form is a vector (``.v2`` and so on); otherwise, the elements divide the
    type evenly.
    """
    for operand, type in zip(operands, types, strict=False):
        if not isinstance(operand, Vector):
            yield operand, type
            continue
        assert type is not None
        element = type if form.vector > 1 else f"b{int(type[1:]) // len(operand.items)}"
        yield from ((item, element) for item in operand.items)


def fixed_words(row: Row) -> frozenset[str]:
    """Return the modifiers common to all spellings of a row: they determine its lowering and are not keywords."""
    each = [
        {word for slot in pattern.slots if not slot.optional and len(slot.words) == 1 for word in slot.words}
        for pattern in row.patterns
    ]
    return frozenset(set.intersection(*each))


@lru_cache(maxsize=4096)
def plan_of(lowers: Lowers, form: Form) -> tuple[tuple[str, ...], tuple[str | None, ...], dict[str, Any]]:
    """Return the facts that a lowering receives, the types of its operands (None for a literal), and its keywords."""
    told = tuple(_TOLD[name](form) for name in lowers.told if name in _TOLD)
    types = tuple(_operand_type(form, pattern) for pattern in form.operands[1:])
    fixed = fixed_words(form.row)
    return told, types, dict(KEYWORDS[word] for word in form.modifiers if word in KEYWORDS and word not in fixed)


def _operand_type(form: Form, pattern: str) -> str | None:
    if pattern[0] == "#":
        return None
    if pattern in ("P", "V"):
        return form.type
    return "u64" if pattern == "A" else form.type_of(pattern)
