"""The rows of the opcode table, and the form of one spelling of an opcode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..syntax.instructions import Instruction
from ..syntax.types import DTYPES, doubled

if TYPE_CHECKING:
    from .writer import Writer

# A function that emits an instruction of a form as Python source.
Emitter: TypeAlias = "Callable[[Writer, Instruction, Form], None]"
Ending = Literal["", "branch", "switch", "call", "barrier", "return", "exit", "trap"]
AccessKind = Literal["", "ld", "st", "atom", "red", "mbarrier", "cp", "bulk", "tex", "surf"]
Converges = Literal["", "members", "warp"]
Arithmetic = Literal["", "add", "mul", "fma"]
Flow = Literal[
    "all", "fresh", "choice", "select", "copy", "convert", "left", "right", "funnel", "and", "or", "bytewise",
    "permute", "extract", "insert", "sum", "matrix",
]  # fmt: skip  # a list of words


def _group_shapes(depth: int, columns: Iterable[int]) -> str:
    """Return the shapes of ``wgmma`` with a given depth."""
    return "/".join(f"m64n{count}k{depth}" for count in columns)


_WORDS = {
    "INT": "u16/u32/u64/s16/s32/s64",
    "INT32": "u32/s32",
    "INT3264": "u32/u64/s32/s64",
    "SIGNED": "s16/s32/s64",
    "UNSIGNED": "u16/u32/u64",
    "BITS": "b16/b32/b64",
    "HALF": "f16/f16x2",
    "BRAIN": "bf16/bf16x2",
    "RND": "rn/rz/rm/rp",
    "SPACE": "global/shared/shared::cta/shared::cluster/local/const/param/param::entry",
    "LOADED": "global/shared/shared::cta/shared::cluster/local/const/param/param::entry/param::func",
    "STORED": "global/shared/shared::cta/shared::cluster/local/param/param::func",
    "MEMORY": "global/shared/shared::cta/shared::cluster/local/const",
    "WRITABLE": "global/shared/shared::cta/shared::cluster/local",
    "ATOMIC": "global/shared/shared::cta/shared::cluster",
    "SHARED": "shared/shared::cta/shared::cluster",
    "SCOPE": "cta/cluster/gpu/sys",
    "ORDERING": "relaxed/acquire/release/acq_rel",
    "EVICT": "L1::evict_normal/L1::evict_unchanged/L1::evict_first/L1::evict_last/L1::no_allocate",
    "PREFETCH": "L2::64B/L2::128B/L2::256B",
    "EVICT2": "L2::evict_last/L2::evict_normal/L2::evict_first",
    "PRIMARY": "L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged",
    "SECONDARY": "L2::evict_first/L2::evict_unchanged",
    "VECTOR": "v2/v4/v8",
    "MOVED": "b8/b16/b32/b64/b128/u8/u16/u32/u64/s8/s16/s32/s64/f32/f64",
    "B8TO64": "b8/b16/b32/b64/u8/u16/u32/u64/s8/s16/s32/s64/f32/f64",
    "SELECTED": "b16/b32/b64/u16/u32/u64/s16/s32/s64/f32/f64",
    "SET": "u32/s32/f32/f16/bf16",
    "ORDER": "eq/ne/lt/le/gt/ge",
    "ORDERU": "eq/ne/lt/le/gt/ge/lo/ls/hi/hs",
    "ORDERF": "eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan",
    "LOGIC": "and/or/xor",
    "INTEGER": "u8/u16/u32/u64/s8/s16/s32/s64",
    "STAGED": "global/shared/shared::cta",
    "SHAPE": "m16n16k16/m32n8k16/m8n32k16",
    "MAJOR": "row/col",
    "GROUP16": _group_shapes(16, range(8, 257, 8)),
    "GROUP8": _group_shapes(8, range(8, 257, 8)),
    "GROUP32": _group_shapes(32, range(8, 257, 8)),
    "GROUP32I": _group_shapes(32, (8, 16, 24, *range(32, 257, 16))),
    "FP8": "e4m3/e5m2",
    "GEOMETRY": "1d/2d/3d/a1d/a2d",
    "CUBE": "cube/acube",
    "READ": "ca/cg/cs/cv",
    "WRITTEN": "wb/cg/cs/wt",
    "EDGE": "trap/clamp/zero",
    "AXES": "1d/2d/3d/4d/5d",
}
# The state spaces to which an address may be converted, as opcodes name them.
SPACES = frozenset(_WORDS["SPACE"].split("/"))
# The number of coordinates of a texture, surface or tensor map, not counting the index of a layer.
_COORDINATES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3, "4d": 4, "5d": 5}
_BOUNDARIES = {"trap", "clamp", "zero"}
# The narrowest integer types of cvt.pack, which no register has.
_PACKED = {"u4", "s4", "u2", "s2"}
_SPACES = {"global", "shared", "local", "const", "param"}
_STRONG = {"volatile", "relaxed", "acquire", "release", "mmio"}
_OPERATIONS = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"}


@dataclass(frozen=True, slots=True)
class _Slot:
    """One slot of a pattern: the words that may fill it, and whether it may stay empty."""

    words: frozenset[str]
    optional: bool
    is_type: bool


class Pattern:
    """One line ``modifiers types | operands`` of a row: one way to write an opcode."""

    def __init__(self, line: str) -> None:
        head, _, operands = line.partition("|")
        self.slots = tuple(_slot(word) for word in head.split())
        self.operands = tuple(operands.split())

    def match(self, parts: list[str]) -> list[str] | None:
        """Return the word in each slot, an empty string if it is empty; None if the parts of an opcode don't fit."""
        filled = [""] * len(self.slots)
        behind = 0
        for part in parts:
            for place, slot in enumerate(self.slots):
                # Types must be in order; other words may be anywhere.
                if not filled[place] and part in slot.words and (not slot.is_type or place >= behind):
                    filled[place] = part
                    behind = place if slot.is_type else behind
                    break
            else:
                return None
        if any(not word and not slot.optional for word, slot in zip(filled, self.slots, strict=True)):
            return None
        return filled


