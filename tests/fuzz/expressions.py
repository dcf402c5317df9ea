"""Random expressions that have the same value in C++ and CUDA C++: signed sums wrap, every division has a result.

The texts call functions that `both.h` defines for the two compilers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDE = ("u32", "i32", "u64", "i64")
INTEGERS = ("i8", "u8", "i16", "u16", *WIDE)
FLOATS = ("f32", "f64")
SCALARS = (*INTEGERS, *FLOATS)


class Draw:
    """Choices drawn from a seed. Only `random()` is used: its sequence is the same in every version of Python."""

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(seed * 1_000_003 + number)

    def below(self, limit: int) -> int:
        """Return an integer from 0 to limit - 1."""
        return int(self._random.random() * limit)

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self._random.random() < probability

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of the choices with equal probability."""
        return choices[self.below(len(choices))]


@dataclass(frozen=True)
class Place:
    """A variable, array or other operand that expressions read: its text, its type, and whether it is assignable.

    `count` is the number of elements of an array, which is a power of two, and 0 for a scalar.
    """

    text: str
    type: str
    assignable: bool = True
    count: int = 0


class Scope:
    """The places that can be read at some point of a function; an inner scope begins with those of its outer scope."""

    def __init__(self, outer: Scope | None = None, *places: Place) -> None:
        self.places = [*(outer.places if outer else ()), *places]
        # Structures that are copied and passed as a whole; their members are places too.
        self.structs: list[Place] = list(outer.structs) if outer else []


