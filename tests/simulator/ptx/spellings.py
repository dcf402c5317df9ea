"""The spellings of opcodes that the table of opcodes allows, and instructions with operands that fit them."""

import itertools
import math
import random
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from cudart_py.simulator.ptx.compiling.emitters.lowered import Lowers
from cudart_py.simulator.ptx.compiling.forms import Form, Pattern, Row
from cudart_py.simulator.ptx.compiling.fragments import fragment_length, register_type
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import TABLE, find_forms
from cudart_py.simulator.ptx.syntax.types import type_size

# The registers of `Style.registers`, for each of "same" and "each", and the variables that instructions access.
DECLARATIONS = """
    .reg .b8 same8_<8>, each8_<8>; .reg .b16 same16_<8>, each16_<8>; .reg .b32 same32_<9>, each32_<9>, where32;
    .reg .b64 same64_<9>, each64_<9>, memory, where; .reg .b128 same128_<8>, each128_<8>;
    .reg .f32 fsame32_<8>, feach32_<8>; .reg .f64 fsame64_<8>, feach64_<8>; .reg .pred psame_<8>, peach_<8>;
    .shared .align 16 .b8 tile[4096]; .shared .align 8 .b64 barrier; .local .align 16 .b8 spill[256];
    .param .align 16 .b8 passed[256];
"""
# Variables and functions of the module to which instructions refer.
MODULE = """.const .align 16 .b8 table[256];
.func (.reg .b32 result) callee(.reg .b32 argument) { mov.b32 result, argument; ret; }
"""
# Instructions that access rows of matrices in shared memory, even through generic addresses.
ROWS_IN_SHARED = {"ldmatrix", "stmatrix"}
# In bytes.
LARGEST_VECTOR = 32
_VARIABLES = {"shared": "tile", "local": "spill", "const": "table"}


class Extent(Enum):
    """The spellings that a search visits.

    These are all words of each pattern (fewer of the instructions that only calculate), all words, or all pairs.
    """

    SOME = 0
    WORDS = 1
    PAIRS = 2


class Style(NamedTuple):
    """The operands that an instruction gets where its form leaves a choice.

    `registers` is "same" for registers whose values all lanes share, else "each". With `literals`, operands are
    literals, with `wide`, registers are wider than the type where that is allowed, and with `all_operands`, optional
    operands are present. `address` is an address in brackets, where `{}` stands for the name of a variable in the space
    that the form accesses, and `{offset}` for a multiple of any alignment; it is empty for the variable itself, or for
    the register `memory`. `destination` is "_" for a result that is discarded; with "|", a second result is written if
    there may be one. `guard` is empty, or a predicate.
    """

    registers: str = "each"
    literals: bool = False
    wide: bool = False
    all_operands: bool = False
    address: str = ""
    destination: str = ""
    guard: str = ""


PLAIN = Style()
STYLES = (
    PLAIN,
    Style(address="[where]", guard="@psame_1 "),
    Style(address="[where+16]", wide=True),
    Style(address="[{}+16]", literals=True),
    Style(address="[where32+32]", destination="_", all_operands=True),
    Style(address="[64]", destination="_|", guard="@!peach_2 "),
    Style("same", destination="|", all_operands=True, wide=True),
)


def spellings(row: Row, together: int = 1) -> Iterator[tuple[str, Form | None]]:
    """Yield opcodes that a row allows, with their forms: about 24 per pattern, spread evenly over all its spellings.

    Among them are those without anything optional. More opcodes follow until each word of a pattern has occurred, or,
    with `together` = 2, each pair of words.
    """
    for pattern in row.patterns:
        for words in _words(pattern, together):
            opcode = ".".join([row.name, *filter(None, words)])
            yield opcode, next((form for form in find_forms(opcode) if form.operands == pattern.operands), None)


