"""Faults for the machine code of single opcodes, planted while a kernel is compiled.

A fault takes the place of the function that writes an instruction for LLVM. It calls that function with the operands
exchanged, or with another method of the builder in the place of one that it uses, as a slip of the pen would.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from cudart_py.simulator.ptx.native.launching.speculation import Speculation
from cudart_py.simulator.ptx.native.lowering import arithmetic, floats
from cudart_py.simulator.ptx.native.writing import flow

__all__ = ["FAULTS", "Fault", "undo_nothing"]

# Writes an instruction: takes the function that does it rightly, the emitter, the instruction and its form.
Wrong = Callable[[Callable[..., None], Any, Any, Any], None]


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault in the machine code of the opcodes that a pattern matches."""

    opcodes: str
    text: str
    wrong: Wrong

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """Let kernels that are compiled inside have the fault."""
        right = flow.lowering

        def lowering(form: Any) -> Callable[..., None]:
            function = right(form)
            if not re.fullmatch(self.opcodes, form.opcode):
                return function
            return lambda e, i, form: self.wrong(function, e, i, form)

        with mock.patch.object(flow, "lowering", lowering):
            yield


def _operands(*order: int) -> Wrong:
    """Return a fault that takes the operands in another order."""

    def wrong(write: Callable[..., None], e: Any, i: Any, form: Any) -> None:
        write(e, dataclasses.replace(i, operands=tuple(i.operands[place] for place in order)), form)

    return wrong


def _sources(change: Callable[[Any, list[Any]], list[Any]]) -> Wrong:
    """Return a fault that changes the values of the operands."""

    def wrong(write: Callable[..., None], e: Any, i: Any, form: Any) -> None:
        right = e.sources
        with mock.patch.object(e, "sources", lambda *arguments: change(e.b, right(*arguments))):
            write(e, i, form)

    return wrong


def _builder(**methods: str | Callable[[Any], Callable[..., Any]]) -> Wrong:
    """Return a fault that calls other methods of the builder, or what is made of the right one."""

    def wrong(write: Callable[..., None], e: Any, i: Any, form: Any) -> None:
        b = e.b
        others = {
            name: getattr(b, other) if isinstance(other, str) else other(getattr(b, name))
            for name, other in methods.items()
        }
        with mock.patch.multiple(b, **others):
            write(e, i, form)

    return wrong


def _first_argument(**others: str) -> Callable[[Any], Callable[..., Any]]:
    """Return what makes of a method one that takes some words for others."""
    words = {name.strip("_"): other for name, other in others.items()}
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    words |= {signs[name]: signs[other] for name, other in words.items() if name in signs}
    return lambda right: lambda word, *rest, **named: right(words.get(word, word), *rest, **named)


def _other_sign(right: Any) -> Callable[..., Any]:
    return lambda value, element, signed: right(value, element, not signed)


def _unsigned(right: Any) -> Callable[..., Any]:
    return lambda relation, x, y, signed=False: right(relation, x, y)


def _in_module(module: Any, name: str, other: Any) -> Wrong:
    """Return a fault that puts another function in the place of one of a module."""

    def wrong(write: Callable[..., None], e: Any, i: Any, form: Any) -> None:
        with mock.patch.object(module, name, other):
            write(e, i, form)

    return wrong


def _called(old: str, new: str) -> Wrong:
    """Return a fault that calls another function of the library."""

    def wrong(write: Callable[..., None], e: Any, i: Any, form: Any) -> None:
        right = e.call
        with mock.patch.object(e, "call", lambda name, *rest: right(name.replace(old, new), *rest)):
            write(e, i, form)

    return wrong


def _two_roundings(b: Any, x: Any, y: Any, z: Any, *rest: Any) -> Any:
    return floats.add(b, floats.multiply(b, x, y, *rest), z, *rest)


_EDGES = _builder(compare=_first_argument(ge="gt", le="lt"))

FAULTS = [
    Fault(r"sub\.[us](16|32|64)", "the operands are exchanged", _operands(0, 2, 1)),
    Fault(r"shr\.s(16|32|64)", "the sign is not shifted in", _builder(ashr="lshr")),
    Fault(
        r"bfe\.[us](32|64)",
        "the field is one bit too long",
        _sources(lambda b, v: [*v[:2], b.add(v[2], b.like(v[2], 1))]),
    ),
    Fault(
        r"bfi\.b(32|64)",
        "the field lies one bit too high",
        _sources(lambda b, v: [*v[:2], b.add(v[2], b.like(v[2], 1)), v[3]]),
    ),
    Fault(r"cvt\.rni\..*", "rounds to zero", _builder(intrinsic=_first_argument(rint="trunc"))),
    Fault(r"cvt\.r[mp]i\..*", "rounds the other way", _builder(intrinsic=_first_argument(floor="ceil", ceil="floor"))),
    Fault(r"cvt\.[us]\d+\.[us](8|16)", "extends with the wrong sign", _builder(resized=_other_sign)),
    Fault(r"(min|max)\.[us](16|32|64)", "gives the other one", _builder(least="greatest", greatest="least")),
    Fault(r"setp\.(ge|le)\.[us](16|32|64)", "leaves out equality", _EDGES),
    Fault(r"setp\.[lg][te]\.s(16|32|64)", "compares without the sign", _builder(compare=_unsigned)),
    Fault(
        r"setp\.(gt|lt|ge|le)u?\.f(32|64)",
        "a NaN counts the other way",
        _builder(
            floats=_first_argument(
                ogt="ugt", olt="ult", oge="uge", ole="ule", ugt="ogt", ult="olt", uge="oge", ule="ole"
            )
        ),
    ),
    Fault(r"selp\..*", "the operands are exchanged", _operands(0, 2, 1, 3)),
    Fault(r"mul\.hi\.[us](32|64)", "multiplies with the wrong sign", _builder(resized=_other_sign)),
    Fault(r"mul\.wide\.[us](16|32)", "multiplies with the wrong sign", _builder(resized=_other_sign)),
    Fault(r"prmt\.b32", "the words are exchanged", _operands(0, 2, 1, 3)),
    Fault(r"prmt\.b32\.(ecl|ecr)", "the mode is the other one", _builder(least="greatest", greatest="least")),
    Fault(r"shfl\.sync\..*", "the last lane of a segment is out of range", _EDGES),
    Fault(r"vote\.sync\.(any|all)\..*", "asks for the opposite", _builder(compare=_first_argument(**{"!=": "=="}))),
    Fault(r"redux\.sync\.(min|max)\.s32", "compares without the sign", _called("s32", "u32")),
    Fault(r"add\.r[zmp]\.f32", "rounds to nearest", _in_module(arithmetic, "rounding_of", lambda form: "rn")),
    Fault(r"div\.rn\.f(32|64)", "rounds to zero", _in_module(arithmetic, "rounding_of", lambda form: "rz")),
    Fault(r"fma\.rn\.f(32|64)", "rounds twice", _in_module(floats, "fma", _two_roundings)),
    Fault(r"copysign\.f(32|64)", "the operands are exchanged", _operands(0, 2, 1)),
    Fault(r"lop3\.b32.*", "the operands are exchanged", _operands(0, 2, 1, 3, 4)),
    Fault(r"shf\.[lr]\..*", "the halves are exchanged", _operands(0, 2, 1, 3)),
]


@contextlib.contextmanager
def undo_nothing() -> Iterator[None]:
    """Let launches whose checks begin again keep what they have written until then."""
    with mock.patch.object(Speculation, "undo", return_value=None):
        yield
