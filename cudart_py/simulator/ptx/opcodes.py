"""The instructions that the simulator runs: a row for each form of an opcode.

A row reads ``names modifiers types | operands``. A word with slashes is one of several modifiers or types, a word in
capitals one of those that it stands for below, and a question mark says that there may be none. Modifiers may stand
in any order in the text; the opcode is then written in the row's. Operands are

    =X      the destination, a register of type X; ``=X|p`` may have a predicate beside it
    T, U    a source of the first or second type, W of twice the first one's width; b32, u64, pred and so on
    X~      a register that may be wider than X
    A       an address: 32 or 64 bits
    M       an address in brackets
    V       as many registers or values as .v2, .v4 or .v8 says, which may be wider
    F       a vector of any length
    #n      a literal from 0 to n
    B       a barrier's number: 0 to 15, or a register
    N       a barrier's threads: a positive multiple of 32, or a register
    X?      an operand that may be missing
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from .operands import DTYPES

__all__ = ["TABLE", "Form", "Row", "Slot", "find_forms", "hint", "is_ptx"]

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
    "ATOMIC": "global/shared/shared::cta/shared::cluster",
    "SHARED": "shared/shared::cta/shared::cluster",
    "SCOPE": "cta/cluster/gpu/sys",
    "EVICT": "L1::evict_normal/L1::evict_unchanged/L1::evict_first/L1::evict_last/L1::no_allocate",
    "PREFETCH": "L2::64B/L2::128B/L2::256B",
    "EVICT2": "L2::evict_last/L2::evict_normal/L2::evict_first",
    "VECTOR": "v2/v4/v8",
    "MOVED": "b8/b16/b32/b64/b128/u8/u16/u32/u64/s8/s16/s32/s64/f32/f64",
    "SELECTED": "b16/b32/b64/u16/u32/u64/s16/s32/s64/f32/f64",
    "ORDER": "eq/ne/lt/le/gt/ge",
    "ORDERU": "eq/ne/lt/le/gt/ge/lo/ls/hi/hs",
    "ORDERF": "eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan",
    "LOGIC": "and/or/xor",
    "INTEGER": "u8/u16/u32/u64/s8/s16/s32/s64",
    "STAGED": "global/shared/shared::cta",
    "SHAPE": "m16n16k16/m32n8k16/m8n32k16",
    "MAJOR": "row/col",
}

_ROWS = """
add,sub INT | =T T T
add,sub sat s32 | =T T T
add,sub cc INT3264 | =T T T
add u16x2/s16x2 | =T T T
add,sub,mul RND? ftz? sat? f32 | =T T T
add,sub,mul RND? f64 | =T T T
add,sub,mul rn? ftz? sat? HALF | =T T T
add,sub,mul rn? BRAIN | =T T T
addc,subc cc? INT3264 | =T T T
mul lo/hi INT | =T T T
mul wide u16/s16/u32/s32 | =W T T
mad lo/hi INT | =T T T T
mad hi sat s32 | =T T T T
mad wide u16/s16/u32/s32 | =W T T W
mad lo/hi cc INT3264 | =T T T T
mad RND? ftz? sat? f32 | =T T T T
mad RND? f64 | =T T T T
madc lo/hi cc? INT3264 | =T T T T
mul24 lo/hi INT32 | =T T T
mad24 lo/hi INT32 | =T T T T
mad24 hi sat s32 | =T T T T
sad INT | =T T T T
div,rem INT | =T T T
div approx/full ftz? f32 | =T T T
div RND ftz? f32 | =T T T
div RND f64 | =T T T
abs,neg SIGNED | =T T
abs,neg ftz? f32 | =T T
abs,neg f64 | =T T
abs,neg ftz? HALF | =T T
abs,neg BRAIN | =T T
min,max INT | =T T T
min,max u16x2 | =T T T
min,max relu? s32/s16x2 | =T T T
min,max ftz? NaN? f32 | =T T T
min,max ftz? NaN? xorsign abs f32 | =T T T
min,max f64 | =T T T
min,max ftz? NaN? HALF | =T T T
min,max ftz? NaN? xorsign abs HALF | =T T T
min,max NaN? BRAIN | =T T T
min,max NaN? xorsign abs BRAIN | =T T T
fma RND ftz? sat? f32 | =T T T T
fma RND f64 | =T T T T
fma rn ftz? sat? HALF | =T T T T
fma rn ftz? relu HALF | =T T T T
fma rn relu? BRAIN | =T T T T
and,or,xor pred/b16/b32/b64 | =T T T
not pred/b16/b32/b64 | =T T
cnot BITS | =T T
shl BITS | =T T u32
shr b16/b32/b64/u16/u32/u64/s16/s32/s64 | =T T u32
lop3 b32 | =T T T T #255
shf l/r clamp/wrap b32 | =T T T u32
prmt b32 f4e/b4e/rc8/ecl/ecr/rc16? | =T T T T
bfe INT3264 | =T T u32 u32
bfi b32/b64 | =T T T u32 u32
bmsk clamp/wrap b32 | =T u32 u32
szext clamp/wrap INT32 | =T T u32
popc,clz b32/b64 | =u32 T
bfind shiftamt? INT3264 | =u32 T
brev b32/b64 | =T T
fns b32 | =T T T s32
testp finite/infinite/number/notanumber/normal/subnormal f32/f64 | =pred T
copysign f32/f64 | =T T T
dp4a INT32 INT32 | =b32 T U b32
dp2a lo/hi INT32 INT32 | =b32 T U b32
vabsdiff2,vabsdiff4 u32 u32 u32 add? | =b32 b32 b32 b32
vabsdiff2,vabsdiff4 s32/u32 s32 s32 add? | =b32 b32 b32 b32
sqrt,rcp approx ftz? f32 | =T T
sqrt,rcp RND ftz? f32 | =T T
sqrt,rcp RND f64 | =T T
rcp approx ftz f64 | =T T
rsqrt approx ftz? f32/f64 | =T T
sin,cos,lg2 approx ftz? f32 | =T T
ex2 approx ftz? f32 | =T T
ex2 approx HALF | =T T
ex2 approx ftz BRAIN | =T T
tanh approx f32/f16/f16x2/bf16/bf16x2 | =T T
mov MOVED | P P
mov pred | =pred pred
mov v2/v4 MOVED | V V
cvta to? SPACE u64 | =T T
isspacep SPACE | =pred A
selp SELECTED | =T T T pred
slct ftz? SELECTED f32/s32 | =T T T U
setp eq/ne BITS | =pred|p T T
setp ORDER SIGNED | =pred|p T T
setp ORDERU UNSIGNED | =pred|p T T
setp ORDERF ftz? f32/f64 | =pred|p T T
setp ORDERF ftz? f16/bf16/f16x2/bf16x2 | =pred|p T T
setp eq/ne LOGIC BITS | =pred|p T T pred
setp ORDER LOGIC SIGNED | =pred|p T T pred
setp ORDERU LOGIC UNSIGNED | =pred|p T T pred
setp ORDERF LOGIC ftz? f32/f64/f16/bf16 | =pred|p T T pred
set eq/ne u32/s32/f32 BITS | =T U U
set ORDER u32/s32/f32 SIGNED | =T U U
set ORDERU u32/s32/f32 UNSIGNED | =T U U
set ORDERF ftz? u32/s32/f32 f32/f64 | =T U U
set eq/ne LOGIC u32/s32/f32 BITS | =T U U pred
set ORDER LOGIC u32/s32/f32 SIGNED | =T U U pred
set ORDERU LOGIC u32/s32/f32 UNSIGNED | =T U U pred
set ORDERF LOGIC ftz? u32/s32/f32 f32/f64 | =T U U pred
set ORDERF ftz? f16/u16/s16/u32/s32 f16 | =T U U
set ORDERF bf16/u16/s16/u32/s32 bf16 | =T U U
set ORDERF ftz? f16x2/u32/s32 f16x2 | =T U U
set ORDERF bf16x2/u32/s32 bf16x2 | =T U U
cvt sat? INTEGER INTEGER | =T~ U~
cvt RND ftz? sat? f16/f32/f64 INTEGER | =T~ U~
cvt RND bf16 INTEGER | =T~ U~
cvt rni/rzi/rmi/rpi ftz? sat? INTEGER f16/bf16/f32/f64 | =T~ U~
cvt RND? ftz? sat? f16/f32/f64 f16/bf16/f32/f64 | =T~ U~
cvt rni/rzi/rmi/rpi ftz? sat? f16/f32/f64 f16/f32/f64 | =T~ U~
cvt rn/rz relu? satfinite? f16/bf16 f32 | =T~ U~
cvt RND relu? satfinite? bf16 f16/f32/f64 | =T~ U~
cvt rn/rz/rna relu? satfinite? tf32 f32 | =T~ U~
cvt rn relu? f16x2/bf16x2 e4m3x2/e5m2x2 | =T~ U~
cvt rn satfinite relu? e4m3x2/e5m2x2 f16x2/bf16x2 | =T~ U~
cvt rn/rz relu? satfinite? f16x2/bf16x2/e4m3x2/e5m2x2 f32 | =T~ U U
cvt pack sat u16/s16 s32 | =b32 s32 s32
cvt pack sat u8/s8/u4/s4/u2/s2 s32 b32 | =b32 s32 s32 b32
ld weak? LOADED? nc? ca/cg/cs/lu/cv? EVICT? L2::cache_hint? PREFETCH? VECTOR? MOVED | =V M b64?
ld volatile/mmio relaxed? SCOPE? MEMORY? VECTOR? MOVED | =V M
ld relaxed/acquire SCOPE? MEMORY? EVICT? L2::cache_hint? PREFETCH? VECTOR? MOVED | =V M b64?
ldu global? VECTOR? MOVED | =V M
st weak? STORED? wb/cg/cs/wt? EVICT? L2::cache_hint? VECTOR? MOVED | M V b64?
st volatile/mmio relaxed? SCOPE? MEMORY? VECTOR? MOVED | M V
st relaxed/release SCOPE? MEMORY? EVICT? L2::cache_hint? VECTOR? MOVED | M V b64?
atom ORDERING? SCOPE? ATOMIC? and/or/xor/exch L2::cache_hint? b32/b64 | =T M T b64?
atom ORDERING? SCOPE? ATOMIC? exch b128 | =T M T
atom ORDERING? SCOPE? ATOMIC? cas L2::cache_hint? b16/b32/b64/b128 | =T M T T b64?
atom ORDERING? SCOPE? ATOMIC? add L2::cache_hint? u32/s32/u64/s64/f32/f64 | =T M T b64?
atom ORDERING? SCOPE? ATOMIC? min/max L2::cache_hint? INT3264 | =T M T b64?
atom ORDERING? SCOPE? ATOMIC? inc/dec L2::cache_hint? u32 | =T M T b64?
atom ORDERING? SCOPE? ATOMIC? add noftz f16/f16x2/bf16/bf16x2 | =T M T
atom ORDERING? SCOPE? global add v2/v4 f32 | =V M V
red relaxed/release? SCOPE? ATOMIC? and/or/xor L2::cache_hint? b32/b64 | M T b64?
red relaxed/release? SCOPE? ATOMIC? add L2::cache_hint? u32/s32/u64/s64/f32/f64 | M T b64?
red relaxed/release? SCOPE? ATOMIC? min/max L2::cache_hint? INT3264 | M T b64?
red relaxed/release? SCOPE? ATOMIC? inc/dec L2::cache_hint? u32 | M T b64?
red relaxed/release? SCOPE? ATOMIC? add noftz f16/f16x2/bf16/bf16x2 | M T
red relaxed/release? SCOPE? global add v2/v4 f32 | M V
membar cta/gl/sys |
fence sc/acq_rel/acquire/release? SCOPE |
fence proxy alias |
fence proxy async |
fence proxy async global/shared::cta/shared::cluster |
fence mbarrier_init release cluster |
prefetch global/local? L1/L2 | M
prefetch global EVICT2 | M
prefetchu L1 | M
nanosleep u32 | u32
discard global? L2 | M #128
applypriority global? L2::evict_normal | M #128
griddepcontrol launch_dependents/wait |
pmevent mask? | #65535
cp async ca/cg SHARED global L2::cache_hint? PREFETCH? | M M #16 Z? b64?
cp async commit_group |
cp async wait_group | #1000000
cp async wait_all |
cp async mbarrier arrive noinc? SHARED? b64 | M
cp async bulk commit_group |
cp async bulk wait_group read? | #1000000
mbarrier init SHARED? b64 | M u32
mbarrier inval SHARED? b64 | M
mbarrier arrive release? cta/cluster? SHARED? b64 | =b64 M u32?
mbarrier arrive noComplete release? cta/cluster? SHARED? b64 | =b64 M u32
mbarrier arrive expect_tx release? cta/cluster? SHARED? b64 | =b64 M u32
mbarrier arrive_drop release? cta/cluster? SHARED? b64 | =b64 M u32?
mbarrier arrive_drop noComplete release? cta/cluster? SHARED? b64 | =b64 M u32
mbarrier arrive_drop expect_tx release? cta/cluster? SHARED? b64 | =b64 M u32
mbarrier expect_tx relaxed? cta/cluster? SHARED? b64 | M u32
mbarrier test_wait acquire? cta/cluster? SHARED? b64 | =pred M b64
mbarrier test_wait parity acquire? cta/cluster? SHARED? b64 | =pred M u32
mbarrier try_wait acquire? cta/cluster? SHARED? b64 | =pred M b64 u32?
mbarrier try_wait parity acquire? cta/cluster? SHARED? b64 | =pred M u32 u32?
shfl sync up/down/bfly/idx b32 | =b32|p b32 u32 u32 b32
vote sync all/any/uni pred | =pred pred b32
vote sync ballot b32 | =b32 pred b32
match any sync b32/b64 | =b32 T b32
match all sync b32/b64 | =b32|p T b32
redux sync add/min/max u32/s32 | =T T b32
redux sync and/or/xor b32 | =T T b32
activemask b32 | =b32
elect sync | =b32|p b32
bar,barrier cta? sync aligned? | B N?
bar,barrier cta? arrive aligned? | B N
bar,barrier cta? red popc aligned? u32 | =u32 B pred
bar,barrier cta? red popc aligned? u32 | =u32 B N pred
bar,barrier cta? red and/or aligned? pred | =pred B pred
bar,barrier cta? red and/or aligned? pred | =pred B N pred
bar warp sync | b32
barrier cluster arrive release/relaxed? aligned? |
barrier cluster wait acquire? aligned? |
tex level? 1d/2d v4 f32/u32/s32 f32/s32 | F X f32?
wmma load a/b/c sync aligned MAJOR SHAPE STAGED? f16/bf16/f32 | F M u32?
wmma store d sync aligned MAJOR SHAPE STAGED? f16/f32 | M F u32?
wmma mma sync aligned MAJOR MAJOR SHAPE f16/f32 f16/f32 | F F F F
wmma mma sync aligned MAJOR MAJOR SHAPE f32 bf16 bf16 f32 | F F F F
mapa shared::cluster? u32/u64 | =T T u32
getctarank shared::cluster? u32/u64 | =u32 T
bra uni? | L
brx idx uni? | u32 L
call uni? | C
ret uni? |
exit,trap |
""".replace("ORDERING", "relaxed/acquire/release/acq_rel")


@dataclass(frozen=True, slots=True)
class Slot:
    """Hold one place of an opcode: the words that may stand there, and whether one must."""

    words: frozenset[str]
    optional: bool
    is_type: bool


@dataclass(frozen=True, slots=True)
class Form:
    """Describe how one opcode is written: its canonical spelling, its types and its operands."""

    opcode: str
    types: tuple[str, ...]
    vector: int
    operands: tuple[str, ...]
    # Whether literals among the operands have a range.
    has_numbers: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Describe one form of an opcode: its words in their order, and its operands."""

    slots: tuple[Slot, ...]
    operands: tuple[str, ...]

    def match(self, name: str, parts: list[str]) -> Form | None:
        """Return the form that an opcode's parts have by this row, None if they don't fit."""
        filled: list[str] = [""] * len(self.slots)
        behind = 0
        for part in parts:
            for place, slot in enumerate(self.slots):
                # Types keep their order; other words may stand anywhere.
                if not filled[place] and part in slot.words and (not slot.is_type or place >= behind):
                    filled[place] = part
                    behind = place if slot.is_type else behind
                    break
            else:
                return None
        if any(not word and not slot.optional for word, slot in zip(filled, self.slots, strict=True)):
            return None
        types = tuple(word for word, slot in zip(filled, self.slots, strict=True) if slot.is_type)
        vector = next((int(word[1]) for word in filled if word in ("v2", "v4", "v8")), 1)
        # Weak accesses are the plain ones.
        words = (word for word in filled if word not in ("", "weak"))
        has_numbers = any(pattern[0] in "#BN" for pattern in self.operands)
        return Form(".".join([name, *words]), types, vector, self.operands, has_numbers)