def _words(pattern: Pattern, together: int) -> list[tuple[str, ...]]:
    """Return the words in the slots of a pattern for each spelling."""
    choices = [sorted(slot.words) + ([""] if slot.optional else []) for slot in pattern.slots]
    step = max(math.prod(map(len, choices)) // 24, 1) | 1
    found = dict.fromkeys(itertools.islice(itertools.product(*choices), 0, None, step))
    if choices:
        # If there are types, the last slot has the last one.
        shortest = [words[-1] for words in choices[:-1]]
        found |= dict.fromkeys((*shortest, word) for word in choices[-1])
    together = min(together, len(choices))
    missing = {
        tuple(zip(slots, words, strict=True))
        for slots in itertools.combinations(range(len(choices)), together)
        for words in itertools.product(*(choices[slot] for slot in slots))
    }
    for words in found:
        missing.difference_update(itertools.combinations(enumerate(words), together))
    while missing:
        # Each further spelling has as many of the missing words as fit into it.
        words = {}
        for some in sorted(missing):
            if all(words.get(slot, word) == word for slot, word in some):
                words |= dict(some)
        whole = tuple(words.get(slot, choices[slot][-1]) for slot in range(len(choices)))
        found[whole] = None
        missing.difference_update(itertools.combinations(enumerate(whole), together))
    return list(found)


def statements(name: str, extent: Extent = Extent.SOME) -> list[str]:
    """Return instructions with the name of an opcode, in one style after another.

    With `Extent.PAIRS`, each is in two random styles. All together would take minutes, and an instruction that a test
    reports has its style in its text.
    """
    found: dict[str, None] = {}
    for row in TABLE[name]:
        spelt = [
            (opcode, form)
            for opcode, form in spellings(row, 2 if extent == Extent.PAIRS else 1)
            if form is not None and exists(form)
        ]
        step = _step(row) if extent == Extent.SOME else 1
        for number, (opcode, form) in enumerate(spelt[::step]):
            styles = random.sample(STYLES, 2) if extent == Extent.PAIRS else [STYLES[number % len(STYLES)]]
            found |= dict.fromkeys(statement(form, opcode, style) for style in styles)
    return list(found)


def _step(row: Row) -> int:
    """Return how many spellings of a row stand for one another."""
    # The many forms of wgmma differ only in their shapes and types.
    return 5 if row.name == "wgmma" else 2 if isinstance(row.emit, Lowers) else 1


def failures(texts: Sequence[str], action: Callable[[Sequence[str]], object]) -> list[str]:
    """Return the instructions with which an action fails, with the reasons; it begins with all of them at once."""
    try:
        action(texts)
    except Exception as error:
        if len(texts) > 1:
            middle = len(texts) // 2
            return failures(texts[:middle], action) + failures(texts[middle:], action)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{texts[0]} {type(error).__name__}: {error}, {frame.filename}:{frame.lineno}"]
    return []


def exists(form: Form) -> bool:
    """Return whether there is such an instruction: not every shape of a matrix or vector is allowed for every type."""
    if "V" in form.operands or "=V" in form.operands:
        return form.vector * type_size(form.types[0]) <= LARGEST_VECTOR
    places = (place for place, pattern in enumerate(form.operands) if pattern.lstrip("=+") == "F")
    return all(fragment_length(form, place) for place in places)


def statement(form: Form, opcode: str, style: Style = PLAIN) -> str:
    """Return an instruction; what it names is in `MODULE` and `DECLARATIONS`, and a branch goes to the label `next`."""
    patterns = [pattern for pattern in form.operands if style.all_operands or not pattern.endswith("?")]
    if patterns and form.operands[-1] == "H?":
        patterns = [pattern for pattern in patterns if pattern != "H?"]
        patterns += ["b64"] if "L2::cache_hint" in form.words else []
    if form.row.ends == "switch":
        return f"targets: .branchtargets next; {style.guard}{opcode} {style.registers}32_1, targets;"
    if form.row.ends == "branch":
        return f"{style.guard}{opcode} next;"
    operands = [_operand(form, pattern.removesuffix("?"), style, place) for place, pattern in enumerate(patterns)]
    return f"{style.guard}{opcode} {', '.join(operands)};"


def _operand(form: Form, pattern: str, style: Style, place: int) -> str:
    row = form.row
    if "bulk" in form.words and row.name == "cp" and pattern[0] not in "#MD":
        # A bulk copy of 16 bytes takes a size and, in a cluster, a mask of the blocks.
        return {"u32": "16", "u16": "1"}.get(pattern) or _register(style.registers, pattern, place)
    if pattern == "M":
        return _memory(form, style, place)
    if pattern[0] == "=" and pattern != "=F4":
        return _destination(form, pattern, style, place)
    if pattern in ("F", "+F"):
        kind = register_type(form, place)
        return _vector(_register(style.registers, kind, item) for item in range(fragment_length(form, place)))
    if pattern in ("=F4", "G", "X", "S", "D"):
        return _texture_operand(form, pattern, style)
    if row.name == "wgmma" and pattern == "b64":
        return "64"  # a matrix descriptor: 64 * 16 bytes is the first address after the reserved shared memory
    if pattern[0] == "#":
        return str(min(int(pattern[1:]), 1))
    if pattern[0] == "@":
        return pattern.rpartition("/")[2].removeprefix("@")
    if pattern in ("B", "N"):
        return _register(style.registers, "b32", 3) if style.wide else {"B": "1", "N": "32"}[pattern]
    if pattern == "Z":
        return _register(style.registers, "pred", 1) if style.wide else "16"
    if pattern in ("A", "C"):
        return {"A": f"{style.registers}64_8", "C": "(same32_0), callee, (each32_1)"}[pattern]
    if row.converges == "members" and place == len(form.operands) - 1:
        return "-1"  # the member mask, which names all lanes
    return _source(form, pattern, style, place)


def _source(form: Form, pattern: str, style: Style, place: int) -> str:
    """Return an operand that is read: one or several values."""
    if pattern == "V":
        name = _widened(form.types[0], style)
        return _vector((_value(name, style, item) for item in range(form.vector)), form.vector)
    name = form.types[0] if pattern == "P" else form.type_of(pattern)
    if pattern == "P" and style.destination == "_" and (parts := _halves(name)):
        return _vector(_register(style.registers, parts, item) for item in range(2))
    if pattern.endswith("~"):
        name = _widened(name, style)
    value = _value(name, style, place + 1)
    if style.wide and "." in pattern:
        value += {"1": ".h1", "2": ".h20", "4": ".b7301"}[pattern.rpartition(".")[2]]
    return f"-{value}" if style.wide and pattern[0] == "-" else value


def _destination(form: Form, pattern: str, style: Style, place: int) -> str:
    if pattern == "=V":
        items = [_register("same", _widened(form.types[0], style), item) for item in range(form.vector)]
        return _vector(items if style.destination[:1] != "_" else ["_", *items[1:]], form.vector)
    if pattern == "=F":
        items = [_register("same", register_type(form, place), n) for n in range(fragment_length(form, place))]
        return _vector(items if style.destination[:1] != "_" else ["_", *items[1:]])
    name = form.types[0] if pattern == "=P" else form.type_of(pattern)
    if pattern == "=P" and style.destination == "|" and (parts := _halves(name)):
        return _vector(_register("same", parts, item) for item in range(2))
    if pattern.endswith("~"):
        name = _widened(name, style)
    first = "_" if style.destination[:1] == "_" else _register("same", name, 0)
    if style.wide and "." in pattern:
        first += {"1": ".b2", "2": ".h1", "4": ".b20"}[pattern.rpartition(".")[2]]
    return f"{first}|psame_1" if "&" in pattern or ("|" in pattern and "|" in style.destination) else first


def _memory(form: Form, style: Style, place: int) -> str:
    """Return an address in brackets in the state space that the form accesses."""
    if form.space == "param" and form.row.access in ("ld", "st"):
        return f"[{'passed' if form.row.access == 'st' else 'out'}{'+16' if '+' in style.address else ''}]"
    variable = _variable(form, place)
    if style.address:
        return style.address.format(variable or "where")
    is_matrix = form.row.access in ("ld", "st") and form.row.converges == "warp" and bool(form.types)
    return f"[{'where' if is_matrix else variable or 'memory'}]"


def _variable(form: Form, place: int) -> str:
    """Return the variable that an instruction accesses, or "" if it accesses global or generic memory."""
    counts = "mbarrier::complete_tx::bytes" in form.words and place > 1
    if form.row.access == "mbarrier" or "mbarrier" in form.words or counts:
        return "barrier"
    return _VARIABLES.get(form.spaces[place] if place < len(form.spaces) else form.space, "")


def _texture_operand(form: Form, pattern: str, style: Style) -> str:
    if pattern == "=F4":
        items = [_register("same", "b32", item) for item in range(4)]
        return _vector(items if style.destination[:1] != "_" else ["_", *items[1:]])
    if pattern == "G":
        axes = len(form.coordinate_types("f32")) - (form.geometry[0] == "a")
        return _vector(_register(style.registers, "f32", item) for item in range(4 if style.all_operands else axes))
    types = form.coordinate_types(form.type if pattern == "X" else "s32")
    coordinates = [_register(style.registers, name, item) for item, name in enumerate(types)]
    if style.all_operands and pattern != "D":
        coordinates += coordinates[-1:] * (4 - len(coordinates))
    return f"[{'memory' if pattern == 'D' else 'where'}, {_vector(coordinates)}]"


def _value(name: str, style: Style, number: int) -> str:
    """Return a register or literal of a type."""
    if not style.literals or name == "b128":
        value = _register(style.registers, name, number)
        return f"!{value}" if style.wide and name == "pred" else value
    return {"f32": "0f3F800000", "f64": "0d3FF0000000000000"}.get(name, "1")


def _register(kind: str, name: str, number: int) -> str:
    if name == "pred":
        return f"p{kind}_{number % 8}"
    letter = "f" if name in ("f32", "f64") else ""
    return f"{letter}{kind}{8 * type_size(name)}_{number % 8}"


def _widened(name: str, style: Style) -> str:
    return "b64" if style.wide and type_size(name) < 8 else name


def _halves(name: str) -> str:
    """Return the type of the two halves of which a vector of a type consists, or "" if there are none."""
    return f"b{4 * type_size(name)}" if name[0] in "bus" and type_size(name) > 1 else ""


def _vector(items: Iterable[str], count: int = 0) -> str:
    return next(iter(items)) if count == 1 else f"{{{', '.join(items)}}}"
