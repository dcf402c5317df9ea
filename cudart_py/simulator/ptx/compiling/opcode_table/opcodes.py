"""The table of opcodes: a row says how an opcode is written, which function emits it, and what it does.

A row has one or more patterns ``modifiers types | operands``. A word with slashes stands for one of several modifiers
or types, a word in capitals for one of the words that `forms` lists for it, and a question mark marks an optional word.
Modifiers may be in any order in the PTX text; the words of a `Form` are in the order of the pattern. Operands are

    +F      a fragment that is read and written =X      the destination, a register of type X; ``=X|p`` may have a
    predicate after it, ``=X&p`` must have one T, U    an operand of the first or second type W       an operand of
    twice the first type's width b32 ... an operand of the named type: b32, u64, pred and so on. A third type of an
    opcode has no letter of its own:
            there is one pattern per type, such as ``INT32 INT32 u32 | =T U u32 T`` and
            ``INT32 INT32 s32 | =T U s32 T``
    X~      a register that may be wider than X
    X.n     an operand from which n bytes or halves may be selected, as ``.b0`` or ``.h10``; in a destination, the
            selected parts are replaced
    -X      an operand that may be negated
    P       an operand of ``mov``, which also packs and unpacks vectors
    A       an address: 32 or 64 bits
    M       an address in brackets
    V       as many registers or values as .v2, .v4 or .v8 says; they may be wider than the type
    F       a fragment of a matrix: a vector whose length depends on the form; F4 has four elements
    X, S, D  a texture, a surface, and a tensor map, each with its coordinates
    G       a vector with the gradient of a texture's coordinates
    Z       the number of bytes that a copy reads, or a predicate
    H       a cache policy, present only if the opcode has ``L2::cache_hint``
    #n      a literal from 0 to n
    @m/n    a literal that is m or n
    B       a barrier's number: 0 to 15, or a register
    N       a barrier's number of threads: a positive multiple of 32, or a register
    L, C    the target of a branch, and the parts of a call
    X?      an optional operand

`Row` describes the facts about an opcode. This table is their only source.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from functools import lru_cache

from ...instructions import approximations, barriers, clusters, comparisons, conversions, floats, halves, movement
from ...instructions.integer_math import integers, logic
from ...instructions.values import wide_product
from ...syntax.instructions import Instruction
from ..emitters.copies import bulk_copy, copy, copy_group, counted, mbarrier
from ..emitters.lowered import Lowers
from ..emitters.memory import (
    atomic,
    fence,
    further_texture,
    load,
    nap,
    nothing,
    policy,
    store,
    surface,
    system_call,
    texture,
)
from ..emitters.warps import activemask, collective, elect, shuffle
from ..forms import Form, Row
from .matrix_opcodes import MATRIX_ROWS, TENSOR_ROWS
from .video_opcodes import VIDEO_ROWS

ROWS = (
    # --- sums and products of integers
    Row("add", Lowers(operator.add), "INT | =T T T", flow="sum"),
    Row("add", Lowers(integers.saturated, "name"), "sat s32 | =T T T"),
    Row("add", Lowers(integers.add_with_carry), "cc INT3264 | =T T T"),
    Row("add", Lowers(integers.add_16x2), "u16x2/s16x2 | =T T T", flow="sum"),
    Row("addc", Lowers(integers.add_with_carry), "cc? INT3264 | =T T T", reads_carry=True),
    Row("sub", Lowers(operator.sub), "INT | =T T T", flow="sum"),
    Row("sub", Lowers(integers.saturated, "name"), "sat s32 | =T T T"),
    Row("sub", Lowers(integers.sub_with_carry), "cc INT3264 | =T T T"),
    Row("subc", Lowers(integers.sub_with_carry), "cc? INT3264 | =T T T", reads_carry=True),
    Row("mul", Lowers(operator.mul), "lo INT | =T T T", flow="sum"),
    Row("mul", Lowers(integers.mul_hi), "hi INT | =T T T"),
    Row("mul", Lowers(wide_product), "wide u16/s16/u32/s32 | =W T T"),
    Row("mad", Lowers(integers.mad, "name", "word"), "lo INT | =T T T T", flow="sum"),
    Row("mad", Lowers(integers.mad, "name", "word"), "hi INT | =T T T T", "hi sat s32 | =T T T T"),
    Row("mad", Lowers(integers.mad, "name", "word"), "wide u16/s16/u32/s32 | =W T T W"),
    Row("mad", Lowers(integers.mad_with_carry, "word"), "lo/hi cc INT3264 | =T T T T"),
    Row("madc", Lowers(integers.mad_with_carry, "word"), "lo/hi cc? INT3264 | =T T T T", reads_carry=True),
    Row("mul24", Lowers(integers.mul24, "word"), "lo/hi INT32 | =T T T"),
    Row("mad24", Lowers(integers.mad, "name", "word"), "lo/hi INT32 | =T T T T", "hi sat s32 | =T T T T"),
    Row("sad", Lowers(integers.sad), "INT | =T T T T"),
    Row("dp4a", Lowers(integers.dp4a), "INT32 INT32 | =b32 T U b32"),
    Row("dp2a", Lowers(integers.dp2a, "word"), "lo/hi INT32 INT32 | =b32 T U b32"),
    *VIDEO_ROWS,
    # --- other arithmetic of integers
    Row("div", Lowers(integers.div), "INT | =T T T"),
    Row("rem", Lowers(integers.rem), "INT | =T T T"),
    Row("abs", Lowers(integers.abs_), "SIGNED | =T T"),
    Row("neg", Lowers(operator.neg), "SIGNED | =T T", flow="sum"),
    # --- bits
    Row("and", Lowers(operator.and_), "pred/b16/b32/b64 | =T T T", flow="and"),
    Row("or", Lowers(operator.or_), "pred/b16/b32/b64 | =T T T", flow="or"),
    Row("xor", Lowers(operator.xor), "pred/b16/b32/b64 | =T T T", flow="bytewise"),
    Row("not", Lowers(operator.invert), "pred/b16/b32/b64 | =T T", flow="bytewise"),
    Row("cnot", Lowers(logic.cnot), "BITS | =T T"),
    Row("lop3", Lowers(logic.lop3), "b32 | =T T T T #255", flow="choice"),
    Row("lop3", Lowers(logic.lop3_joined), "or/and b32 | =T&p T T T #255 pred", flow="choice"),
    Row("shl", Lowers(operator.lshift), "BITS | =T T u32", flow="left"),
    Row("shr", Lowers(operator.rshift), "BITS | =T T u32", "INT | =T T u32", flow="right"),
    Row("shf", Lowers(logic.shf, "word"), "l/r clamp/wrap b32 | =T T T u32", flow="funnel"),
    Row("prmt", Lowers(movement.prmt), "b32 f4e/b4e/rc8/ecl/ecr/rc16? | =T T T T", flow="permute"),
    Row("bfe", Lowers(integers.bfe), "INT3264 | =T T u32 u32", flow="extract"),
    Row("bfi", Lowers(integers.bfi), "b32/b64 | =T T T u32 u32", flow="insert"),
    Row("bmsk", Lowers(integers.bmsk), "clamp/wrap b32 | =T u32 u32"),
    Row("szext", Lowers(integers.szext), "clamp/wrap INT32 | =T T u32"),
    Row("popc", Lowers(integers.popc), "b32/b64 | =u32 T"),
    Row("clz", Lowers(integers.clz), "b32/b64 | =u32 T"),
    Row("bfind", Lowers(integers.bfind), "shiftamt? INT3264 | =u32 T"),
    Row("brev", Lowers(integers.brev), "b32/b64 | =T T"),
    Row("fns", Lowers(integers.fns), "b32 | =T T T s32"),
    # --- floating point
    Row("add", Lowers(floats.add, loose=True), "RND? ftz? sat? f32 | =T T T", "RND? f64 | =T T T", arithmetic="add"),
    Row("add", Lowers(halves.add, "kind"), "rn? ftz? sat? HALF | =T T T", "rn? BRAIN | =T T T"),
    Row("sub", Lowers(floats.sub, loose=True), "RND? ftz? sat? f32 | =T T T", "RND? f64 | =T T T", arithmetic="add"),
    Row("sub", Lowers(halves.sub, "kind"), "rn? ftz? sat? HALF | =T T T", "rn? BRAIN | =T T T"),
    Row("mul", Lowers(floats.mul, loose=True), "RND? ftz? sat? f32 | =T T T", "RND? f64 | =T T T", arithmetic="mul"),
    Row("mul", Lowers(halves.mul, "kind"), "rn? ftz? sat? HALF | =T T T", "rn? BRAIN | =T T T"),
    # `mad` doesn't round the product before the sum on any device since compute capability 2.0.
    Row(
        "mad", Lowers(floats.fma, loose=True), "RND? ftz? sat? f32 | =T T T T", "RND? f64 | =T T T T",
        arithmetic="fma",
    ),
    Row("fma", Lowers(floats.fma, loose=True), "RND ftz? sat? f32 | =T T T T", "RND f64 | =T T T T", arithmetic="fma"),
    Row(
        "fma", Lowers(halves.fma, "kind"),
        "rn ftz? sat? HALF | =T T T T", "rn ftz? relu HALF | =T T T T", "rn relu? BRAIN | =T T T T",
    ),
    Row("div", Lowers(approximations.div, loose=True), "approx ftz? f32 | =T T T"),
    Row("div", Lowers(approximations.div_full, loose=True), "full ftz? f32 | =T T T"),
    Row("div", Lowers(floats.div, loose=True), "RND ftz? f32 | =T T T", "RND f64 | =T T T"),
    Row("abs", Lowers(floats.abs_, loose=True), "ftz? f32 | =T T", "f64 | =T T"),
    Row("abs", Lowers(halves.abs_, "kind"), "ftz? HALF | =T T", "BRAIN | =T T"),
    Row("neg", Lowers(floats.neg, loose=True), "ftz? f32 | =T T", "f64 | =T T"),
    Row("neg", Lowers(halves.neg, "kind"), "ftz? HALF | =T T", "BRAIN | =T T"),
    Row("copysign", Lowers(floats.copysign), "f32/f64 | =T T T"),
    Row(
        "testp", Lowers(floats.testp, "word", loose=True),
        "finite/infinite/number/notanumber/normal/subnormal f32/f64 | =pred T",
    ),
    Row("sqrt", Lowers(floats.sqrt, loose=True), "approx ftz? f32 | =T T"),
    Row("sqrt", Lowers(floats.sqrt, loose=True), "RND ftz? f32 | =T T", "RND f64 | =T T"),
    Row("rcp", Lowers(approximations.rcp, loose=True), "approx ftz? f32 | =T T"),
    Row("rcp", Lowers(approximations.rcp_high), "approx ftz f64 | =T T"),
    Row("rcp", Lowers(floats.rcp, loose=True), "RND ftz? f32 | =T T", "RND f64 | =T T"),
    Row("rsqrt", Lowers(approximations.rsqrt, loose=True), "approx ftz? f32 | =T T"),
    Row("rsqrt", Lowers(approximations.rsqrt_high), "approx ftz f64 | =T T"),
    Row("rsqrt", Lowers(approximations.rsqrt_double), "approx f64 | =T T"),
    *(
        Row(name, Lowers(approximations.elementary, "name", loose=True), "approx ftz? f32 | =T T")
        for name in ("sin", "cos", "lg2", "ex2")
    ),
    Row("tanh", Lowers(approximations.elementary, "name", loose=True), "approx f32 | =T T"),
    Row("ex2", Lowers(halves.elementary, "name", "kind"), "approx HALF | =T T", "approx ftz BRAIN | =T T"),
    Row("tanh", Lowers(halves.elementary, "name", "kind"), "approx HALF | =T T", "approx BRAIN | =T T"),
    # --- minima and maxima
    *(
        row
        for name in ("min", "max")
        for row in (
            Row(name, Lowers(integers.extreme, "name"), "INT | =T T T", "relu s32 | =T T T"),
            Row(name, Lowers(integers.extreme_16x2, "name"), "u16x2 | =T T T", "relu? s16x2 | =T T T"),
            Row(
                name, Lowers(floats.extreme, "name"),
                "ftz? NaN? f32 | =T T T", "ftz? NaN? xorsign abs f32 | =T T T", "f64 | =T T T",
            ),
            Row(
                name, Lowers(halves.extreme, "name", "kind"),
                "ftz? NaN? HALF | =T T T", "ftz? NaN? xorsign abs HALF | =T T T",
                "NaN? BRAIN | =T T T", "NaN? xorsign abs BRAIN | =T T T",
            ),
        )
    ),
    # --- moves, selections and comparisons
    Row(
        "mov", Lowers(movement.mov, "count"),
        "B8TO64 | =P P", "pred | =pred pred", "VECTOR B8TO64 | =V V", "b128 | =P P", flow="copy",
    ),
    Row("cvta", Lowers(movement.cvta, "space"), "to? SPACE u64 | =T T"),
    Row("isspacep", Lowers(movement.isspacep, "space"), "SPACE | =pred A"),
    Row("mapa", Lowers(clusters.map_address, "%cluster_nctarank"), "u32/u64 | =T T u32"),
    Row("mapa", Lowers(clusters.map_address, "%cluster_nctarank"), "shared::cluster u32/u64 | =T T u32"),
    Row("getctarank", Lowers(clusters.rank_of, "%cluster_ctarank"), "u32/u64 | =u32 T"),
    Row("getctarank", Lowers(clusters.rank_of, "%cluster_ctarank"), "shared::cluster u32/u64 | =u32 T"),
    Row("selp", Lowers(comparisons.selp), "SELECTED | =T T T pred", flow="select"),
    Row("slct", Lowers(comparisons.slct), "ftz? SELECTED f32/s32 | =T T T U", flow="select"),
    Row(
        "setp", Lowers(comparisons.setp, "word", "kind", loose=True),
        "eq/ne BITS | =pred|p T T", "eq/ne LOGIC BITS | =pred|p T T pred",
        "ORDER SIGNED | =pred|p T T", "ORDER LOGIC SIGNED | =pred|p T T pred",
        "ORDERU UNSIGNED | =pred|p T T", "ORDERU LOGIC UNSIGNED | =pred|p T T pred",
        "ORDERF ftz? f32/f64 | =pred|p T T", "ORDERF LOGIC ftz? f32/f64/f16/bf16 | =pred|p T T pred",
        "ORDERF ftz? f16/bf16 | =pred|p T T", "ORDERF ftz? f16x2/bf16x2 | =pred|p T T",
        "ORDERF LOGIC ftz? f16x2/bf16x2 | =pred|p T T pred",
        flow="choice",
    ),
    Row(
        "set", Lowers(comparisons.set_, "to", "word", "kind", loose=True),
        "eq/ne SET BITS | =T U U", "eq/ne LOGIC SET BITS | =T U U pred",
        "ORDER SET SIGNED | =T U U", "ORDER LOGIC SET SIGNED | =T U U pred",
        "ORDERU SET UNSIGNED | =T U U", "ORDERU LOGIC SET UNSIGNED | =T U U pred",
        "ORDERF ftz? u32/s32/f32/f16 f32/f64 | =T U U", "ORDERF LOGIC ftz? u32/s32/f32/f16 f32/f64 | =T U U pred",
        "ORDERF bf16 f32/f64/f16 | =T U U", "ORDERF LOGIC bf16 f32/f64/f16 | =T U U pred",
        "ORDERF ftz? f16/u16/s16/u32/s32 f16 | =T U U", "ORDERF LOGIC ftz? f16/u16/s16/u32/s32 f16 | =T U U pred",
        "ORDERF bf16/u16/s16/u32/s32 bf16 | =T U U", "ORDERF LOGIC bf16/u16/s16/u32/s32 bf16 | =T U U pred",
        "ORDERF ftz? f16x2/u32/s32 f16x2 | =T U U", "ORDERF LOGIC ftz? f16x2/u32/s32 f16x2 | =T U U pred",
        "ORDERF bf16x2/u32/s32 bf16x2 | =T U U", "ORDERF LOGIC bf16x2/u32/s32 bf16x2 | =T U U pred",
        flow="choice",
    ),
    # --- conversions
    Row("cvt", Lowers(conversions.cvt_integer, "to"), "INTEGER INTEGER | =T~ U~", flow="convert"),
    Row("cvt", Lowers(conversions.cvt_integer_sat, "to"), "sat INTEGER INTEGER | =T~ U~"),
    Row(
        "cvt", Lowers(conversions.cvt_pack, "to"),
        "pack sat u16/s16 s32 | =b32 s32 s32", "pack sat u8/s8/u4/s4/u2/s2 s32 b32 | =b32 s32 s32 b32",
    ),
    Row(
        "cvt", Lowers(conversions.integer_to_float, "to"),
        "RND ftz? sat? f16/f32/f64 INTEGER | =T~ U~", "RND bf16 INTEGER | =T~ U~",
    ),
    Row(
        "cvt", Lowers(conversions.float_to_integer, "to", "kind"),
        "rni/rzi/rmi/rpi ftz? sat? INTEGER f16/bf16/f32/f64 | =T~ U~",
    ),
    Row(
        "cvt", Lowers(conversions.float_to_float, "to", "kind"),
        "RND? ftz? sat? f16 f16/bf16/f32/f64 | =T~ U~", "RND? ftz? sat? f32 f16/bf16/f32/f64 | =T~ U~",
        "RND? ftz? sat? f64 f16/bf16/f32/f64 | =T~ U~",
        "rni/rzi/rmi/rpi ftz? sat? f16/f32/f64 f16/f32/f64 | =T~ U~", "rni/rzi/rmi/rpi bf16 bf16 | =T~ U~",
        "rn/rz relu? satfinite? f16/bf16 f32 | =T~ U~", "RND relu? satfinite? bf16 f16/f32/f64 | =T~ U~",
        "RND ftz bf16 f32 | =T~ U~", "bf16 f16/bf16 | =T~ U~",
    ),
    Row("cvt", Lowers(conversions.to_tf32), "rn/rz/rna relu? satfinite? tf32 f32 | =T~ U~"),
    Row("cvt", Lowers(conversions.pair_of_bytes, "kind"), "rn relu? f16x2 e4m3x2/e5m2x2 | =T~ U~"),
    Row("cvt", Lowers(conversions.pair_of_halves, "to"), "rn satfinite relu? e4m3x2/e5m2x2 f16x2 | =T~ U~"),
    Row(
        "cvt", Lowers(conversions.pair_of_singles, "to"),
        "rn/rz relu? satfinite? f16x2/bf16x2/e4m3x2/e5m2x2 f32 | =T~ U U",
    ),
    # --- memory
    Row(
        "ld", load, "weak? LOADED? nc? ca/cg/cs/lu/cv? EVICT? L2::cache_hint? PREFETCH? VECTOR? MOVED | =V M H?",
        access="ld", flow="fresh",
    ),
    Row(
        "ld", load,
        "volatile/mmio relaxed? SCOPE? MEMORY? VECTOR? MOVED | =V M",
        "relaxed/acquire SCOPE? MEMORY? EVICT? L2::cache_hint? PREFETCH? VECTOR? MOVED | =V M H?",
        access="ld", flow="fresh", spins=True,
    ),
    Row("ldu", load, "global? VECTOR? MOVED | =V M", access="ld", flow="fresh"),
    Row(
        "st", store,
        "weak? STORED? wb/cg/cs/wt? EVICT? L2::cache_hint? VECTOR? MOVED | M V H?",
        "volatile/mmio relaxed? SCOPE? WRITABLE? VECTOR? MOVED | M V",
        "relaxed/release SCOPE? WRITABLE? EVICT? L2::cache_hint? VECTOR? MOVED | M V H?",
        access="st", flow="fresh",
    ),
    Row(
        "atom", atomic,
        "ORDERING? SCOPE? ATOMIC? and/or/xor L2::cache_hint? b32/b64 | =T M T H?",
        "ORDERING? SCOPE? ATOMIC? add L2::cache_hint? u32/s32/u64/s64/f32/f64 | =T M T H?",
        "ORDERING? SCOPE? ATOMIC? min/max L2::cache_hint? INT3264 | =T M T H?",
        "ORDERING? SCOPE? ATOMIC? inc/dec L2::cache_hint? u32 | =T M T H?",
        "ORDERING? SCOPE? ATOMIC? add noftz f16/f16x2/bf16/bf16x2 | =T M T",
        "ORDERING? SCOPE? global add v2/v4 f32 | =V M V",
        access="atom", flow="fresh",
    ),
    Row(
        "atom", atomic,
        "ORDERING? SCOPE? ATOMIC? exch L2::cache_hint? b32/b64 | =T M T H?",
        "ORDERING? SCOPE? ATOMIC? exch b128 | =T M T",
        "ORDERING? SCOPE? ATOMIC? cas L2::cache_hint? b16/b32/b64/b128 | =T M T T H?",
        access="atom", flow="fresh", spins=True,
    ),
    Row(
        "red", atomic,
        "relaxed/release? SCOPE? ATOMIC? and/or/xor L2::cache_hint? b32/b64 | M T H?",
        "relaxed/release? SCOPE? ATOMIC? add L2::cache_hint? u32/s32/u64/s64/f32/f64 | M T H?",
        "relaxed/release? SCOPE? ATOMIC? min/max L2::cache_hint? INT3264 | M T H?",
        "relaxed/release? SCOPE? ATOMIC? inc/dec L2::cache_hint? u32 | M T H?",
        "relaxed/release? SCOPE? ATOMIC? add noftz f16/f16x2/bf16/bf16x2 | M T",
        "relaxed/release? SCOPE? global add v2/v4 f32 | M V",
        access="red", flow="fresh",
    ),
    Row("tex", texture, "base? GEOMETRY v4 f32/u32/s32 f32/s32 | =F4 X", access="tex", flow="fresh"),
    Row(
        "tex", further_texture,
        "base? CUBE v4 f32/u32/s32 f32 | =F4 X", "level GEOMETRY v4 f32/u32/s32 f32/s32 | =F4 X f32",
        "level CUBE v4 f32/u32/s32 f32 | =F4 X f32", "grad GEOMETRY v4 f32/u32/s32 f32 | =F4 X G G",
        "grad CUBE v4 f32/u32/s32 f32 | =F4 X G G",
        access="tex", flow="fresh",
    ),
    Row("tld4", further_texture, "r/g/b/a 2d/a2d/cube/acube v4 f32/u32/s32 f32 | =F4 X", access="tex", flow="fresh"),
    Row("suld", surface, "b GEOMETRY READ? v2/v4? b8/b16/b32/b64 EDGE | =V S", access="surf", flow="fresh"),
    Row("sust", surface, "b GEOMETRY WRITTEN? v2/v4? b8/b16/b32/b64 EDGE | S V", access="surf"),
    Row("prefetch", nothing, "global/local? L1/L2 | M", "global EVICT2 | M", "const/param? tensormap | M"),
    Row("prefetchu", nothing, "L1 | M"),
    Row("discard", nothing, "global? L2 | M #128"),
    Row("applypriority", nothing, "global? L2::evict_normal | M #128"),
    Row(
        "createpolicy", policy,
        "fractional PRIMARY SECONDARY? b64 | =b64 f32?", "range global? PRIMARY SECONDARY? b64 | =b64 M u32 u32",
        "cvt L2 b64 | =b64 b64",
        flow="fresh",
    ),
    # --- asynchronous copies, and barriers in memory
    Row("cp", copy, "async ca SHARED global L2::cache_hint? PREFETCH? | M M @4/8/16 Z? H?", access="cp"),
    Row("cp", copy, "async cg SHARED global L2::cache_hint? PREFETCH? | M M @16 Z? H?", access="cp"),
    Row("cp", copy_group, "async commit_group |", "async wait_group | #1000000", "async wait_all |", access="cp"),
    Row("cp", mbarrier, "async mbarrier arrive noinc? SHARED? b64 | M", access="cp"),
    Row("cp", copy_group, "async bulk commit_group |", "async bulk wait_group read? | #1000000", access="bulk"),
    Row("cp", nothing, "async bulk prefetch L2 global L2::cache_hint? | M u32 H?"),
    Row(
        "cp", bulk_copy,
        "async bulk shared::cta/shared::cluster global mbarrier::complete_tx::bytes L2::cache_hint? | M M u32 M H?",
        "async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint? "
        "| M M u32 M u16 H?",
        "async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes | M M u32 M",
        "async bulk global shared::cta bulk_group L2::cache_hint? | M M u32 H?",
        access="bulk",
    ),
    Row(
        "cp", bulk_copy,
        "reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes and/or/xor b32 | M M u32 M",
        "reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes add u32/s32/u64 | M M u32 M",
        "reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes min/max u32/s32 | M M u32 M",
        "reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes inc/dec u32 | M M u32 M",
        "reduce async bulk global shared::cta bulk_group L2::cache_hint? and/or/xor b32/b64 | M M u32 H?",
        "reduce async bulk global shared::cta bulk_group L2::cache_hint? add u32/s32/u64/f32/f64 | M M u32 H?",
        "reduce async bulk global shared::cta bulk_group L2::cache_hint? add noftz f16/bf16 | M M u32 H?",
        "reduce async bulk global shared::cta bulk_group L2::cache_hint? min/max f16/bf16 | M M u32 H?",
        "reduce async bulk global shared::cta bulk_group L2::cache_hint? min/max u32/s32/u64/s64 | M M u32 H?",
        "reduce async bulk global shared::cta bulk_group L2::cache_hint? inc/dec u32 | M M u32 H?",
        access="bulk",
    ),
    *TENSOR_ROWS,
    Row(
        "st", counted,
        "async weak? shared::cluster? mbarrier::complete_tx::bytes VECTOR? b32/b64/u32/u64/s32/s64/f32/f64 | M V M",
        access="st", flow="fresh",
    ),
    Row(
        "red", counted,
        "async relaxed cluster shared::cluster? mbarrier::complete_tx::bytes and/or/xor b32 | M T M",
        "async relaxed cluster shared::cluster? mbarrier::complete_tx::bytes add u32/s32/u64/s64 | M T M",
        "async relaxed cluster shared::cluster? mbarrier::complete_tx::bytes min/max u32/s32 | M T M",
        "async relaxed cluster shared::cluster? mbarrier::complete_tx::bytes inc/dec u32 | M T M",
        access="red", flow="fresh",
    ),
    Row(
        "mbarrier", mbarrier,
        "init SHARED? b64 | M u32", "inval SHARED? b64 | M",
        "expect_tx/complete_tx relaxed? cta/cluster? SHARED? b64 | M u32",
        "arrive/arrive_drop release/relaxed? cta/cluster? SHARED? b64 | =b64 M u32?",
        "arrive/arrive_drop noComplete release? cta/cluster? SHARED? b64 | =b64 M u32",
        "arrive/arrive_drop expect_tx release/relaxed? cta/cluster? SHARED? b64 | =b64 M u32",
        access="mbarrier",
    ),
    Row(
        "mbarrier", mbarrier,
        "test_wait acquire/relaxed? cta/cluster? SHARED? b64 | =pred M b64",
        "test_wait parity acquire/relaxed? cta/cluster? SHARED? b64 | =pred M u32",
        "try_wait acquire/relaxed? cta/cluster? SHARED? b64 | =pred M b64 u32?",
        "try_wait parity acquire/relaxed? cta/cluster? SHARED? b64 | =pred M u32 u32?",
        access="mbarrier", spins=True,
    ),
    Row("mbarrier", Lowers(barriers.pending_count), "pending_count b64 | =u32 b64"),
    # --- order and time
    Row("membar", fence, "cta/gl/sys |"),
    Row(
        "fence", fence,
        "sc/acq_rel/acquire/release? SCOPE |", "mbarrier_init release cluster |",
        "proxy alias |", "proxy async |", "proxy async global/shared::cta/shared::cluster |",
        "acquire sync_restrict::shared::cluster cluster |", "release sync_restrict::shared::cta cluster |",
        "proxy async::generic acquire sync_restrict::shared::cluster cluster |",
        "proxy async::generic release sync_restrict::shared::cta cluster |",
        "proxy tensormap::generic release SCOPE |", "proxy tensormap::generic acquire SCOPE | M @128",
    ),
    Row("nanosleep", nap, "u32 | u32", spins=True),
    Row("griddepcontrol", nothing, "launch_dependents/wait |"),
    Row("pmevent", nothing, "mask? | #65535"),
    # --- lanes of a warp
    Row("shfl", shuffle, "sync up/down/bfly/idx b32 | =b32|p b32 u32 u32 b32", converges="members", flow="fresh"),
    Row("vote", collective, "sync all/any/uni pred | =pred pred b32", converges="members", flow="fresh"),
    Row("vote", collective, "sync ballot b32 | =b32 pred b32", converges="members", flow="fresh"),
    # Without .sync, as in PTX before 6.4, the lanes that execute the instruction together take part.
    Row("shfl", shuffle, "up/down/bfly/idx b32 | =b32|p b32 u32 u32", flow="fresh"),
    Row("vote", collective, "all/any/uni pred | =pred pred", "ballot b32 | =b32 pred", flow="fresh"),
    Row("match", collective, "any sync b32/b64 | =b32 T b32", converges="members", flow="fresh"),
    Row("match", collective, "all sync b32/b64 | =b32|p T b32", converges="members", flow="fresh"),
    Row("redux", collective, "sync add/min/max u32/s32 | =T T b32", converges="members", flow="fresh"),
    Row("redux", collective, "sync and/or/xor b32 | =T T b32", converges="members", flow="fresh"),
    Row("elect", elect, "sync | =b32&p b32", converges="members", flow="fresh"),
    Row("activemask", activemask, "b32 | =b32", flow="fresh"),
    Row("bar", nothing, "warp sync | b32", converges="members"),
    # --- matrices
    *MATRIX_ROWS,
    # --- terminators of blocks, which the scheduler executes
    *(
        Row(
            name, None,
            "cta? sync aligned? | B N?", "cta? arrive aligned? | B N",
            "cta? red popc aligned? u32 | =u32 B pred", "cta? red popc aligned? u32 | =u32 B N pred",
            "cta? red and/or aligned? pred | =pred B pred", "cta? red and/or aligned? pred | =pred B N pred",
            ends="barrier",
        )
        for name in ("bar", "barrier")
    ),
    Row("barrier", None, "cluster arrive release/relaxed? aligned? |", ends="barrier"),
    Row("barrier", None, "cluster wait acquire? aligned? |", ends="barrier"),
    Row("bra", None, "uni? | L", ends="branch"),
    Row("brx", None, "idx uni? | u32 L", ends="switch"),
    # A call of a system function doesn't end a block: it is emitted.
    Row("call", system_call, "uni? | C", ends="call"),
    Row("ret", None, "uni? |", ends="return"),
    Row("exit", None, "|", ends="exit"),
    Row("trap", None, "|", ends="trap"),
)  # fmt: skip  # rows of a table


def by_name(rows: tuple[Row, ...]) -> dict[str, list[Row]]:
    """Return the rows of each opcode, keyed by its name.

    Raise ValueError for a modifier that wouldn't be passed to the row's lowering.
    """
    table = defaultdict(list)
    for row in rows:
        if isinstance(row.emit, Lowers):
            row.emit.check(row)
        table[row.name].append(row)
    return dict(table)


TABLE = by_name(ROWS)


@lru_cache(maxsize=4096)
def find_forms(opcode: str) -> tuple[Form, ...]:
    """Return the forms of an opcode, which differ in their operands; empty if the opcode isn't in the table."""
    name, *parts = opcode.split(".")
    return tuple(form for row in TABLE.get(name, ()) for form in row.forms(parts))


def form_of(instruction: Instruction) -> Form:
    """Return the form of an instruction that has been checked."""
    return find_forms(instruction.opcode)[0]