# {a}, {b} and {c} stand for operands of the type {t}, {u} for the unsigned type of its size, {n} for operands of type
# u32, {w} for the number of bits less one, {p} for a condition, {k} for a small constant.
_WRAPPING = (
    "({t})(({u})({a}) + ({u})({b}))", "({t})(({u})({a}) - ({u})({b}))", "({t})(({u})({a}) * ({u})({b}))",
    "({t})(({a}) & ({b}))", "({t})(({a}) | ({b}))", "({t})(({a}) ^ ({b}))", "({t})~({a})", "({t})(0 - ({u})({a}))",
    "({t})(({u})({a}) << (({n}) & {w}))", "({t})(({a}) >> (({n}) & {w}))", "({t})(({u})({a}) << {k})",
    "({t})(({a}) >> {k})", "({p} ? ({a}) : ({b}))", "({t})(({u})({a}) * ({u})({b}) + ({u})({c}))",
    "({t})((({a}) & ({b})) | (~({a}) & ({c})))", "({t})(({u})({a}) * {k})",
)  # fmt: skip  # one form after the other
_DIVISIONS = (
    "quotient({a}, {b})", "rest({a}, {b})", "({t})(({a}) / {k})", "({t})(({a}) % {k})", "({t})(({a}) % (({t}){k} + 5))",
    "min({a}, {b})", "max({a}, {b})",
)  # fmt: skip  # one form after the other
_FORMS: dict[str, tuple[str, ...]] = {
    "u32": (
        "(u32)__popc({a})", "(u32)__clz((i32)({a}))", "(u32)__ffs((i32)({a}))", "__brev({a})", "__umulhi({a}, {b})",
        "__umul24({a}, {b})", "__usad({a}, {b}, {c})", "__uhadd({a}, {b})", "__urhadd({a}, {b})",
        "__byte_perm({a}, {b}, {c})", "__funnelshift_l({a}, {b}, {c})", "__funnelshift_r({a}, {b}, {c})",
        "__funnelshift_lc({a}, {b}, ({c}) & 63)", "__funnelshift_rc({a}, {b}, ({c}) & 63)", "__dp4a({a}, {b}, {c})",
        "__vadd4({a}, {b})", "__vabsdiffu4({a}, {b})", "field_u32({a}, ({b}) & 63, ({c}) & 63)",
        "inserted({a}, {b}, ({c}) & 63, ({n}) & 63)", "permuted({a}, {b}, {c})", "permuted_{m}({a}, {b}, {c})",
        "clamped_left({a}, ({b}) & 63)", "clamped_right({a}, ({b}) & 63)", "of_three<{r}>({a}, {b}, {c})",
        "bits({f})", "__float2uint_{d}({f})", "(u32)__popcll({l})", "(u32)__clzll((i64)({l}))",
    ),
    "i32": (
        "__mulhi({a}, {b})", "product_of_24({a}, {b})", "(i32)__sad({a}, {b}, {n})", "__hadd({a}, {b})",
        "__rhadd({a}, {b})", "__dp4a({a}, {b}, {c})", "field_i32({a}, ({n}) & 63, ({n}) & 63)",
        "clamped_right({a}, ({n}) & 63)",
        "__float2int_{d}({f})", "__double2int_{d}({g})", "(i32)bits({f})",
        "(({a}) < 0 ? (i32)(0 - (u32)({b})) : ({b}))",
    ),
    "u64": (
        "__brevll({a})", "__umul64hi({a}, {b})", "field_u64({a}, ({n}) & 127, ({n}) & 127)",
        "inserted({a}, {b}, ({n}) & 127, ({n}) & 127)", "bits({g})", "(u64)({n}) * ({n})", "(u64)({n}) << 32 | ({n})",
    ),
    "i64": (
        "__mul64hi({a}, {b})", "field_i64({a}, ({n}) & 127, ({n}) & 127)", "(i64)({i}) * ({i})", "(i64)bits({g})",
    ),
    "f32": (
        "(({a}) + ({b}))", "(({a}) - ({b}))", "(({a}) * ({b}))", "(({a}) / ({b}))", "sqrtf(fabsf({a}))",
        "fmaf({a}, {b}, {c})", "fabsf({a})", "(-({a}))", "with_sign({a}, {b})", "least({a}, {b})", "greatest({a}, {b})",
        "floorf({a})", "ceilf({a})", "truncf({a})", "rintf({a})", "({p} ? ({a}) : ({b}))", "__fadd_{d}({a}, {b})",
        "__fmul_{d}({a}, {b})", "__fdiv_{d}({a}, {b})", "__double2float_{d}({g})", "__int2float_{d}({i})",
        "__uint2float_{d}({n})", "(f32)({l})", "(({a}) + ({b}) * ({c}))", "from_bits({n})",
        "(({a}) < 0 ? -({b}) : ({b}))",
    ),
    "f64": (
        "(({a}) + ({b}))", "(({a}) - ({b}))", "(({a}) * ({b}))", "(({a}) / ({b}))", "sqrt(fabs({a}))",
        "fma({a}, {b}, {c})", "fabs({a})", "(-({a}))", "with_sign({a}, {b})", "least({a}, {b})", "greatest({a}, {b})",
        "floor({a})", "ceil({a})", "trunc({a})", "rint({a})", "({p} ? ({a}) : ({b}))",
        "(f64)({l})", "(({a}) + ({b}) * ({c}))", "from_bits({l})",
    ),
}  # fmt: skip  # one form after the other
# Forms that are drawn rarely: those with long code, and those that only the NumPy engine supports.
_RARE: dict[str, tuple[str, ...]] = {
    "f32": ("fmodf({a}, {b})", "__ll2float_{d}((i64)({l}))"),
    "f64": ("fmod({a}, {b})", "__ll2double_{d}((i64)({l}))", "__dadd_{d}({a}, {b})", "__dmul_{d}({a}, {b})"),
}
_RELATIONS = ("<", "<=", ">", ">=", "==", "!=")
# The types of the operands that other letters of a form stand for.
_OPERANDS = {"n": "u32", "i": "i32", "l": "u64", "f": "f32", "g": "f64"}
_PERMUTATIONS = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
_FLOAT_LITERALS = (
    "0.0", "-0.0", "1.0", "-1.0", "0.5", "3.0", "-2.5", "1024.0", "0.0078125", "1e10", "-7.75", "16777217.0",
)  # fmt: skip  # a list of numbers


