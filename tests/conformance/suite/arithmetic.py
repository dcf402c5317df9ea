"""Arithmetic cases: floating point, integers, carries, bits, conversions, comparisons and approximations."""

from typing import Any

import numpy as np

from . import values
from .bounds import FUNCTIONS, PTX
from .frame import Array, Case, Out, rows


def row_case(
    group: str, kernel: str, inputs: Any, dtype: str, *, name: str = "", block: int = 128, n: int = 0, **how: Any
) -> Case:
    """Return a case for a row kernel, `kernel(inputs..., out, n)`, whose output has one row per instruction.

    There are `n` threads, or one thread per element of the first input. `how` contains further arguments of `Out`.
    """
    n = n or inputs[0].size
    labels = rows(group, kernel)
    out = Out("out", dtype, (len(labels), n), labels=labels, **how)
    return Case(group, kernel, -(-n // block), block, (*inputs, out, n), name=name)


def _floating() -> list[Case]:
    cases = []
    for group, dtype, n in (("fp32", np.float32, 1152), ("fp64", np.float64, 768)):
        pairs, triples = values.float_pairs(n, dtype), values.float_triples(n, dtype)
        for kernel, inputs in (("arithmetic", pairs), ("fused", triples), ("extrema", pairs), ("quotients", pairs)):
            cases.append(row_case(group, kernel, inputs, dtype.__name__))
    return [
        *cases,
        row_case("fp32", "fused", values.least_triples(1024), "float32", name="fused at the least normal"),
        row_case("half", "half", values.half_triples(512, values.HALVES), "uint16"),
        row_case("half", "bfloat", values.half_triples(512, values.BFLOATS), "uint16"),
        row_case("half", "pairs", [values.words(51 + k, 256) for k in range(3)], "uint32"),
    ]


def _integer() -> list[Case]:
    cases = []
    for bits in (16, 32, 64):
        for kind, dtype in (("signed", f"int{bits}"), ("unsigned", f"uint{bits}")):
            triples = values.integer_triples(512, dtype)
            cases.append(row_case("integer", f"{kind}{bits}", triples, dtype))
            cases.append(row_case("integer", f"{kind}{bits}_division", triples[:2], dtype))
    a, b, c = values.integer_triples(512, np.int32)
    wide = values.integer_triples(512, np.int64)[2]
    narrow = values.integer_triples(512, np.int16)
    longs = values.integer_triples(384, np.uint64)[:2]
    return [
        *cases,
        row_case("integer", "wide32", (a, b, wide), "int64"),
        row_case("integer", "wide16", (*narrow[:2], a), "int32"),
        row_case("integer", "dot_products", (a, b, c), "int32"),
        row_case("carry", "words32", values.integer_triples(512, np.uint32), "uint32"),
        row_case("carry", "words64", longs, "uint64"),
        row_case("carry", "int128", longs, "uint64"),
    ]


def _bits() -> list[Case]:
    n = 512
    cases = []
    for width in (16, 32, 64):
        a, b, _ = values.integer_triples(n, f"uint{width}")
        amounts = values.below(61 + width, n, 2 * width, np.uint32)
        amounts[:8] = [0, width - 1, width, width + 1, 255, 256, 0x80000000, 0xFFFFFFFF]
        cases.append(row_case("bits", f"logic{width}", (a, b, amounts), f"uint{width}"))
    a, b, c = values.integer_triples(n, np.uint32)
    wide, other, _ = values.integer_triples(n, np.uint64)
    amounts = values.below(71, n, 80, np.uint32)
    amounts[:4] = [31, 32, 33, 0xFFFFFFFF]
    positions, lengths = values.below(72, n, 72, np.uint32), values.below(73, n, 72, np.uint32)
    positions[:6], lengths[:6] = [0, 31, 32, 255, 256, 0], [0, 1, 8, 255, 3, 300]
    # Only the low eight bits of positions and lengths count; these values have more bits.
    few = [0, 1, 8, 31, 32, 33, 63, 64, 65, 127, 255, 256, 257, 264, 288, 319, 320, 511, 512, 0x80000001, 0xFFFFFFFF]
    beyond = values.crossed(np.array(few, np.uint32), np.array(few, np.uint32))
    m = beyond[0].size
    return [
        *cases,
        row_case("bits", "funnel", (a, b, amounts), "uint32"),
        row_case("bits", "logic_of_three", (a, b, c), "uint32"),
        row_case("bits", "fields32", (a, b, positions, lengths), "uint32"),
        row_case("bits", "fields64", (wide, other, positions, lengths), "uint64"),
        row_case("bits", "fields32", (a[:m], b[:m], *beyond), "uint32", name="fields32 beyond 255"),
        row_case("bits", "fields64", (wide[:m], other[:m], *beyond), "uint64", name="fields64 beyond 255"),
        row_case("bits", "masks", (positions, lengths), "uint32"),
        row_case("bits", "counts", (a, wide), "uint32"),
        row_case("bits", "reversed64", (wide,), "uint64"),
        row_case("bits", "permutation", (a, b, values.words(74, n)), "uint32"),
    ]


def _conversion_inputs() -> dict[str, Array]:
    halves = np.arange(-12, 12, dtype=np.float64) / 2
    ends = np.array(
        [s * (2.0**k + d) for s in (1, -1) for k in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0, 0.5, 1)]
    )
    floats = np.concatenate([values.FLOATS, halves.astype(np.float32), ends.astype(np.float32)])
    doubles = np.concatenate([values.DOUBLES, halves, ends, floats.astype(np.float64)])
    # Doubles at and next to the midpoints between two floats, and doubles below a float's normal range.
    single = values.near_one(81, 64, np.float32).astype(np.float64)
    ties = single + np.spacing(np.abs(single).astype(np.float32)).astype(np.float64) / 2
    tiny = values.near_one(82, 48, np.float64, 8) * 2.0**-140
    doubles = np.concatenate([doubles, ties, ties * (1 + 2.0**-52), tiny])
    small = values.near_one(83, 512, np.float32, 40)
    return {
        "float": np.concatenate([floats, small])[:512],
        "double": np.concatenate([doubles, values.near_one(84, 512, np.float64, 70)])[:640],
        "int32": values.integer_triples(512, np.int32)[2],
        "int64": values.integer_triples(512, np.int64)[2],
        "half": np.concatenate([values.HALVES, values.words(85, 493, np.uint16)])[:512],
    }


_TYPES = {
    "int32": "int32", "int64": "int64", "int": "int32", "float": "float32", "double": "float64", "half": "uint16"
}  # fmt: skip  # a row of a table
_CONVERSIONS = {
    "float": ("int32", "int64", "float", "double", "half"),
    "double": ("int32", "int64", "float", "double", "half"),
    "int32": ("int32", "int64", "float", "double", "half"),
    "int64": ("int32", "float", "double"),
    "half": ("int", "float", "double", "half"),
}


def _conversions() -> list[Case]:
    inputs = _conversion_inputs()
    cases = [
        row_case("convert", f"{source}_to_{kind}", (inputs[source],), _TYPES[kind])
        for source, kinds in _CONVERSIONS.items()
        for kind in kinds
    ]
    pairs = values.float_pairs(512)
    least = values.least_doubles(512)
    return [
        *cases,
        row_case("convert", "double_to_float", (least,), "float32", name="double_to_float at the least normal"),
        row_case("convert", "packed", values.integer_triples(512, np.int32), "int32"),
        row_case("convert", "float_pairs", (inputs["float"], values.near_one(86, 512, np.float32, 10)), "uint32"),
        row_case("convert", "tensor_float", (pairs[1],), "uint32"),
    ]


def _comparisons() -> list[Case]:
    floats = values.float_pairs(800)
    inputs = {
        "floats": floats,
        "doubles": values.float_pairs(704, np.float64),
        "halves": values.half_triples(448, values.HALVES)[:2],
        **{f"ints{bits}": values.integer_triples(384, f"int{bits}")[:2] for bits in (16, 32, 64)},
        "combined": floats,
        "predicates": floats,
    }
    cases = [row_case("compare", kernel, each, "uint8") for kernel, each in inputs.items()]
    return [*cases, row_case("compare", "selections", floats, "uint32")]


def _approximations() -> list[Case]:
    wide = np.concatenate([values.FLOATS, values.near_one(91, 486, np.float32, 40)])[:512]
    # Inputs in the range of the exponential, and inputs near one for the logarithm.
    near = (0.5 + np.arange(128) * (1.5 / 128)).astype(np.float32)
    moderate = np.concatenate([values.near_one(92, 384, np.float32, 7), near])
    angles = values.near_one(93, 512, np.float32, 12)
    angles = np.concatenate([values.FLOATS[[0, 1, 2, 3, 22, 23, 24]], angles[np.abs(angles) <= np.float32(np.pi)]])
    a, b = values.near_one(94, 512, np.float32, 60), values.near_one(95, 512, np.float32, 60)
    special = values.FLOATS.size
    a[:special], b[:special] = values.FLOATS, np.float32(1.5)
    a[special : 2 * special], b[special : 2 * special] = np.float32(-0.75), values.FLOATS
    # The manual bounds the error of div.approx only for divisors between 2^-126 and 2^126.
    b = np.where((np.abs(b) > np.float32(2.0**126)) & np.isfinite(b), np.float32(3), b)
    b = np.where((np.abs(b) < np.float32(2.0**-126)) & (b != 0), np.float32(3), b)
    doubles = np.concatenate([values.DOUBLES, values.near_one(96, 488, np.float64, 300)])
    halves = np.concatenate([values.HALVES, values.words(97, 237, np.uint16)])[:256]
    bfloats = np.concatenate([values.BFLOATS, values.words(98, 237, np.uint16)])
    few, few_doubles = values.FLOATS[[0, 1, 8, 9, 12, 13, 14, 22, 23, 24]], values.DOUBLES[[0, 1, 6, 7, 20, 21, 22]]
    ordinary = np.concatenate([few, values.near_one(99, 246, np.float32, 6)])
    double_ordinary = np.concatenate([few_doubles, values.near_one(100, 185, np.float64, 6)])
    return [
        row_case("approximate", "functions", (wide,), "float32", bounds=PTX),
        row_case("approximate", "functions", (moderate,), "float32", bounds=PTX, name="functions near one"),
        row_case("approximate", "angles", (angles[:256],), "float32", bounds=PTX),
        row_case("approximate", "quotients", (a, b), "float32", bounds=PTX),
        row_case("approximate", "doubles", (doubles,), "float64", bounds=PTX),
        row_case("approximate", "halves", (halves,), "uint16", bounds=PTX, view="float16"),
        row_case("approximate", "bfloats", (bfloats,), "float32", bounds=PTX),
        row_case("approximate", "math", (ordinary,), "float32", bounds=FUNCTIONS),
        row_case("approximate", "double_math", (double_ordinary,), "float64", bounds=FUNCTIONS),
    ]


def cases() -> list[Case]:
    with np.errstate(all="ignore"):  # overflow and underflow are part of the inputs
        return [*_floating(), *_integer(), *_bits(), *_conversions(), *_comparisons(), *_approximations()]