def _slot(text: str) -> _Slot:
    word = text.removesuffix("?")
    words = _WORDS.get(word, word).split("/")
    is_type = all(item in DTYPES or item in _PACKED for item in words)
    return _Slot(frozenset(words), text.endswith("?"), is_type)


class Row:
    """One row of the opcode table: how one opcode is written, what emits it, and what it does.

    `patterns` are the ways to write it, as `opcodes` describes. `emit` generates its Python source, and is None for an
    opcode that only ends a block and is executed by the scheduler. The rest are facts about the opcode:

    `ends`: how the opcode ends a basic block; empty if it doesn't.
    `access`: how it accesses memory, as reported to observers: "ld", "st", "atom", "red", "mbarrier"; "cp" for an
        asynchronous copy, "bulk" for operations of the asynchronous proxy, "tex" for a texture fetch, "surf" for a
        surface; empty if it accesses no memory.
    `converges`: "members" if the lanes of the member mask, the last operand, execute it together; "warp" if all lanes
        of the warp do.
    `spins`: it may make the progress of other lanes visible, so a loop around it can wait for them.
    `reads_carry`: it adds or subtracts the carry flag. (Opcodes that write the flag have the modifier ``.cc``.)
    `flow`: how the bytes of the result depend on the operands, for tracking uninitialised values. "all": each depends
        on all bytes of the operands. "fresh": they come from memory or other lanes. "choice": an undefined operand may
        be discarded. "select": likewise, and nothing is computed. The other words are keys of `_FOLLOWED` in
        `checks/uninitialised/byte_rules.py`, which gives the rule's function for each.
    `arithmetic`: its floating-point operation, for counting operations; "add" includes subtraction.
    """

    def __init__(
        self,
        name: str,
        emit: Emitter | None,
        *patterns: str,
        ends: Ending = "",
        access: AccessKind = "",
        converges: Converges = "",
        spins: bool = False,
        reads_carry: bool = False,
        flow: Flow = "all",
        arithmetic: Arithmetic = "",
    ) -> None:
        self.name = name
        self.emit = emit
        self.patterns = tuple(Pattern(line) for line in patterns)
        self.ends = ends
        self.access = access
        self.converges = converges
        self.spins = spins
        self.reads_carry = reads_carry
        self.flow = flow
        self.arithmetic = arithmetic

    def forms(self, parts: list[str]) -> list[Form]:
        """Return this row's forms that fit the parts of an opcode; they differ in their operands."""
        matches = ((pattern, pattern.match(parts)) for pattern in self.patterns)
        return [Form(self, pattern, words) for pattern, words in matches if words is not None]

    @property
    def facts(self) -> tuple[object, ...]:
        """Return everything in the row except how the opcode is written."""
        return tuple(fact for name, fact in vars(self).items() if name not in ("name", "patterns"))


