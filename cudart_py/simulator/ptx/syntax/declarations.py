"""Parse declarations of variables and parameters, with their initial values."""

from __future__ import annotations

import math
import re
import struct
from functools import lru_cache

from ..faults import PtxError
from .instructions import Param, Variable, placed
from .operand_syntax import integer, literal
from .types import TYPE_SIZES

_DECLARATION = re.compile(
    r"""(?P<words>(?:\.\w+(?:::\w+)?\s*(?:\([^()]*\)\s*|\d+(?!\w)\s*)?)+)
    (?P<name>[A-Za-z][\w$]*|[_$%][\w$]+)\s*
    (?P<extents>(?:\[[^\[\]]*\]\s*)*)
    (?:=\s*(?P<value>.*))?$""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"\.(\w+(?:::\w+)?)\s*(\([^()]*\)|\d+)?")
_EXTENT = re.compile(r"\[\s*([^\[\]]*?)\s*\]")
_SPACES = {"global", "const", "shared", "local", "param", "reg"}
_MASKED = re.compile(r"(0[xX][fF]{2}0*)\s*\(\s*(.*?)\s*\)$", re.DOTALL)
_ADDRESS = re.compile(r"(?:generic\s*\(\s*([\w$%]+)\s*\)|([A-Za-z_$%][\w$]*))\s*(?:([+-])\s*(\w+))?$")
_ADDRESS_BYTES = 8
_LARGEST = 1 << 40
_LARGEST_ALIGNMENT = 1 << 16


def declared_variable(text: str, external: bool = False) -> Variable:
    """Read one declaration such as ``.shared .align 4 .b8 tile[4224]``."""
    match = _DECLARATION.match(text)
    if match is None:
        raise PtxError(f"declaration {_short(text)} isn't understood")
    space, element_type, vector, alignment = _words(match["words"], text)
    element = TYPE_SIZES[element_type] * vector
    value = match["value"]
    extents = [_extent(extent, text) for extent in _EXTENT.findall(match["extents"])]
    elements = _elements(value, match["name"]) if value is not None else []
    if extents and extents[0] is None:
        rest = math.prod(extent or 0 for extent in extents[1:])
        count = -(-len(elements) // rest) * rest if elements and rest else 0
    else:
        count = math.prod(extent or 0 for extent in extents)
    size = element * count
    if size > _LARGEST:
        raise PtxError(f"variable {match['name']} is too large")
    initial, relocations = _initial(elements, element_type) if elements else (b"", ())
    if len(initial) > size:
        raise PtxError(f"variable {match['name']} has {size} bytes, and is initialised with {len(initial)}")
    if initial:
        initial = initial.ljust(size, b"\0")
    managed = ".managed" in match["words"]
    return Variable(
        match["name"], space, size, alignment or element, initial, relocations, external, element_type, managed
    )


def _short(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= 80 else words[:77] + "...")


def _words(text: str, declaration: str) -> tuple[str, str, int, int]:
    """Return the state space, the type, the vector size and the alignment (0: none) in a declaration."""
    space = element_type = ""
    vector, alignment = 1, 0
    pointer = False
    for word, argument in _WORD.findall(text):
        if word == "align":
            given = int(argument) if argument.isdigit() and len(argument) < 7 else 0
            if given not in (1 << bit for bit in range(_LARGEST_ALIGNMENT.bit_length())):
                raise PtxError(f"declaration {_short(declaration)} has no alignment that is a power of two")
            if not pointer:
                alignment = given
        elif argument.isdigit() or (argument and word != "attribute"):
            raise PtxError(f"declaration {_short(declaration)} isn't understood")
        elif word == "ptr":
            # The words that follow describe the memory that the parameter points to.
            pointer = True
        elif word in _SPACES and (pointer or not space):
            space = space or word
        elif word in ("v2", "v4", "v8") and vector == 1:
            vector = int(word[1])
        elif word in TYPE_SIZES and not element_type:
            element_type = word
        elif word not in ("attribute", "managed"):
            raise PtxError(f"declaration {_short(declaration)} has a .{word} that isn't understood")
    if not space or not element_type or (element_type == "pred" and space != "reg"):
        raise PtxError(f"declaration {_short(declaration)} has no type or state space")
    return space, element_type, vector, alignment


def _extent(text: str, declaration: str) -> int | None:
    """Return an extent of an array, or None for one that the number of initial values determines."""
    value = integer(text) if text else None
    if text and (value is None or value < 0):
        raise PtxError(f"declaration {_short(declaration)} has an extent that is not a number")
    return value


def _elements(value: str, name: str) -> list[str]:
    """Return the initial values in order; rows may have braces of their own if all of them are equally long."""
    lengths = {len(row.split(",")) for row in re.findall(r"\{([^{}]*)\}", value)}
    if value.count("{") > 1 and len(lengths) > 1:
        raise PtxError(f"variable {name} has initial values in rows that differ in length")
    return [item.strip() for item in value.replace("{", " ").replace("}", " ").split(",") if item.strip()]


def _initial(elements: list[str], element_type: str) -> tuple[bytes, tuple[tuple[int, str, int], ...]]:
    """Return the initial values as bytes, and the addresses among them as relocations."""
    size = TYPE_SIZES[element_type]
    data = bytearray()
    relocations: list[tuple[int, str, int]] = []
    place = 0
    while place < len(elements):
        item = elements[place]
        masked = _MASKED.match(item) if item[-1] == ")" else None
        if masked is None and (item[0].isdigit() or item[0] in "+-."):
            data += _number(item, element_type)
            place += 1
            continue
        # An address is one element of 8 bytes, or eight elements of one byte, each of which masks one byte of the
        # address.
        count = 1
        if masked is not None:
            item, count = masked[2], _ADDRESS_BYTES
            if [_masked_byte(other) for other in elements[place : place + count]] != [
                (0xFF << 8 * byte, item) for byte in range(count)
            ]:
                raise PtxError(f"initial value {elements[place]!r} isn't followed by the other bytes of the address")
        if count * size != _ADDRESS_BYTES:
            raise PtxError(f"initial value {item!r} is an address of 8 bytes in elements of .{element_type}")
        relocations.append(_relocation(len(data), item))
        data += bytes(_ADDRESS_BYTES)
        place += count
    return bytes(data), tuple(relocations)


def _masked_byte(item: str) -> tuple[int, str] | None:
    """Return the mask and the address of an item such as ``0xff00(table+4)``, or None for other items."""
    match = _MASKED.match(item)
    return (int(match[1], 0), match[2]) if match and len(match[1]) <= 18 else None


def _relocation(offset: int, text: str) -> tuple[int, str, int]:
    match = _ADDRESS.match(text)
    addend = integer(match[4]) if match and match[4] else 0
    if match is None or addend is None:
        raise PtxError(f"initial value {text!r} isn't understood")
    return offset, match[1] or match[2], -addend if match[3] == "-" else addend


@lru_cache(maxsize=1 << 10)  # tables of bytes have thousands of elements with few values
def _number(item: str, element_type: str) -> bytes:
    """Return the bytes of a literal as a type; integers are truncated to its size."""
    size = TYPE_SIZES[element_type]
    if element_type not in ("f32", "f64"):
        whole = integer(item)
        if whole is not None:
            return (whole & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    value = literal(item)
    if value is None:
        raise PtxError(f"initial value {item!r} isn't understood")
    if value.float_bits:
        bits = value.value.to_bytes(value.float_bits // 8, "little")
        number = struct.unpack("<f" if value.float_bits == 32 else "<d", bits)[0]
    else:
        number = value.value
    if element_type in ("f32", "f64") and value.float_bits != 8 * size:
        try:
            return struct.pack("<f" if size == 4 else "<d", number)
        except OverflowError:
            raise PtxError(f"initial value {item!r} is too large for .{element_type}") from None
    if value.float_bits and value.float_bits != 8 * size:
        raise PtxError(f"initial value {item!r} is a floating-point number in elements of .{element_type}")
    return (value.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def parse_parameters(text: str) -> tuple[Param, ...]:
    """Lay out a list of ``.param`` declarations as the hardware does: each at its own alignment.

    Device functions may have registers among their parameters.
    """
    variables: dict[str, Variable] = {}
    for item in text.split(",") if text.strip() else ():
        variable = declared_variable(item.strip())
        if variable.space not in ("param", "reg"):
            raise PtxError(f"parameter {_short(item)} isn't understood")
        if variable.name in variables:
            raise PtxError(f"parameter {variable.name} is declared twice")
        variables[variable.name] = variable
    offsets, _ = placed(variables.values())
    return tuple(
        Param(name, offsets[name], one.size, one.alignment, one.element_type if one.space == "reg" else "")
        for name, one in variables.items()
    )