class Expressions:
    """Draws expressions of the places in a scope."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def value(self, scope: Scope, type: str, depth: int) -> str:
        """Return an expression of a type, in which operators are nested at most `depth` deep."""
        draw = self.draw
        if depth <= 0 or draw.chance(0.15):
            return self._leaf(scope, type, depth)
        if type in ("i8", "u8", "i16", "u16"):
            if draw.chance(0.5):
                return f"({type})({self.value(scope, draw.pick(SCALARS[4:8]), depth - 1)})"
            return self._filled(draw.pick(_WRAPPING), scope, type, depth)
        if draw.chance(0.12):
            source = draw.pick([other for other in SCALARS if other != type])
            return _cast(f"({self.value(scope, source, depth - 1)})", source, type)
        if type in FLOATS:
            forms = _RARE[type] if draw.chance(0.004) else _FORMS[type]
        else:
            chosen = draw.below(20)
            forms = _WRAPPING if chosen < 10 else _DIVISIONS if chosen < 12 else _FORMS[type]
        return self._filled(draw.pick(forms), scope, type, depth)

    def probe(self, scope: Scope) -> str:
        """Return a single operator on places, without a context that could hide a wrong result."""
        type = self.draw.pick((*WIDE, *FLOATS, *FLOATS))
        forms = _FORMS[type] if type in FLOATS or self.draw.chance(0.7) else _WRAPPING + _DIVISIONS
        return self._filled(self.draw.pick(forms), scope, type, 1)

    def condition(self, scope: Scope, depth: int) -> str:
        """Return an expression of type bool."""
        draw = self.draw
        chosen = draw.below(12)
        if chosen == 0 and depth > 0:
            operator = draw.pick(("&&", "||"))
            return f"({self.condition(scope, depth - 1)} {operator} {self.condition(scope, depth - 1)})"
        if chosen == 1:
            return f"(!{self.condition(scope, depth - 1)})" if depth > 0 else "true"
        if chosen < 4:
            return f"((({self.value(scope, 'u32', depth - 1)}) & {1 << draw.below(5)}) != 0)"
        if chosen == 4:
            place = self.value(scope, draw.pick(FLOATS), depth - 1)
            return f"({draw.pick(('isnan', 'isinf', 'signbit_of'))}({place}))".replace("signbit_of", "!isfinite")
        type = draw.pick(("i32", "u32", "i32", "u32", "i64", "u64", "f32", "f64", "i16", "u8"))
        left, right = self.value(scope, type, depth - 1), self.value(scope, type, depth - 2)
        return f"(({left}) {draw.pick(_RELATIONS)} ({right}))"

    def _leaf(self, scope: Scope, type: str, depth: int) -> str:
        draw = self.draw
        if draw.chance(0.12) or not scope.places:
            if type in FLOATS:
                return f"({type})({draw.pick(_FLOAT_LITERALS)})"
            numbers = (0, 1, 2, 3, 7, 31, 255, 0x7FFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, draw.below(1 << 32))
            return f"({type}){draw.pick(numbers)}u"
        of_type = [place for place in scope.places if place.type == type]
        if of_type and draw.chance(0.75):
            return self.read(scope, draw.pick(of_type), depth)
        place = draw.pick(scope.places)
        return _cast(self.read(scope, place, depth), place.type, type)

    def read(self, scope: Scope, place: Place, depth: int = 0) -> str:
        """Return the text that reads a place: for an array, an element at a constant or computed index."""
        if not place.count:
            return place.text
        if self.draw.chance(0.4):
            return f"{place.text}[{self.draw.below(place.count)}]"
        return f"{place.text}[({self.value(scope, 'u32', min(depth - 1, 1))}) & {place.count - 1}]"

    def _filled(self, form: str, scope: Scope, type: str, depth: int) -> str:
        """Replace the letters of a form with operands."""

        def operand(found: re.Match[str]) -> str:
            return self._operand(found[1], scope, type, depth - 1 - self.draw.below(2))

        return re.sub(r"\{(\w)\}", operand, form)

    def _operand(self, letter: str, scope: Scope, type: str, depth: int) -> str:
        draw = self.draw
        if letter in "abc":
            return self.value(scope, type, depth)
        if letter in _OPERANDS:
            return self.value(scope, _OPERANDS[letter], depth)
        texts = {
            "t": lambda: type,
            "u": lambda: "u64" if type.endswith("64") else "u32",
            "w": lambda: str({"8": 8, "6": 16, "2": 32, "4": 64}[type[-1]] - 1),
            "k": lambda: str(1 + draw.below(7)),
            "p": lambda: self.condition(scope, depth),
            "d": lambda: draw.pick(("rn", "rz", "ru", "rd")),
            "m": lambda: draw.pick(_PERMUTATIONS),
            "r": lambda: str(draw.below(256)),
        }
        return texts[letter]()


def _cast(text: str, source: str, type: str) -> str:
    """Return a conversion; float to integer goes through a function that is defined for every value."""
    if source in FLOATS and type in INTEGERS:
        wide = type if type in WIDE else "i32"
        return f"({type})to_{wide}({text})"
    return f"({type}){text}" if source != type else text
