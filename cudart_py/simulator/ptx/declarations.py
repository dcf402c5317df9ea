"""Parse declarations of variables and parameters, with their initial values."""

from __future__ import annotations

import math
import re
import struct

from .faults import PtxError
from .instructions import Param, Variable

__all__ = ["TYPE_SIZES", "declared_variable", "parse_parameters"]

TYPE_SIZES = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8,
    "f64": 8, "b128": 16, "texref": 8, "samplerref": 8, "surfref": 8, "pred": 1,
}  # fmt: skip  # rows of a table

_DECLARATION = re.compile(
    r"""(?P<space>\.(?:global|const|shared|local|param))
    (?P<attributes>(?:\s+\.(?:attribute\s*\([^)]*\)|managed|ptr|(?:global|const|shared|local)(?=\s)))*)
    (?:\s+\.align\s+(?P<align>\d+))?
    (?:\s+\.v(?P<vector>[248]))?
    \s+\.(?P<type>\w+)
    (?:\s+\.ptr(?:\s+\.(?:global|const|shared|local))?(?:\s+\.align\s+\d+)?)?
    \s+(?P<name>[\w$]+)
    (?P<extents>(?:\s*\[[^\]]*\])*)
    (?:\s*=\s*(?P<value>.*))?$""",
    re.VERBOSE | re.DOTALL,
)
_MASKED = re.compile(r"(0[xX][fF]{2}0*)\s*\(\s*(.*?)\s*\)$", re.DOTALL)
_ADDRESS_BYTES = 8
_ADDRESS = re.compile(r"(?:generic\s*\(\s*([\w$]+)\s*\)|([\w$]+))\s*(?:([+-])\s*(\w+))?$")


def declared_variable(text: str, external: bool = False) -> Variable:
    """Read one declaration such as ``.shared .align 4 .b8 tile[4224]``."""
    match = _DECLARATION.match(text)
    if match is None:
        raise PtxError(f"declaration {text!r} isn't understood")
    element = TYPE_SIZES[match["type"]] * int(match["vector"] or 1)
    value = match["value"]
    elements = _elements(value) if value else []
    extents = re.findall(r"\[\s*(\w*)\s*\]", match["extents"])
    if extents and not extents[0]:
        count = len(elements) * math.prod(int(extent, 0) for extent in extents[1:]) if elements else 0
    else:
        count = math.prod(int(extent, 0) for extent in extents)
    size = element * count
    initial, relocations = _initial(elements, match["type"]) if elements else (b"", ())
    if len(initial) > size:
        raise PtxError(f"variable {match['name']} has {size} bytes, and is initialised with {len(initial)}")
    if initial:
        initial = initial.ljust(size, b"\0")
    return Variable(
        match["name"], match["space"][1:], size, int(match["align"] or element), initial, relocations, external
    )


def _elements(value: str) -> list[str]:
    return [item.strip() for item in value.replace("{", " ").replace("}", " ").split(",") if item.strip()]


def _initial(elements: list[str], element_type: str) -> tuple[bytes, tuple[tuple[int, str, int], ...]]:
    """Turn initial values into bytes, and addresses among them into relocations."""
    size = TYPE_SIZES[element_type]
    data = bytearray()
    relocations: list[tuple[int, str, int]] = []
    place = 0
    while place < len(elements):
        item = elements[place]
        masked = _MASKED.match(item)
        if masked is None and (item[0].isdigit() or item[0] in "+-"):
            data += _number(item, element_type)
            place += 1
            continue
        # An address is one element of its size, or eight bytes that mask it one after the other.
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
    """Return the mask and the address of an item such as ``0xff00(table+4)``, None for others."""
    match = _MASKED.match(item)
    return (int(match[1], 0), match[2]) if match else None


def _relocation(offset: int, text: str) -> tuple[int, str, int]:
    match = _ADDRESS.match(text)
    if match is None:
        raise PtxError(f"initial value {text!r} isn't understood")
    addend = int(match[4], 0) if match[4] else 0
    return offset, match[1] or match[2], -addend if match[3] == "-" else addend


def _number(item: str, element_type: str) -> bytes:
    size = TYPE_SIZES[element_type]
    head = item[:2].lower()
    if (head == "0f" and element_type == "f32") or head == "0d":
        bits = int(item[2:], 16)
        if head == "0d" and size == 4:
            return struct.pack("<f", struct.unpack("<d", struct.pack("<Q", bits))[0])
        return bits.to_bytes(size, "little")
    if element_type in ("f32", "f64"):
        return struct.pack("<f" if size == 4 else "<d", float(item))
    return (int(item.rstrip("U"), 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def parse_parameters(text: str) -> tuple[Param, ...]:
    """Lay out a list of ``.param`` declarations as the hardware does: each at its own alignment."""
    parameters = []
    offset = 0
    for item in text.split(","):
        if not item.strip():
            continue
        variable = declared_variable(item.strip())
        offset = -(-offset // variable.alignment) * variable.alignment
        parameters.append(Param(variable.name, offset, variable.size, variable.alignment))
        offset += variable.size
    return tuple(parameters)