class Form:
    """One spelling of an opcode, and the facts that depend on its words.

    `words` are the modifiers and types in the order of the pattern; `modifiers` and `types` are the two kinds
    separately. `opcode` is the name with these words. `vector` is the number of elements, which ``.v2``, ``.v4`` or
    ``.v8`` gives. `operands` are the patterns of the operands. `writes_first` says that the first operand is a
    destination, `updates_first` that it is read as well, and `writes_carry` that the carry flag is a destination.
    """

    def __init__(self, row: Row, pattern: Pattern, filled: list[str]) -> None:
        self.row = row
        # `.weak` is left out, because it is the default.
        self.words = tuple(word for word in filled if word not in ("", "weak"))
        self.opcode = ".".join([row.name, *self.words])
        self.types = tuple(word for word, slot in zip(filled, pattern.slots, strict=True) if slot.is_type)
        self.modifiers = tuple(
            word for word, slot in zip(filled, pattern.slots, strict=True) if word and not slot.is_type
        )
        self.vector = next((int(word[1]) for word in self.words if word in ("v2", "v4", "v8")), 1)
        self.operands = pattern.operands
        # Whether there are operands whose literals must be in a range.
        self.has_numbers = any(operand[0] in "#@BN" for operand in pattern.operands)
        self.updates_first = bool(self.operands) and self.operands[0][0] == "+"
        self.writes_first = self.updates_first or (bool(self.operands) and self.operands[0][0] == "=")
        self.writes_carry = "cc" in self.words
        # The state spaces that the opcode names (for a copy, the destination's first), and the space of an access,
        # which is generic if the opcode names none.
        named = (word.partition("::")[0] for word in self.words)
        self.spaces = tuple(word for word in named if word in _SPACES)
        self.space = self.spaces[0] if self.spaces else "generic"
        # Whether an access is strong in the memory model, whether it is a release, and its scope.
        self.strong = row.access in ("atom", "red") or not _STRONG.isdisjoint(self.words)
        self.releases = "release" in self.words or "acq_rel" in self.words
        self.scope = "cta" if "cta" in self.words else "gpu"
        # Whether it accesses memory through a texture or a surface.
        self.accesses_object = row.access in ("tex", "surf")

    @property
    def type(self) -> str:
        """Return the last type, which for most opcodes is the type of the source operands."""
        return self.types[-1]

    @property
    def operation(self) -> str:
        """Return the operation of an atomic access."""
        return next(word for word in self.words if word in _OPERATIONS)

    @property
    def geometry(self) -> str:
        """Return the dimensions of a texture, surface or tensor map, as the opcode names them."""
        return next(word for word in self.words if word in _COORDINATES)

    @property
    def boundary(self) -> str:
        """Return the mode for an access outside a surface: trap, clamp or zero."""
        return next(word for word in self.words if word in _BOUNDARIES)

    def coordinate_types(self, ptx_type: str) -> list[str]:
        """Return the types of the layer's index, if there are layers, and of the coordinates, which have `ptx_type`."""
        layer = ["u32"] if self.geometry[0] == "a" else []
        return layer + [ptx_type] * _COORDINATES[self.geometry]

    def type_of(self, pattern: str) -> str:
        """Return the type that an operand's pattern stands for."""
        name = pattern.lstrip("=-").rstrip("?~").partition("|")[0].partition("&")[0].partition(".")[0]
        if name == "T":
            return self.types[0]
        if name == "U":
            return self.types[1]
        return doubled(self.types[0]) if name == "W" else name


def is_relaxed(form: Form) -> bool:
    """Return whether an operation on a barrier in memory has no release semantics of its own."""
    expects = form.words[0] in ("expect_tx", "complete_tx")
    return form.row.access == "mbarrier" and (expects or "relaxed" in form.words)