def _slot(word: str) -> Slot:
    words = _WORDS.get(word.removesuffix("?"), word.removesuffix("?")).split("/")
    # The narrowest integers of cvt.pack aren't types of registers.
    is_type = all(item in DTYPES or item in ("u4", "s4", "u2", "s2") for item in words)
    return Slot(frozenset(words), word.endswith("?"), is_type)


def _read_rows() -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for line in _ROWS.strip().splitlines():
        head, _, operands = line.partition("|")
        names, *words = head.split()
        row = Row(tuple(_slot(word) for word in words), tuple(operands.split()))
        for name in names.split(","):
            rows[name].append(row)
    return dict(rows)


TABLE = _read_rows()
_KNOWN_WORDS = {word for rows in TABLE.values() for row in rows for slot in row.slots for word in slot.words}

# What PTX has and the simulator has not, and what a kernel can do instead.
_MATRIX = "write wmma with halves, bf16 and float sums, or plain loops; other matrix instructions are not simulated"
_BULK = "write cp.async, or plain copies; the tensor memory accelerator is not simulated"
_SURFACE = "write to global memory; surfaces and CUDA arrays are not simulated"
_LEGACY = "write the form with .sync and a member mask, as CUDA C++ does for compute_70 and later"
_VIDEO = "write it with shifts and extremes; of the video instructions only vabsdiff2 and vabsdiff4 are simulated"
_OTHER_FORM = "another form of it may be simulated: docs/simulator.md says which language is"
_HINTS = {
    "mma": _MATRIX, "wgmma": _MATRIX, "ldmatrix": _MATRIX, "stmatrix": _MATRIX, "movmatrix": _MATRIX,
    "wmma": _MATRIX, "tcgen05": f"compile for compute_90; {_MATRIX}", "cp": _BULK, "tensormap": _BULK,
    "suld": _SURFACE, "sust": _SURFACE, "sured": _SURFACE, "suq": _SURFACE,
    "tex": "fetch from 1-D or 2-D textures; others are not simulated",
    "tld4": "fetch the four texels one by one; gathers are not simulated",
    "txq": "pass the texture's size as a parameter; queries are not simulated", "istypep": _SURFACE,
    "shfl": _LEGACY, "vote": _LEGACY, "setmaxnreg": "leave it out: registers of warps are not simulated",
    "multimem": "write to each device's memory; multicast is not simulated",
    "createpolicy": "leave the cache policy out: caches are not simulated",
    "alloca": "use an array of fixed size; stack memory of variable size is not simulated",
    "stacksave": "use an array of fixed size; stack memory of variable size is not simulated",
    "stackrestore": "use an array of fixed size; stack memory of variable size is not simulated",
    "brkpt": "leave it out: breakpoints are not simulated",
    "clusterlaunchcontrol": "compile for compute_90; cancelling clusters is not simulated",
    "vadd": _VIDEO, "vsub": _VIDEO, "vabsdiff": _VIDEO, "vmin": _VIDEO, "vmax": _VIDEO, "vshl": _VIDEO, "vshr": _VIDEO,
    "vmad": _VIDEO, "vset": _VIDEO, "vadd2": _VIDEO, "vadd4": _VIDEO, "vsub2": _VIDEO, "vsub4": _VIDEO,
    "vavrg2": _VIDEO, "vavrg4": _VIDEO, "vmin2": _VIDEO, "vmin4": _VIDEO, "vmax2": _VIDEO, "vmax4": _VIDEO,
    "vset2": _VIDEO, "vset4": _VIDEO,
}  # fmt: skip  # rows of a table
# Words of PTX that no row has.
_FURTHER_WORDS = {
    "bulk", "async", "tensor", "multicast", "reduce", "oob", "rs", "unified", "3d", "a1d", "a2d", "cube", "acube",
    "2dms",
    "grad", "base", "v8", "f32x2", "u8x4", "s8x4", "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2", "level", "XORSIGN",
    "sync_restrict::shared::cluster", "sync_restrict::shared::cta", "complete_tx", "pending_count", "proxy",
    "tensormap",
    "mode", "gather4", "to", "param::func", "L1::evict_last", "range", "fractional", "mxf4", "block_scale", "sp",
    "s4", "u4", "b1", "tf32", "e4m3", "e5m2", "popc", "xor", "m8n8k4", "m8n8k16", "m8n8k32", "m8n8k128",
    "m16n8k4",
    "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64", "m16n16k8", "satfinite", "unordered", "clamp", "wrap", "pack",
    "h0", "h1", "b0", "b2", "b3", "po", "zero", "trap", "p", "both", "x1", "x2", "x4", "trans", "async::generic",
}  # fmt: skip  # a list of words


@lru_cache(maxsize=4096)
def find_forms(opcode: str) -> tuple[Form, ...]:
    """Return the forms of an opcode, which differ in their operands; none for one that isn't in the table."""
    name, *parts = opcode.split(".")
    forms = (row.match(name, parts) for row in TABLE.get(name, ()))
    return tuple(form for form in forms if form is not None)


def is_ptx(opcode: str) -> bool:
    """Tell whether an opcode that isn't in the table is PTX as far as can be seen: its words are words of PTX."""
    name, *parts = opcode.split(".")
    if name not in TABLE:
        return name in _HINTS
    return bool(parts) and all(part in _KNOWN_WORDS or part in _FURTHER_WORDS for part in parts)


def hint(opcode: str) -> str:
    """Return what to do instead of an opcode that isn't simulated."""
    name, *parts = opcode.split(".")
    if "async" in parts and name in ("st", "red"):
        return _BULK
    return _HINTS.get(name, _OTHER_FORM)
